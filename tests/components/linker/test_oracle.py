"""The benchmark that tells whether decided entities count: what it asks is what the component would answer."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.components.linker.linked import candidates_of, make_example, make_linker
from tests.tiny import SENTENCES

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def oracle(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module("linking_oracle")
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").is_file():
            del sys.modules[name]


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_contexts(oracle, store, attention, monkeypatch):
    """With nothing known the probabilities are those of local decisions; with others known they are not, and batches
    change nothing."""
    nlp, linker = make_linker(store, attention=attention, inference="local")
    examples = [make_example(nlp, text) for text in SENTENCES]
    found = oracle.ask(linker, examples, seed=0)
    several = 0
    for asked, example, linked in zip(found, examples, linker.predict(x.predicted for x in examples), strict=True):
        names = [example.predicted[start:end].text for (start, end), _ in linked]
        ambiguous = [(name, one) for name, (_, one) in zip(names, linked, strict=True) if len(candidates_of(name)) > 1]
        assert len(asked) == len(ambiguous)
        for (_, right, _), (none, gold, random) in zip(asked[:, :, 0], asked[:, :, 1], strict=True):
            assert 0 <= min(none, gold, random) <= max(none, gold, random) <= 1
            assert right in (0, 1)
        for row, (name, one) in zip(asked, ambiguous, strict=True):
            score = next(x.score for x in one if x.id == candidates_of(name)[-1][0])
            assert row[0, 1] == pytest.approx(score, abs=1e-5)
            assert row[0, 0] == (score == max(x.score for x in one))
        if len(linked) > 1:
            several += len(asked)
            assert np.abs(asked[:, 1, 1] - asked[:, 0, 1]).max(initial=0) > 1e-6
            assert np.abs(asked[:, 2, 1] - asked[:, 1, 1]).max(initial=0) > 1e-6
        else:
            np.testing.assert_allclose(asked[:, 1:, 1], asked[:, :1, 1].repeat(2, axis=1), atol=1e-6)
    assert several > 1
    monkeypatch.setattr(oracle, "AT_ONCE", 1)
    for one, other in zip(found, oracle.ask(linker, examples, seed=0), strict=True):
        np.testing.assert_allclose(one[:, :2], other[:, :2], atol=1e-5)


def test_summary(oracle):
    found = [
        np.array([[[1, 0.5], [1, 0.7], [0, 0.5]]]),
        np.array([[[0, 0.25], [1, 0.5], [0, 0.25]]]),
        np.empty((0, 3, 2)),
    ]
    summary = oracle.summarise(found)
    assert summary["mentions"] == 2
    assert [summary[x]["accuracy"] for x in oracle.CONTEXTS] == [50, 100, 0]
    assert [summary[x]["above_none"] for x in oracle.CONTEXTS] == [0, 50, -50]
    assert (summary["gold"]["moved"], summary["gold"]["moved_most"]) == (0.225, 0.25)
    assert summary["gold"]["interval"][0] < 50 < summary["gold"]["interval"][1]
    line = {"pipeline": "p", "part": "testa", "documents": 3, "chip": "c", "threads": 1, "versions": {"torch": "2"}}
    assert "| p | testa | 3 | 2 | gold | 100.0 | +50.0" in oracle.make_table([line | summary | {"cores": 1}])
