import gzip
import json

import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.vectors.store import EntityVectors

TRAIN = "".join(f"Q{i}\tP{i % 3}\tQ{(7 * i + k) % 30}\n" for i in range(30) for k in (1, 2))
QUICK = ("--size", "5", "--epochs", "4", "--every", "2", "--batch-size", "16", "--negatives", "9")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.tsv").write_text(TRAIN, encoding="utf8")
    (tmp_path / "more.tsv.gz").write_bytes(gzip.compress(b"Q31\tP0\tQ0\nQ32\tP0\tQ1\n"))
    (tmp_path / "held.tsv").write_text("Q3\tP0\tQ9\nQ4\tP1\tQ9\n", encoding="utf8")
    (tmp_path / "pairs.tsv").write_text("Q0\tQ31\nQ0\tQ777\n", encoding="utf8")

    def run(*arguments, sources=("train.tsv", "more.tsv.gz"), output="run"):
        result = CliRunner().invoke(spacy_app, ["luke", "train-kge", *sources, output, *QUICK, *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_vectors_and_figures(run, tmp_path):
    code, text = run("--valid", "held.tsv", "--test", "held.tsv", "--exclude", "pairs.tsv", "--dtype", "float16")
    assert code == 0, text
    for expected in (
        "entities 32",
        "triples, train 61",
        "excluded: pairs 2",
        "excluded: train 1",
        "31 vectors",
        "1 entities",
    ):
        assert expected in text, text
    store = EntityVectors.open("run/vectors")
    assert (len(store), store.size, store.dtype) == (31, 5, "float16")
    assert "Q31" not in store
    found = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf8"))
    assert found["excluded"]["pairs_of_entities_in_graph"] == 1
    assert f"test {found['test']['mrr']:.4f}" in text


def test_held_out_triples_that_nothing_was_learnt_for_are_said(run, tmp_path):
    (tmp_path / "held.tsv").write_text("Q3\tP0\tQ9\nQ4\tP9\tQ9\n", encoding="utf8")
    code, text = run("--valid", "held.tsv")
    assert code == 0, text
    assert "1 of the 2 triples of valid have an entity or a relation that no training triple has" in text


def test_every_setting_arrives(run, tmp_path):
    settings = {
        "loss": "nssa", "margin": 3.0, "temperature": 0.5, "norm": 1, "learning_rate": 0.02, "seed": 5,
        "normalize": True, "reciprocal": True, "engine": "sparse",
    }  # fmt: skip
    options = [
        (f"--{name.replace('_', '-')}", *(() if value is True else (str(value),))) for name, value in settings.items()
    ]
    code, text = run(*(part for option in options for part in option))
    assert code == 0, text
    assert "epoch 2: loss" in text  # also where nothing is held out to be scored
    found = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf8"))["settings"]
    expected = {**settings, "size": 5, "epochs": 4, "batch_size": 16, "negatives": 9}
    assert found == expected


def test_resume(run):
    assert run()[0] == 0
    code, text = run()
    assert code == 1
    assert "run is not empty. Resume the run" in text
    assert run("--resume")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loss", "mse"), "loss must be one of"),
        (("--exclude", "train.tsv"), "expected `entity TAB entity`"),
        (("--valid", "absent.tsv"), "There is no file of triples absent.tsv"),
        (("--dtype", "float8"), "dtype must be one of"),
        (("--every", "0"), "every must be 1 or more"),
    ],
)
def test_errors_are_one_line(run, tmp_path, arguments, message):
    code, text = run(*arguments)
    assert code == 1
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "run").exists()
