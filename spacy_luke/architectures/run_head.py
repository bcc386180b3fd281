"""What the registered models have in common: a head on an encoder, run in one graph of torch.

A model's node has the encoder's node as its one layer, and the head's module in its shim.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from thinc.api import Model, Shim
from torch import Tensor, nn

from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, shim_of
from ..encoders.kind import EncoderShim
from ..encoders.nodes import EncoderModel, encoder_of, init_with_example, number_format
from ..model.fresh import initialize
from ..model.luke import Mentions

_ATTENTION = ("full", "one_way")
POOLED = ("pooled", "marks")  # features of heads on encoders without entity tokens
_BELOW = 12.0  # by which the logit of a class that is added begins below that of the first
MAX_MENTION = 30  # pieces of a mention whose positions count, as in the original code and in Hugging Face's

Batch = TypeVar("Batch")
Out = TypeVar("Out")
Forward = Callable[[Model[Batch, Out], Batch, bool], tuple[Out, Callable[..., None]]]


def check_attention(attention: str) -> None:
    if attention not in _ATTENTION:
        raise ValueError(f"attention must be one of {_ATTENTION}, but it is {attention!r}.")


def make_head(
    forward: Forward[Batch, Out],
    build: Callable[..., nn.Module],
    encoder: EncoderModel,
    attrs: dict[str, Any],
) -> Model[Batch, Out]:
    """A model's node. build: makes the head's module, of the settings that `create_head` gives it."""
    shim = TorchShim(partial(_build, build))
    return Model("head", forward, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def _build(build: Callable[..., nn.Module], settings: dict[str, Any]) -> nn.Module:
    return build(**settings)


def create_head(model: Model[Any, Any], *, seed: int, **settings: Any) -> Any:
    """Fresh parameters of the head, for an encoder that has its sizes. settings: of the head, beside its hidden_size.
    RETURNS: the module that the model's `build` makes. Raises ValueError for an encoder that lacks what the head
    reads."""
    encoder, shim = encoder_of(model.layers[0]), shim_of(model)
    config, pooled = encoder.module.config, model.attrs.get("features") in POOLED
    if not (encoder.kind.has_pooler if pooled else encoder.kind.has_entity_tokens):
        raise ValueError(
            f"The model's head reads {'the pooled state of a window' if pooled else 'words and entity tokens'}, which "
            f"its encoder does not give: it is {encoder.kind}. Choose another encoder, or another model."
        )
    head = shim.create({"hidden_size": config.hidden_size, **settings})
    device = shim.device
    head.to("cpu")  # whose random numbers are the same on all machines
    initialize(head, std=config.initializer_range, generator=torch.Generator("cpu").manual_seed(seed))
    return head.to(device)


def hold_head(model: Model[Batch, Out]) -> Model[Batch, Out]:
    """The model with the head that it has now, which it keeps while `model` gets another."""
    shims: list[Shim] = [shim_of(model).held()]
    return Model(model.name, model._func, layers=model.layers, attrs=model.attrs, shims=shims, init=model.init)


def make_wider(model: Model[Any, Any], *, several: bool) -> TorchShim[Any]:
    """The model's head with a class more, made beside it: `model` stays as it is, until its shim takes the one that is
    returned. All classes keep their scores.

    several: whether classes may hold together. Otherwise the new one would take a share of the others' probabilities:
    it begins with the logit of the first class less _BELOW, and so with e^-12 of its probability, whatever is asked. A
    classifier without bias cannot say this, and its new class begins as in a fresh head.
    """
    wider = hold_head(model)
    shim = shim_of(wider)
    old = shim.module.state_dict()
    settings = {name: x for name, x in shim.settings.items() if name != "hidden_size"}
    head = create_head(wider, seed=0, **{**settings, "n_labels": settings["n_labels"] + 1})
    new = head.state_dict()
    for name, values in old.items():
        new[name][: len(values)] = values
    if not several and head.classifier.bias is not None:
        weight, bias = new["classifier.weight"], new["classifier.bias"]
        weight[-1], bias[-1] = weight[0], bias[0] - _BELOW
    shim.fill(new)
    return shim


def run_head(
    model: Model[Batch, Any], batch: Batch, is_train: bool, run: Callable[[EncoderShim[Any], Any, Batch], Out]
) -> tuple[Out, Callable[..., None]]:
    """What `run` makes of the encoder, the head's module and the batch: both are in train or eval mode meanwhile, with
    the number format of the encoder. `run` puts its passes of the encoder into `encoder.gradients()`. RETURNS: a
    Tensor, or what says which it has (`outputs`); and the callback of a model, which takes a gradient for each of them,
    None where there is none."""
    refuse_docs(batch)
    encoder, head = encoder_of(model.layers[0]), shim_of(model)
    with (
        encoder.running(is_train=is_train and encoder.learning),
        head.running(is_train=is_train) as module,
        number_format(model.layers[0], is_train=is_train),
    ):
        found = run(encoder, module, batch)
    outputs = (found,) if isinstance(found, Tensor) else found.outputs  # type: ignore[attr-defined]

    def backprop(*gradients: Tensor | None) -> None:
        pairs = [(x, d) for x, d in zip(outputs, gradients, strict=True) if x is not None]
        torch.autograd.backward([x for x, _ in pairs], [d for _, d in pairs])

    return found, backprop


def read_mentions(
    rows_E: NDArray[np.int64],
    first_E: NDArray[np.int64],
    last_E: NDArray[np.int64],
    counts: Sequence[int],
    *,
    types_E: NDArray[np.int64] | None = None,
    vectors_EV: NDArray[np.float32] | None = None,
) -> Mentions:
    """Entity tokens of mentions, of which MAX_MENTION pieces count; made on the host (see `to_device`)."""
    return Mentions(
        torch.from_numpy(rows_E),
        torch.from_numpy(first_E),
        torch.from_numpy(np.minimum(last_E, first_E + MAX_MENTION - 1)),
        counts,
        None if types_E is None else torch.from_numpy(types_E),
        None if vectors_EV is None else torch.from_numpy(vectors_EV),
    )
