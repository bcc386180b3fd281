"""What the gold of a Doc says and leaves open: its form, what keeps it, and what counts by it."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_luke.annotations import (
    NOTHING,
    Scope,
    get_all_rows,
    get_scope,
    get_scopes,
    register_extensions,
    scored_spans,
    set_scopes,
)

NLP = spacy.blank("en")
SCOPE = Scope(frozenset({"PER", "LOC"}), {"PLACE": frozenset({"LOC", "GPE"}), "X": None}, nested=False)
SET = Scope(meanings={"PLACE": frozenset({"LOC", "GPE"}), "MAYBE": frozenset({"PER", ""}), "X": None})
SWAPPED = Scope(meanings={"A": frozenset({"B"}), "B": frozenset({"A"})})


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


def made(text="Ada saw London. ", scopes=None):
    doc = NLP.make_doc(text)
    set_scopes(doc, {"entities": SCOPE, "relations": NOTHING} if scopes is None else scopes)
    return doc


def test_a_doc_keeps_it():
    doc = made()
    (stored,) = DocBin(docs=[doc], store_user_data=True).get_docs(NLP.vocab)
    part = doc[1:].as_doc(copy_user_data=True)
    joined = Doc.from_docs([doc, made("Nobody came.")])
    for other in (doc, doc.copy(), stored, Doc(NLP.vocab).from_bytes(doc.to_bytes()), part, joined):
        assert get_scope(other, "entities") == SCOPE
        assert get_scope(other, "relations") == NOTHING
        assert get_scope(other, "types").is_full
    assert doc._.luke_rows == get_all_rows(stored)


@pytest.mark.parametrize("other", [{}, {"entities": SCOPE}])
def test_docs_that_differ_cannot_be_read_together(other):
    with pytest.raises(ValueError, match="differ, or of which some have none"):
        get_scopes(Doc.from_docs([made(), made("Nobody came.", other)]))


def test_written_by_users():
    doc = NLP.make_doc("Ada")
    assert doc._.luke_scope is None
    doc._.luke_scope = {"entities": {"annotates": ["PER"], "labels": {"A": "PER", "B": ["PER", ""], "*": None}}}
    scope = get_scope(doc, "entities")
    assert scope == Scope(frozenset({"PER"}), {"A": frozenset({"PER"}), "B": frozenset({"PER", ""}), "*": None})
    assert doc._.luke_scope == {
        "entities": {"annotates": ["PER"], "labels": {"A": ["PER"], "B": ["", "PER"], "*": None}, "nested": True}
    }
    doc._.luke_scope = None
    assert doc._.luke_scope is None
    assert not doc.user_data
    doc._.luke_scope = {"types": {}}  # in full
    assert not doc.user_data


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"entity": {}}, "'entities', 'types', 'relations'"),
        ({"entities": {"label": {}}}, "What is said of a task must be"),
        ({"entities": {"labels": ["PER"]}}, "What is said of a task must be"),
        ({"entities": {"nested": "no"}}, "What is said of a task must be"),
        ({"entities": {"annotates": "PER"}}, "Expected a list of labels, but got 'PER'"),
        ({"entities": {"labels": {"A": [1]}}}, "Expected a list of labels"),
        ({"entities": {"labels": {"A": []}}}, "'A' means one of no labels: give some, or"),
        ({"entities": None}, "What is said of a task must be"),
    ],
)
def test_wrong_ones(table, message):
    doc = NLP.make_doc("Ada")
    with pytest.raises(ValueError, match=message):
        doc._.luke_scope = table


@pytest.mark.parametrize("row", [{}, {"task": "entities", "annotates": [1], "labels": {}, "nested": True}, 7])
def test_damaged_rows_are_refused(row):
    doc = NLP.make_doc("Ada")
    doc.user_data["luke_scope"] = [row]
    with pytest.raises(ValueError, match="row 0 must be"):
        get_scope(doc, "entities")


def test_what_labels_mean():
    assert SCOPE.meaning("PER") == {"PER"}
    assert SCOPE.meaning("X") is None
    assert SCOPE.named("PLACE") == {"LOC", "GPE"}
    assert NOTHING.meaning("anything") is None
    assert NOTHING.is_empty
    assert not SCOPE.is_empty
    assert [SCOPE.is_annotated(label) for label in ("PER", "GPE")] == [True, False]
    assert [SET.is_scored(label) for label in ("ORG", "PLACE", "MAYBE", "X")] == [True, True, False, False]
    assert [SET.is_plain(label) for label in ("ORG", "PLACE", "MAYBE", "X")] == [True, False, False, False]


@pytest.mark.parametrize(
    ("scope", "gold", "predicted", "counted"),
    [
        (Scope(), ["A"], ["A", "B"], ({"A"}, {"A", "B"})),
        (SCOPE, ["PER"], ["PER"], ({"PER"}, {"PER"})),
        (SCOPE, ["PER"], ["GPE"], ({"PER"}, set())),  # missed; GPE is not annotated
        (SCOPE, [], ["GPE", "LOC"], (set(), {"LOC"})),
        (SCOPE, ["GPE"], ["LOC"], (set(), {"LOC"})),
        (SCOPE, ["GPE"], ["GPE"], (set(), set())),  # found by luck or not, it says nothing of precision
        (SCOPE, ["PLACE"], ["LOC"], (set(), set())),
        (SCOPE, ["X"], ["PER"], (set(), set())),
        (SET, ["PLACE"], ["LOC"], ({"LOC"}, {"LOC"})),
        (SET, ["PLACE"], ["GPE"], ({"GPE"}, {"GPE"})),
        (SET, ["PLACE"], ["PER"], ({"GPE|LOC"}, {"PER"})),
        (SET, ["PLACE"], ["PLACE"], ({"GPE|LOC"}, {"PLACE"})),  # a label of the pipeline that means itself there
        (SET, ["PLACE"], [], ({"GPE|LOC"}, set())),
        (SET, ["MAYBE"], [], (set(), set())),
        (SET, ["MAYBE"], ["PER"], (set(), set())),
        (SET, ["MAYBE"], ["LOC"], (set(), {"LOC"})),
        (SWAPPED, ["A"], ["B"], ({"B"}, {"B"})),
        (SWAPPED, ["A"], ["A"], ({"B"}, {"A"})),
        (SWAPPED, ["A"], [], ({"B"}, set())),
        (SWAPPED, ["A", "B"], ["A"], ({"A", "B"}, {"A"})),
    ],
)
def test_what_is_scored(scope, gold, predicted, counted):
    assert scope.scored(gold, predicted) == counted


def test_spans_inside_others():
    gold = [(0, 4, "PER"), (6, 7, "LOC")]
    predicted = [(1, 2, "PER"), (1, 3, "LOC"), (3, 5, "PER"), (6, 7, "LOC"), (8, 9, "PER")]
    counted = {(1, 2, "PER"), (3, 5, "PER"), (6, 7, "LOC"), (8, 9, "PER")}
    assert scored_spans(SCOPE, gold, predicted, nested=True) == (set(gold), counted)
    assert scored_spans(SCOPE, gold, predicted, nested=False) == (set(gold), {*counted, (1, 3, "LOC")})
