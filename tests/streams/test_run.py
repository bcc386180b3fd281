"""A run: all texts once, the same bytes however often it was killed, and no other run in its folder."""

import json
import shutil

import pytest
import spacy

from spacy_luke.pages.schema import AnnotatedText, as_form
from spacy_luke.pipelines.annotation import Annotator
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.cutting import PartLimits
from spacy_luke.streams.input_formats import InputFields
from spacy_luke.streams.inputs import find_inputs
from spacy_luke.streams.run import ApplySettings, apply_pipeline
from tests.tiny import SENTENCES

SMALL = ApplySettings(part=PartLimits(100, 7), batch_words=30)


def find(*paths, format=None):
    return find_inputs([str(x) for x in paths], format=format, fields=InputFields())


def tree(folder):
    return {str(x.relative_to(folder)): x.read_bytes() for x in sorted(folder.rglob("*")) if x.is_file()}


class KilledError(BaseException):
    pass


def test_what_is_found_is_what_the_pipeline_finds(pipeline, lines, tmp_path):
    state = apply_pipeline(pipeline, find(lines), tmp_path / "out", SMALL)
    parts = AnnotatedParts.open(tmp_path / "out")
    found = list(parts.texts())
    annotator = Annotator(spacy.load(pipeline))
    texts = [json.loads(line) for line in lines.read_text("utf8").splitlines()]
    for given, one in zip(texts, found, strict=True):
        doc = annotator.nlp(given["text"])
        assert one == as_form(annotator.read(doc), id=given["id"], pipeline=annotator.name)
    assert sum(len(x.entities) for x in found) > 20
    assert state.documents == len(texts) == parts.documents
    assert state.words == sum(x.words for x in found)
    assert (state.failed, state.share) == (0, 1.0)
    assert len(parts.files()) > 5
    assert max(len(x.read_bytes().splitlines()) for x in parts.files()) <= 7
    assert sorted(x.name for x in (tmp_path / "out").iterdir()) == sorted(
        ["plan.json", "manifest.json", "errors.jsonl", *(x.name for x in parts.files())]
    )


@pytest.mark.parametrize("survived", [0, 1, 4])
def test_a_run_that_was_killed_goes_on(pipeline, lines, tmp_path, survived):
    whole, other = tmp_path / "whole", tmp_path / "other"
    apply_pipeline(pipeline, find(lines), whole, SMALL)
    made = []

    def count(state):
        made.append(state.parts)
        if state.parts > survived:
            raise KilledError

    with pytest.raises(KilledError):
        apply_pipeline(pipeline, find(lines), other, SMALL, watch=count)
    with pytest.raises(ValueError, match="is no folder of annotated texts"):
        AnnotatedParts.open(other)
    kept = {x: x.stat().st_mtime_ns for x in other.glob("part-*")}
    state = apply_pipeline(pipeline, find(lines), other, SMALL)
    assert state.parts_before == survived + 1 == len(kept)
    assert {x: x.stat().st_mtime_ns for x in kept} == kept
    assert tree(other) == tree(whole)
    assert apply_pipeline(pipeline, find(lines), other, SMALL).parts_before == state.parts
    assert tree(other) == tree(whole)


def test_another_run_in_the_same_folder_is_refused(pipeline, lines, tmp_path):
    out = tmp_path / "out"
    apply_pipeline(pipeline, find(lines), out, SMALL)
    before = tree(out)
    with pytest.raises(ValueError, match="annotations of another run: batch_words was 30, and is 31"):
        apply_pipeline(pipeline, find(lines), out, ApplySettings(part=SMALL.part, batch_words=31))
    other = tmp_path / "pipeline"
    shutil.copytree(pipeline, other)
    meta = json.loads((other / "meta.json").read_text("utf8"))
    (other / "meta.json").write_text(json.dumps({**meta, "version": "9.9"}), "utf8")
    with pytest.raises(ValueError, match=r"another run: pipeline.digest was .*; pipeline.name was .*, and is \"en_pip"):
        apply_pipeline(other, find(lines), out, SMALL)
    text = lines.read_text("utf8")
    lines.write_text(text + '{"text": "More."}\n', "utf8")
    with pytest.raises(ValueError, match=r"another run: inputs\.bytes was"):
        apply_pipeline(pipeline, find(lines), out, SMALL)
    lines.write_text(text.replace("Ada", "Eva"), "utf8")
    with pytest.raises(ValueError, match=r"annotations of other texts: part-000000, which was to begin with 'd0'"):
        apply_pipeline(pipeline, find(lines), out, SMALL)
    assert tree(out) == before


def test_what_is_no_run_is_not_touched(pipeline, lines, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds something else than annotated texts: \['letter.txt'\]"):
        apply_pipeline(pipeline, find(lines), tmp_path / "mine", SMALL)
    assert [x.name for x in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    with pytest.raises(ValueError, match=r"texts.jsonl is a file; expected the name of a folder"):
        apply_pipeline(pipeline, find(lines), lines, SMALL)
    with pytest.raises(ValueError, match="Expected the folder of a pipeline"):
        apply_pipeline(tmp_path / "nothing", find(lines), tmp_path / "out", SMALL)
    assert not (tmp_path / "out").exists()


def test_a_document_that_fails_costs_no_other(pipeline, tmp_path):
    """Of those with which it is in a batch, and in a part; lines that are none are listed too."""
    texts = tmp_path / "texts.jsonl"
    rows = [json.dumps({"id": i, "text": x}) for i, x in enumerate(SENTENCES * 2)]
    rows[2:2] = ["{", '{"id": "none"}', '{"id": "half", "text": "\\ud800"}', '{"id": 5.5, "text": ""}', ""]
    rows[9:9] = [json.dumps({"id": "long", "text": "a " * 600_000})]
    texts.write_bytes(b"\n".join(x.encode() for x in rows) + b'\n{"text": "Malm\xf6"}\n')
    apply_pipeline(pipeline, find(texts), tmp_path / "out")
    parts = AnnotatedParts.open(tmp_path / "out")
    assert [x.id for x in parts.texts()] == [str(i) for i in range(8)]
    failed = list(parts.failed())
    name = texts.as_posix()
    assert [x["id"] for x in failed] == [
        *(f"{name}:3", f"{name}:4", "half", f"{name}:6", "long", f"{name}:15"),
    ]
    assert [x["place"].rpartition(":")[2] for x in failed] == ["3", "4", "5", "6", "10", "15"]
    told = [x["message"] for x in failed]
    for message, expected in zip(
        told,
        ["expected a JSON object, but '{'", "with 'text', but it is ['id']", "surrogates", "5.5", "E088", "UTF-8"],
    ):
        assert expected in message
    assert [x["error"] for x in failed] == ["Unread"] * 4 + ["ValueError", "Unread"]
    assert sum(x["failed"] for x in parts.parts) == 6


def test_the_lines_are_of_the_schema(pipeline, lines, tmp_path):
    apply_pipeline(pipeline, find(lines), tmp_path / "out", SMALL)
    for path in AnnotatedParts.open(tmp_path / "out").files():
        for line in path.read_text("utf8").splitlines():
            assert AnnotatedText.model_validate_json(line).model_dump_json() == line
