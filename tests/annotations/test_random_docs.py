"""Random Docs through random chains of cuts, joins and files: what is written on them is right or refused."""

import pickle
from typing import NamedTuple

import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_luke.annotations import (
    get_found,
    get_rows,
    set_found,
    set_rows,
    settle,
)

NLP = spacy.blank("en")


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
