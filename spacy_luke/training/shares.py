"""Training in several processes (`torchrun`): each learns from its share of every batch, and all make the same step.

What components learn from are sums over what a batch asks, of spaCy's own as of this package's, whose divisor is known
only when a step is made. So gradients, and divisors, are added up over all processes, and a step is that of one process
with the whole batch: whatever the shares, of any batch, the last one too.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language
from spacy.pipeline import TextCategorizer
from spacy.training import Example
from spacy.ty import TrainableComponent
from thinc.api import Model
from torch import Tensor, nn

from ..bridge.arrays import from_xp, to_floats
from ..bridge.optimizer import AdamW
from ..distributed.processes import Processes
from ..encoders.kind import EncoderShim
from ..encoders.seen import seen_windows, set_seen
from ..encoders.sharing import SharedEncoder
from .batches import divide_batch

# Losses of these are sums; the last one is spaCy's textcat in all that it learns.
_SUMMING = (
    "spacy.pipeline.",
    "spacy_transformers.",
    "spacy_curated_transformers.",
    "spacy_luke.components.soft_textcat",
)


@runtime_checkable
class Averaging(Protocol):
    """A component whose step has the mean of its losses. divisor: how many there were since the last step."""

    divisor: float


def check_components(nlp: Language, frozen: Sequence[str], processes: Processes) -> None:
    """ValueError for a component of which it is not known how losses of several processes become those of one."""
    if processes.size == 1:
        return
    for name, proc in _trained(nlp, frozen):
        if not isinstance(proc, Averaging) and not type(proc).__module__.startswith(_SUMMING):
            raise ValueError(
                f"'{name}' ({type(proc).__module__}.{type(proc).__name__}) cannot learn in {processes.size} processes: "
                "expected components of this package or of spaCy, whose gradients can be added up; of others it is not "
                "known whether they are sums or means. Train in one process, or put it into training.frozen_components."
            )


def take_share(batch: Sequence[Example], processes: Processes) -> list[Example]:
    """What this process learns from: as many words as the others, about, in the order of the batch."""
    if processes.size == 1:
        return list(batch)
    loads, mine = [0] * processes.size, []
    for i in sorted(range(len(batch)), key=lambda i: (-len(batch[i].predicted), i)):
        least = loads.index(min(loads))
        loads[least] += max(1, len(batch[i].predicted))
        if least == processes.rank:
            mine.append(i)
    return [batch[i] for i in sorted(mine)]


def copy_weights(nlp: Language, processes: Processes) -> None:
    """All begin with the main process's weights."""
    if processes.size > 1:
        processes.copy_first([p.like for p in _parameters(nlp.pipeline)])


def update(
    nlp: Language,
    batch: Sequence[Example],
    optimizer: AdamW,
    T: dict[str, Any],
    *,
    drop: float,
    losses: dict[str, float],
    processes: Processes = Processes(),
) -> None:
    """One step of all components that are not frozen, with a batch of all processes. T: the resolved [training];
    losses: get those of the step added."""
    frozen = T["frozen_components"]
    lost: dict[str, float] = {}
    share = take_share(batch, processes)
    for part in divide_batch(share, batch, T["accumulate_gradient"]):
        nlp.update(
            part,
            drop=drop,
            losses=lost,
            sgd=False,  # type: ignore[arg-type]  # no step yet, as in spaCy's own loop, whose stub lacks bool
            exclude=frozen,
            annotates=T["annotating_components"],
        )
    for name, proc in _trained(nlp, frozen):
        if isinstance(proc, TextCategorizer) and processes.size > 1:  # its loss, not its gradient, is a mean over Docs
            lost[name] = lost.get(name, 0.0) * len(share) / max(1, len(batch))
    add_up(nlp, batch, lost, frozen=frozen, processes=processes)
    for name, loss in lost.items():
        losses[name] = losses.get(name, 0.0) + loss
    for _, proc in _trained(nlp, frozen):
        proc.finish_update(optimizer)
    optimizer.step_schedules()


def add_up(
    nlp: Language, batch: Sequence[Example], losses: dict[str, float], *, frozen: Sequence[str], processes: Processes
) -> None:
    """Before a step: in all processes gradients and divisors become the sums over all, and losses those of all.

    batch: of the step, of all processes. losses: of this step alone, in place. Raises ValueError where processes have
    read different batches.
    """
    if processes.size == 1:
        return
    trained = _trained(nlp, frozen)
    shared = _shared(trained)
    for sharing in shared:
        if sharing.pending is not None:  # in some of the processes nothing may have come for it
            sharing.pending.close()
    _add_divisors(trained, shared, batch, losses, processes)
    for sharing in shared:
        sharing.gather()
    parameters = _parameters(trained)
    found = processes.sum_tensors([p.gradient() for p in parameters], [p.like for p in parameters])
    for p, gradient in zip(parameters, found, strict=True):
        if gradient is not None:
            p.set(gradient)


def _add_divisors(
    trained: Sequence[tuple[str, Any]],
    shared: Sequence[SharedEncoder],
    batch: Sequence[Example],
    losses: dict[str, float],
    processes: Processes,
) -> None:
    """All numbers in one message, with what says whether the batch is the same."""
    means = {name: proc for name, proc in trained if isinstance(proc, Averaging)}
    shares = {(i, name): sharing.shares.get(name) for i, sharing in enumerate(shared) for name in means}
    text = "\n".join(example.reference.text for example in batch)
    mark = float(zlib.crc32(text.encode()))
    sent: dict[tuple[Any, ...], float] = {("mark",): mark}
    sent |= {("divisor", name): proc.divisor for name, proc in means.items()}
    sent |= {("share", *key): share.losses if share else 0.0 for key, share in shares.items()}
    for name, _ in trained:  # of a mean its sum
        sent["loss", name] = losses.get(name, 0.0) * ((means[name].divisor if name in means else 0.0) or 1.0)
    total = processes.sum(sent)
    if total["mark",] != mark * processes.size:
        raise ValueError(
            f"The {processes.size} processes have read different documents for the same step: expected the same "
            "training data, in the same order, in all of them. Look whether all machines have the same files, and "
            "whether a reader or an augmenter draws random numbers of its own."
        )
    for name, proc in means.items():
        proc.divisor = total["divisor", name]
    for key, share in shares.items():
        if share is not None:
            share.losses = total["share", *key]
    for name, _ in trained:
        divisor = total["divisor", name] if name in means else 0.0
        losses[name] = total["loss", name] / (divisor or 1.0)


class SeenWindows:
    """What training has shown the encoders (see `encoders.seen`), of all processes together."""

    def __init__(self, nlp: Language, processes: Processes):
        """All processes know the same of it, as at the beginning."""
        self.processes = processes
        self.encoders = _encoders(nlp.pipeline)
        self.known = [seen_windows(encoder) for encoder in self.encoders]

    def join(self) -> None:
        """What each has seen since the last time becomes known to all: before evaluating and saving."""
        if self.processes.size == 1:
            return
        found = self.processes.gather([seen_windows(encoder) for encoder in self.encoders])
        for i, encoder in enumerate(self.encoders):
            old = self.known[i]
            sums = [0] * max(len(old), *(len(seen[i]) for seen in found))
            for seen, sign in [(old, 1 - len(found)), *((seen[i], 1) for seen in found)]:
                for step, pieces in enumerate(seen):
                    sums[step] += sign * pieces
            set_seen(encoder, sums)
            self.known[i] = sums


class _Parameter:
    """Of torch, or an array of Thinc's with the node that has it."""

    def __init__(self, like: Tensor, node: Model[Any, Any] | None = None, name: str = ""):
        self.like, self.node, self.name = like, node, name

    def gradient(self) -> Tensor | None:
        if self.node is None:
            return self.like.grad
        return from_xp(self.node.get_grad(self.name)) if self.node.has_grad(self.name) else None

    def set(self, gradient: Tensor) -> None:
        if self.node is None:
            self.like.grad = gradient
        else:
            self.node.set_grad(self.name, to_floats(gradient))


def _trained(nlp: Language, frozen: Sequence[str]) -> list[tuple[str, Any]]:
    return [
        (name, proc)
        for name, proc in nlp.pipeline
        if name not in frozen and isinstance(proc, TrainableComponent) and proc.is_trainable
    ]


def _nodes(pipes: Iterable[tuple[str, Any]]) -> Iterator[Model[Any, Any]]:
    for _, proc in pipes:
        model = getattr(proc, "model", None)
        if isinstance(model, Model):
            yield from model.walk()


def _parameters(pipes: Iterable[tuple[str, Any]]) -> list[_Parameter]:
    """Each once, in an order that is the same in all processes."""
    found: dict[object, _Parameter] = {}
    for node in _nodes(pipes):
        for name in node.param_names:
            if node.has_param(name):
                found.setdefault((node.id, name), _Parameter(from_xp(node.get_param(name)), node, name))
        for shim in node.shims:
            for p in shim._model.parameters() if isinstance(shim._model, nn.Module) else ():
                if p.requires_grad:
                    found.setdefault(id(p), _Parameter(p))
    return list(found.values())


def _encoders(pipes: Iterable[tuple[str, Any]]) -> list[EncoderShim[Any]]:
    found = {id(shim): shim for node in _nodes(pipes) for shim in node.shims if isinstance(shim, EncoderShim)}
    return list(found.values())


def _shared(pipes: Iterable[tuple[str, Any]]) -> list[SharedEncoder]:
    return [shim.sharing for shim in _encoders(pipes) if shim.sharing is not None]
