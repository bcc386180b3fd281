"""What all LUKE components have: a head that comes from a checkpoint or goes into one, and training."""

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from thinc.api import Model, Optimizer
from torch import Tensor

from ..architectures.run_head import hold_head
from ..batch.batches import batch_items
from ..bridge.finite import check_loss, check_scores
from ..bridge.optimizer import AdamW
from ..bridge.wrapper import TorchShim, shim_of, shims_of
from ..checkpoint.contents import Checkpoint
from ..encoders.nodes import ENCODER
from ..encoders.seen import record_windows
from ..encoders.sharing import Share
from ..model.packing import times_at_once
from ..model.transfer import begin_to_host
from .factories import Setting
from .window_limits import forget_limits
from .with_encoder import AnyCheckpoint, EncoderComponent

BIAS_STARTS = ("prior", "zeros")  # of a fresh head
_PREFIXES = {ENCODER: "encoder"}  # of a node's parameters in a checkpoint


T = TypeVar("T", bound=np.generic)


class LukeComponent(EncoderComponent):
    """A trainable component whose model holds a LUKE encoder. Settings are in `self.cfg`, and so on disk."""

    batch_size: Setting[int] = Setting(
        4096,
        "pieces, and entity tokens or spans, encoded at once, on a GPU in predictions four times as many; memory, not "
        "results, depends on it",
        least=1,
    )

    noun = "LUKE component"  # what messages call it
    model: Model[Any, Any]
    head_layer = "classifier"  # the last one
    make_batch: Callable[..., Any]  # packs windows
    divisor = 0.0  # of the gradients since the last step
    _steps = 0  # that it has made since it was built or loaded

    def named_parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Trainable parameters of its own with their names in a checkpoint: encoder.*, head.*"""
        return [
            (f"{_PREFIXES.get(node, node)}.{n}", p)
            for node, x in self.own_shims.items()
            for n, p in x.named_parameters()
        ]

    @property
    def head(self) -> TorchShim[Any]:
        return shim_of(self.model)

    def warn_missing(self, missing: Counter[str], total: int, *, what: str, advice: str = "Correct the data.") -> None:
        """Say how much of the gold can never be predicted, and why."""
        if missing:
            reasons = ", ".join(f"{n} {reason}" for reason, n in missing.items())
            warnings.warn(
                f"'{self.name}': {missing.total()} of {total} {what} of the training data can never be predicted "
                f"({reasons}). {advice}",
                stacklevel=3,
            )

    # ---- heads that are fresh, that come from elsewhere, and go there

    def check_bias_init(self, bias_init: str) -> None:
        if bias_init not in BIAS_STARTS:
            raise ValueError(
                f"[initialize.components.{self.name}] bias_init must be one of {BIAS_STARTS}, but it is {bias_init!r}."
            )

    def fill_classifier(self, checkpoint: Checkpoint) -> None:
        """Put a checkpoint's classifier in the place of the head's."""
        head = self.head
        forget_limits(self.encoder)
        state = head.module.state_dict()
        for name in ("classifier.weight", "classifier.bias"):
            if name in state and f"head.{name}" in checkpoint.tensors:
                state[name] = checkpoint.tensors[f"head.{name}"]
            elif name in state:  # a head without bias equals one with zeros
                state[name] = torch.zeros_like(state[name])
            elif f"head.{name}" in checkpoint.tensors:
                raise ValueError(
                    f"The checkpoint's classifier has a bias, but the model of '{self.name}' has none; set bias = true."
                )
        head.fill(state)

    def with_head(self, checkpoint: AnyCheckpoint) -> AnyCheckpoint:
        """Add the last layer of the head to a checkpoint that is to be exported."""
        for name, x in getattr(self.head.module, self.head_layer).state_dict().items():
            checkpoint.tensors[f"head.{self.head_layer}.{name}"] = x.detach().cpu()
        return checkpoint

    def check_exportable(self, features: str = "entity") -> None:
        found = self.model.attrs["features"]
        wanted = "pooled" if found == "marks" else features
        if found not in (features, "pooled"):  # pooled states are read by ERNIE's head alone, which is the original's
            raise ValueError(
                f"The head of '{self.name}' reads features = {found!r}, but that of other {self.encoder.kind.title} "
                f"code reads {wanted!r}. Train with features = {wanted!r} to export it."
            )

    # ---- windows

    @property
    def predicted_at_once(self) -> int:
        """What `batch_size` is in predictions."""
        return times_at_once(self.encoder.device) * self.batch_size

    def batched(self, items: Iterable[Any], *, size: int | None = None, **settings: Any) -> Iterator[Any]:
        """Windows packed for the model, about `size` of cost together; None: `batch_size`."""
        return batch_items(items, size=size or self.batch_size, make=partial(self.make_batch, **settings))

    def scored_batches(self, items: Iterable[Any], docs: Sequence[Doc], **settings: Any) -> Iterator[tuple[Any, Any]]:
        """Batches, and what the model says of them, on the host. docs: those of the windows' owners, for messages. A
        GPU computes the next batch while one is read."""
        with self.predicting():
            model = hold_head(self.model)  # all batches are scored by one head, also where a label is added meanwhile
            before: tuple[Any, Callable[[], Any]] | None = None
            for batch in self.batched(items, size=self.predicted_at_once, **settings):
                arriving = self.begin_scores(batch, model.predict(batch), docs)
                if before is not None:
                    yield before[0], before[1]()
                before = batch, arriving
            if before is not None:
                yield before[0], before[1]()

    def begin_scores(self, batch: Any, outputs: Any, docs: Sequence[Doc]) -> Callable[[], Any]:
        """What is returned waits for the scores, and raises ValueError where one is no number."""
        arriving = begin_to_host([outputs])

        def finish() -> Any:
            (scores,) = arriving()
            check_scores(scores, batch.owners, docs, name=self.name)
            return scores

        return finish

    # ---- scores

    @property
    def scoring(self) -> dict[str, Any]:
        """Settings of the component that its scorer must know."""
        return {}

    def score(self, examples: Iterable[Example], **settings: Any) -> dict[str, Any]:
        return {} if self.scorer is None else self.scorer(examples, **{**self.scoring, **settings})

    # ---- training

    def batches(self, examples: list[Example]) -> Iterable[Any]:
        """What is encoded of examples, with its gold classes."""
        raise NotImplementedError

    def loss_weight(self, batch: Any) -> float:
        """How many of a batch's losses are summed, for the mean."""
        raise NotImplementedError

    def get_loss(self, batch: Any, outputs: Any) -> tuple[Tensor, tuple[Any, ...]]:
        """The summed loss, which is not read here, and its gradients by the model's outputs."""
        raise NotImplementedError

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from examples: the mean loss of all that they ask for, however they are divided into batches of
        `batch_size`. The step is made by `finish_update`. `drop` is the rate of every dropout of the model.

        An encoder that is shared learns only if its `luke_encoder` was updated with the same examples before, as
        `nlp.update` does unless it is frozen. Where the passes end in an error, or are interrupted, nothing is left of
        what the component has learned since the last step.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        shim = self.encoder
        _ = shim.module  # raises: nothing is loaded, or linked
        self.encoder_node.attrs.pop("digest", None)  # it learns to work with the encoder that there is
        learning = shim.trainable if shim.sharing is None else shim.sharing.join(examples)
        shim.check_learning(learning)
        self._quiet = True
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        for part in shims_of(self.model).values():
            part.set_dropout(drop)
        batches = list(self.batches(examples))
        total = float(sum(self.loss_weight(batch) for batch in batches))
        if self.counts_windows and (learning or not self.shared):  # of others' encoder only what it learns from
            record_windows(self.encoder, [length for batch in batches for length in batch.lengths])
        # Several updates before a step give the mean of all their losses, also of an encoder that others teach too.
        found = []
        with self._forgetting():
            with self._teaching() as share:
                for batch in batches:
                    outputs, backprop = self.model.begin_update(batch)
                    loss, gradients = self.get_loss(batch, outputs)
                    backprop(*gradients)
                    found.append(loss)
            for value in torch.stack(found).tolist() if found else ():  # a GPU is waited for once
                check_loss(value, name=self.name, steps=self._steps)
                losses[self.name] += value / (total or 1.0)
            self.divisor += total
            if share is not None:
                share.losses += total
        if sgd:  # spaCy says False, too
            self.finish_update(sgd)
        return losses

    @contextlib.contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Around what adds gradients, or makes the step: an error, or an interruption, leaves none that would be
        learned later, with others' weight."""
        try:
            yield
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        """Drop all that was learned since the last step, also what a shared encoder would learn of it."""
        for _, p in self.named_parameters():
            p.grad = None
        self.divisor = 0.0
        if self.encoder.sharing is not None:
            self.encoder.sharing.forget(self.name)

    def _teaching(self) -> AbstractContextManager[Share | None]:
        """Around the passes of an update."""
        sharing = self.encoder.sharing
        if sharing is None or not sharing.learning:
            return contextlib.nullcontext()
        return sharing.teaching(self.name, self.encoder_node.attrs["weight"], forget=self._forget)

    def finish_update(self, sgd: Optimizer) -> None:
        """One step with the mean gradient of the updates since the last one. A shared encoder makes its step with the
        first component that is finished: its owner in `spacy train`."""
        sharing = self.encoder.sharing
        with self._forgetting():
            if sharing is not None and sharing.learning:
                sharing.step(sgd)
            parameters = self.named_parameters()
            divide_gradients(parameters, self.divisor)
            self.divisor = 0.0
            if isinstance(sgd, AdamW):
                sgd.step(self.name, parameters)
            else:
                for shim in self.own_shims.values():
                    shim.finish_update(sgd)
            self._steps += 1


def need_gold(gold: NDArray[T] | None) -> NDArray[T]:
    """The gold of a batch that is learned from."""
    assert gold is not None, "a batch without gold"
    return gold


def divide_gradients(parameters: list[tuple[str, torch.nn.Parameter]], divisor: float) -> None:
    gradients = [p.grad for _, p in parameters if p.grad is not None]
    if divisor and gradients:
        torch._foreach_div_(gradients, float(divisor))


ComponentT = TypeVar("ComponentT", bound=LukeComponent)


def find_component(nlp: Language, kind: type[ComponentT], name: str | None = None) -> ComponentT:
    """The pipeline's component of this kind and name, or its only one. Raises ValueError where there is no such
    thing."""
    found = {key: proc for key, proc in nlp.pipeline if isinstance(proc, kind)}
    if name is None and len(found) != 1:
        raise ValueError(
            f"The pipeline has the {kind.noun}s {list(found)}. Expected one {kind.noun}, or --component to name it."
        )
    if name is not None and name not in found:
        raise ValueError(f"The pipeline has no {kind.noun} {name!r}; it has {list(found)}.")
    return found[name] if name is not None else next(iter(found.values()))
