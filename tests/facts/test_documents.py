"""Lines of annotated documents are read; what is none is told with its place."""

import gzip

import pytest

from spacy_luke.facts.build import build_facts
from spacy_luke.facts.documents import read_annotated
from spacy_luke.streams import annotated
from spacy_luke.streams.run_folder import KIND
from tests.facts.annotated import document, link, write_lines

LINE = document("a", ["x", ("Ada", "PER"), ("Bob", "PER")], [(0, "knows", 1, 0.5)]).model_dump_json()
LINKED = document("a", [("Ada", "PER", link("Q1", score=0.75))]).model_dump_json()


def in_tail(old, new):
    """The line with another tail of its relation."""
    return new.join(LINE.rsplit(old, 1))


def read(*paths):
    return [x.id for _, x in read_annotated(paths)]


def test_files_and_folders(tmp_path):
    for number in range(2):
        write_lines(tmp_path / f"part-{number:06d}.jsonl", [document(f"{number}", ["x"])])
    (tmp_path / "errors.jsonl").touch()
    assert read(tmp_path) == ["0", "1"]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + LINE.encode() + b"\n\n"))
    assert read(tmp_path / "a.jsonl.gz", tmp_path / "part-000001.jsonl") == ["a", "1"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected what `spacy luke apply` writes"):
        read(tmp_path / "empty")


def test_what_apply_wrote(tmp_path):
    """A finished run, whose failed documents are counted; of one that is not finished nothing is taken."""
    for name, text in {"part-000000.jsonl": LINE + "\n", "errors.jsonl": "{}\n{}\n", "plan.json": "{}"}.items():
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match="is no folder of annotated texts: there is no manifest"):
        build_facts([tmp_path / "run"], tmp_path / "graph")
    part = {"name": "part-000000", "documents": 1, "words": 3, "failed": 2, "unasked": 0}
    KIND.write_manifest(tmp_path / "run", {"output": "jsonl", "parts": [part]})
    graph = build_facts([tmp_path / "run"], tmp_path / "graph")
    assert graph.info["counts"] == {"documents that failed in `apply`": 2, "entities": 2, "relations": 1}
    (tmp_path / "run/part-000000.jsonl").write_text(LINE.replace("Bob", "Rob") + "\n")
    with pytest.raises(ValueError, match="is damaged"):
        build_facts([tmp_path / "run"], tmp_path / "graph")


def test_wrong_rows_of_a_table_are_told_by_their_number(tmp_path, monkeypatch):
    monkeypatch.setitem(annotated._READERS, "parquet", annotated._READERS["jsonl"])  # without pyarrow
    (tmp_path / "part-000000.parquet").write_text(f"{LINE}\n{LINE.replace('0.5', 'NaN')}\n", encoding="utf8")
    for name in ("errors.jsonl", "plan.json"):
        (tmp_path / name).write_text("{}", encoding="utf8")
    part = {"name": "part-000000", "documents": 2, "words": 6, "failed": 0, "unasked": 0}
    KIND.write_manifest(tmp_path, {"output": "parquet", "parts": [part]})
    rows = read_annotated([tmp_path])
    assert next(rows)[0] == f"{tmp_path}, document 1"
    with pytest.raises(ValueError, match=r"document 2: expected .* relations.0.score: Input should be a finite"):
        next(rows)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "line 2: expected a document in the form spacy-luke-annotations/1, but format: Field required; "),
        ("[", "line 2: expected a document .* the line: Invalid JSON"),
        (LINE.replace("annotations/1", "annotations/2"), "but format: Input should be 'spacy-luke-annotations/1'"),
        (LINE.replace('"start":2', '"start":1', 1), r"entity 0 is 'Ada', but at its place \[1, 5\) stands ' Ada'"),
        (LINE.replace('"entity":1', '"entity":7'), "a relation 'knows' names entity 7, which is none"),
        (LINE.replace("x Ada", "x \\ud800"), "expected a document"),
        (LINE.replace('"id":1', '"id":0'), "expected each id of an entity once, but 0 is there twice"),
        (LINE.replace('"id":1', '"id":2'), "the tail of a relation 'knows' names entity 1, which is none"),
        (
            LINE.replace('"start":2', '"start":5', 1),
            r"entity 0 has the place \[5, 5\), but expected 0 <= start < end <= 9",
        ),
        (LINE.replace('"end":9', '"end":900', 1), r"entity 1 has the place \[6, 900\), but expected"),
        (in_tail('"end":9', '"end":3'), r"the tail of a relation 'knows' has the place \[6, 3\)"),
        (in_tail('"Bob"', '"zz"'), r"the tail of a relation 'knows' is 'zz', but at its place \[6, 9\) stands 'Bob'"),
        (
            in_tail('"entity":1', '"entity":0'),
            r"the tail of a relation 'knows' is 'Bob' at \[6, 9\), but it names entity 0, 'Ada' at \[2, 5\)",
        ),
        (
            LINE.replace("[0,9]", "[0,12]"),
            r"expected sentences one behind the other, from 0 to 9, but got .*12",
        ),
        (LINE.replace("[0,9]", "[0,5],[3,9]"), "expected sentences one behind the other"),
        (LINE.replace("0.5", "1.5"), "relations.0.score: Input should be less than or equal to 1"),
        (LINE.replace("0.5", "NaN"), "relations.0.score: Input should be a finite number"),
        (LINE.replace('"score":0.9', '"score":NaN', 1), "entities.0.score: Input should be a finite number"),
        (LINKED.replace('"score":0.75', '"score":NaN'), "entities.0.link.score: Input should be a finite number"),
    ],
)
def test_wrong_lines(tmp_path, line, message):
    assert line not in (LINE, LINKED)
    (tmp_path / "wrong.jsonl").write_text(f"{LINE}\n{line}\n")
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path / "wrong.jsonl")
    assert str(caught.value).startswith(f"{tmp_path / 'wrong.jsonl'}, line 2: ")
