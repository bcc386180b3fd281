"""Relations, pairs, questions and answers in user_data, read as Spans."""

import importlib
import sys

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke import annotations
from spacy_luke.annotations import (
    Relation,
    get_relations,
    get_rows,
    get_score,
    get_types,
    register_extensions,
    set_score,
    set_types,
)

TEXT = "Ada Lovelace lived in London"


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


@pytest.fixture
def doc():
    doc = spacy.blank("en").make_doc(TEXT)
    doc.set_ents([Span(doc, 0, 2, label="PER", kb_id="Q7259")])
    return doc


def test_relations(doc):
    assert doc._.luke_relations == []
    doc._.luke_relations = [(doc[0:2], doc[4:5], "lives_in"), Relation(doc[4:5], doc[0:1], "knows", 0.25)]
    assert get_rows(doc, "luke_relations") == [[0, 12, 22, 28, "lives_in", 1.0], [22, 28, 0, 3, "knows", 0.25]]
    first, second = doc._.luke_relations
    assert (first.head.text, first.tail.text, first.label, first.score) == ("Ada Lovelace", "London", "lives_in", 1.0)
    assert (first.head.label_, first.head.kb_id_) == ("PER", "Q7259")  # the Doc's entity
    assert (second.tail.text, second.tail.label_) == ("Ada", "")
    doc._.luke_relations = []
    assert doc._.luke_relations == []


def test_pairs(doc):
    assert doc._.luke_pairs is None
    doc._.luke_pairs = []
    assert doc._.luke_pairs == []
    doc._.luke_pairs = [(doc[0:2], doc[4:5]), (doc[4:5], doc[4:5])]
    assert [(a.text, b.text) for a, b in doc._.luke_pairs] == [("Ada Lovelace", "London"), ("London", "London")]
    assert doc._.luke_pairs[0][0].label_ == "PER"


def test_they_survive(doc):
    doc._.luke_relations = [(doc[0:2], doc[4:5], "lives_in")]
    doc._.luke_pairs = [(doc[0:2], doc[4:5])]
    expected = str(doc._.luke_relations), str(doc._.luke_pairs)
    vocab = spacy.blank("de").vocab
    copies = [Doc(vocab).from_bytes(doc.to_bytes()), doc.copy()]
    copies += DocBin().from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes()).get_docs(vocab)
    for copy in copies:
        assert (str(copy._.luke_relations), str(copy._.luke_pairs)) == expected


def test_words_may_change(doc):
    """Places are characters, so that words can be merged and divided."""
    doc._.luke_relations = [(doc[0:2], doc[4:5], "lives_in")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.merge(doc[3:4])
    assert [(x.head.text, x.tail.text) for x in doc._.luke_relations] == [("Ada Lovelace", "London")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])
    assert doc._.luke_relations[0].tail.text == "in London"  # the words that have these characters


def test_spans_of_another_doc(doc):
    other = spacy.blank("en").make_doc(TEXT)
    with pytest.raises(ValueError, match="The span 'London' belongs to another Doc"):
        doc._.luke_relations = [(doc[0:2], other[4:5], "lives_in")]
    with pytest.raises(ValueError, match="belongs to another Doc"):
        doc._.luke_pairs = [(other[0:2], doc[4:5])]


@pytest.mark.parametrize("place", [[22, 900], [900, 905], [28, 29], [-3, 2]])
def test_places_outside_the_text(doc, place):
    doc.user_data["luke_relations"] = [[0, 3, *place, "x", 1.0]]
    with pytest.raises(ValueError, match=rf"characters \[{place[0]}, {place[1]}\), but the Doc's text has 28"):
        _ = doc._.luke_relations


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("luke_questions", "Who?", "Expected a list of questions, but got one str"),
        ("luke_questions", {"question": "Who?"}, "Expected a list of questions, but got one dict"),
        ("luke_questions", ["Who?", " "], "Item 1 must be a string or a dict with 'question'"),
        ("luke_questions", [3], "Item 0 must be a string or a dict with 'question'.* got 3"),
        (
            "luke_questions",
            [{"question": "Who?", "answers": [[0, 99]]}],
            r"answers must be .* has 28, but one is \[0, 99\]",
        ),
        ("luke_questions", [{"question": "Who?", "answers": [[3, 3]]}], r"one is \[3, 3\]"),
        ("luke_queries", ["Who lived in London"], "Query 0 must have @placeholder exactly once"),
        ("luke_queries", ["@placeholder and @placeholder"], "Query 0 must have @placeholder exactly once"),
    ],
)
def test_wrong_questions(doc, name, given, message):
    with pytest.raises(ValueError, match=message):
        setattr(doc._, name, given)


def test_questions_and_answers(doc):
    assert doc._.luke_questions == []
    assert doc._.luke_answers == []
    doc._.luke_questions = ["Who?", {"id": "x", "question": "Where?", "answers": ((22, 28),), "candidates": None}]
    assert doc._.luke_questions == [
        {"id": "0", "question": "Who?"},
        {"id": "x", "question": "Where?", "answers": [[22, 28]]},
    ]
    doc.user_data["luke_answers"] = [[[0, 12, 0.75], [0, 3, 0.25]], [[0, 0, 0.9], [22, 28, 0.1]]]
    who, where = doc._.luke_answers
    assert (who.question, who.text, who.span.text, who.score) == ("Who?", "Ada Lovelace", "Ada Lovelace", 0.75)
    assert (where.text, where.span, where.score) == ("", None, 0.9)
    assert where.spans[1].text == "London"


def test_types_of_a_span_that_nobody_has_typed(doc):
    """It has none; what is read is nobody else's, and reading writes nothing."""
    before = dict(doc.user_data)
    assert [*doc[0:2]._.luke_types] == []
    doc[0:2]._.luke_types["person"] = 1.0
    assert doc[0:2]._.luke_types == doc[4:5]._.luke_types == {}
    assert doc.user_data == before
    doc[0:2]._.luke_types = {"person": 0.75}
    again = Doc(doc.vocab).from_bytes(doc.to_bytes())
    for one in (doc, again, doc.copy()):
        assert (one[0:2]._.luke_types, one[4:5]._.luke_types) == ({"person": 0.75}, {})
    found = doc.to_json(underscore=["luke_types"])
    assert Doc(doc.vocab).from_json(found)[0:2]._.luke_types == {"person": 0.75}


def test_extensions_of_others_stay_and_are_told(doc):
    """What hides ours; what this package reads itself it reads all the same."""
    doc._.luke_relations = [(doc[0:2], doc[4:5], "lives_in")]
    doc.ents[0]._.luke_score = 0.25
    Doc.set_extension("luke_relations", default=3, force=True)
    Span.set_extension("luke_score", getter=lambda span: 7, force=True)
    try:
        with pytest.warns(UserWarning, match=r"has set doc\._\.luke_relations, span\._\.luke_score before") as told:
            register_extensions()
        assert len(told) == 1
        assert "Take that Doc.set_extension('luke_relations', ...) out" in str(told[0].message)
        assert doc._.luke_relations == 3
        assert [x.label for x in get_relations(doc)] == ["lives_in"]
        assert (doc.ents[0]._.luke_score, get_score(doc.ents[0])) == (7, 0.25)
    finally:
        Doc.remove_extension("luke_relations")
        Span.remove_extension("luke_score")
        register_extensions()
    assert doc.ents[0]._.luke_score == 0.25


def test_a_module_that_is_loaded_again_is_ours(recwarn, monkeypatch):
    old = annotations.relations
    monkeypatch.delitem(sys.modules, old.__name__)
    monkeypatch.setattr(annotations, "relations", old)  # both as before at the end
    again = importlib.import_module(old.__name__)
    assert again.get_relations is not old.get_relations
    Doc.set_extension("luke_relations", getter=again.get_relations, setter=again.set_relations, force=True)
    try:
        register_extensions()
    finally:
        Doc.remove_extension("luke_relations")
        register_extensions()
    assert not recwarn.list


def test_values_of_spans(doc):
    span = doc[0:2]
    assert (get_score(span), get_types(span)) == (None, {})
    set_score(span, 0.5)
    set_types(span, {"person": 0.75})
    assert (span._.luke_score, span._.luke_types) == (0.5, {"person": 0.75})
    span._.luke_score, span._.luke_types = 0.25, None
    assert (get_score(doc[0:2]), get_types(doc[0:2]), get_score(doc[0:1])) == (0.25, {}, None)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("luke_pairs", lambda doc: [(0, 1)], r"Expected a Span of the Doc, such as doc\[0:2\], but got 0 \(int\)"),
        ("luke_pairs", lambda doc: [(doc[0], doc[2])], "Expected a Span of the Doc.*Ada .Token"),
        ("luke_pairs", lambda doc: "x", r"Pair 0 must be \(head Span, tail Span\), but it is 'x'"),
        ("luke_relations", lambda doc: [(doc[0:1], doc[2:3])], r"Relation 0 must be \(head Span, tail Span, label\)"),
        ("luke_relations", lambda doc: "x", "Relation 0 must be .*but it is 'x'"),
        ("luke_relations", lambda doc: [("Ada", "Bob", "met")], "Expected a Span of the Doc"),
        (
            "luke_relations",
            lambda doc: [(doc[0:1], doc[2:3], "met", "high")],
            "a number as its score.*'met' and 'high'",
        ),
        ("luke_relations", lambda doc: [(doc[0:1], doc[2:3], None)], "a label that is a string.*None and 1.0"),
        ("luke_relations", lambda doc: [(doc[0:1], doc[2:3], "")], "a label that is a string, not empty"),
        (
            "luke_questions",
            lambda doc: [{"question": "Who?", "answers": ["Ada"]}],
            r"answers must be a list of \[start",
        ),
    ],
)
def test_values_that_are_no_annotation(name, make, message):
    doc = spacy.blank("en")("Ada met Bob.")
    with pytest.raises(ValueError, match=message):
        setattr(doc._, name, make(doc))
    setattr(doc._, name, None)  # takes all away
    assert not getattr(doc._, name)


@pytest.mark.parametrize("name", ["luke_questions", "luke_queries"])
def test_ids_of_questions(name):
    """A number is written as a string, as all ids are; what has none has its place in the list."""
    doc = spacy.blank("en").make_doc("Ada wrote.")
    field = name.removeprefix("luke_").replace("queries", "query").removesuffix("s")
    setattr(doc._, name, [{field: f"{w} @placeholder?", "id": i} for w, i in (("Who", 7), ("Why", None), ("How", "x"))])
    assert [x["id"] for x in getattr(doc._, name)] == ["7", "1", "x"]


def test_known_entities_are_taken_away():
    doc = spacy.blank("en").make_doc("Ada wrote.")
    doc._.luke_knowledge = [(0, 3, "Q1")]
    doc._.luke_knowledge = None
    assert list(doc._.luke_knowledge) == []
