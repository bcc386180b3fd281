"""Which words carry the entities of a knowledge graph: the original's rule, ours, and what is lost by either."""

import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span, SpanGroup

from spacy_luke.annotations import register_extensions
from spacy_luke.bridge.documents import read_document
from spacy_luke.components.knowledge import DISPLACED, NO_WORD, KnownEntity, align_known
from spacy_luke.text.backends import BERT_SPECIAL, build_wordpiece
from spacy_luke.text.tokenizer import PieceTokenizer

NLP = spacy.blank("en")
GETTERS = spacy.registry.misc


def golden_tokenizer(vocab, *, lower):
    settings = {"do_lower_case": lower, "tokenize_chinese_chars": False}  # the original leaves Chinese runs whole
    backend = build_wordpiece({piece: i for i, piece in enumerate(vocab)}, unk="[UNK]", settings=settings)
    return PieceTokenizer(backend, special=BERT_SPECIAL, settings=settings)


def place(doc, known, **kwargs):
    """{word: id}, and {id: reason} of the lost."""
    placed, lost = align_known(doc, [KnownEntity(*row) for row in known], **kwargs)
    assert len(placed) + len(lost) == len(known)
    return {doc[word].text: one.id for word, one in placed}, {one.id: reason for one, reason in lost}


@pytest.mark.parametrize("case", ["lower", "cased"])
def test_the_originals_rule(shared, case):
    golden = json.loads(shared("golden/ernie_alignment.json").read_text(encoding="utf8"))
    tokenizer = golden_tokenizer(golden["vocab"], lower=case == "lower")
    n_placed = 0
    for item in golden["texts"]:
        expected = item[case]
        known = [KnownEntity(start, end, name, score) for name, start, end, score in item["ents"]]
        doc = NLP(item["text"])
        placed, lost = align_known(doc, known, alignment="whitespace", strip_accents=case == "lower")
        pieces = read_document(doc, tokenizer).pieces
        assert pieces.ids_N.tolist() == expected["ids"], item["name"]
        found = ["UNK"] * len(expected["ids"])
        for word, one in placed:
            assert pieces.first_W[word] < pieces.last_W[word]
            found[pieces.first_W[word]] = one.id
        assert found == expected["entities"], item["name"]
        assert len(placed) + len(lost) == len(known)
        n_placed += len(placed)
    assert n_placed


def test_after_a_bracket():
    doc = NLP("the president (Obama) met non-Obama U.S. folk")
    known = [(15, 20, "Q76"), (30, 35, "Q77"), (36, 40, "Q30")]
    placed, lost = align_known(doc, [KnownEntity(*row) for row in known])
    assert [(doc[word].idx, one.id) for word, one in placed] == [(15, "Q76"), (30, "Q77"), (36, "Q30")]
    assert not lost
    assert place(doc, known, alignment="whitespace") == ({"U.S.": "Q30"}, {"Q76": NO_WORD, "Q77": NO_WORD})
    # The original's marks bring blanks: "(。 Obama 。)".
    found, lost = place(doc, known, alignment="whitespace", marked=[(15, 20)])
    assert (found, lost) == ({"Obama": "Q76", "U.S.": "Q30"}, {"Q77": NO_WORD})


@pytest.mark.parametrize(
    ("text", "mention", "word"),
    [
        ("東京 is in 日本", "日本", "日本"),
        ("I love 😀 Zürich 👩‍👩‍👧", "Zürich", "Zürich"),
        ("I love 😀 Zürich 👩‍👩‍👧", "👩‍👩‍👧", "👩"),
        ("José  met Bob", "José", "José"),
        ("a  b\n\n c", "  b", "b"),  # the blanks at its edge are no part of it
        ("a  b\n\n c", "\n\n c", "c"),
        ("x \u200bObama y", "\u200bObama", "\u200bObama"),
        ("Obama's house", "Obama", "Obama"),
        ("Obama's house", "'s", "'s"),
        ("New York-based firm", "York-based firm", "York"),
    ],
)
def test_hard_texts(text, mention, word):
    doc = NLP(text)
    start = text.index(mention)
    (found,), lost = align_known(doc, [KnownEntity(start, start + len(mention), "Q1")])
    assert doc[found[0]].text.startswith(word)
    assert not lost


def test_words_that_hold_several_mentions_or_parts():
    joined = Doc(NLP.vocab, words=["TokyoBerlin", "Paris"], spaces=[True, False])
    known = [(0, 5, "Q1"), (5, 11, "Q2"), (12, 17, "Q3"), (14, 17, "Q4")]
    assert place(joined, known[:3]) == ({"TokyoBerlin": "Q2", "Paris": "Q3"}, {"Q1": DISPLACED})
    assert place(joined, known)[1] == {"Q1": DISPLACED, "Q3": DISPLACED}
    assert place(joined, known, alignment="whitespace") == (
        {"TokyoBerlin": "Q1", "Paris": "Q3"},
        {"Q2": NO_WORD, "Q4": NO_WORD},
    )
    split = Doc(NLP.vocab, words=["To", "kyo", "Paris"], spaces=[False, True, False])
    assert place(split, [(0, 5, "Q1"), (2, 5, "Q2")]) == ({"To": "Q1", "kyo": "Q2"}, {})


@pytest.mark.parametrize("alignment", ["characters", "whitespace"])
def test_nonsense_is_lost_not_dropped(alignment):
    doc = NLP("Obama met Cook")
    known = [(5, 6, "blank"), (-1, 3, "before"), (99, 104, "after"), (0, 5, "first"), (0, 3, "second")]
    assert place(doc, known, alignment=alignment) == (
        {"Obama": "second"},
        {"blank": NO_WORD, "before": NO_WORD, "after": NO_WORD, "first": DISPLACED},
    )
    assert place(NLP(""), [(0, 1, "Q1")], alignment=alignment) == ({}, {"Q1": NO_WORD})
    assert align_known(doc, [], alignment=alignment) == ([], [])
    assert place(doc, [(3, 3, "empty")])[1] == {"empty": NO_WORD}
    with pytest.raises(ValueError, match="alignment must be one of"):
        align_known(doc, [], alignment="pieces")


@given(
    st.text(alphabet="aB(-.,東😀é \u0301\u200b\t\n", max_size=30),
    st.lists(st.tuples(st.integers(-2, 32), st.integers(-2, 32)), max_size=6),
    st.sampled_from(["characters", "whitespace"]),
    st.integers(0, 30),
)
def test_everything_is_accounted_for(text, places, alignment, cut):
    doc = NLP(text)
    known = [KnownEntity(start, end, f"Q{i}") for i, (start, end) in enumerate(places)]
    marked = [(cut, len(text))] if cut < len(text) else []
    placed, lost = align_known(doc, known, alignment=alignment, marked=marked)
    assert sorted([one.id for _, one in placed] + [one.id for one, _ in lost]) == [f"Q{i}" for i in range(len(known))]
    words = [word for word, _ in placed]
    assert words == sorted(set(words))
    if alignment == "characters":
        for word, one in placed:
            assert doc[word].idx < one.end
            assert one.start < doc[word].idx + len(doc[word])


def test_getters():
    doc = NLP("Ada Lovelace lived in London with Bob")
    doc.set_ents([Span(doc, 0, 2, "PER", kb_id="Q7259"), Span(doc, 4, 5, "LOC"), Span(doc, 6, 7, "PER", kb_id="NIL")])
    assert GETTERS.get("spacy-luke.linked_ents.v1")()(doc) == [KnownEntity(0, 12, "Q7259", 1.0)]
    linked = GETTERS.get("spacy-luke.linked_spans.v1")
    assert linked()(doc) == []
    spans = [Span(doc, 0, 2, "E", kb_id="Ada"), Span(doc, 4, 5, "E", kb_id="London"), Span(doc, 6, 7, "E")]
    doc.spans["luke_links"] = SpanGroup(doc, name="luke_links", spans=spans, attrs={"scores": [0.25, 0.5, 1.0]})
    assert linked(threshold=0.5)(doc) == [KnownEntity(22, 28, "London", 0.5)]
    doc.spans["plain"] = spans
    assert linked(key="plain")(doc) == [KnownEntity(0, 12, "Ada", 1.0), KnownEntity(22, 28, "London", 1.0)]
    doc.spans["luke_links"].append(Span(doc, 2, 3, "E", kb_id="x"))
    with pytest.raises(ValueError, match=r"has 4 spans, but attrs\['scores'\] has 3"):
        linked()(doc)


def test_given_entities():
    register_extensions()
    doc = NLP("Ada lived in London")
    given_entities = GETTERS.get("spacy-luke.given_entities.v1")
    assert given_entities()(doc) == []
    assert doc._.luke_knowledge == []
    doc._.luke_knowledge = [(0, 3, "Q7259"), (13, 19, "Q84", 0.3)]
    assert given_entities()(doc) == [KnownEntity(0, 3, "Q7259", 1.0)]  # .3 is not above .3
    assert given_entities(threshold=0.29)(doc)[1] == KnownEntity(13, 19, "Q84", 0.3)
    (copy,) = DocBin().from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes()).get_docs(NLP.vocab)
    assert copy._.luke_knowledge == doc._.luke_knowledge == [[0, 3, "Q7259", 1.0], [13, 19, "Q84", 0.3]]
    assert given_entities()(copy) == given_entities()(doc)
    for wrong in ([0, 3], [0, 30, "Q1"], [3, 3, "Q1"], [0, 3, ""], [0, 3, "Q1", "x"], [0, 3, 7], 5):
        with pytest.raises(ValueError, match="Given entity 1 must be"):
            doc._.luke_knowledge = [(0, 3, "Q7259"), wrong]
