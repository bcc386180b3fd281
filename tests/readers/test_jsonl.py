import json

import pytest
import spacy
from spacy.util import registry

from spacy_luke.readers.jsonl import make_jsonl_corpus, read_jsonl

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
        ValueError, match=f"line 1: mention .{offsets[0]}, {offsets[1]}, 'X'. is {piece!r}.*align to 'expand'"
    ):
        read_docs(path)
    (doc,) = read_docs(path, align="expand")
    assert doc.ents[0].text in ("Angela Merkel", "New York", "Merkel")
    assert piece.strip() in doc.ents[0].text


def test_equal_mentions_count_once(write):
    (doc,) = read_docs(write({"text": TEXT, "spans": [[0, 6, "A"], [0, 6, "A"], [1, 6, "A"]]}), align="expand")
    assert triples(doc.ents) == [("Angela", "A")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "expected a JSON object"),
        ([1], "string under 'text'"),
        ({"spans": []}, "string under 'text'"),
        ({"text": TEXT}, "found none among"),
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
    ],
)
def test_lines_that_cannot_be_read(write, record, message):
    path = write({"text": TEXT, "spans": []}, "", record)
    with pytest.raises(ValueError, match=f"line 3: .*{message}"):
        list(read_jsonl(path))


def test_spans_field_chooses(write):
    path = write({"text": TEXT, "spans": NESTED, "gold": [[0, 13, "PER"]]})
    (record,) = read_jsonl(path, spans_field="gold")
    assert record.spans == [(0, 13, "PER")]


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
    corpus = make_jsonl_corpus(path, overlaps="outermost")
    assert len(list(corpus(spacy.blank("en")))) == 2
    assert corpus.left_out == 1
    assert len(read_docs(path, overlaps="outermost", spans_key="sc")[0].spans["sc"]) == 3
    with pytest.raises(ValueError, match="overlaps must be one of"):
        make_jsonl_corpus(path, overlaps="some")
