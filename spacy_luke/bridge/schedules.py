"""A learning rate whose warm-up is a share of training: `@schedules = "spacy-luke.linear.v1"`, which then falls to
nothing, and `spacy-luke.constant.v1`, which then stays.

With total_steps = null the number of steps follows from the data: `spacy_luke.training.steps` counts them and puts the
number into the config before the optimizer is made of it.

Rates are iterators that know their step, no generators: a pipeline holds its optimizer, and is pickled and copied with
it.
"""

from abc import abstractmethod
from collections.abc import Iterator

NAME = "spacy-luke.linear.v1"
NAMES = (NAME, "spacy-luke.constant.v1")


def make_linear(
    initial_rate: float, warmup: float = 0.06, total_steps: int | None = None, counted: int | None = None
) -> Iterator[float]:
    """Rates of the steps: up from 0 to `initial_rate`, then in a line down to nothing after the last one.

    initial_rate: the highest, after the way up.
    warmup: share of all steps on the way up, 0.06 in LUKE's paper (appendix A). total_steps: updates of the whole
    training, null: as many as the data, the batcher and training.max_epochs or training.max_steps give. counted: that
    number, which each training fills in anew; no setting for people.
    """
    steps = _steps(initial_rate, warmup, total_steps, counted)
    return _Uncounted() if steps is None else _Linear(initial_rate, int(warmup * steps + 0.5), steps)


def make_constant(
    initial_rate: float, warmup: float = 0.1, total_steps: int | None = None, counted: int | None = None
) -> Iterator[float]:
    """Rates of the steps: up from 0 to `initial_rate`, where it stays: the original code of ERNIE in half precision, by
    which its paper's figures were made.

    initial_rate: the highest, after the way up.
    warmup: share of all steps on the way up. total_steps: updates of the whole training, null: as many as the data,
    the batcher and training.max_epochs or training.max_steps give. counted: that number, which each training fills in
    anew; no setting for people.
    """
    steps = _steps(initial_rate, warmup, total_steps, counted)
    return _Uncounted() if steps is None else _Constant(initial_rate, warmup * steps)


class _Rates(Iterator[float]):
    """A rate for each step from 0. Never ends."""

    def __init__(self) -> None:
        self._step = 0

    def __next__(self) -> float:
        rate = self._rate(self._step)
        self._step += 1
        return rate

    @abstractmethod
    def _rate(self, step: int) -> float:
        """Of a step, from 0 on."""


class _Linear(_Rates):
    """As Thinc's warmup_linear.v1, bit by bit."""

    def __init__(self, highest: float, warmup_steps: int, steps: int) -> None:
        super().__init__()
        self._highest, self._warmup_steps, self._steps = highest, warmup_steps, steps

    def _rate(self, step: int) -> float:
        if step < self._warmup_steps:
            return step / self._warmup_steps * self._highest
        return max(0.0, (self._steps - step) / max(1.0, self._steps - self._warmup_steps)) * self._highest


class _Constant(_Rates):
    def __init__(self, highest: float, warmup_steps: float) -> None:
        super().__init__()
        self._highest, self._warmup_steps = highest, warmup_steps

    def _rate(self, step: int) -> float:
        return self._highest * step / self._warmup_steps if step < self._warmup_steps else self._highest


class _Uncounted(_Rates):
    """What an optimizer holds that is made before the steps are counted, and is not used (spaCy makes two)."""

    def _rate(self, step: int) -> float:
        if step == 0:
            return 0.0
        raise ValueError(
            "The learning rate has total_steps = null, but nothing has counted the steps: train with `spacy luke "
            "train`, or, for `spacy train`, set [initialize] after_init = "
            '{"@callbacks":"spacy-luke.count_steps.v1"}, or total_steps.'
        )


def _steps(initial_rate: float, warmup: float, total_steps: int | None, counted: int | None) -> int | None:
    if initial_rate <= 0 or not 0 <= warmup < 1 or (total_steps is not None and total_steps < 1):
        raise ValueError(
            "Expected initial_rate above 0, warmup from 0 and below 1, and total_steps from 1 or null, but got "
            f"{initial_rate}, {warmup} and {total_steps}."
        )
    return counted if total_steps is None else total_steps
