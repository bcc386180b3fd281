"""Lines of annotated documents are read; what is none is told with its place."""

import gzip

import pytest

from spacy_luke.facts.build import build_facts
from spacy_luke.facts.documents import read_annotated
from spacy_luke.streams.run_folder import KIND
from tests.facts.annotated import document, write_lines

LINE = document("a", ["x", ("Ada", "PER"), ("Bob", "PER")], [(0, "knows", 1, 0.5)]).model_dump_json()


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "line 2: expected a document in the form spacy-luke-annotations/1, but format: Field required; "),
        ("[", "line 2: expected a document .* the line: Invalid JSON"),
        (LINE.replace("annotations/1", "annotations/2"), "but format: Input should be 'spacy-luke-annotations/1'"),
        (LINE.replace('"start":2', '"start":1', 1), r"entity 0 is 'Ada', but at its place \[1, 5\) stands ' Ada'"),
        (LINE.replace('"entity":1', '"entity":7'), "a relation 'knows' names entity 7, which is none"),
        (LINE.replace("x Ada", "x \\ud800"), "expected a document"),
    ],
)
def test_wrong_lines(tmp_path, line, message):
    assert line != LINE
    (tmp_path / "wrong.jsonl").write_text(f"{LINE}\n{line}\n")
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "wrong.jsonl")
