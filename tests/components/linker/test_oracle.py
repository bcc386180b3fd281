"""The benchmark that tells whether decided entities count: what it asks is what the component would answer."""

import importlib

import numpy as np
import pytest

from tests.benchmark_files import by_bare_names
from tests.components.linker.linked import candidates_of, make_example, make_linker
from tests.tiny import SENTENCES

RANDOM = 3  # among the contexts; what is drawn depends on the batches


@pytest.fixture
def oracle():
    with by_bare_names():
        yield importlib.import_module("linking_oracle")


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
        assert ((asked[:, :, 1] >= 0) & (asked[:, :, 1] <= 1)).all()
        assert np.isin(asked[:, :, 0], (0, 1)).all()
        for row, (name, one) in zip(asked, ambiguous, strict=True):
            score = next(x.score for x in one if x.id == candidates_of(name)[-1][0])
            assert row[0, 1] == pytest.approx(score, abs=1e-5)
            assert row[0, 0] == (score == max(x.score for x in one))
        if len(linked) > 1:
            several += len(asked)
            assert np.abs(asked[:, 1, 1] - asked[:, 0, 1]).max(initial=0) > 1e-6
            assert np.abs(asked[:, RANDOM, 1] - asked[:, 1, 1]).max(initial=0) > 1e-6
        else:
            np.testing.assert_allclose(asked[:, 1:, 1], asked[:, :1, 1].repeat(5, axis=1), atol=1e-6)
    assert several > 1
    monkeypatch.setattr(oracle, "AT_ONCE", 1)
    for one, other in zip(found, oracle.ask(linker, examples, seed=0), strict=True):
        np.testing.assert_allclose(np.delete(one, RANDOM, 1), np.delete(other, RANDOM, 1), atol=1e-5)


@pytest.mark.parametrize(
    ("context", "known"),
    [
        ("none", [-1, -1, -1, -1]),
        ("gold", [-1, 5, -1, 6]),
        ("gold of other names", [-1, -1, -1, 6]),
        ("random", [-1, 2, -1, 4]),
        ("decided", [-1, 8, 9, 7]),
        ("decided, no NIL", [-1, 8, -1, 7]),
    ],
)
def test_what_is_known(oracle, context, known):
    """The token that is asked about is masked, and with it what is NIL, but in "decided"."""
    window = oracle.Window(0, None, np.array([5, 5, -1, 6]), np.array(["Leeds", "Leeds", "Reuters", "York"]))
    found = oracle.known_entities(window, 0, context, np.array([1, 2, 3, 4]), np.array([7, 8, 9, 7]))
    assert found.tolist() == known


def test_hidden_names(oracle, store):
    """The same mentions are asked about, and other words are read."""
    nlp, linker = make_linker(store, attention="one_way", inference="local")
    examples = [make_example(nlp, text) for text in SENTENCES]
    shown, hidden = (oracle.ask(linker, examples, seed=0, hide=hide) for hide in (False, True))
    assert [x.shape for x in shown] == [x.shape for x in hidden]
    assert max(np.abs(a - b)[:, 0, 1].max(initial=0) for a, b in zip(shown, hidden, strict=True)) > 1e-6


def test_summary(oracle):
    found = [
        np.array([[[1, 0.5], [1, 0.7], [1, 0.5], [0, 0.5], [1, 0.5], [1, 0.5]]]),
        np.array([[[0, 0.25], [1, 0.5], [0, 0.25], [0, 0.25], [0, 0.25], [0, 0.25]]]),
        np.empty((0, 6, 2)),
    ]
    summary = oracle.summarise(found)
    assert summary["mentions"] == 2
    assert [summary[x]["accuracy"] for x in oracle.CONTEXTS] == [50, 100, 50, 0, 50, 50]
    assert [summary[x]["above_none"] for x in oracle.CONTEXTS] == [0, 50, 0, -50, 0, 0]
    assert (summary["gold"]["moved"], summary["gold"]["moved_most"]) == (0.225, 0.25)
    assert summary["gold"]["interval"][0] < 50 < summary["gold"]["interval"][1]
    line = {"pipeline": "p", "part": "testa", "documents": 3, "chip": "c", "threads": 1, "versions": {"torch": "2"}}
    assert "| p | testa | 3 | 2 | gold | 100.0 | +50.0" in oracle.make_table([line | summary | {"cores": 1}])
