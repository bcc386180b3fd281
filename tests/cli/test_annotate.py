"""`spacy luke annotate`: tables in the terminal, and the page."""

import json
import os
import re
import sys

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines.conversion import build_pipeline
from tests.pipelines import QUERY, QUESTION, make_pipeline
from tests.tiny import SENTENCES, make_checkpoint


def read_page(path):
    """What a page shows, and what else its data are."""
    html = path.read_text(encoding="utf8")
    assert html.startswith("<!DOCTYPE html>")
    return tuple(json.loads(x) for x in re.findall(r'<script type="application/json" id="\w+">(.*?)</script>', html))


def run(*arguments, given=None):
    result = CliRunner().invoke(spacy_app, ["luke", "annotate", *map(str, arguments)], input=given)
    return result, " ".join(result.output.split())


@pytest.fixture(params=[None, "sc"])
def entities(request, tmp_path):
    """A luke_ner of noise, what it finds, and its folder."""
    nlp = build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"]), config={"spans_key": request.param})
    docs = list(nlp.pipe(SENTENCES))
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "text.txt").write_text(SENTENCES[0], encoding="utf8")
    return docs, request.param, tmp_path


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("everything")
    make_pipeline().to_disk(folder / "pipeline")
    (folder / "text.txt").write_text("\n\n".join(SENTENCES), encoding="utf8")
    return folder


def test_entities(entities):
    docs, key, folder = entities
    page = folder / "new" / "page.html"
    result, text = run(folder / "pipeline", folder / "text.txt", "--output", page, "--rows", 1)
    assert result.exit_code == 0, result
    found = list(docs[0].ents if key is None else docs[0].spans[key])
    found.sort(key=lambda span: (span.start, -span.end))
    assert f"{len(docs[0])} words, {len(found)} entit" in text
    assert re.search(rf"{found[0].text} {found[0].label_} (0\.\d\d\d|1\.000)", text)
    assert len(found) == 1 or f"and {len(found) - 1} more" in text
    form, data = read_page(page)
    assert [(x["text"], x["label"]) for x in form["entities"]] == [(x.text, x.label_) for x in found]
    assert sorted(data["labels"]) == ["LOC", "PER"]
    assert data["title"] == "text.txt"


def test_everything(everything, tmp_path):
    questions = ("--question", QUESTION, "-q", "Why?", "--query", QUERY)
    page = tmp_path / "page.html"
    result, text = run(everything / "pipeline", everything / "text.txt", "--output", page, *questions, "--rows", 500)
    assert result.exit_code == 0, result.output
    for header in ("entity label score types", "head relation tail score", "question answer score"):
        assert header in text
    assert re.search(r"\d+ entit\w+, \d+ with types, [\d,]+ relations?, 3 questions", text)
    html = page.read_text(encoding="utf8")
    form, _ = read_page(page)
    assert form["relations"]
    assert [(x["kind"], x["question"]) for x in form["answers"]] == [
        ("question", QUESTION),
        ("question", "Why?"),
        ("query", QUERY),
    ]
    again, _ = run(everything / "pipeline", everything / "text.txt", "--output", page, *questions)
    assert page.read_text(encoding="utf8") == html  # the same page for the same text


def test_a_key_says_what_is_right(everything, tmp_path):
    key = tmp_path / "key.json"
    name = SENTENCES[0].split()[0]
    entities = [{"name": name, "label": "PER", "mentions": [[0, len(name)]]}]
    key.write_text(json.dumps({"entities": entities, "relations": [], "properties": {}}), encoding="utf8")
    page = tmp_path / "page.html"
    result, text = run(everything / "pipeline", everything / "text.txt", "--key", key, "--output", page)
    assert result.exit_code == 0, result.output
    (verdict,) = re.findall(r"entities (\d+ of \d+ that are shown are right \(\d+%\); \d of the 1 in the text)", text)
    form, data = read_page(page)
    assert "<h1>text.txt</h1>" in page.read_text(encoding="utf8")
    assert data["verdict"][0] == ["entities", f"{verdict} were found"]
    assert len(data["right"]["mentions"]) == len(form["entities"])
    (tmp_path / "other.txt").write_text("Nobody", encoding="utf8")
    result, text = run(everything / "pipeline", tmp_path / "other.txt", "--key", key)
    assert result.exit_code == 1
    assert "key of another text" in text


def test_no_luke_component(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    (tmp_path / "text.txt").write_text("Ada")
    result, text = run(tmp_path / "blank", tmp_path / "text.txt")
    assert result.exit_code == 1
    assert "with a component of spacy_luke" in text


@pytest.mark.parametrize(("option", "needed"), [("--question", "luke_qa"), ("--query", "luke_cloze")])
def test_questions_need_their_component(entities, option, needed):
    _, _, folder = entities
    result, text = run(folder / "pipeline", folder / "text.txt", option, QUERY)
    assert result.exit_code == 1
    assert f"{option} needs a {needed}" in text


def test_a_query_without_placeholder(everything):
    result, text = run(everything / "pipeline", everything / "text.txt", "--query", "Who?")
    assert result.exit_code == 1
    assert "@placeholder exactly once" in text


def test_standard_input(entities):
    docs, _, folder = entities
    page = folder / "page.html"
    result, text = run(folder / "pipeline", "-", "--output", page, given=SENTENCES[0])
    assert result.exit_code == 0, text
    assert "standard input: " in text
    assert f"{len(docs[0])} words" in text
    assert read_page(page)[1]["title"] == "standard input"
    result, text = run(folder / "pipeline", "-", "--key", page, given=SENTENCES[0])
    assert "A key is of a text in a file" in text
    result, text = run(folder / "pipeline", folder / "gone.txt")
    assert result.exit_code == 1
    assert "or - for standard input, but there is no file" in text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"text\nAda left.\n", "a.csv holds many texts, in csv: spacy luke apply annotates all of them"),
        ("a.jsonl", b"{}\n", "a.jsonl holds many texts, in jsonl"),
        ("a.docx", b"PK\x03\x04\x14\x00\x00\xff", "expected text in UTF-8, but it is a zip archive, as .docx"),
        ("a.pdf", b"%PDF-1.7\n\xe2\xe3", "a.pdf: expected text, but it is a PDF. Extract its text"),
    ],
)
def test_what_is_no_text(entities, name, content, expected):
    folder = entities[-1]
    (folder / name).write_bytes(content)
    result, text = run(folder / "pipeline", folder / name)
    assert result.exit_code == 1
    assert expected in text.replace(f"{folder}/", "").replace(f"{folder} /", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_no_utf8(entities):
    folder = entities[-1]
    path = folder / os.fsdecode(b"b\xfcro.txt")
    path.write_text(SENTENCES[0], encoding="utf8")
    result, text = run(folder / "pipeline", path, "--output", folder / "page.html")
    assert result.exit_code == 0, result
    assert r"b\xfcro.txt: " in text
    assert read_page(folder / "page.html")[1]["title"] == r"b\xfcro.txt"
