"""What is written on a Doc travels with it: right or refused, and never in another place."""

import copy
import pickle
import warnings
from typing import NamedTuple

import pytest
import spacy
import srsly
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_luke.annotations import (
    KINDS,
    get_all_rows,
    get_found,
    get_rows,
    get_second,
    register_extensions,
    set_found,
    set_rows,
    settle,
)

NLP = spacy.blank("en")
TEXT = "Ada met Bo. Bo met Cy in Dover. Eve slept."


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


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


# ---- random Docs through random chains


class Truth(NamedTuple):
    """What a Doc should have. rows: (head, tail, label) with places; questions: (text, its answer, what was found, the
    text that it was asked of), places or None. cut: whether it was cut and not settled since; loose: whether such a
    part was joined, so that it may be refused."""

    text: str
    rows: list
    questions: list
    cut: bool = False
    loose: bool = False

    def moved(self, start, end, by, text, **changes):
        """With what lies in [start, end)."""

        def place(x):
            return (x[0] + by, x[1] + by) if x is not None and start <= x[0] and x[1] <= end else None

        rows = [(place(head), place(tail), label) for head, tail, label in self.rows]
        questions = [
            (name, place(gold), place(found), (a + by, b + by))
            for name, gold, found, (a, b) in self.questions
            if a < end and b > start
        ]
        return self._replace(text=text, rows=[x for x in rows if x[0] and x[1]], questions=questions, **changes)

    def settled(self):
        home = (0, len(self.text))
        return Truth(self.text, self.rows, [(*question[:3], home) for question in self.questions])


def make_truth(data, words):
    """Each word is there once, so that no part of a text is like another."""
    n = data.draw(st.integers(0, 5))
    texts = [f"{len(words) + i}{'x' * data.draw(st.integers(0, 3))}" for i in range(n)]
    words += texts
    doc = Doc(NLP.vocab, words=texts, spaces=data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    places = [(word.idx, word.idx + len(word)) for word in doc]
    some = st.sampled_from(places) if n else st.nothing()
    rows = data.draw(st.lists(st.tuples(some, some, st.sampled_from("ab")), max_size=3)) if n else []
    questions = data.draw(st.lists(st.tuples(st.sampled_from("??!"), some, some), max_size=2)) if n else []
    truth = Truth(doc.text, rows, [(*question, (0, len(doc.text))) for question in questions])
    write(doc, truth)
    return doc, truth


def write(doc, truth):
    set_rows(doc, "luke_relations", [[*head, *tail, label, 0.5] for head, tail, label in truth.rows])
    asked = [{"question": x, **({} if gold is None else {"answers": [gold]})} for x, gold, *_ in truth.questions]
    set_rows(doc, "luke_questions", asked)
    set_found(doc, "luke_questions", [[] if found is None else [[*found, 0.5]] for _, _, found, _ in truth.questions])


def read(doc):
    rows = [((a, b), (c, d), label) for a, b, c, d, label, _ in get_rows(doc, "luke_relations") or []]
    asked = get_rows(doc, "luke_questions") or []
    found = get_found(doc, "luke_questions") or [[] for _ in asked]
    questions = [
        (
            x["question"],
            tuple(x["answers"][0]) if "answers" in x else None,
            tuple(some[0][:2]) if some else None,
            (0, len(doc.text)),
        )
        for x, some in zip(asked, found, strict=True)
    ]
    return Truth(doc.text, rows, questions)


def cut(doc, truth, data):
    a = data.draw(st.integers(0, len(doc) - 1))
    span = doc[a : data.draw(st.integers(a + 1, len(doc)))]
    start, text = span.start_char, span.text_with_ws
    part = span.as_doc(copy_user_data=True)
    return part, truth.moved(start, start + len(text), -start, text, cut=True)


def join(doc, truth, other, new):
    joined = Doc.from_docs([doc, other])
    blank = " " * bool(truth.text and not truth.text.endswith(" "))
    text = truth.text + blank + new.text if len(other) else joined.text
    new = new.moved(0, len(new.text), len(text) - len(new.text), text)
    both = truth._replace(text=text, rows=truth.rows + new.rows, questions=truth.questions + new.questions, cut=False)
    return joined, both._replace(loose=truth.loose or new.loose or truth.cut or new.cut)


def retokenized(doc, data):
    a = data.draw(st.integers(0, len(doc) - 1))
    with doc.retokenize() as retokenizer:
        if data.draw(st.booleans()):
            retokenizer.merge(doc[a : a + 2])
        elif len(doc[a]) > 1:
            retokenizer.split(doc[a], [doc[a].text[:1], doc[a].text[1:]], heads=[(doc[a], 0), (doc[a], 1)])
    return doc


def as_json(doc):
    return Doc(NLP.vocab).from_json(srsly.json_loads(srsly.json_dumps(doc.to_json(underscore=["luke_rows"]))))


SAME = {
    "bytes": lambda doc: Doc(NLP.vocab).from_bytes(doc.to_bytes()),
    "copy": lambda doc: doc.copy(),
    "docbin": lambda doc: next(DocBin(docs=[doc], store_user_data=True).get_docs(NLP.vocab)),
    "pickle": lambda doc: Doc(NLP.vocab).from_bytes(pickle.loads(pickle.dumps(doc)).to_bytes()),
}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_right_or_refused(data):
    words = []
    doc, truth = make_truth(data, words)
    for step in data.draw(
        st.lists(st.sampled_from([*SAME, "cut", "join", "before", "words", "settle", "json", "write"]), max_size=7)
    ):
        if step in SAME:
            doc = SAME[step](doc)
        elif step in ("join", "before"):
            other = make_truth(data, words)
            if len(other[0]) and data.draw(st.booleans()):
                other = cut(*other, data)
            pair = [(doc, truth), other] if step == "join" else [other, (doc, truth)]
            doc, truth = join(*pair[0], *pair[1])
        elif step == "write":
            truth = truth.settled()
            write(doc, truth)
        elif len(doc) and step == "cut":
            doc, truth = cut(doc, truth, data)
        elif len(doc) and step == "words":
            doc = retokenized(doc, data)
        try:
            if step == "settle":
                doc, truth = settle(doc), truth.settled()
            elif step == "json" and len(doc):
                doc, truth = as_json(doc), truth.settled()
            found = read(doc)
        except ValueError as error:
            if not truth.loose or "belong to another text" not in str(error):
                raise
            write(doc, truth)
            truth = truth.settled()
            found = read(doc)
        assert found == truth.settled()
