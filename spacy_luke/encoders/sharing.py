"""An encoder that several components share: what they teach it, when it makes its step, what they hold of it.

The owner is the `luke_encoder` component, which comes first in the pipeline; after it come LUKE components, each with a
head of its own, and spaCy's components, which listen to word states. One step of `spacy train`, with a typer that
shares the encoder and a tagger that listens to it:

    nlp            owner          SharedEncoder          typer            tagger
     |               |                  |                  |                 |
     |-- update ---->|----- begin ----->|                  |                 |  these examples
     |               |----- wait ------>|                  |                 |  a pass over their words is handed out
     |               |----- word states --------------------------------->   |
     |-- update ------------------------------------------>|                 |
     |               |                  |<----- join ------|                 |  the same examples? then it learns
     |               |                  |<--- teaching ----|                 |  gradients: to the typer's share
     |-- update ------------------------------------------------------------>|
     |               |                  |<-------------- add ----------------|  gradients: to the sums; the pass is over
     |               |                  |                  |                 |
     |-- finish ---->|----- finish ---->|                  |                 |  step: the mean of each share and the
     |               |                  |                  |                 |  sums are one gradient
     |-- finish ------------------------------------------>|                 |  the typer's head makes its own step;
     |               |                  |<----- step ------|                 |  of the encoder nothing is left
     |-- finish ------------------------------------------------------------>|

What can come otherwise:

- The owner is frozen (not updated): `join` says no, and the encoder is run without gradients. So it does for a
  component that is updated with other examples than the owner was.
- `nlp.update` with an optimizer finishes each component right after its update: the owner first, when nobody has
  learned anything yet. While a pass waits for gradients, the step waits for the pass (`step`); without a pass there is
  nothing to step with, and the next component that finishes makes the step.
- A listener's component has nothing to learn from these examples and never gives back a gradient: the pass is closed by
  the owner's `finish` where others have learned, or by its next `begin`.
- Several updates before a step (accumulate_gradient): shares and sums go on; only at the step it is known how many
  losses each component has had, so that until then each has gradients of its own.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from spacy.training import Example
from thinc.api import Optimizer
from torch import Tensor, nn

from ..bridge.optimizer import AdamW
from ..bridge.wrapper import TorchShim
from .cache import WordCache


class Pending(Protocol):
    """A pass over words whose gradients have not all come. begun: whether one has; then: what waits for them."""

    then: Callable[[], None] | None

    @property
    def begun(self) -> bool: ...

    def close(self) -> None:
        """Take the gradients that have come for all, and do what waits."""


@dataclass
class Share:
    """What one component has taught. weight: what the mean of its losses counts; forget: makes the component drop what
    it has learned for this step; losses: how many there were since the last step; gradients: of their sum, by the
    parameter's name."""

    weight: float
    forget: Callable[[], None]
    losses: float = 0.0
    gradients: dict[str, Tensor] = field(default_factory=dict)


class SharedEncoder:
    """What belongs to sharing an encoder, and to no component alone.

    shim: the encoder's. owner: name of the component that stores it, and of its state in an optimizer. cache: word
    states that components share in predictions. learning: whether the encoder learns in the update that is under
    way. shares: by the components' names; sums: gradients of spaCy's components, which are not averaged, by the
    parameters' names. pending: the pass that listeners have not all given a gradient for. replaced: whether other
    values stand in place of the parameters. knows_words: whether the words of training data were looked for in the
    encoder's vocabulary.
    """

    def __init__(self, shim: TorchShim[nn.Module], owner: str, settings: Mapping[str, Any]):
        """settings: of the owner, as they are at any time."""
        self.shim = shim
        self.owner = owner
        self.settings = settings
        self.cache = WordCache(settings)
        self.learning = True
        self.shares: dict[str, Share] = {}
        self.sums: dict[str, Tensor] = {}
        self.pending: Pending | None = None
        self.replaced = False
        self.knows_words = False
        self._examples: Iterable[Example] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_examples": None, "shares": {}, "sums": {}, "pending": None}

    @property
    def max_window(self) -> int | None:
        """Pieces of a window that the owner sets for all; None: not set."""
        chosen: int | None = self.settings["max_window"]
        return chosen

    # ---- an update

    def begin(self, examples: Iterable[Example]) -> None:
        """The owner is updated with these examples. A pass that still waits is closed."""
        if self.pending is not None:
            self.pending.close()
        self._examples = examples

    def join(self, examples: Iterable[Example]) -> bool:
        """A component is updated with these examples. RETURNS: whether the encoder learns from it: only where they are
        the owner's, the same list, which `nlp.update` hands to all components that are not frozen."""
        self.learning = self.shim.trainable and self._examples is examples
        return self.learning

    @contextlib.contextmanager
    def teaching(self, name: str, weight: float, *, forget: Callable[[], None]) -> Iterator[Share]:
        """Around the passes of a component: their gradients go to its share. Whoever adds them adds to `losses`.
        forget: see `Share`."""
        share = self.shares.setdefault(name, Share(weight, forget))
        parameters = self.shim.named_parameters()
        try:
            for key, p in parameters:
                p.grad = share.gradients.get(key)
            yield share
        finally:
            for key, p in parameters:
                if p.grad is not None:
                    share.gradients[key] = p.grad
                p.grad = None

    def wait(self, words: Pending) -> None:
        """A pass has been handed to listeners; no step is made until it is over."""
        self.pending = words

    def end(self) -> None:
        """The pass is over: its gradients are about to be added, and no others come."""
        self.pending = None

    def add(self, gradients: Iterable[tuple[str, Tensor]]) -> None:
        """Of spaCy's components, by the parameters' names."""
        for name, gradient in gradients:
            self.sums[name] = self.sums[name] + gradient if name in self.sums else gradient

    def forget(self, name: str) -> None:
        """Drop what a component has taught since the last step."""
        self.shares.pop(name, None)

    # ---- a step

    @property
    def has_gradients(self) -> bool:
        return bool(self.sums) or any(share.gradients for share in self.shares.values())

    def finish(self, sgd: Optimizer) -> None:
        """The owner's step. Where listeners have got their word states but nothing was learned yet, as in `nlp.update`
        with an optimizer, it is made as soon as the last of them has learned."""
        if self.pending is not None and (self.pending.begun or self.has_gradients):
            self.pending.close()
        self.step(sgd)

    def step(self, sgd: Optimizer) -> None:
        """One step with what all components have taught, or, where a pass waits for gradients, when it is over. A step
        that ends in an error, as for a gradient that is no number, is forgotten by all of them."""
        if self.pending is not None:
            self.pending.then = partial(self.step, sgd)
            return
        self.shim.changed = True
        shares = list(self.shares.values())
        try:
            self.gather()
            if isinstance(sgd, AdamW):
                parameters = [(f"encoder.{name}", p) for name, p in self.shim.named_parameters()]
                # In `nlp.update` with an optimizer each component that has learned makes a step.
                sgd.step(self.owner, parameters, again=bool(shares))
            else:
                self.shim.finish_update(sgd)
        except BaseException:
            for share in shares:
                share.forget()
            self.sums.clear()
            for _, p in self.shim.named_parameters():
                p.grad = None
            raise

    def gather(self) -> None:
        """Give the parameters their gradients: the sum of the components' means, each as much as it counts, and of what
        spaCy's components have added. Nothing is left of either."""
        parameters = self.shim.named_parameters()
        for share in self.shares.values():
            if share.losses:
                _add(parameters, share.gradients, share.weight / share.losses)
        _add(parameters, self.sums, 1.0)
        self.shares.clear()
        self.sums.clear()

    # ---- other values

    @contextlib.contextmanager
    def replacing(self) -> Iterator[bool]:
        """Around other values in place of the parameters. YIELDS: whether they are to be put there: of the components
        that share the encoder the first does it for all, as `nlp.use_params` leaves them in the order in which it
        entered them."""
        first = not self.replaced
        self.replaced = True
        try:
            yield first
        finally:
            if first:
                self.replaced = False


def _add(parameters: list[tuple[str, nn.Parameter]], gradients: dict[str, Tensor], factor: float) -> None:
    if factor != 1.0 and gradients:
        torch._foreach_mul_(list(gradients.values()), factor)
    both: list[tuple[Tensor, Tensor]] = []
    for name, p in parameters:
        if p.grad is None:
            p.grad = gradients.get(name)
        elif name in gradients:
            both.append((p.grad, gradients[name]))
    if both:
        torch._foreach_add_([grad for grad, _ in both], [more for _, more in both])
