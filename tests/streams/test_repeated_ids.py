"""Ids that stand twice: every text is annotated, and who reads the result is told."""

import json

import pytest

from spacy_luke.facts.build import build_facts
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.repeated_ids import NONE_REPEATED, OwnIds
from spacy_luke.streams.run import apply_pipeline
from tests.streams.runs import SMALL, find, tree
from tests.tiny import SENTENCES


@pytest.fixture
def files(tmp_path):
    """Two files with ids of their own, 0 to 19 in each, and two texts without."""
    for name in ("a", "b"):
        rows = [{"id": i, "text": f"{name}: {SENTENCES[i % 4]}"} for i in range(20)] + [{"text": "None."}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows), "utf8")
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


def test_they_are_counted_and_all_texts_are_there(pipeline, files, tmp_path):
    one, other = (x.as_posix() for x in files)
    state = apply_pipeline(pipeline, find(*files), tmp_path / "out", SMALL)
    parts = AnnotatedParts.open(tmp_path / "out")
    assert parts.documents == 42
    assert sorted(x.id for x in parts.texts() if x.text != "None.") == sorted(2 * list(map(str, range(20))))
    assert state.repeated == parts.repeated
    assert (parts.repeated["ids"], parts.repeated["documents"]) == (20, 40)
    first = parts.repeated["first"]
    assert len(first) == 10
    assert first[0] == {"id": "0", "places": [f"{one}:1", f"{other}:1"]}
    before = tree(tmp_path / "out")
    assert apply_pipeline(pipeline, find(*files), tmp_path / "out", SMALL).repeated == state.repeated
    assert tree(tmp_path / "out") == before


@pytest.mark.slow
def test_a_run_that_goes_on_counts_what_was_there(pipeline, files, tmp_path):
    def stop(state):
        if state.parts > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_pipeline(pipeline, find(*files), tmp_path / "out", SMALL, watch=stop)
    assert (tmp_path / "out" / ".work" / "ids").is_dir()
    state = apply_pipeline(pipeline, find(*files), tmp_path / "out", SMALL)
    assert state.parts_before > 5
    assert state.repeated["ids"] == 20
    apply_pipeline(pipeline, find(*files), tmp_path / "whole", SMALL)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


@pytest.mark.slow
def test_a_graph_says_what_to_do(pipeline, files, tmp_path):
    apply_pipeline(pipeline, find(*files), tmp_path / "out", SMALL)
    with pytest.raises(ValueError, match=r"Two documents that differ have the id '0'.* --id-field that no record has"):
        build_facts([tmp_path / "out"], tmp_path / "graph")
    state = apply_pipeline(pipeline, find(*files, id="no such"), tmp_path / "places", SMALL)
    assert state.repeated == NONE_REPEATED
    assert build_facts([tmp_path / "places"], tmp_path / "graph").manifest["documents"] == 42


def test_more_than_is_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_luke.streams.repeated_ids._IN_MEMORY", 7)
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"id": f"{i % 90}\n\t", "text": ""}) + "\n" for i in range(100)), "utf8"
    )
    ids = OwnIds(tmp_path / "ids")
    ids.add(find(tmp_path / "a.jsonl"))
    found = ids.repeated()
    assert (found["ids"], found["documents"]) == (10, 20)
    assert {x["id"] for x in found["first"]} == {f"{i}\n\t" for i in range(10)}


def test_a_file_that_is_named_twice_is_refused(files, tmp_path):
    for sources in ((files[0], files[0]), (tmp_path, files[1]), (tmp_path / "." / "a.jsonl", files[0])):
        with pytest.raises(ValueError, match=r"\.jsonl would be read twice: it is named twice, or named and in a"):
            find(*sources)
