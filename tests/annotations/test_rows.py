"""What is written on a Doc travels with it: right or refused, and never in another place."""

import copy
import warnings

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin

from spacy_luke.annotations import (
    KINDS,
    find_row,
    get_all_rows,
    get_found,
    get_parts,
    get_rows,
    get_second,
    set_found,
    set_rows,
    settle,
)
from spacy_luke.annotations import rows as rows_module

NLP = spacy.blank("en")
TEXT = "Ada met Bo. Bo met Cy in Dover. Eve slept."


def annotated(text=TEXT):
    doc = NLP.make_doc(text)
    ada, bo, other, cy = doc[0:1], doc[2:3], doc[4:5], doc[6:7]
    doc._.luke_relations = [(ada, bo, "knows"), (other, cy, "knows", 0.5), (ada, cy, "far")]
    doc._.luke_pairs = [(ada, bo), (other, cy)]
    doc._.luke_questions = [{"question": "Who met Cy?", "answers": [[12, 14]]}, {"question": "Why?", "answers": []}]
    set_found(doc, "luke_questions", [[[12, 14, 0.75], [0, 3, 0.25]], [[0, 0, 1.0]]])
    doc._.luke_queries = [{"query": "@placeholder slept", "candidates": [[0, 3], [32, 35]], "answers": [[32, 35]]}]
    doc._.luke_knowledge = [(0, 3, "Q1", 0.5), (19, 21, "Q2")]
    doc._.luke_candidates_given = [(25, 30, [("Q3", 0.5)])]
    set_rows(doc, "luke_linked", [[25, 30, [["Q3", 0.5, 0.75]]]])
    return doc


def relations(doc):
    return [(x.head.text, x.tail.text, x.label) for x in doc._.luke_relations]


def test_a_part_has_what_lies_in_it():
    doc = annotated()
    part = doc[4:10].as_doc(copy_user_data=True)
    assert part.text == "Bo met Cy in Dover. "
    assert relations(part) == [("Bo", "Cy", "knows")]
    assert [(a.text, b.text) for a, b in part._.luke_pairs] == [("Bo", "Cy")]
    assert part._.luke_questions == [
        {"id": "0", "question": "Who met Cy?", "answers": [[0, 2]]},
        {"id": "1", "question": "Why?", "answers": []},  # what is not in the text is not in its parts
    ]
    assert [(x.text, x.score) for x in part._.luke_answers] == [("Bo", 0.75), ("", 1.0)]
    assert part._.luke_queries == [{"id": "0", "query": "@placeholder slept", "candidates": []}]  # answers: not known
    assert part._.luke_knowledge == [[7, 9, "Q2", 1.0]]
    assert part._.luke_candidates_given == [[13, 18, [["Q3", 0.5]]]]
    assert [x.id for x in part[4:5]._.luke_candidates] == ["Q3"]
    assert relations(doc[0:3].as_doc(copy_user_data=True)) == [("Ada", "Bo", "knows")]
    assert relations(doc) == [("Ada", "Bo", "knows"), ("Bo", "Cy", "knows"), ("Ada", "Cy", "far")]
    assert get_all_rows(doc[4:10].as_doc()) == {}


def test_joined_docs_have_what_their_parts_have():
    first, second = annotated(), annotated()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = Doc.from_docs([first, NLP.make_doc("And then:"), second])
    assert relations(joined) == relations(first) * 2
    places = [(x.head.start_char, x.tail.start_char) for x in joined._.luke_relations]
    assert places == [(0, 8), (12, 19), (0, 19), (53, 61), (65, 72), (53, 72)]
    questions = joined._.luke_questions
    assert [x.get("answers") for x in questions] == [[[12, 14]], None, [[65, 67]], None]  # "no answer" of a part alone
    assert [x.text for x in joined._.luke_answers] == ["Bo", "", "Bo", ""]
    assert joined._.luke_answers[2].span.start_char == 65
    assert [x.id for x in joined[-5:-4]._.luke_candidates] == ["Q3"]
    asked = NLP.make_doc("No answer yet.")
    asked._.luke_questions = ["Who?"]
    assert get_found(Doc.from_docs([first, asked]), "luke_questions")[2:] == [[]]


def test_cut_and_joined_again():
    doc = annotated()
    parts = [span.as_doc(copy_user_data=True) for span in (doc[:4], doc[4:10], doc[10:])]
    assert get_all_rows(Doc.from_docs(parts)) == get_all_rows(doc)  # the text is whole again
    swapped = Doc.from_docs(parts[::-1])
    with pytest.raises(ValueError, match=r"The luke_relations of this Doc belong to another text.*settle\(part\)"):
        _ = swapped._.luke_relations
    settled = Doc.from_docs([settle(part) for part in parts[::-1]])
    assert settled.text == "Eve slept. Bo met Cy in Dover. Ada met Bo. "
    assert relations(settled) == [("Bo", "Cy", "knows"), ("Ada", "Bo", "knows")]


def test_scores_of_spans_travel_with_them():
    doc = annotated()
    doc[4:5]._.luke_score, doc[0:1]._.luke_types = 0.5, {"person": 0.75}
    part = settle(doc[4:10].as_doc(copy_user_data=True))
    assert part[0:1]._.luke_score == 0.5
    assert not [key for key in part.user_data if key[1] == "luke_types"]
    joined = Doc.from_docs([part, doc])
    assert (joined[0:1]._.luke_score, joined[6:7]._.luke_types) == (0.5, {"person": 0.75})


def test_another_text():
    doc, other = annotated(), NLP.make_doc(TEXT.replace("Ada", "Eva"))
    other.user_data = copy.deepcopy(doc.user_data)
    for read in (lambda: other._.luke_relations, lambda: other._.luke_questions, lambda: other._.luke_rows):
        with pytest.raises(ValueError, match=r"belong to another text: at its characters \[0, 42\) it has 'Eva met"):
            read()
    other._.luke_relations = [(other[0:1], other[2:3], "knows")]
    assert relations(other) == [("Eva", "Bo", "knows")]


def test_candidates_of_another_text():
    doc, other = annotated(), NLP.make_doc(TEXT.replace("Dover", "Paris"))
    other.user_data = copy.deepcopy(doc.user_data)
    with pytest.raises(ValueError, match="belong to another text"):
        _ = other[8:9]._.luke_candidates
    for junk in (3, [[25, 30, "Q3"]]):
        other.user_data["._.", "luke_linked.rows", 0, len(other.text)] = {"text": other.text, "rows": junk}
        with pytest.raises(ValueError, match=r"doc.user_data\['luke_linked'\].* must be"):
            _ = other[8:9]._.luke_candidates


def test_json():
    doc = annotated()
    doc[0:1]._.luke_score = 0.5
    written = srsly.json_loads(srsly.json_dumps(doc.to_json(underscore=["luke_rows", "luke_score"])))
    again = Doc(NLP.vocab).from_json(written, validate=True)
    assert get_all_rows(again) == get_all_rows(doc)
    assert again[0:1]._.luke_score == 0.5
    with pytest.raises(ValueError, match="E107"):  # spaCy's: a Relation is no JSON
        doc.to_json(underscore=["luke_relations"])
    with pytest.raises(ValueError, match=r"luke_rows must be a dict with keys of .'luke_relations'"):
        doc._.luke_rows = {"relations": []}


def linked(text, number):
    doc = NLP.make_doc(text)
    set_rows(
        doc, "luke_linked", [[word.idx, word.idx + len(word), [[f"{number}{word}", 0.5, 1]]] for word in list(doc)[::2]]
    )
    return doc


@pytest.mark.parametrize("joined", [False, True])
def test_one_row_is_that_of_all(joined, monkeypatch):
    """The rows of mentions one by one are those of all, which are read once, also after others took their place."""
    parts = [linked(TEXT, number) for number in range(3)]
    doc = Doc.from_docs(parts) if joined else parts[0]
    spans = [doc[i:j] for i in range(len(doc)) for j in (i + 1, i + 2) if j <= len(doc)]
    reads = []
    monkeypatch.setattr(rows_module, "get_parts", lambda *of, real=get_parts: reads.append(of) or real(*of))
    for new in (None, [[0, 3, [["Q7", 0.5, 1]]]], []):
        if new is not None:
            set_rows(doc, "luke_linked", new)
        by_place = {tuple(row[:2]): row for row in get_rows(doc, "luke_linked")}
        reads.clear()
        assert [find_row(x, "luke_linked") for x in spans] == [by_place.get((x.start_char, x.end_char)) for x in spans]
        assert len(reads) == (joined and new is None)
    doc.user_data["luke_linked"] = [[0, 3, [["Q8", 0.5, 1]]]]
    assert find_row(doc[0:1], "luke_linked")[2][0][0] == "Q8"
    del doc.user_data["luke_linked"]
    assert find_row(doc[0:1], "luke_linked") is None
    del doc.user_data["._.", "luke_linked.rows", 0, len(doc.text)]
    assert find_row(doc[0:1], "luke_linked") is None


def test_a_pair_of_texts():
    doc = NLP.make_doc("One text. Another one.")
    doc._.luke_second = 10
    assert doc.copy()._.luke_second == 10
    assert doc[1:5].as_doc(copy_user_data=True)._.luke_second == 6
    assert doc[:3].as_doc(copy_user_data=True)._.luke_second is None  # a single text
    assert doc[3:].as_doc(copy_user_data=True)._.luke_second is None
    joined = Doc.from_docs([doc, NLP.make_doc("More.")])
    with pytest.raises(ValueError, match=r"a pair of texts stands at the characters \[0, 22\), but the Doc has 28"):
        _ = joined._.luke_second
    joined._.luke_second = None
    assert get_second(joined) is None


def test_new_questions_have_no_answers():
    doc = annotated()
    doc._.luke_questions = ["Who slept?"]
    assert (doc._.luke_answers, get_found(doc, "luke_questions")) == ([], None)
    set_rows(doc, "luke_answers", [[], []])
    with pytest.raises(ValueError, match="luke_answers of 2 luke_questions, but 1 are asked"):
        _ = doc._.luke_answers


def test_plain_keys():
    """As older files have them, and as one writes them by hand: characters of the Doc as it is."""
    doc = NLP.make_doc(TEXT)
    doc.user_data["luke_relations"] = ((0, 3, 8, 10, "knows", 1),)
    doc.user_data["luke_second"] = 12
    doc.user_data["luke_questions"] = [{"question": "Who?"}]
    doc.user_data["luke_answers"] = [[(0, 3, 0.5)]]
    doc = next(DocBin().from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes()).get_docs(NLP.vocab))
    assert (relations(doc), doc._.luke_second) == ([("Ada", "Bo", "knows")], 12)
    assert doc._.luke_answers[0].text == "Ada"
    doc._.luke_relations = []
    assert (relations(doc), "luke_relations" in doc.user_data) == ([], False)
    doc = annotated()
    doc.user_data["luke_relations"] = [[0, 3, 8, 10, "by hand", 1.0]]
    assert relations(doc) == [("Ada", "Bo", "by hand")]


JUNK = [
    None,
    3,
    "abc",
    {"a": 1},
    [3],
    [None],
    [[1]],
    [["a", "b", "c"]],
    [[0, 3, "x"] * 4],
    [{"question": 3}],
    [[[0, 3]]],
]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_of_others(name, junk):
    doc = NLP.make_doc(TEXT)
    allowed = {"luke_second": [3, [3]]}
    doc.user_data[name] = junk
    read = (lambda: get_second(doc)) if name == "luke_second" else (lambda: get_rows(doc, name))
    if junk in allowed.get(name, []):
        assert read() == 3
        return
    with pytest.raises(ValueError, match=rf"doc.user_data\['{name}'\](: row 0)? must be "):
        read()


@pytest.mark.parametrize("value", [3, [], {}, {"text": 3, "rows": []}, {"text": TEXT}])
def test_junk_under_our_keys(value):
    doc = NLP.make_doc(TEXT)
    doc.user_data["._.", "luke_pairs.rows", 0, len(TEXT)] = value
    with pytest.raises(ValueError, match=r"luke_pairs.rows.* must be"):
        _ = doc._.luke_pairs
