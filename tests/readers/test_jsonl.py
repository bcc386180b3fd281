import json
from collections import Counter

import pytest
import spacy
from spacy.util import registry

from spacy_luke.annotations import get_rows
from spacy_luke.readers.jsonl import jsonl_docs, make_jsonl_corpus, read_jsonl
from spacy_luke.readers.records import Mention

TEXT = "Angela Merkel visited New York."
NESTED = [[0, 13, "PER"], [0, 6, "FIRST"], [22, 30, "LOC"]]


@pytest.fixture
def write(tmp_path):
    def write(*records):
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf8")
        return path

    return write


def read_docs(path, **settings):
    return [example.reference for example in make_jsonl_corpus(path, **settings)(spacy.blank("en"))]


def triples(spans):
    return [(span.text, span.label_) for span in spans]


@pytest.mark.product
@pytest.mark.parametrize("name", ["spans", "entities", "label", "labels"])
@pytest.mark.parametrize(
    "item",
    [
        [0, 13, "PER"],
        {"start": 0, "end": 13, "label": "PER", "token_start": 0},
        {"start_offset": 0, "end_offset": 13, "label": "PER", "id": 7},
    ],
)
def test_shapes_of_annotation(write, name, item):
    (doc,) = read_docs(write({"text": TEXT, name: [item], "meta": {}}))
    assert triples(doc.ents) == [("Angela Merkel", "PER")]


def test_what_was_rejected_is_left_out(write):
    """Prodigy writes all that was shown, with an answer."""
    lines = [{"text": TEXT, "spans": [[0, 13, "PER"]], "answer": x} for x in ("accept", "reject", "ignore", None)]
    path, counts = write(*lines), Counter()
    assert len(read_docs(path)) == 2
    assert len(list(read_jsonl(path, counts=counts))) == 2
    assert counts == {"notes: documents left out, since their answer is reject or ignore": 2}
    assert len(read_docs(path, limit=2)) == 2


def test_links(write):
    items = [
        {"start": 0, "end": 13, "label": "PER", "text": "Angela  Merkel", "kb_id": "Q567"},
        {"start": 22, "end": 30, "label": "LOC", "link": {"id": "Q60", "score": 0.9}},
        {"start": 14, "end": 21, "label": "X", "link": None},
    ]
    (doc,) = read_docs(write({"text": TEXT, "spans": items}))
    assert [(x.text, x.kb_id_) for x in doc.ents] == [
        ("Angela Merkel", "Q567"),
        ("visited", "NIL"),
        ("New York", "Q60"),
    ]
    (record,) = read_jsonl(write({"text": TEXT, "spans": [items[0] | {"kb_id": None}, [14, 21, "X"]]}))
    assert [x.kb_id for x in record.mentions] == ["", ""]


def test_nothing_is_known_of_entities_without_a_list(write):
    """Questions or relations may be all that is asked."""
    question = {"question": "Who?", "answers": [[0, 13]]}
    path, counts = (
        write({"text": TEXT, "questions": [question], "tokens": [{"text": "Angela"}]}, {"text": TEXT}),
        Counter(),
    )
    asked, plain = jsonl_docs(spacy.blank("en"), path, counts=counts)
    assert len(asked._.luke_questions) == 1
    assert not asked.has_annotation("ENT_IOB")
    assert not plain.has_annotation("ENT_IOB")
    assert counts["notes: documents without a list of mentions, of whose entities nothing is known"] == 2
    with pytest.raises(ValueError, match="found none among"):
        read_docs(path, spans_field="mentions")


def test_texts_without_mentions_are_annotated(write):
    example = next(iter(make_jsonl_corpus(write({"text": TEXT, "spans": []}))(spacy.blank("en"))))
    assert example.reference.has_annotation("ENT_IOB")
    assert not example.predicted.has_annotation("ENT_IOB")
    assert example.predicted.text == TEXT


def test_nested_mentions_need_a_spans_key(write):
    path = write({"text": "", "spans": []}, {"text": TEXT, "spans": NESTED})
    with pytest.raises(
        ValueError, match=r"line 2: mentions \[0, 13, 'PER'\] 'Angela Merkel' and \[0, 6, 'FIRST'\].*spans_key"
    ):
        read_docs(path)
    empty, doc = read_docs(path, spans_key="sc")
    assert list(empty.spans["sc"]) == []
    assert triples(doc.spans["sc"]) == [("Angela", "FIRST"), ("Angela Merkel", "PER"), ("New York", "LOC")]
    assert not doc.has_annotation("ENT_IOB")


@pytest.mark.parametrize("offsets", [(1, 13), (0, 12), (22, 31 - 2), (0, 14), (6, 13)])
def test_offsets_within_words(write, offsets):
    path = write({"text": TEXT, "spans": [[*offsets, "X"]]})
    piece = TEXT[offsets[0] : offsets[1]]
    with pytest.raises(
        ValueError, match=f"line 1: mention .{offsets[0]}, {offsets[1]}, 'X'. is {piece!r}.*set align to 'expand'"
    ):
        read_docs(path)
    (doc,) = read_docs(path, align="expand")
    assert doc.ents[0].text in ("Angela Merkel", "New York", "Merkel")
    assert piece.strip() in doc.ents[0].text


def test_words_that_mentions_cut_are_counted(write):
    """In other texts they are whole, and such mentions cannot be found as they are."""
    path = write({"text": "PwC.com and Acme. left", "spans": [[0, 3, "ORG"], [12, 16, "ORG"], [18, 22, "V"]]})
    for align, expected, note in (
        ("split", ["PwC", "Acme", "left"], "words divided"),
        ("expand", ["PwC.com", "Acme", "left"], "mentions that begin or end inside a word"),
    ):
        counts = Counter()
        (doc,) = jsonl_docs(spacy.blank("en"), path, align=align, counts=counts)
        assert [x.text for x in doc.ents] == expected
        assert [n for name, n in counts.items() if name.startswith(f"notes: {note}")] == [1]


def test_a_mention_in_another_unicode_form(write):
    text = "Er wohnt in Ko\u0308ln."
    item = {"start": 12, "end": 17, "label": "LOC", "text": "Köln"}
    (doc,) = read_docs(write({"text": text, "entities": [item]}))
    assert triples(doc.ents) == [("Ko\u0308ln", "LOC")]
    with pytest.raises(ValueError, match="accents are characters of their own"):
        read_docs(write({"text": text, "entities": [item | {"end": 16}]}))


def test_equal_mentions_count_once(write):
    (doc,) = read_docs(write({"text": TEXT, "spans": [[0, 6, "A"], [0, 6, "A"], [1, 6, "A"]]}), align="expand")
    assert triples(doc.ents) == [("Angela", "A")]


def test_half_of_a_pair_of_surrogates_names_its_line(write):
    """As JavaScript leaves it where a text is cut inside an emoji; a whole pair is a character."""
    whole, half = '{"text": "a \\ud83d\\ude00", "entities": []}', '{"text": "b \\ud83d", "entities": []}'
    records = read_jsonl(write(whole, half))
    assert next(records).text == "a 😀"
    with pytest.raises(ValueError, match=r"line 2: expected Unicode, but it has half of a pair of surrogates, \\ud83d"):
        next(records)
    with pytest.raises(ValueError, match=r"jsonl: expected Unicode"):
        list(read_jsonl(write(f"[{whole}, {half}]")))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "expected a JSON object"),
        ([1], "expected an object"),
        ({"spans": []}, "string under 'text'"),
        ({"text": TEXT, "ner": [[0, 6, "A"]]}, "found none among"),
        ({"text": TEXT, "spans": None, "tags": ["O"]}, "found none among"),
        ({"text": TEXT, "label": "sports"}, "found none among"),
        ({"text": TEXT, "spans": [], "entities": []}, "set spans_field"),
        ({"text": TEXT, "spans": [[0, 6]]}, "expected a mention"),
        ({"text": TEXT, "spans": [[0, 6, None]]}, "expected a mention"),
        ({"text": TEXT, "spans": [["0", 6, "A"]]}, "expected a mention"),
        ({"text": TEXT, "spans": [{"start": 0, "label": "A"}]}, "expected a mention"),
        ({"text": TEXT, "spans": [[0, 99, "A"]]}, "must hold characters of the text, which has 31"),
        ({"text": TEXT, "spans": [[5, 5, "A"]]}, "must hold characters"),
        ({"text": TEXT, "spans": [[-1, 5, "A"]]}, "must hold characters"),
        ({"text": TEXT, "spans": [[6, 7, "A"]]}, "not blanks alone"),
        (
            {"text": TEXT, "spans": [{"start": 0, "end": 6, "label": "A", "text": "Angel"}]},
            "there stands 'Angela'.*JavaScript",
        ),
        ({"text": TEXT, "spans": [{"start": 0, "end": 6, "label": "A", "kb_id": 84}]}, "the id of an entity as text"),
        ({"text": TEXT, "spans": [{"start": 0, "end": 6, "label": "A", "link": "Q1"}]}, "expected an object with 'id'"),
    ],
)
def test_lines_that_cannot_be_read(write, record, message):
    path = write({"text": TEXT, "spans": []}, "", record)
    with pytest.raises(ValueError, match=f"line 3: .*{message}"):
        list(read_jsonl(path))


def test_spans_field_chooses(write):
    path = write({"text": TEXT, "spans": NESTED, "gold": [[0, 13, "PER"]]})
    (record,) = read_jsonl(path, spans_field="gold")
    assert record.mentions == [Mention(0, 13, "PER")]


def test_settings(write):
    assert registry.readers.get("spacy-luke.JsonlCorpus.v1") is make_jsonl_corpus
    path = write(*[{"text": TEXT, "spans": []}] * 3)
    assert len(read_docs(path, limit=2)) == 2
    for settings, message in [
        ({"path": None}, "needs the path"),
        ({"path": path, "align": "contract"}, "align must be one of"),
        ({"path": path, "limit": 0}, "limit must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_jsonl_corpus(**settings)
    with pytest.raises(ValueError, match="holds none"):
        list(read_jsonl(write("")))


def test_of_overlapping_mentions_the_outermost_can_be_kept(write):
    path = write({"text": TEXT, "entities": NESTED}, {"text": TEXT, "entities": NESTED[:1]})
    first, second = read_docs(path, overlaps="outermost")
    assert triples(first.ents) == [("Angela Merkel", "PER"), ("New York", "LOC")]
    assert triples(second.ents) == [("Angela Merkel", "PER")]
    counts = Counter()
    assert len(list(jsonl_docs(spacy.blank("en"), path, overlaps="outermost", counts=counts))) == 2
    assert counts["left out"] == 1
    assert len(read_docs(path, overlaps="outermost", spans_key="sc")[0].spans["sc"]) == 3
    with pytest.raises(ValueError, match="overlaps must be one of"):
        make_jsonl_corpus(path, overlaps="some")


FULL = {
    "text": TEXT,
    "entities": [
        {"start": 0, "end": 13, "label": "PER", "types": ["politician", "person"], "id": 4},
        {"start": 22, "end": 30, "label": "LOC", "types": [], "id": 9},
    ],
    "relations": [{"head": 0, "tail": 1, "label": "visited"}],
    "questions": [{"id": "q", "question": "Who?", "answers": [[0, 13], [0, 13]]}, {"question": "Why?", "answers": []}],
    "queries": [
        {"query": "@placeholder is big", "answers": [[22, 30]]},
        {"query": "@placeholder laughed", "candidates": [[0, 13]]},
    ],
}


def test_types_relations_questions_and_queries(write):
    (doc,) = read_docs(write(FULL))
    assert triples(doc.spans["luke_types"]) == [
        ("Angela Merkel", "person"), ("Angela Merkel", "politician"), ("New York", ""),
    ]  # fmt: skip
    assert get_rows(doc, "luke_relations") == [[0, 13, 22, 30, "visited", 1.0]]
    assert get_rows(doc, "luke_questions") == [
        {"id": "q", "question": "Who?", "answers": [[0, 13]]},
        {"id": "1", "question": "Why?", "answers": []},
    ]
    assert get_rows(doc, "luke_queries") == [
        {"id": "0", "query": "@placeholder is big", "answers": [[22, 30]], "candidates": [[0, 13], [22, 30]]},
        {"id": "1", "query": "@placeholder laughed", "candidates": [[0, 13]]},
    ]
    assert get_rows(doc, "luke_pairs") is None
    (bare,) = read_docs(write({"text": TEXT, "entities": [[0, 13, "PER"]]}))
    assert not bare.user_data
    assert "luke_types" not in bare.spans


@pytest.mark.parametrize(
    "relation",
    [
        {"from_id": 4, "to_id": 9, "type": "visited", "id": 1},
        {"head_span": {"start": 0, "end": 13}, "child_span": {"start": 22, "end": 30}, "label": "visited", "head": 1, "child": 4},  # noqa: E501
    ],
)  # fmt: skip
def test_relations_of_annotation_tools(write, relation):
    (doc,) = read_docs(write({**FULL, "relations": [relation]}))
    assert get_rows(doc, "luke_relations") == [[0, 13, 22, 30, "visited", 1.0]]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("relations", {"head": 0}, "expected 'relations' .list."),
        ("relations", [{"head": 0, "tail": 1}], "relation 0: expected an object with 'head' and 'tail'"),
        ("relations", [{"head": 0, "tail": 2, "label": "x"}], "relation 0: .*among the 2 mentions .* but 2 is not"),
        ("relations", [{"head": 0, "tail": -1, "label": "x"}], "relation 0: .* but -1 is not"),
        ("relations", [{"head": 1, "tail": 1, "label": "x"}], "one mention as head and tail"),
        ("relations", [{"head": 0, "tail": 1, "label": ""}], "relation 0: expected a relation"),
        ("relations", [{"from_id": 4, "to_id": 5, "type": "x"}], "relation 0: .* but 5 is not"),
        ("entities", [{"start": 0, "end": 6, "label": "X", "types": ["a", 3]}], "number 1 is 3"),
        ("questions", [{"question": "Who?"}, {"answers": []}], "question 1: expected 'question'"),
        ("questions", [{"question": "Who?", "answers": [[0, 99]]}], "question 0: answers .0, 99. must hold characters"),
        ("questions", [{"question": "Who?", "answers": [0, 9]}], "question 0: expected .start, end. under 'answers'"),
        ("questions", [{"question": " "}], "Item 0 must be a string"),
        ("queries", [{"query": "no mark"}], "@placeholder exactly once"),
        ("queries", [{"query": "@placeholder", "answers": [[0, 6]]}], "query 0: the answer .0, 6. is none of its 2 "
            "candidates"),
        ("queries", [{"query": "@placeholder", "answers": []}], "query 0: expected the places of its answers"),
    ],
)  # fmt: skip
def test_annotation_that_cannot_be_read(write, field, value, message):
    record = {**FULL, "relations": [], "queries": [], field: value}
    with pytest.raises(ValueError, match=f"line 2: .*{message}|line 2, .*{message}"):
        read_docs(write(FULL, record))


def test_texts_above_the_limit_of_pipelines(write):
    nlp = spacy.blank("en")
    nlp.max_length = 5
    (example,) = make_jsonl_corpus(write({"text": TEXT, "spans": []}))(nlp)
    assert example.predicted.text == example.reference.text == TEXT


def test_words_can_be_split_at_mentions(write):
    (doc,) = read_docs(write({"text": TEXT, "spans": [[0, 3, "X"]]}), align="split")
    assert triples(doc.ents) == [("Ang", "X")]
    assert doc.text == TEXT


def test_documents_without_relations_are_counted(write):
    """Where others have some: luke_relation learns nothing of them."""
    entities = [{"start": 0, "end": 13, "label": "PER"}, {"start": 22, "end": 30, "label": "LOC"}]
    both = {"text": TEXT, "entities": entities, "relations": [{"head": 0, "tail": 1, "label": "in"}]}
    plain = {"text": TEXT, "entities": entities}
    for records, wanted in (([both, plain, plain], 2), ([both, both], 0), ([plain, plain], 0)):
        counts = Counter()
        assert len(list(read_jsonl(write(*records), counts=counts))) == len(records)
        notes = {name: n for name, n in counts.items() if "list of relations" in name}
        assert sum(notes.values()) == wanted
