"""`spacy luke evaluate` and `spacy luke annotate`."""

import re

import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, DocBin
from tiny import SENTENCES, make_checkpoint
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.cli.convert import build_pipeline


@pytest.fixture(params=[None, "sc"])
def pipeline(request, tmp_path):
    """A pipeline of noise, its own predictions as gold documents, and its folder."""
    nlp = build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"]), config={"spans_key": request.param})
    docs = list(nlp.pipe(SENTENCES))
    assert all(doc.ents or doc.spans.get("sc") for doc in docs)
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    return docs, request.param, tmp_path


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result, " ".join(result.output.split())


@pytest.mark.parametrize("options", [[], ["--gold-sentences"]])
def test_own_predictions_are_right(pipeline, options):
    docs, key, folder = pipeline
    metrics = folder / "new" / "metrics.json"
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--output", metrics, *options)
    assert result.exit_code == 0, result
    gold = sum(len(doc.ents if key is None else doc.spans[key]) for doc in docs)
    assert re.search(rf"all 100\.00 100\.00 100\.00 {gold}\b", text), text
    scores = srsly.read_json(metrics)
    assert scores["ents_f" if key is None else "spans_sc_f"] == 1.0
    assert scores["words"] == sum(map(len, docs))
    assert scores["words_per_second"] > 0


def test_no_gold_mentions(pipeline):
    _, _, folder = pipeline
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["Ada"])]).to_disk(folder / "empty.spacy")
    result, text = run("evaluate", folder / "pipeline", folder / "empty.spacy")
    assert result.exit_code == 1
    assert "has no mentions" in text


def test_the_component_must_be_clear(pipeline):
    _, _, folder = pipeline
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--component", "ner")
    assert result.exit_code == 1
    assert "no luke_ner 'ner'; it has ['luke_ner']" in text
    spacy.blank("en").to_disk(folder / "blank")
    result, text = run("annotate", folder / "blank", folder / "gold.spacy")
    assert result.exit_code == 1
    assert "Expected one luke_ner" in text


def test_annotate(pipeline):
    docs, key, folder = pipeline
    (folder / "text.txt").write_text(SENTENCES[0], encoding="utf8")
    page = folder / "new" / "page.html"
    result, text = run("annotate", folder / "pipeline", folder / "text.txt", "--output", page, "--rows", 1)
    assert result.exit_code == 0, result
    found = list(docs[0].ents if key is None else docs[0].spans[key])
    assert f"{len(docs[0])} words, {len(found)} entities" in text
    assert re.search(rf"{found[0].text} {found[0].label_} (0\.\d\d\d|1\.000)", text)
    assert len(found) == 1 or f"and {len(found) - 1} more in" in text
    html = page.read_text(encoding="utf8")
    assert html.startswith("<!DOCTYPE html>")
    assert found[0].label_ in html
