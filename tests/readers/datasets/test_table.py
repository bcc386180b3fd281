"""Small files in each format, right and wrong."""

import json

import pytest
import spacy

from spacy_luke.annotations import get_rows
from spacy_luke.readers.datasets.table import DATASETS, dataset_docs, read_dataset

NLP = spacy.blank("en")

OPEN_ENTITY = {"sent": "He -LRB- Ed -RRB- lives .", "start": 9, "end": 11, "labels": ["person"], "ents": []}
UFET = {
    "left_context_token": ["He", "-LRB-"],
    "mention_span": "Ed II",
    "right_context_token": ["-RRB-", "lives"],
    "y_str": ["king", "person"],
}
TACRED = {
    "id": "1",
    "token": ["Ed", "of", "Bonn"],
    "subj_start": 2,
    "subj_end": 2,
    "obj_start": 0,
    "obj_end": 0,
    "subj_type": "CITY",
    "obj_type": "PERSON",
    "relation": "no_relation",
}
SEMEVAL = '1\t"The <e1>system</e1> has a "<e2>co</e2>-part"."\nOther\nComment: <e1>x<e2>\n\n2\t"<e1>A</e1><e2>B</e2>"\nX-Y(e2,e1)\n'  # noqa: E501
KBP37 = '7\t" <e1> Ed Ott </e1> of <e2> Bonn </e2> , here . "\nper:title(e1,e2)\n\n\n8\t"x<e1> A </e1>y <e2> B </e2>"\nno_relation\n'  # noqa: E501
FEWREL = {"P1": [{"tokens": ["a", "b", "c", "a"], "h": ["c", "Q3", [[2]]], "t": ["a", "Q1", [[0], [3]]]}]}
SPERT = {
    "tokens": ["Ed", "Ott", "of", "Bonn"],
    "entities": [{"type": "Peop", "start": 0, "end": 2}, {"type": "Loc", "start": 3, "end": 4}],
    "relations": [{"type": "Live_In", "head": 0, "tail": 1}],
}
SCIERC = {
    "doc_key": "x",
    "clusters": [],
    "sentences": [["We", "use", "CRFs", "."], ["They", "tag", "words"]],
    "ner": [[[2, 2, "Method"]], [[4, 4, "Generic"], [5, 6, "Task"]]],
    "relations": [[], [[4, 4, 5, 6, "USED-FOR"]]],
}
DOCRED = {
    "title": "x",
    "sents": [["Ed", "of", "Bonn"], ["Ed", "left"]],
    "vertexSet": [
        [{"sent_id": 0, "pos": [0, 1], "type": "PER"}, {"sent_id": 1, "pos": [0, 1], "type": "PER"}],
        [{"sent_id": 0, "pos": [2, 3], "type": "LOC"}],
    ],
    "labels": [{"h": 0, "t": 1, "r": "P19", "evidence": [0]}],
}
CONTEXT = "In 1,200 steps Ed reached Bonn, then Bonn burned."
SQUAD = {
    "data": [
        {
            "title": "x",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "q7",
                            "question": " Which city? ",
                            "answers": [{"text": "Bonn", "answer_start": 26}] * 2
                            + [{"text": "Bonn", "answer_start": 37}],
                        },
                        {
                            "id": "q8",
                            "question": "Why?",
                            "is_impossible": True,
                            "answers": [],
                            "plausible_answers": [{"text": "Ed", "answer_start": 15}],
                        },
                        {"question": "Hidden?"},
                        {"question": "How many?", "answers": [{"text": "200", "answer_start": 5}]},
                    ],
                }
            ],
        }
    ]
}
TRIPLES = [{"context": CONTEXT, "question": f"Q{i}?", "answer": answer} for i, answer in enumerate(["Bonn", "Ed"])]
RECORD = {
    "idx": 4,
    "passage": {"text": CONTEXT, "entities": [{"start": 15, "end": 16}, {"start": 26, "end": 29}, {"start": 37, "end": 40}]},  # noqa: E501
    "qas": [{"idx": 9, "query": "@placeholder is hot", "answers": [{"start": 26, "end": 29, "text": "Bonn"}]}],
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def write(content, *, lines=False):
        path = tmp_path / "data.txt"
        if not isinstance(content, str):
            content = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
        path.write_text(content, encoding="utf8")
        return path

    return write


def docs_of(path, format, **settings):
    return list(dataset_docs(NLP, path, format=format, **settings))


def relations(doc):
    return [(doc.text[a:b], doc.text[c:d], label) for a, b, c, d, label, _ in get_rows(doc, "luke_relations")]


def ents(doc):
    return [(entity.text, entity.label_) for entity in doc.ents]


def types(doc):
    return [(span.text, span.label_) for span in doc.spans["luke_types"]]


def test_open_entity(write):
    path = write([OPEN_ENTITY, {**OPEN_ENTITY, "labels": []}])
    first, second = docs_of(path, "open_entity")
    assert first.text == OPEN_ENTITY["sent"]
    assert not first.has_unknown_spaces
    assert not first.has_annotation("ENT_IOB")
    assert (types(first), types(second)) == ([("Ed", "person")], [("Ed", "")])
    paper, _ = docs_of(path, "open_entity", text="paper")
    assert (paper.text, types(paper)) == ("He ( Ed ) lives .", [("Ed", "person")])
    assert [sentence.text for sentence in paper.sents] == ["He ( Ed ) lives ."]


def test_ufet(write):
    path = write([UFET], lines=True)
    (doc,) = docs_of(path, "ufet")
    assert doc.has_unknown_spaces
    assert [word.text for word in doc] == ["He", "-LRB-", "Ed", "II", "-RRB-", "lives"]
    assert types(doc) == [("Ed II", "king"), ("Ed II", "person")]
    (paper,) = docs_of(path, "ufet", text="paper")
    assert (paper.text, paper.has_unknown_spaces) == ("He ( Ed II ) lives", False)


def test_tacred(write):
    (first, second) = docs_of(write([TACRED, {**TACRED, "relation": "city:mayor"}]), "tacred")
    assert get_rows(first, "luke_pairs") == [[6, 10, 0, 2]]  # the subject is the head, wherever it stands
    assert (relations(first), relations(second)) == ([], [("Bonn", "Ed", "city:mayor")])
    assert ents(first) == [("Ed", "PERSON"), ("Bonn", "CITY")]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_semeval2010(write, newline):
    path = write("")
    path.write_bytes(SEMEVAL.replace("\n", newline).encode())
    first, second = docs_of(path, "semeval2010")
    assert first.text == 'The system has a "co-part".'
    assert (relations(first), relations(second)) == ([], [("A", "B", "X-Y(e2,e1)")])
    assert ents(first) == [("system", "ENTITY"), ("co", "ENTITY")]
    assert [word.text for word in second] == ["A", "B"]  # "AB" is one word for spaCy
    assert get_rows(second, "luke_pairs") == [[0, 1, 1, 2]]


def test_kbp37(write):
    first, second = docs_of(write(KBP37), "kbp37")
    assert (first.text, relations(first)) == ("Ed Ott of Bonn , here .", [("Ed Ott", "Bonn", "per:title(e1,e2)")])
    assert (second.text, relations(second), ents(second)) == ("x A y B", [], [("A", "ENTITY"), ("B", "ENTITY")])
    assert docs_of(write(KBP37), "kbp37", text="paper")[0].text == "Ed Ott of Bonn , here."


def test_fewrel(write):
    (doc,) = docs_of(write(FEWREL), "fewrel")
    assert relations(doc) == [("c", "a", "P1")]
    assert get_rows(doc, "luke_pairs") == [[4, 5, 0, 1]]
    assert [(e.text, e.kb_id_) for e in doc.ents] == [("a", "Q1"), ("c", "Q3"), ("a", "Q1")]


def test_conll04(write):
    tagged = {**SPERT, "tags": ["B-Peop", "L-Peop", "O", "U-Loc"]}
    del tagged["entities"]
    first, second = docs_of(write([SPERT, tagged]), "conll04")
    assert ents(first) == ents(second) == [("Ed Ott", "Peop"), ("Bonn", "Loc")]
    assert relations(first) == relations(second) == [("Ed Ott", "Bonn", "Live_In")]
    assert get_rows(first, "luke_pairs") is None


def test_scierc(write):
    (doc,) = docs_of(write([SCIERC], lines=True), "scierc")
    assert ents(doc) == [("CRFs", "Method"), ("They", "Generic"), ("tag words", "Task")]
    assert relations(doc) == [("They", "tag words", "USED-FOR")]
    assert [len(sentence) for sentence in doc.sents] == [4, 3]


def test_docred(write):
    path = write([DOCRED, {key: value for key, value in DOCRED.items() if key != "labels"}])
    doc, unlabelled = docs_of(path, "docred")
    assert get_rows(doc, "luke_relations") == [[0, 2, 6, 10, "P19", 1.0], [11, 13, 6, 10, "P19", 1.0]]
    assert [entity.label_ for entity in doc.ents] == ["PER", "LOC", "PER"]
    assert get_rows(unlabelled, "luke_relations") is None
    assert len(get_rows(docs_of(path, "docred", mention_pairs="first")[0], "luke_relations")) == 1


def test_docred_pairs_of_equal_mentions(write):
    twice = {**DOCRED, "vertexSet": [DOCRED["vertexSet"][0], [DOCRED["vertexSet"][0][0]]]}
    for mention_pairs in ("all", "first"):
        (doc,) = docs_of(write([twice]), "docred", mention_pairs=mention_pairs)
        assert get_rows(doc, "luke_relations") == [[11, 13, 0, 2, "P19", 1.0]]
    same = {**DOCRED, "vertexSet": [[DOCRED["vertexSet"][0][0]]] * 2}
    with pytest.raises(ValueError, match="item 0, label 0: its head and tail have the same words: entities 0, 1"):
        docs_of(write([same]), "docred")


def test_squad(write):
    (doc,) = docs_of(write(SQUAD), "squad")
    assert doc.text == CONTEXT
    assert [word.text for word in doc] == [word.text for word in NLP.make_doc(CONTEXT)]
    assert not doc.has_annotation("ENT_IOB")
    first, second, third, fourth = get_rows(doc, "luke_questions")
    assert first == {"id": "q7", "question": "Which city?", "answers": [[26, 30], [37, 41]]}
    assert second["answers"] == []
    assert third == {"id": "2", "question": "Hidden?"}
    assert fourth["answers"] == [[5, 8]]


def test_squad_triples(write):
    (doc,) = docs_of(write(TRIPLES), "squad_triples")
    assert [q["answers"] for q in get_rows(doc, "luke_questions")] == [[[26, 30]], [[15, 17]]]


@pytest.mark.parametrize("shape", ["lines", "original", "original, indented"])
def test_record(write, shape):
    original = {"version": "1.0", "data": [RECORD]}
    path = write([RECORD], lines=True) if shape == "lines" else write(original)
    if "indented" in shape:
        path.write_text(json.dumps(original, indent=1))
    (doc,) = docs_of(path, "record")
    (query,) = get_rows(doc, "luke_queries")
    assert query == {
        "id": "9",
        "query": "@placeholder is hot",
        "candidates": [[15, 17], [26, 30], [37, 41]],
        "answers": [[26, 30]],
    }
    assert ents(doc) == [("Ed", "ENTITY"), ("Bonn", "ENTITY"), ("Bonn", "ENTITY")]


def change(value, *path, to):
    """A copy with one thing changed, or taken out where `to` is `change`."""
    value = json.loads(json.dumps(value))
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if to is change:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return value


QAS = ("data", 0, "paragraphs", 0, "qas")


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("open_entity", "[{]", "line 1: expected JSON"),
        ("tacred", "{}\n{}\n", "line 2: .*must be one value, such as one list, not one a line"),
        ("open_entity", [], "expected a JSON list of objects"),
        ("open_entity", [OPEN_ENTITY, 3], "item 1: expected an object, but got '3'"),
        ("open_entity", [OPEN_ENTITY, change(OPEN_ENTITY, "end", to=change)], "item 1: expected 'end' .int., but got "
            "an"),
        ("open_entity", [OPEN_ENTITY, change(OPEN_ENTITY, "end", to="5")], "item 1: expected 'end' .int., but got '5'"),
        ("open_entity", [OPEN_ENTITY, change(OPEN_ENTITY, "end", to=99)], "item 1: mention .* which has 25"),
        ("open_entity", [OPEN_ENTITY, change(OPEN_ENTITY, "labels", 0, to="")], "item 1: expected strings under "
            "'labels'"),
        ("ufet", [UFET, change(UFET, "mention_span", to=" ")], "line 2: mention .* must hold words"),
        ("ufet", [UFET, change(UFET, "left_context_token", 1, to="")], "line 2: .*number 1 is ''"),
        ("tacred", [TACRED, change(TACRED, "relation", to=" ")], "item 1: expected a relation"),
        ("tacred", [TACRED, change(TACRED, "obj_end", to=7)], "item 1: mention .0, 8, 'PERSON'. must hold words"),
        ("tacred", [TACRED, change(TACRED, "obj_start", to=1)], "item 1: mention .1, 1, 'PERSON'. must hold words"),
        ("tacred", [TACRED, {**TACRED, "obj_start": 2, "obj_end": 2}], "item 1: .*one mention as head and tail"),
        ("semeval2010", "\n\n", "the file holds none"),
        ("semeval2010", SEMEVAL + "\n3\tno marks\nOther\n", "line 8: .*<e1> is missing"),
        ("semeval2010", SEMEVAL + "\n3\t<e1>a</e1> <e1>b</e1>\nOther\n", "line 8: expected <e1> once"),
        ("semeval2010", SEMEVAL + "\n3\t<e1>a</e1> <e2>b</e2>\n", "line 8: .*but got 1 lines"),
        ("semeval2010", SEMEVAL + "\n3\t<e1>a</e1> <e2>b</e2>\nOther\nmore\n", "line 8: .*but got 3 lines"),
        ("semeval2010", SEMEVAL + "\n3 <e1>a</e1> <e2>b</e2>\nOther\n", "line 8: expected a number, a tab"),
        ("kbp37", KBP37 + "\n9\t<e1> </e1> <e2>b</e2>\nx\n", "line 8: mention .* not blanks alone"),
        ("fewrel", [1], "expected an object of relations"),
        ("fewrel", change(FEWREL, "P1", 0, "t", 2, 1, to=[0, 3]), "relation 'P1', item 0: expected 't' as"),
        ("fewrel", change(FEWREL, "P1", 0, "h", 2, to=[]), "relation 'P1', item 0: expected 'h' as"),
        ("fewrel", change(FEWREL, "P1", 0, "h", 2, 0, to=[4]), "relation 'P1', item 0: mention .4, 5"),
        ("conll04", [SPERT, change(SPERT, "entities", 1, "end", to=change)], "item 1, entity 1: expected 'end'"),
        ("conll04", [SPERT, change(SPERT, "relations", 0, "tail", to=2)], "item 1: relation 0 .'Live_In'. must have"),
        ("conll04", [{**change(SPERT, "entities", to=change), "tags": ["O"]}], "item 0: expected a tag for each of the "
            "4"),
        ("conll04", [{**change(SPERT, "entities", to=change), "tags": ["O", "X", "O", "O"]}], "item 0, tag 1: expected "
            "the"),
        ("scierc", [SCIERC, change(SCIERC, "ner", 0, 0, to=[2, "X"])], "line 2, sentence 0: expected 2 numbers and a"),
        ("scierc", [SCIERC, change(SCIERC, "ner", to=[[]])], "line 2: expected a list for each of the 2 sentences"),
        ("scierc", [SCIERC, change(SCIERC, "relations", 1, 0, 3, to=5)], "line 2, sentence 1: .*words 5 to 5, which "
            "are no"),
        ("scierc", [SCIERC, change(SCIERC, "sentences", 1, to=[])], "line 2: sentence 1 has no words"),
        ("docred", [DOCRED, change(DOCRED, "labels", 0, "t", to=2)], "item 1, label 0: expected a number of the 2 "
            "entities"),
        ("docred", [DOCRED, change(DOCRED, "vertexSet", 1, 0, "pos", to=[2, 4])], "item 1, entity 1, mention 0: 'pos'"),
        ("docred", [DOCRED, change(DOCRED, "vertexSet", 1, 0, "sent_id", to=2)], "mention 0: expected 'sent_id' below "
            "2"),
        ("docred", [DOCRED, change(DOCRED, "vertexSet", 1, to=[])], "item 1, entity 1: expected a list of mentions"),
        ("squad", change(SQUAD, *QAS, 0, "answers", 1, "answer_start", to=25), "paragraph 0, question 0, answer 1: .*' "
            "Bon'"),
        ("squad", change(SQUAD, *QAS, 0, "answers", 1, "text", to=""), "question 0, answer 1: expected ''"),
        ("squad", change(SQUAD, *QAS, 1, "answers", to=[{"text": "Ed", "answer_start": 15}]), "question 1: "
            ".*is_impossible"),
        ("squad", change(SQUAD, *QAS, 2, "question", to=change), "question 2: expected 'question'"),
        ("squad", change(SQUAD, "data", to=change), "expected 'data'"),
        ("squad_triples", change(TRIPLES, 1, "answer", to="Rome"), "item 1: expected an answer that stands in the "
            "context"),
        ("record", [RECORD, change(RECORD, "qas", 0, "answers", 0, "text", to="Rome")], "line 2, query 0, answer 0: "
            ".*'Bonn'"),
        ("record", [RECORD, change(RECORD, "passage", "entities", 0, "end", to=80)], "line 2, entity 0: expected "
            "characters"),
        ("record", [RECORD, change(RECORD, "qas", 0, "query", to="x")], "line 2: Query 0 must have @placeholder"),
        ("record", "{}", "expected 'data'"),
    ],
)  # fmt: skip
def test_malformed_records(write, format, content, message):
    with pytest.raises(ValueError, match=message):
        docs_of(write(content, lines=format in ("ufet", "scierc", "record")), format)


def test_settings(write):
    path = write([TACRED])
    assert len(list(read_dataset(path, format="tacred", text=None))) == 1
    for settings, message in [
        ({"format": "xml"}, "format must be one of"),
        ({"format": "squad", "text": "paper"}, "squad has no use for text"),
        ({"format": "tacred", "text": "book"}, "text must be one of"),
        ({"format": "docred", "mention_pairs": "some"}, "mention_pairs must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            list(read_dataset(path, **settings))


def test_what_is_no_utf8(write):
    path = write("").with_suffix(".ann")
    path.write_bytes(b'[{"sent": "\xff"}]')
    needed = {"glue": {"task": "rte"}, "deep_ed": {"conll": path}}
    for format in sorted(DATASETS):
        with pytest.raises(ValueError, match=r"expected UTF-8|in UTF-8"):
            docs_of(path, format, **needed.get(format, {}))
