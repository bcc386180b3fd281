"""The forms of parts: the same annotations in each, and the same bytes of the same texts."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import get_relations
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.run import ApplySettings, apply_pipeline
from tests.pipelines import make_pipeline
from tests.streams.runs import SMALL, find, tree


@pytest.fixture
def plain(pipeline, lines, tmp_path):
    apply_pipeline(pipeline, find(lines), tmp_path / "plain", SMALL)
    return list(AnnotatedParts.open(tmp_path / "plain").texts())


def settings(output):
    return ApplySettings(output=output, part_words=100, part_documents=7, batch_words=30)


def test_parquet_holds_the_same(pipeline, lines, tmp_path, plain):
    pytest.importorskip("pyarrow", reason="needs the extra parquet")
    for out in ("one", "other"):
        apply_pipeline(pipeline, find(lines), tmp_path / out, settings("parquet"))
    parts = AnnotatedParts.open(tmp_path / "one")
    assert {x.suffix for x in parts.files()} == {".parquet"}
    assert list(parts.texts()) == plain
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


def test_columns_are_those_of_the_schema():
    pytest.importorskip("pyarrow", reason="needs the extra parquet")
    from spacy_luke.pages.schema import json_schema
    from spacy_luke.streams.parquet import arrow_schema

    schema = json_schema()
    assert arrow_schema().names == list(schema["properties"])
    link = arrow_schema().field("entities").type.value_field.type.field("link")
    assert link.nullable
    assert [x.name for x in link.type] == list(schema["$defs"]["LinkForm"]["properties"])
    assert (
        str(arrow_schema().field("sentences").type)
        == "list<element: fixed_size_list<element: int64 not null>[2] not null>"
    )


def test_docs_have_all(pipeline, lines, tmp_path, plain):
    for out in ("one", "other"):
        apply_pipeline(pipeline, find(lines), tmp_path / out, settings("spacy"))
    assert tree(tmp_path / "one") == tree(tmp_path / "other")
    parts = AnnotatedParts.open(tmp_path / "one")
    with pytest.raises(ValueError, match="has spacy files, but annotations are read from jsonl and parquet"):
        next(parts.texts())
    vocab = spacy.blank("en").vocab
    docs = [doc for path in parts.files() for doc in DocBin().from_disk(path).get_docs(vocab)]
    assert [x.user_data["id"] for x in docs] == [x.id for x in plain]
    for doc, one in zip(docs, plain, strict=True):
        assert [(x.start_char, x.end_char, x.label_) for x in doc.ents] == [
            (x.start, x.end, x.label) for x in one.entities
        ]
        assert [x.label for x in get_relations(doc)] == [x.label for x in one.relations]


@pytest.mark.slow
def test_docs_of_a_run_are_the_input_of_another(pipeline, lines, tmp_path, plain):
    """With their ids and words."""
    apply_pipeline(pipeline, find(lines), tmp_path / "docs", settings("spacy"))
    paths = sorted((tmp_path / "docs").glob("*.spacy"))
    apply_pipeline(pipeline, find(*paths), tmp_path / "again", SMALL)
    assert [json.loads(x.model_dump_json()) for x in AnnotatedParts.open(tmp_path / "again").texts()] == [
        json.loads(x.model_dump_json()) for x in plain
    ]


def test_docs_whose_groups_are_stale_are_listed(lines, tmp_path):
    """Words were merged after a group was written: what it names is wrong, and spaCy may not save it at all."""
    nlp = make_pipeline("luke_ner")
    nlp.get_pipe("luke_ner").cfg.update(spans_key="sc", set_ents=True)
    nlp.add_pipe("merge_entities")
    nlp.to_disk(tmp_path / "merged")
    docs = [nlp(json.loads(line)["text"]) for line in lines.read_text("utf8").splitlines()]
    merged = [i for i, doc in enumerate(docs) if any(len(x.text.split()) > 1 for x in doc.ents)]
    assert 0 < len(merged) < len(docs)
    run = apply_pipeline(tmp_path / "merged", find(lines), tmp_path / "out", settings("spacy"))
    failures = list(AnnotatedParts.open(tmp_path / "out").failed())
    assert run.failed == len(failures) > 0
    assert {int(x["id"][1:]) for x in failures} <= set(merged)
    assert "names other words than it did" in failures[0]["message"]
    assert run.documents == len(docs) - len(failures)
