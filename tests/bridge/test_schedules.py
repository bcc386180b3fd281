"""Schedules whose warm-up is a share of training: which rates they give, and what they refuse."""

import itertools

import pytest
from spacy.util import registry

from spacy_luke.bridge.schedules import make_constant


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
