"""Schedules whose warm-up is a share of training: which rates they give, and what they refuse."""

import copy
import itertools
import pickle

import pytest
from spacy.util import registry
from thinc.api import warmup_linear

from spacy_luke.bridge.schedules import make_constant, make_linear


def rates(n, **settings):
    return list(itertools.islice(make_constant(**settings), n))


@pytest.mark.parametrize(("warmup", "steps"), [(0.1, 1250), (0.2, 2931), (0.0, 8516), (0.1, 7)])
def test_constant_as_the_original(warmup, steps):
    """`warmup_linear` of ERNIE's run_fewrel.py, of the share of steps that are done: 1 after the warm-up."""

    def original(x):
        return x / warmup if x < warmup else 1.0

    assert rates(steps, initial_rate=2e-5, warmup=warmup, total_steps=steps) == pytest.approx(
        [2e-5 * original(step / steps) for step in range(steps)], rel=1e-12
    )


def test_constant_of_counted_steps():
    made = {"@schedules": "spacy-luke.constant.v1", "initial_rate": 0.5, "warmup": 0.5, "counted": 4}
    schedule = registry.resolve({"rate": made})["rate"]
    assert list(itertools.islice(schedule, 6)) == [0.0, 0.25, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(ValueError, match="nothing has counted the steps"):
        rates(2, initial_rate=0.5)


@pytest.mark.parametrize("wrong", [{"initial_rate": 0.0}, {"warmup": 1.0}, {"total_steps": 0}])
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match="Expected initial_rate above 0"):
        rates(1, **{"initial_rate": 0.1, "warmup": 0.1, "total_steps": 5, **wrong})


@pytest.mark.parametrize("make", [make_linear, make_constant])
def test_pickled_with_their_place(make):
    """As a pipeline is, with its optimizer."""
    made = make(2e-5, 0.3, total_steps=13)
    list(itertools.islice(made, 3))
    pickled, copied = pickle.loads(pickle.dumps(made)), copy.deepcopy(made)
    rest = list(itertools.islice(made, 20))
    assert rest == list(itertools.islice(pickled, 20)) == list(itertools.islice(copied, 20))
    uncounted = make(2e-5)
    assert next(uncounted) == 0.0
    with pytest.raises(ValueError, match="nothing has counted the steps"):
        next(pickle.loads(pickle.dumps(uncounted)))


@pytest.mark.parametrize("warmup", [0.0, 0.06, 0.5])
def test_linear_as_of_thinc(warmup):
    made, thinc = make_linear(3e-5, warmup, total_steps=101), warmup_linear(3e-5, int(warmup * 101 + 0.5), 101)
    assert list(itertools.islice(made, 120)) == list(itertools.islice(thinc, 120))
