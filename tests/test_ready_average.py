"""scripts/ready_average.py: the mean of pipelines' weights."""

import runpy
import sys
from pathlib import Path

import pytest
import spacy
import torch

from spacy_luke.pipelines.quantization import dequantize, quantize
from tests.pipelines import make_pipeline

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts/ready_average.py"), run_name="loaded")


def numbers(nlp):
    return {name: x.detach().clone() for name, x in SCRIPT["parameters"](nlp)}


def average(monkeypatch, *paths):
    monkeypatch.setattr(sys, "argv", ["ready_average.py", *map(str, paths)])
    SCRIPT["main"]()


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    """Three, whose numbers differ; the last has other settings."""
    folder = tmp_path_factory.mktemp("pipelines")
    for i in range(3):
        nlp = make_pipeline("luke_ner", "luke_typer")
        with torch.no_grad():
            for name, x in SCRIPT["parameters"](nlp):
                x.add_(float(i * (len(name) % 5 + 1)))
        nlp.get_pipe("luke_ner").settle(nlp, none_bias=float(i))
        nlp.to_disk(folder / str(i))
    return folder


def test_the_mean_of_all(pipelines, tmp_path, monkeypatch, capsys):
    average(monkeypatch, tmp_path / "mean", *(pipelines / str(i) for i in range(3)))
    mean = spacy.load(tmp_path / "mean")
    tables = [numbers(spacy.load(pipelines / str(i))) for i in range(3)]
    found = numbers(mean)
    assert found.keys() == tables[0].keys()
    for name, x in found.items():
        torch.testing.assert_close(x, sum(table[name] for table in tables) / 3)
        assert not torch.equal(x, tables[2][name])
    assert mean.get_pipe("luke_ner").cfg["none_bias"] == 2.0
    assert f"{len({id(x) for _, x in SCRIPT['parameters'](mean)})} parameters are means of 3" in capsys.readouterr().out


def test_one_stays_as_it_is(pipelines, tmp_path, monkeypatch):
    average(monkeypatch, tmp_path / "same", pipelines / "1")
    before, after = numbers(spacy.load(pipelines / "1")), numbers(spacy.load(tmp_path / "same"))
    assert all(torch.equal(after[name], x) for name, x in before.items())


def test_what_differs_is_told(pipelines, tmp_path, monkeypatch):
    nlp = make_pipeline("luke_ner")
    nlp.to_disk(tmp_path / "fewer")
    with pytest.raises(SystemExit, match=r"luke_typer/.* is not the last's"):
        average(monkeypatch, tmp_path / "mean", tmp_path / "fewer", pipelines / "1")
    average(monkeypatch, tmp_path / "mean", pipelines / "1", tmp_path / "fewer")  # the last one's components alone
    assert spacy.load(tmp_path / "mean").pipe_names == nlp.pipe_names


def test_int8_is_made_float_first(pipelines, tmp_path, monkeypatch):
    for i in range(2):
        nlp = spacy.load(pipelines / str(i))
        quantize(nlp)
        nlp.to_disk(tmp_path / str(i))
    average(monkeypatch, tmp_path / "mean", tmp_path / "0", tmp_path / "1")
    tables = []
    for i in range(2):
        nlp = spacy.load(tmp_path / str(i))
        dequantize(nlp)
        tables.append(numbers(nlp))
    for name, x in numbers(spacy.load(tmp_path / "mean")).items():
        torch.testing.assert_close(x, (tables[0][name] + tables[1][name]) / 2)
