"""Other fields of records go along: from each format of inputs into each of outputs, and what may not be lost by it."""

import json
from datetime import date

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import get_document_fields, set_document_fields
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.given_texts import UnreadText
from spacy_luke.streams.run import ApplySettings, apply_pipeline
from tests.streams.runs import SMALL, find, tree
from tests.tiny import SENTENCES

ROWS = [
    {"id": "a", "text": SENTENCES[0], "meta": {"source": "x", "pages": [1, None]}, "url": "u/ü"},
    {"id": "b", "text": SENTENCES[1]},
]
FIELDS = [{"meta": {"source": "x", "pages": [1, None]}, "url": "u/ü"}, {}]


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in ROWS), "utf8")
    return path


@pytest.mark.parametrize("output", ["jsonl", "parquet"])
def test_they_come_out(pipeline, records, tmp_path, output):
    if output == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    apply_pipeline(pipeline, find(records), tmp_path / "out", ApplySettings(output=output))
    assert [x.fields for x in AnnotatedParts.open(tmp_path / "out").texts()] == FIELDS


def test_docs_have_them_and_give_them_on(pipeline, records, tmp_path):
    apply_pipeline(pipeline, find(records), tmp_path / "docs", ApplySettings(output="spacy"))
    (path,) = AnnotatedParts.open(tmp_path / "docs").files()
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    assert json.loads(json.dumps([get_document_fields(x) for x in docs])) == FIELDS, "lists are tuples in a DocBin"
    apply_pipeline(pipeline, find(path), tmp_path / "again", SMALL)
    assert [x.fields for x in AnnotatedParts.open(tmp_path / "again").texts()] == FIELDS
    set_document_fields(docs[0], {})
    assert get_document_fields(docs[0]) == {}
    assert docs[0].user_data["id"] == "a"


def test_columns_are_fields(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,body,year,note\n1,A.,1840,Malm\xf6\n")
    (item,) = find(tmp_path / "a.csv", text="body")
    assert isinstance(item, UnreadText)
    assert "column 'note': " in item.message
    assert "iconv" in item.message
    (item,) = find(tmp_path / "a.csv", text="body", others=("year",))
    assert json.loads(item.fields) == {"year": "1840"}
    (item,) = find(tmp_path / "a.csv", text="body", others=())
    assert item.fields == ""
    with pytest.raises(ValueError, match=r"expected the columns \['yaer'\] of --fields, but the columns are \['id'"):
        list(find(tmp_path / "a.csv", text="body", others=("yaer",)))


def test_columns_of_parquet_have_their_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    from pyarrow import parquet

    columns = {"text": ["A."], "day": [date(1840, 1, 2)], "rate": [float("nan")], "page": [b"\xff"], "n": [[1, 2]]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    (item,) = find(tmp_path / "a.parquet")
    assert json.loads(item.fields) == {"day": "1840-01-02", "rate": None, "n": [1, 2]}


def test_what_is_hostile_costs_no_text(pipeline, tmp_path):
    """What no JSON may hold is written otherwise; a field without an end is listed."""
    deep = '{"text": "Deep.", "a": ' + "[" * 150 + "]" * 150 + "}"
    lines = [
        '{"text": "A.", "half": "\\ud800", "n": NaN, "far": 1e400, "big": 123456789012345678901234567890}',
        deep,
        '{"text": "B."}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf8")
    apply_pipeline(pipeline, find(tmp_path / "a.jsonl"), tmp_path / "out", SMALL)
    parts = AnnotatedParts.open(tmp_path / "out")
    one, other = parts.texts()
    assert one.fields == {"half": "?", "n": None, "far": None, "big": 123456789012345678901234567890}
    assert (other.text, other.fields) == ("B.", {})
    (failed,) = parts.failed()
    assert failed["message"] == "expected fields that are nested at most 100 times, but one is deeper."


def test_an_integer_that_docs_cannot_hold_is_listed(pipeline, tmp_path):
    """spaCy packs Docs with integers of 64 bits."""
    rows = [{"id": "a", "text": "A.", "n": 2**64 - 1}, {"id": "b", "text": "B.", "big": {"in": [2**64]}}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    apply_pipeline(pipeline, find(tmp_path / "a.jsonl"), tmp_path / "out", ApplySettings(output="spacy"))
    parts = AnnotatedParts.open(tmp_path / "out")
    (doc,) = DocBin().from_disk(parts.files()[0]).get_docs(spacy.blank("en").vocab)
    assert get_document_fields(doc) == {"n": 2**64 - 1}
    (failed,) = parts.failed()
    assert failed["id"] == "b"
    assert failed["message"].startswith(
        "The field 'big' cannot be written as spaCy's Docs, whose integers have 64 bits"
    )


def test_other_fields_are_another_run(pipeline, records, tmp_path):
    """Also where a record's fields alone have changed."""
    apply_pipeline(pipeline, find(records), tmp_path / "out", SMALL)
    before = tree(tmp_path / "out")
    with pytest.raises(ValueError, match=r"another run: inputs.digest was .*|inputs\.fields was null, and is \[\]"):
        apply_pipeline(pipeline, find(records, others=()), tmp_path / "out", SMALL)
    records.write_text(records.read_text("utf8").replace('"x"', '"y"'), "utf8")
    with pytest.raises(ValueError, match="annotations of other texts: part-000000"):
        apply_pipeline(pipeline, find(records), tmp_path / "out", SMALL)
    assert tree(tmp_path / "out") == before


def test_records_without_an_end_are_told_by_name():
    from spacy_luke.streams.given_texts import as_item

    value: list = []
    value.append(value)
    assert isinstance(as_item("A.", "x", "p", fields={"a": value}), UnreadText)
