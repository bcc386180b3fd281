"""A run: all texts once, the same bytes however often it was killed, and no other run in its folder."""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import spacy

from spacy_luke.pages.schema import AnnotatedText, as_form
from spacy_luke.pipelines.annotation import Annotator
from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.workers import Death
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.run import ApplySettings, apply_pipeline
from tests.harness.forks import members
from tests.streams.runs import SMALL, apply_to_poison, find, tree
from tests.tiny import SENTENCES


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


@pytest.mark.parametrize("survived", [1, *(pytest.param(x, marks=pytest.mark.slow) for x in (0, 4))])
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
        apply_pipeline(pipeline, find(lines), out, ApplySettings(part_words=100, part_documents=7, batch_words=31))
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


def test_inputs_that_begin_with_nothing_are_refused(pipeline, lines, tmp_path):
    """As where the field has another name; the next try may name it."""
    path = tmp_path / "other.jsonl"
    path.write_text(lines.read_text("utf8").replace('"text"', '"body"'), "utf8")
    with pytest.raises(ValueError, match=r"None of the first 7 texts can be read. .*:1: expected .* 'text', but it is"):
        apply_pipeline(pipeline, find(path), tmp_path / "out", SMALL)
    assert not (tmp_path / "out").exists()
    state = apply_pipeline(pipeline, find(path, text="body"), tmp_path / "out", SMALL)
    assert state.documents == 40
    assert AnnotatedParts.open(tmp_path / "out").documents == 40


def test_what_is_written_is_not_read(pipeline, lines, tmp_path):
    with pytest.raises(ValueError, match=r"out lies in .*, which is read. Choose a folder elsewhere"):
        apply_pipeline(pipeline, find(tmp_path), tmp_path / "out", SMALL)


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
        *(f"{name}:3", "none", "half", f"{name}:6", "long", f"{name}:15"),
    ]
    assert [x["place"].rpartition(":")[2] for x in failed] == ["3", "4", "5", "6", "10", "15"]
    told = [x["message"] for x in failed]
    for message, expected in zip(
        told,
        [
            "expected a JSON object, but '{'",
            "with 'text', but it is ['id']",
            "surrogates",
            "5.5",
            "by --max-length",
            "UTF-8",
        ],
    ):
        assert expected in message
    assert [x["error"] for x in failed] == ["Unread"] * 4 + ["ValueError", "Unread"]
    assert sum(x["failed"] for x in parts.parts) == 6


@pytest.mark.slow
def test_longer_texts_where_they_are_wanted(pipeline, lines, tmp_path):
    longest = max(len(json.loads(x)["text"]) for x in lines.read_text("utf8").splitlines())
    short = replace(SMALL, max_length=longest - 1)
    state = apply_pipeline(pipeline, find(lines), tmp_path / "short", short)
    assert 0 < state.failed < 20
    (told,) = {x["message"] for x in AnnotatedParts.open(tmp_path / "short").failed() if f"{longest}:" in x["message"]}
    assert told.startswith(
        f"Expected a text of at most {longest - 1} characters, but it has {longest}: divide it, or let"
    )
    assert apply_pipeline(pipeline, find(lines), tmp_path / "long", replace(SMALL, max_length=longest)).failed == 0


def test_the_share_that_is_done_is_not_what_was_read_ahead(pipeline, tmp_path):
    """A small file is in memory at once; parts of it are done one after another."""
    path = tmp_path / "texts.csv"
    rows = [f"{SENTENCES[i % 4]} {'x' * 5000}" for i in range(40)]
    path.write_text("text\n" + "".join(f'"{x}"\n' for x in rows), "utf8")
    shares = []
    settings = ApplySettings(part_documents=4)
    apply_pipeline(pipeline, find(path), tmp_path / "out", settings, watch=lambda state: shares.append(state.share))
    assert shares[:10] == pytest.approx([(i + 1) / 10 for i in range(10)], abs=0.1)


def fails_on(word, monkeypatch, error):
    """The pipelines that are loaded meet their end in documents with this word."""
    load = spacy.load

    def loading(name):
        nlp = load(name)
        make_doc = nlp.make_doc

        def make(text):
            if word in text:
                raise error
            return make_doc(text)

        nlp.make_doc = make
        return nlp

    monkeypatch.setattr("spacy_luke.streams.annotating.spacy.load", loading)


class DyingEngine:
    """Does the work in this process, where `KilledError` ends a worker. deaths: how many there were."""

    def __init__(self):
        self.name, self.deaths = "here", 0

    def stream(self, start, settings, pull, *, threads, gpus, tick):
        make = start(0, settings)
        while (task := pull()) is not None:
            try:
                yield task, make(task)
            except KilledError:
                self.deaths += 1
                yield task, Death("it was ended by SIGKILL")


@pytest.mark.slow
def test_a_document_that_kills_workers_costs_no_other(pipeline, tmp_path, monkeypatch):
    texts = [f"{SENTENCES[i % 4]} {'Poison' * (i in (5, 17, 18))}" for i in range(40)]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "text": x}) + "\n" for i, x in enumerate(texts)), "utf8")
    settings = ApplySettings(part_words=1000, part_documents=20, batch_words=30)
    apply_pipeline(pipeline, find(path), tmp_path / "sound", settings)
    fails_on("Poison", monkeypatch, KilledError())
    engine = DyingEngine()
    state = apply_pipeline(pipeline, find(path), tmp_path / "out", settings, engine=engine)
    parts = AnnotatedParts.open(tmp_path / "out")
    sound = {x.id: x for x in AnnotatedParts.open(tmp_path / "sound").texts()}
    assert [x.id for x in parts.texts()] == [str(i) for i in range(40) if i not in (5, 17, 18)]
    for one in parts.texts():
        assert (one.text, len(one.entities)) == (sound[one.id].text, len(sound[one.id].entities))
    failed = list(parts.failed())
    assert [(x["id"], x["error"]) for x in failed] == [(x, "WorkerDied") for x in ("5", "17", "18")]
    assert failed[0]["message"] == "The worker died on it: it was ended by SIGKILL."
    assert state.deaths == engine.deaths
    assert 5 <= state.deaths <= 8, "twice as it was, then a document each, and a batch that was not known yet"
    assert (state.documents, state.failed) == (37, 3)


def test_workers_that_die_on_everything_end_the_run(pipeline, lines, tmp_path, monkeypatch):
    fails_on("", monkeypatch, KilledError())
    settings = ApplySettings(part_words=9999, part_documents=13)
    with pytest.raises(ValueError, match=r"they died on 3 parts one after another.*it goes on"):
        apply_pipeline(pipeline, find(lines), tmp_path / "out", settings, engine=DyingEngine())
    monkeypatch.undo()
    state = apply_pipeline(pipeline, find(lines), tmp_path / "out", settings)
    assert (state.parts_before, state.documents, state.failed) == (0, 40, 0)


def test_an_error_of_a_component_is_told_of_each_document(pipeline, lines, tmp_path, monkeypatch):
    fails_on("Ghana", monkeypatch, RuntimeError("No."))
    apply_pipeline(pipeline, find(lines), tmp_path / "out", SMALL)
    parts = AnnotatedParts.open(tmp_path / "out")
    with_it = [x["id"] for x in map(json.loads, lines.read_text("utf8").splitlines()) if "Ghana" in x["text"]]
    assert [x["id"] for x in parts.failed()] == with_it
    assert {(x["error"], x["message"]) for x in parts.failed()} == {("RuntimeError", "No.")}
    assert parts.documents == 40 - len(with_it)
    assert 5 < len(with_it) < 25


@pytest.mark.slow
def test_workers_whose_vocabulary_has_grown_are_replaced(pipeline, lines, tmp_path, monkeypatch):
    apply_pipeline(pipeline, find(lines), tmp_path / "one", SMALL)
    monkeypatch.setattr("spacy_luke.streams.annotating.MOST_LEXEMES", 0)
    loaded = []
    load = spacy.load
    monkeypatch.setattr("spacy_luke.streams.annotating.spacy.load", lambda name: loaded.append(name) or load(name))
    state = apply_pipeline(pipeline, find(lines), tmp_path / "other", SMALL)
    assert len(loaded) == state.parts > 5
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


def test_the_lines_are_of_the_schema(pipeline, lines, tmp_path):
    apply_pipeline(pipeline, find(lines), tmp_path / "out", SMALL)
    for path in AnnotatedParts.open(tmp_path / "out").files():
        for line in path.read_text("utf8").splitlines():
            assert AnnotatedText.model_validate_json(line).model_dump_json() == line


@pytest.mark.slow
def test_real_workers_die_and_are_replaced(pipeline, tmp_path):
    (failed,) = apply_to_poison(pipeline, tmp_path, Engine(workers=2))
    assert "SIGKILL" in failed["message"]


@pytest.mark.slow
def test_a_run_is_killed_with_its_workers_and_goes_on(pipeline, tmp_path):
    """kill -9 of the process; its workers end by themselves, and the next run gives the bytes of one that was whole."""
    path = tmp_path / "texts.jsonl"
    texts = [" ".join(SENTENCES[(i + k) % 4] for k in range(4)) for i in range(1200)]
    path.write_text("".join(json.dumps({"text": x}) + "\n" for x in texts), "utf8")
    limits = ["--part-documents", "100", "--batch-words", "200", "--workers", "2", "--threads", "1"]
    command = [sys.executable, "-m", "spacy", "luke", "apply", str(pipeline), str(path)]
    with subprocess.Popen([*command, str(tmp_path / "out"), *limits], start_new_session=True) as process:
        while len(list((tmp_path / "out").glob("part-*"))) < 3:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    for _ in range(100):
        if not members(process.pid):
            break
        time.sleep(0.1)
    assert members(process.pid) == []
    subprocess.run([*command, str(tmp_path / "out"), *limits], check=True)
    settings = ApplySettings(part_documents=100, batch_words=200)
    apply_pipeline(pipeline, find(path), tmp_path / "whole", settings)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
