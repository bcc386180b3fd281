"""Piece ids equal those of the tokenizers of transformers: the pure-Python ones of 4.x, whose behaviour the published
models were trained with; of 5.x (rewritten over `tokenizers`) only where that behaviour was kept."""

import json
import re
import shutil
import unicodedata

import pytest
from hypothesis import assume, given

from spacy_luke.text.tokenizer import PieceTokenizer
from tests.text.hard_texts import HARD, texts

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
SLOW = int(transformers.__version__.split(".")[0]) < 5
needs_slow = pytest.mark.skipif(not SLOW, reason="the pure-Python tokenizers are in transformers 4")
# Categories that changed between the Unicode of Python 3.11 and that of `tokenizers`.
CHANGED = "\u1734\U0001171e"
# These count as blanks in Python and not in Unicode: before <mask>, transformers 4 loses them, and `tokenizers` keeps
# them.
SEPARATORS_LOST = re.compile(r"[\x1c-\x1f]\s*<mask>")


@pytest.fixture(scope="module")
def luke(roberta_folder):
    (roberta_folder / "entity_vocab.json").write_text(json.dumps({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}))
    if SLOW:
        theirs = transformers.LukeTokenizer.from_pretrained(str(roberta_folder))
    else:
        theirs = transformers.LukeTokenizer(
            vocab=json.loads((roberta_folder / "vocab.json").read_text()),
            merges=[tuple(line.split()) for line in (roberta_folder / "merges.txt").read_text().split("\n")[1:-1]],
            entity_vocab=json.loads((roberta_folder / "entity_vocab.json").read_text()),
        )
    return theirs, PieceTokenizer.from_folder(roberta_folder)


@pytest.fixture(scope="module")
def roberta(roberta_folder):
    files = [str(roberta_folder / "vocab.json"), str(roberta_folder / "merges.txt")]
    theirs = transformers.RobertaTokenizer(*files)
    return theirs, PieceTokenizer.from_folder(roberta_folder)


@pytest.fixture(scope="module")
def berts(shared, tmp_path_factory):
    pairs = []
    for name, lower in (("bert_uncased", True), ("bert_cased", False)):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(shared(f"data/vocabularies/{name}") / "vocab.txt", folder / "vocab.txt")
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
        theirs = transformers.BertTokenizer(str(folder / "vocab.txt"), do_lower_case=lower)
        pairs.append((theirs, PieceTokenizer.from_folder(folder)))
    return pairs


@pytest.fixture(scope="module")
def bert_uncased(berts):
    return berts[0]


@pytest.fixture(scope="module")
def bert_cased(berts):
    return berts[1]


@pytest.fixture(scope="module")
def xlmr(folders):
    if folders["unigram"] is None:
        pytest.skip("the sentencepiece package is not installed")
    theirs = transformers.XLMRobertaTokenizer(str(folders["unigram"] / "sentencepiece.bpe.model"))
    return theirs, PieceTokenizer.from_folder(folders["unigram"])


def check(pair, text):
    theirs, mine = pair
    expected = theirs.encode(text, add_special_tokens=False)
    assert mine.encode(text)[0].tolist() == expected, repr(text)


@pytest.mark.parametrize("text", HARD)
def test_luke(luke, text):
    if not SLOW and ("<mask>" in text or "[MASK]" in text):
        pytest.skip("transformers 5 finds other special pieces in a text")
    check(luke, text)


@pytest.mark.parametrize("text", HARD)
@needs_slow
def test_roberta(roberta, text):
    if "<ent" not in text:
        check(roberta, text)


@pytest.mark.parametrize("text", HARD)
@needs_slow
def test_bert(berts, text):
    for pair in berts:
        check(pair, text)


@pytest.mark.parametrize("text", HARD)
@needs_slow
def test_xlmr(xlmr, text):
    check(xlmr, text)


@needs_slow
@given(text=texts)
def test_luke_on_any_text(luke, text):
    assume(not SEPARATORS_LOST.search(text))
    check(luke, text)


def test_no_separator_is_lost_before_mask(luke):
    _, mine = luke
    text = "a\x1c<mask>"
    ids, starts, ends = mine.encode(text)
    assert len(ids) == 3
    assert [text[a:b] for a, b in zip(starts, ends)] == ["a", "\x1c", "<mask>"]


@needs_slow
@given(text=texts)
def test_bert_on_any_text(berts, text):
    for pair in berts:
        check(pair, text)


@needs_slow
@given(text=texts)
def test_xlmr_on_any_text(xlmr, text):
    check(xlmr, text)


@needs_slow
@pytest.mark.parametrize("name", ["luke", "bert_uncased", "bert_cased", "xlmr"])
def test_every_character(request, name):
    """Each assigned character of the basic plane, in five contexts."""
    pair = request.getfixturevalue(name)
    for start in range(0, 0x10000, 16):
        chars = [chr(c) for c in range(start, start + 16) if not 0xD800 <= c < 0xE000]
        chars = [c for c in chars if unicodedata.category(c) != "Cn" and c not in CHANGED]
        check(pair, " ".join(f"a{c}b {c}. o{c}\u0301 e" for c in chars))


@pytest.mark.parametrize("name", ["luke", "bert_uncased", "bert_cased", "xlmr"])
def test_real_text(request, name, shared):
    lines = shared("data/conll2003/eng.testa").read_text(encoding="utf8").split("\n")
    text = " ".join(line.split()[0] for line in lines[:6000] if line)
    if name != "luke" and not SLOW:
        pytest.skip("the pure-Python tokenizers are in transformers 4")
    check(request.getfixturevalue(name), text)


def test_words_of_the_ner_recipe(luke, shared):
    """align_words equals the original NER code's pieces (add_prefix_space in transformers 4)."""
    from spacy_luke.text.align import align_words, has_blank

    theirs, mine = luke
    lines = shared("data/conll2003/eng.testa").read_text(encoding="utf8").split("\n")
    words = [line.split()[0] for line in lines[:3000] if line]
    expected = [theirs.encode(" " + w if has_blank(w) else w, add_special_tokens=False) for w in words]
    pieces = align_words(mine, words)
    assert pieces.ids_N.tolist() == [piece for word in expected for piece in word]
    assert (pieces.last_W - pieces.first_W).tolist() == [len(word) for word in expected]


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece", "unigram"])
def test_transformers_reads_our_export(folders, tmp_path, kind):
    if folders[kind] is None:
        pytest.skip("the sentencepiece package is not installed")
    if kind == "unigram" and not SLOW:
        pytest.skip("the pure-Python tokenizers are in transformers 4")
    mine = PieceTokenizer.from_folder(folders[kind])
    for piece in ("<ent>", "<ent2>"):
        mine.add_special_piece(piece)
    mine.save_huggingface(tmp_path)
    (tmp_path / "entity_vocab.json").write_text(json.dumps({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}))
    names = {"byte_bpe": "LukeTokenizer", "wordpiece": "BertTokenizer", "unigram": "MLukeTokenizer"}
    theirs = getattr(transformers, names[kind]).from_pretrained(str(tmp_path))
    assert len(theirs) == len(mine) or not SLOW
    assert (theirs.cls_token_id, theirs.pad_token_id, theirs.mask_token_id) == (mine.cls_id, mine.pad_id, mine.mask_id)
    for text in ["Los Angeles <ent>lives<ent2> in the", "They're <mask> late", *(HARD if SLOW else [])]:
        check((theirs, mine), text)
