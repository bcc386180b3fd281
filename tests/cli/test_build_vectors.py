import numpy as np
import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.vectors.store import EntityVectors


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "kg_embed"
    folder.mkdir()
    (folder / "entity2id.txt").write_text("3\nQ1\t0\nQ2\t1\nQ3\t2\n")
    (folder / "entity2vec.vec").write_text("1\t2\n3\n5\t6\n")
    (folder / "titles.txt").write_text("A\tQ1\n")

    def run(*arguments, source="kg_embed", output="store"):
        result = CliRunner().invoke(spacy_app, ["luke", "build-vectors", source, output, *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_damage_is_told(run, tmp_path):
    code, text = run()
    assert code == 1
    assert "Nothing was written" in text
    assert "line 2, 'Q2': expected 2 numbers, but got 1" in text
    assert [path.name for path in tmp_path.iterdir()] == ["kg_embed"]


def test_build(run):
    code, text = run(
        "--on-damage", "drop", "--map", "kg_embed/titles.txt", "--dtype", "int8", "--verify", "--size", "2"
    )
    assert code == 0, text
    for expected in ("entities 2", "numbers each 2", "further names 1", "left out 1", "Left out: line 2, 'Q2'"):
        assert expected in text
    store = EntityVectors.open("store")
    assert (store.dtype, store.rows(["Q1", "Q2", "Q3", "A"]).tolist()) == ("int8", [0, -1, 1, 0])
    assert run("--on-damage", "drop")[0] == 0, "a store may be replaced"


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((), {"source": "absent"}, "no such file or folder"),
        ((), {"output": "kg_embed"}, "holds something else than vectors"),
        (("--dtype", "int4"), {}, "dtype must be one of"),
        (("--format", "x"), {}, "format must be one of"),
        (("--on-damage", "fill"), {}, "on_damage must be one of"),
        (("--names", "absent.txt"), {}, "Expected a file at absent.txt"),
    ],
)
def test_errors(run, arguments, settings, message):
    code, text = run(*arguments, **settings)
    assert code == 1
    assert message in text


def test_state_dict(run, tmp_path):
    import torch

    rows = torch.arange(6.0).view(3, 2)
    torch.save({"entity_representations.0._embeddings.weight": rows}, tmp_path / "kg_embed" / "model.pt")
    code, text = run(source="kg_embed/model.pt")
    assert code == 0, text
    store = EntityVectors.open("store")
    assert np.array_equal(store.gather(store.rows(["Q3", "Q1"])), [[4, 5], [0, 1]])
