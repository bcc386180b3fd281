"""Pieces of a text that is cut around mentions: equal to `LukeTokenizer`, and to a twin that encodes every stretch."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.text.align import align_text, align_words
from spacy_luke.text.segments import TextCutter, WordCutter
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.text.hard_texts import HARD, plain_texts, texts

try:
    import transformers
except ImportError:
    transformers = None

SLOW = transformers is not None and int(transformers.__version__.split(".")[0]) < 5
KINDS = ["byte_bpe", "wordpiece", "unigram"]
TASKS = {"entity_classification": 1, "entity_pair_classification": 2}  # mentions of each
MENTIONS = [  # texts with mentions, as characters
    ("Beyoncé lives in Los Angeles.", [(0, 7), (17, 28)]),
    ("Beyoncé lives in Los Angeles.", [(17, 28), (0, 7)]),
    ("Los Angeles's mayor", [(0, 11), (14, 19)]),
    ("in(Paris)and,Rome", [(3, 8), (13, 17)]),
    ("non-Paris-Dakar", [(4, 9), (10, 15)]),
    ("unhappiness prevails", [(2, 7), (12, 17)]),  # inside words
    (" Ada  Lovelace ", [(1, 4), (6, 14)]),
    ("Ada\n\nLovelace\tsaw \u00a0Rome", [(0, 3), (5, 13)]),
    ("é e\u0301 東京は日本の首都です 한글 x", [(5, 7), (8, 10)]),
    ("They're <mask> late, don't", [(0, 4), (21, 26)]),
    ("a <s>b</s> c<pad> d", [(2, 6), (11, 12)]),
    ("x" * 40 + " y " + "z" * 40, [(40 - 3, 40), (43, 60)]),
    ("😀👩‍👩‍👧‍👦 and 🇯🇵!", [(0, 1), (13, 15)]),
    ("one two", [(0, 3), (4, 7)]),  # side by side
    ("onetwo", [(0, 3), (3, 6)]),
]


def words_of(text):
    """Words as spaCy's, cut between letters, digits and all else: characters [start, end)."""
    words = []
    for _, run in itertools.groupby(range(len(text)), key=lambda i: (text[i].isalnum(), text[i] == " ")):
        run = list(run)
        if text[run[0]] == " ":
            run = run[1:]  # one blank belongs to the word before it
        if run:
            words.append((run[0], run[-1] + 1))
    return words


def words_for(text, mentions):
    """The same, cut at the borders of mentions too."""
    places = sorted({x for pair in mentions for x in pair})
    words = []
    for start, end in words_of(text):
        edges = [start, *(x for x in places if start < x < end), end]
        words += zip(edges, edges[1:])
    return words


def cutter_of(tokenizer, text, words):
    starts, ends = np.array(words, dtype=np.int64).reshape(-1, 2).T
    return TextCutter(tokenizer, align_text(tokenizer, text, starts, ends), text, starts, ends)


def cut_by_hand(tokenizer, text, mentions):
    """Every stretch between two cuts encoded by itself. mentions: characters. RETURNS: ids, and [first, last) of
    each."""

    def place(x):
        return x - 1 if x and text[x - 1] == " " else x

    cuts = sorted({place(x) for pair in mentions for x in pair} | {0, len(text)})
    ids, at = [], {0: 0}
    for a, b in zip(cuts, cuts[1:]):
        ids += tokenizer.encode(text[a:b])[0].tolist()
        at[b] = len(ids)
    return ids, [(at[place(a)], at[place(b)]) for a, b in mentions]


def check(tokenizer, text, words, mentions, *, cutter=None):
    """mentions: words [start, end)."""
    cutter = cutter or cutter_of(tokenizer, text, words)
    cut = cutter.cut(mentions)
    ids, places = cut_by_hand(tokenizer, text, [(words[a][0], words[b - 1][1]) for a, b in mentions])
    assert cut.ids(0, len(cut)).tolist() == ids, (text, mentions)
    assert len(cut) == len(ids)
    assert list(zip(cut.first_K, cut.last_K)) == places, (text, mentions)
    return cut


@pytest.fixture(params=KINDS)
def tokenizer(request, folders):
    if folders[request.param] is None:
        pytest.skip("the sentencepiece package is not installed")
    return PieceTokenizer.from_folder(folders[request.param])


@pytest.fixture(scope="module")
def luke(roberta_folder):
    """LukeTokenizer for each task, and ours."""
    if transformers is None:
        pytest.skip("transformers is not installed")
    (roberta_folder / "entity_vocab.json").write_text(json.dumps({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}))
    if SLOW:
        make = transformers.LukeTokenizer.from_pretrained
        theirs = {task: make(str(roberta_folder), task=task) for task in TASKS}
    else:
        settings = {
            "vocab": json.loads((roberta_folder / "vocab.json").read_text()),
            "merges": [tuple(line.split()) for line in (roberta_folder / "merges.txt").read_text().split("\n")[1:-1]],
            "entity_vocab": json.loads((roberta_folder / "entity_vocab.json").read_text()),
        }
        theirs = {task: transformers.LukeTokenizer(**settings, task=task) for task in TASKS}
    return theirs, PieceTokenizer.from_folder(roberta_folder)


def marked(cut, markers):
    """The cut text with a marker before and after each mention, by slicing: mentions apart, as LukeTokenizer's."""
    ids = cut.ids(0, len(cut)).tolist()
    places = sorted(zip(cut.first_K, cut.last_K, markers), reverse=True)
    for first, last, marker in places:
        ids = [*ids[:first], marker, *ids[first:last], marker, *ids[last:]]
    return ids


def check_luke(luke, task, text, mentions):
    theirs, mine = luke
    mentions = mentions[: TASKS[task]]
    encoded = theirs[task](text, entity_spans=mentions, add_special_tokens=False)
    words = words_for(text, mentions)
    chosen = []
    for a, b in mentions:
        inside = [w for w, (start, end) in enumerate(words) if start >= a and end <= b]
        chosen.append((inside[0], inside[-1] + 1))
    cut = check(mine, text, words, chosen)
    markers = [mine.piece_id("<ent>"), mine.piece_id("<ent2>")][: TASKS[task]]
    assert marked(cut, markers) == encoded["input_ids"], (text, mentions)
    shift = {first: 2 * i for i, first in enumerate(sorted(cut.first_K))}
    for first, last, positions in zip(cut.first_K, cut.last_K, encoded["entity_position_ids"], strict=True):
        theirs_K = [x for x in positions if x >= 0]
        mine_K = list(range(first + shift[first], last + shift[first] + 2))
        assert mine_K[:30] == theirs_K, (text, mentions)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("text", "mentions"), MENTIONS)
def test_luke(luke, text, mentions, task):
    if "<mask>" in text and not SLOW:
        pytest.skip("transformers 5 finds other special pieces in a text")
    check_luke(luke, task, text, mentions)


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
def test_luke_on_any_text(luke, task, data):
    """Mentions of words as spaCy's, not overlapping, in any order."""
    text = data.draw(plain_texts)
    words = words_of(text)
    if len(words) < 2:
        return
    places = st.lists(st.integers(0, len(words)), min_size=4, max_size=4, unique=True)
    edges = sorted(data.draw(places)) if len(words) > 2 else [0, 1, 1, 2]
    chosen = [(edges[0], edges[1]), (edges[2], edges[3])]
    if data.draw(st.booleans()):
        chosen.reverse()
    mentions = [(words[a][0], words[b - 1][1]) for a, b in chosen]
    if all(text[a:b].strip() for a, b in mentions):
        check_luke(luke, task, text, mentions)


def draw_words(data, text):
    """Words of letters, digits and others, or cut anywhere at all, with gaps."""
    if data.draw(st.booleans()):
        return words_of(text)
    cuts = data.draw(st.lists(st.integers(0, len(text)), unique=True, max_size=12).map(sorted))
    words = [(a, b) for a, b in zip(cuts, cuts[1:])]
    return [word for word in words if data.draw(st.integers(0, 4)) > 0]


@given(data=st.data())
def test_every_stretch_is_encoded_by_itself(tokenizer, data):
    """Mentions alone, nested, crossing, equal and side by side; several questions of one text."""
    text = data.draw(st.one_of(texts, st.lists(plain_texts, max_size=4).map(" ".join)))
    words = draw_words(data, text)
    if not words:
        return
    span = st.tuples(st.integers(0, len(words) - 1), st.integers(1, len(words))).filter(lambda x: x[0] < x[1])
    cutter = cutter_of(tokenizer, text, words)
    for _ in range(3):
        cut = check(tokenizer, text, words, data.draw(st.lists(span, max_size=3)), cutter=cutter)
        first, last = sorted(data.draw(st.tuples(st.integers(0, len(cut)), st.integers(0, len(cut)))))
        assert cut.ids(first, last).tolist() == cut.ids(0, len(cut)).tolist()[first:last]
        check_numbers(cut)


def check_numbers(cut):
    """New numbers of the old pieces rise, and outside what was changed they lead to the same piece."""
    numbers = [cut.number(p) for p in range(len(cut.base) + 1)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == len(cut)
    changed = {p for first, last, _ in cut.edits for p in range(first, last)}
    ids = cut.ids(0, len(cut))
    assert all(ids[numbers[p]] == cut.base[p] for p in range(len(cut.base)) if p not in changed)


@pytest.mark.parametrize("text", HARD)
def test_hard_texts(tokenizer, text):
    """Every word of each as a mention, and every pair of neighbours."""
    words = words_of(text)
    if not words:
        return
    cutter = cutter_of(tokenizer, text, words)
    for w in range(0, len(words), 1 + len(words) // 20):
        check(tokenizer, text, words, [(w, w + 1)], cutter=cutter)
        check(tokenizer, text, words, [(w, min(w + 2, len(words))), (max(w - 1, 0), w + 1)], cutter=cutter)


def test_a_long_text_is_not_encoded_again(tokenizer):
    """A cut encodes the stretch around it, and each such stretch once."""
    text = "the river lives in don't " * 3000 + "(Ada)Lovelace"
    words = words_of(text)
    cutter = cutter_of(tokenizer, text, words)
    encoded = []
    encode = tokenizer.encode
    cutter.tokenizer = type("Spy", (), {"encode": staticmethod(lambda x: encoded.append(x) or encode(x))})
    for _ in range(2):
        for w in range(len(words) - 5, len(words)):
            check(tokenizer, text, words, [(w, w + 1)], cutter=cutter)
    assert 0 < sum(map(len, encoded)) < 300


def test_added_pieces_with_blanks(folders):
    """A blank inside an added piece, or after one that takes it, is no place where pieces start anew."""
    from tokenizers import AddedToken

    tokenizer = PieceTokenizer.from_folder(folders["byte_bpe"])
    tokenizer.backend.add_tokens([AddedToken("Los Angeles", normalized=False), AddedToken("Ada", rstrip=True)])
    tokenizer = PieceTokenizer.from_json(tokenizer.to_json())
    text = "in Los Angeles and Ada Lovelace lives"
    words = words_of(text)
    whole = cutter_of(tokenizer, text, words)
    for w in range(len(words)):
        check(tokenizer, text, words, [(w, w + 1)], cutter=whole)


def test_words_without_a_text(tokenizer):
    """Where only the words are known, each is encoded by itself, so that cuts change nothing."""
    words = ["Ada", "'s", "東京", " ", "unhappiness", "."]
    pieces = align_words(tokenizer, words)
    cut = WordCutter(pieces).cut([(0, 2), (4, 5)])
    assert cut.ids(0, len(cut)).tolist() == pieces.ids_N.tolist()
    for k, (a, b) in enumerate([(0, 2), (4, 5)]):
        assert (cut.first_K[k], cut.last_K[k]) == (pieces.first_W[a], pieces.last_W[b - 1])
    assert cut.number(3) == 3


def test_mentions_without_pieces(folders):
    """WordPiece drops control and zero-width characters."""
    tokenizer = PieceTokenizer.from_folder(folders["wordpiece"])
    text = "the \u200b x"
    cut = check(tokenizer, text, [(0, 3), (4, 5), (6, 7)], [(1, 2), (0, 2)])
    assert cut.first_K[0] == cut.last_K[0]
    assert cut.first_K[1] < cut.last_K[1]
