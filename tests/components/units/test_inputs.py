"""What is encoded of a Doc for a mention or a pair, read as text again."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_luke.components.units.inputs import Input, unit_items
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import SENTENCES, make_wordpiece, tokenizer_json

TEXT = " ".join(SENTENCES)
MENTIONS = [(0, 2), (4, 5), (7, 9), (10, 12), (17, 18), (26, 29), (0, 5), (1, 3)]
PAIRS = np.array([[a, b] for a in range(8) for b in range(8) if a != b])


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en")


@pytest.fixture(scope="module")
def tokenizer():
    return PieceTokenizer.from_json(tokenizer_json())


def make_input(tokenizer, **changes):
    settings = {"attention": "full", "room": 400, "context": "document", "overlap": 16, "tokens": 1000}
    full = changes.get("attention", "full") == "full"
    markers = [tokenizer.piece_id("<ent>"), tokenizer.piece_id("<ent2>")] if full else []
    rows = [3, 5][: changes.pop("states", 2)]
    return Input(tokenizer=tokenizer, rows=rows, markers=markers[: len(rows)], **{**settings, **changes})


def make_doc(nlp, *, sentences=True):
    doc = nlp.make_doc(TEXT)
    for word in doc:
        word.is_sent_start = word.i == 0 or (sentences and doc[word.i - 1].text in ".!")
    return doc


def text_of(tokenizer, item):
    return tokenizer.backend.decode(item.pieces.tolist(), skip_special_tokens=False)


def read(tokenizer, item):
    """For each unit its number and the texts that its tokens cover."""
    for unit, number in zip(item.units_UK, item.number_U):
        yield (
            int(number),
            [
                tokenizer.backend.decode(
                    item.pieces[item.first_E[e] : item.last_E[e] + 1].tolist(), skip_special_tokens=False
                )
                for e in unit
            ],
        )


@pytest.mark.parametrize("context", ["document", "sentence"])
def test_full(nlp, tokenizer, context):
    """Every pair in a window of its own: its sentences, or the document, with the markers and nothing else changed."""
    doc = make_doc(nlp)
    sents = list(doc.sents)
    items = list(unit_items(make_input(tokenizer, context=context), doc, MENTIONS, PAIRS, owner=7))
    assert [item.number_U.tolist() for item in items] == [[i] for i in range(len(PAIRS))]
    for item in items:
        places = [MENTIONS[m] for m in PAIRS[item.number_U[0]]]
        words = text_of(tokenizer, item).removeprefix("<s>").removesuffix("</s>")
        plain = words.replace("<ent>", "").replace("<ent2>", "").strip()
        low, high = min(a for a, _ in places), max(b for _, b in places)
        held = [x for x in sents if x.end > low and x.start < high] if context == "sentence" else sents
        assert plain == doc[held[0].start : held[-1].end].text
        assert (item.owner, item.group, item.rows_E.tolist(), item.units_UK.tolist()) == (7, 2, [3, 5], [[0, 1]])
        ((_, texts),) = read(tokenizer, item)
        for text, marker, (a, b) in zip(texts, ["<ent>", "<ent2>"], places):
            assert text.startswith(marker)
            assert text.endswith(marker)
            assert text.replace("<ent>", "").replace("<ent2>", "").strip() == doc[a:b].text
        ids = item.pieces.tolist()
        assert all(ids.count(tokenizer.piece_id(x)) == 2 for x in ("<ent>", "<ent2>"))


def test_typing_has_one_marker(nlp, tokenizer):
    units = np.arange(len(MENTIONS))[:, None]
    items = list(unit_items(make_input(tokenizer, states=1), make_doc(nlp), MENTIONS, units, owner=0))
    assert text_of(tokenizer, items[1]).startswith("<s>Ada Lovelace lived in<ent> London<ent> near")
    assert [item.rows_E.tolist() for item in items] == [[3]] * len(MENTIONS)


@pytest.mark.parametrize("tokens", [1000, 7, 1])
@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("room", [400, 90, 40])
@pytest.mark.parametrize("context", ["document", "sentence"])
def test_one_way(nlp, tokenizer, context, room, pairwise, tokens):
    """Each pair once, with its own tokens for head and tail, in few windows and without markers."""
    doc = make_doc(nlp)
    task = make_input(tokenizer, attention="one_way", context=context, room=room, pairwise=pairwise, tokens=tokens)
    gold, lost = np.arange(len(PAIRS)) * 10, []
    items = list(unit_items(task, doc, MENTIONS, PAIRS, owner=7, gold=gold, lost=lost))
    numbers = [n for item in items for n in item.number_U.tolist()]
    assert sorted(numbers) == list(range(len(PAIRS)))
    assert not lost
    for item in items:
        assert len(item.pieces) <= room + 2
        assert item.gold.tolist() == [10 * n for n in item.number_U]
        assert item.group == (2 if pairwise else 1)
        assert len(item.rows_E) <= max(tokens, 2)
        assert len(item.rows_E) == 2 * len(item.number_U) if pairwise else len(item.rows_E) <= 16
        assert item.rows_E[item.units_UK].tolist() == [[3, 5]] * len(item.number_U)
        if pairwise:
            assert item.units_UK.reshape(-1).tolist() == list(range(len(item.rows_E)))
        for number, texts in read(tokenizer, item):
            assert [x.strip() for x in texts] == [doc[slice(*MENTIONS[m])].text for m in PAIRS[number]]
    if room == 400 and tokens == 1000:
        assert len([item for item in items if len(item.number_U) > 1]) == (1 if context == "document" else 2)


@pytest.mark.parametrize("room", [40, 62, 90])
def test_windows_between_windows(nlp, tokenizer, room):
    """Near mentions that no planned window holds share windows at fixed places, and have context on both sides."""
    doc = nlp.make_doc(" ".join([TEXT] * 6))
    mentions = [(i, i + 1) for i in range(0, len(doc), 2)]
    units = np.array([[a, a + d] for a in range(len(mentions)) for d in (1, 2, 3) if a + d < len(mentions)])
    task = make_input(tokenizer, attention="one_way", room=room, overlap=4)
    items = list(unit_items(task, doc, mentions, units, owner=0))
    assert sorted(n for item in items for n in item.number_U.tolist()) == list(range(len(units)))
    pieces = sum(len(tokenizer.encode(x)[0]) for x in [doc.text])
    shared = [item for item in items if len(item.number_U) > 1]
    assert sum(len(item.pieces) for item in shared) < 6 * pieces
    assert len({item.pieces.tobytes() for item in items}) < len(units) / 2
    for item in items:
        for number, texts in read(tokenizer, item):
            assert [x.strip() for x in texts] == [doc[slice(*mentions[m])].text for m in units[number]]
            alone = list(unit_items(task, doc, mentions, units[number : number + 1], owner=0))
            assert np.array_equal(alone[0].pieces, item.pieces)  # whichever else is asked


@pytest.mark.parametrize("room", [31, 40, 62, 90])
def test_windows_of_far_pairs_are_shared(nlp, tokenizer, room):
    """So many windows as the text has, not as many as there are pairs; each pair is read where it stands."""
    doc = nlp.make_doc(" ".join([TEXT] * 4))
    pieces = len(tokenizer.encode(doc.text)[0])
    task = make_input(tokenizer, attention="one_way", room=room, overlap=4)
    found = {}
    for every in (6, 3, 1):
        mentions = [(i, i + 1) for i in range(0, len(doc), every)]
        units = np.array([[a, b] for a in range(len(mentions)) for b in range(len(mentions)) if a != b])
        items = list(unit_items(task, doc, mentions, units, owner=0))
        found[every] = len({item.pieces.tobytes() for item in items})
        assert sorted(n for item in items for n in item.number_U.tolist()) == list(range(len(units)))
        assert max(len(item.pieces) for item in items) <= room + 2
        places = -(-pieces // (room // 2 // 2))  # where halves begin
        assert found[every] <= places * (places - 1) / 2 + 14 * pieces / room
        for item in items[:: max(len(items) // 20, 1)]:
            for number, texts in read(tokenizer, item):
                assert [x.strip() for x in texts] == [doc[slice(*mentions[m])].text for m in units[number]]


def test_words_are_not_marked_in_one_way(nlp, tokenizer):
    task = make_input(tokenizer, attention="one_way")
    ((item),) = unit_items(task, make_doc(nlp), MENTIONS, PAIRS, owner=0)
    assert text_of(tokenizer, item) == f"<s>{TEXT}</s>"


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_lost(nlp, attention):
    """Mentions without pieces, and those that are longer than a window."""
    tokenizer = make_wordpiece()
    for piece in ("<ent>", "<ent2>"):
        tokenizer.add_special_piece(piece)
    doc = Doc(nlp.vocab, words=["ada", "\u200b", *["london"] * 30], spaces=[True] * 32)
    mentions = [(0, 1), (1, 2), (3, 30), (0, 2)]
    units = np.array([[0, 1], [0, 2], [2, 0], [0, 3], [1, 3], [3, 0]])
    lost = []
    task = make_input(tokenizer, attention=attention, room=24)
    items = list(unit_items(task, doc, mentions, units, owner=0, lost=lost))
    assert sorted(lost) == [0, 1, 2, 4]
    assert sorted(n for item in items for n in item.number_U.tolist()) == [3, 5]


def test_nothing_asked(nlp, tokenizer):
    for attention in ("full", "one_way"):
        task = make_input(tokenizer, attention=attention)
        assert not list(unit_items(task, make_doc(nlp), MENTIONS, PAIRS[:0], owner=0))
        assert not list(unit_items(task, nlp.make_doc(""), [], PAIRS[:0], owner=0))
