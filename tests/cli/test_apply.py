"""`spacy luke apply`: its options arrive, and it says what it has done."""

import json
import subprocess
import sys

import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.cli import apply
from spacy_luke.cli.apply import Progress, describe_progress
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.run import RunState
from tests.pipelines import QUESTION, make_pipeline
from tests.tiny import SENTENCES


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apply") / "pipeline"
    make_pipeline("luke_ner", "luke_qa").to_disk(folder)
    return folder


@pytest.fixture
def texts(tmp_path):
    rows = [{"text": x, "questions": [QUESTION]} for x in SENTENCES] + [{"txt": "none"}]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows), "utf8")
    return tmp_path / "texts.jsonl"


def run(*arguments, input=None):
    result = CliRunner().invoke(spacy_app, ["luke", "apply", *map(str, arguments)], input=input)
    return result, " ".join(result.output.split())


def test_what_was_done_is_said(pipeline, texts, tmp_path):
    result, text = run(pipeline, texts, tmp_path / "out", "--workers", 0)
    assert result.exit_code == 0, text
    assert "1 document failed" in text
    assert "4 documents, 45 words, in 1 part;" in text
    parts = AnnotatedParts.open(tmp_path / "out")
    assert [x.id for x in parts.texts()] == [f"{texts.as_posix()}:{i}" for i in range(1, 5)]
    assert all(x.answers[0].question == QUESTION for x in parts.texts())
    result, text = run(pipeline, texts, tmp_path / "out", "--workers", 0)
    assert result.exit_code == 0, text
    assert "1 of 1 part was there before" in text


def test_nothing_to_read(pipeline, tmp_path):
    result, text = run(pipeline, "-", tmp_path / "out", "--workers", 0, input="")
    assert result.exit_code == 0, text
    assert "The inputs have no text" in text
    assert list(AnnotatedParts.open(tmp_path / "out").texts()) == []


def test_where_all_fail_the_command_does(pipeline, tmp_path):
    line = '{"text": "Nobody came."}\n'
    result, text = run(pipeline, "-", tmp_path / "out", "--workers", 0, "--max-length", 5, input=line * 2)
    assert result.exit_code == 1, text
    assert "Not all was annotated. None of 2 documents could be annotated:" in text
    assert len((tmp_path / "out" / "errors.jsonl").read_text("utf8").splitlines()) == 2


def test_ids_that_stand_twice_are_told(pipeline, tmp_path):
    rows = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}, {"id": "a", "text": "Three."}]
    lines = "".join(json.dumps(x) + "\n" for x in rows)
    result, text = run(pipeline, "-", tmp_path / "out", "--workers", 0, "--fields", "none", input=lines)
    assert result.exit_code == 0, text
    assert "2 documents have an id that another one has, of 1 id, such as 'a' (-:1, -:3);" in text
    assert AnnotatedParts.open(tmp_path / "out").documents == 3


def test_fields_that_no_record_has_are_told(pipeline, tmp_path):
    lines = '{"text": "One.", "year": 1}\n{"text": "Two."}\n'
    result, text = run(pipeline, "-", tmp_path / "out", "--workers", 0, "--fields", "year,yaer", input=lines)
    assert result.exit_code == 0, text
    assert "--fields: no record has 'yaer'" in text
    assert [x.fields for x in AnnotatedParts.open(tmp_path / "out").texts()] == [{"year": 1}, {}]
    assert "no record" not in run(pipeline, "-", tmp_path / "o", "--workers", 0, "--fields", "year", input=lines)[1]


def test_piped_texts(pipeline, tmp_path):
    result, text = run(pipeline, "-", tmp_path / "out", "--workers", 0, "--input-format", "lines", input="One.\nTwo.\n")
    assert result.exit_code == 0, text
    assert [(x.id, x.text) for x in AnnotatedParts.open(tmp_path / "out").texts()] == [("-:1", "One."), ("-:2", "Two.")]


def test_settings_arrive(texts, tmp_path, monkeypatch):
    given = {}

    def take(pipeline, inputs, output, settings, **more):
        given.update(more, inputs=inputs, settings=settings)
        return RunState(unasked=3, deaths=1)

    monkeypatch.setattr(apply, "apply_pipeline", take)
    options = [
        "--gpu-ids",
        "2,3",
        "--fields",
        "url, day",
        "--part-words",
        7,
        "--part-documents",
        8,
        "--batch-words",
        9,
        "--component",
        "ner",
    ]
    options += ["--max-length", 6]
    result, text = run("pipe", texts, tmp_path / "out", *options, "--threads", 2, "--text-field", "txt", "-f", "spacy")
    assert result.exit_code == 0, text
    settings = given["settings"]
    assert (settings.gpu_ids, settings.part_words, settings.part_documents, settings.batch_words) == ([2, 3], 7, 8, 9)
    assert (settings.component, settings.threads, settings.output, settings.max_length) == ("ner", 2, "spacy", 6)
    assert (given["engine"].name, given["engine"].workers) == ("processes", 2)
    assert given["inputs"].fields == ("txt", "id", ("url", "day"))
    assert "3 questions and queries were not asked" in text
    assert "Workers died 1 time, and were replaced" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.jsonl", "out"], "Expected a file or a folder of texts"),
        (["TEXTS", "out", "--gpu-ids", "a"], "expected numbers of GPUs, such as 0,1, but got 'a'"),
        (["TEXTS", "out", "-f", "xml"], "--format must be one of jsonl, parquet, spacy, but it is 'xml'"),
        (["TEXTS", "out", "--input-format", "xml"], "--input-format must be one of"),
        (["TEXTS", "TEXTS"], "is a file; expected the name of a folder"),
        (["TEXTS", "out", "--engine", "spark"], "engine must be one of ('processes', 'ray'), but it is 'spark'"),
    ],
)
def test_mistakes(pipeline, texts, tmp_path, monkeypatch, arguments, expected):
    monkeypatch.chdir(tmp_path)
    result, text = run(pipeline, *(x.replace("TEXTS", str(texts)) for x in arguments))
    assert result.exit_code == 1
    assert "Not all was annotated." in text
    assert expected in text
    assert not (tmp_path / "out").exists()


def test_parquet_names_its_extra(pipeline, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result, text = run(pipeline, texts, tmp_path / "out", "-f", "parquet")
    assert result.exit_code == 1
    assert "pip install 'spacy-luke[parquet]'" in text


def test_progress_has_a_rate_and_a_time():
    state = RunState(documents=12_000, words=300_000, failed=2, share=0.6, seconds=100.0)
    state.words_before, state.share_before = 100_000, 0.2
    assert describe_progress(state) == "12,000 documents, 300,000 words, 2,000 words/s, 2 failed, 60%, 2 min left"
    assert describe_progress(RunState()) == "0 documents, 0 words, 0 words/s"


def test_a_file_gets_a_line_a_minute(capsys):
    with Progress() as progress:
        for seconds in (1.0, 59.0, 60.0, 61.0, 119.0, 125.0):
            progress.show(RunState(documents=int(seconds), seconds=seconds))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["60 documents", "125 documents"]


def test_files_of_other_kinds_are_named(pipeline, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("One.", "utf8")
    for i in range(4):
        (tmp_path / "texts" / f"{i}.pdf").write_bytes(b"%PDF-1.7")
    result, text = run(pipeline, tmp_path / "texts", tmp_path / "out", "--workers", 0)
    assert result.exit_code == 0, text
    assert "4 files of other kinds left out: 0.pdf, 1.pdf, 2.pdf, ..." in text


def test_a_folder_of_its_own_has_no_texts_among_what_failed(pipeline, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "One."}\n{"text": 3}\n', "utf8")
    run(pipeline, tmp_path / "texts.jsonl", tmp_path / "first", "--workers", 0, "--format", "jsonl")
    assert (tmp_path / "first" / "errors.jsonl").read_text("utf8").count("\n") == 1
    result, text = run(pipeline, tmp_path / "first", tmp_path / "second", "--workers", 0)
    assert result.exit_code == 0, text
    assert "errors.jsonl" in text, "it is named among the files that are left out"
    assert (tmp_path / "second" / "errors.jsonl").read_text("utf8") == ""


@pytest.mark.slow
def test_a_file_gets_no_progress(pipeline, texts, tmp_path):
    command = [sys.executable, "-m", "spacy", "luke", "apply", str(pipeline), str(texts), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "words/s" not in done.stderr + done.stdout
    assert "\r" not in done.stderr
