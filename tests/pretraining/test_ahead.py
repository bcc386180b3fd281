"""Batches made ahead: the same ones, an error of the stream as it is, and an end that says what happened."""

import os
import signal
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice

import pytest
import torch

from spacy_luke.pretraining.ahead import Ahead, can_fork
from spacy_luke.pretraining.stream import Position

pytestmark = pytest.mark.skipif(not can_fork(), reason="batches are made ahead where processes can be forked")


@dataclass(frozen=True)
class Numbers:
    values_N: torch.Tensor
    name: str

    @property
    def counts(self):
        return {"numbers": len(self.values_N)}


def make_stream(counts, *, fails_at=None):
    def stream(position):
        while True:
            position = replace(position, batches=position.batches + 1)
            counts["made"] += 1
            if position.batches == fails_at:
                raise ValueError(f"batch {fails_at} is damaged")
            yield Numbers(torch.arange(position.batches), f"number {position.batches}"), position

    return stream


def test_the_same_batches():
    """From any position; what the source has counted is known to the batch that was taken last."""
    counts = Counter()
    ahead = Ahead(make_stream(counts), Position(batches=5), size=3, counts=counts)
    expected = islice(make_stream(Counter())(Position(batches=5)), 20)
    for i, (batch, position) in enumerate(expected):
        found, after = next(ahead)
        assert torch.equal(found.values_N, batch.values_N)
        assert (found.name, after, counts["made"]) == (batch.name, position, i + 1)
        found.values_N.add_(1)  # it can be written to
    ahead.close()
    assert not ahead.process.is_alive()


def test_an_error_comes_when_its_batch_would():
    ahead = Ahead(make_stream(Counter(), fails_at=4), Position(), size=2)
    assert [after.batches for _, after in islice(ahead, 3)] == [1, 2, 3]
    with pytest.raises(ValueError, match=r"^batch 4 is damaged$"):
        next(ahead)
    ahead.close()


def test_a_process_that_is_killed():
    ahead = Ahead(make_stream(Counter()), Position(), size=1)
    next(ahead)
    os.kill(ahead.process.pid, signal.SIGKILL)
    with pytest.raises(ValueError, match=r"The process that makes batches died \(exit code -9\)"):
        for _ in range(9999):  # some were made
            next(ahead)
    ahead.close()
