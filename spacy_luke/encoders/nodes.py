"""The encoder's node in a Thinc model: an encoder that configs name, or a stand-in for that of a `luke_encoder`
component."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ints1d

from ..bridge.arrays import from_xp, to_floats2d
from ..model.luke import Encoder, Windows
from ..model.precision import choose_precision, passes_in
from ..model.recompute import recomputing
from .kind import EncoderKind, EncoderShim

EncoderModel = Model[list[Ints1d], list[Floats2d]]

ENCODER = "luke_encoder"  # name of the encoder's node in every model
_PRECISION = ("train_precision", "predict_precision")
_RECOMPUTE = "recompute"
_NOT_LINKED = (
    "A component has the model spacy-luke.SharedEncoder.v1, but no {wanted} stands before it in the pipeline, or it "
    "was disabled or excluded when the pipeline was loaded. Add one before it (nlp.add_pipe('luke_encoder', "
    "before=...)), or give the component an encoder of its own, spacy-luke.LukeEncoder.v1."
)


def make_encoder(
    kind: EncoderKind[Any, Any],
    *,
    trainable: bool,
    train_precision: str,
    predict_precision: str,
    recompute: bool = False,
) -> EncoderModel:
    """The node of an encoder of this kind, which gets its sizes when a checkpoint is loaded."""
    for name in (train_precision, predict_precision):
        choose_precision(name, torch.device("cpu"))
    attrs = {"train_precision": train_precision, "predict_precision": predict_precision, _RECOMPUTE: recompute}
    return _node(EncoderShim(kind, trainable=trainable), attrs)


@registry.architectures("spacy-luke.SharedEncoder.v1")
def build_shared_encoder(upstream: str = "*", weight: float = 1.0) -> EncoderModel:
    """The encoder of the pipeline's `luke_encoder` component, in the place of an own one.

    upstream: that component's name; "*" for any. It must come earlier in the pipeline.
    weight: what the component's loss counts in what the encoder learns, beside those of others. Its head learns all the
        same. Losses are means, of a typer those of sums over all types, so that it may outweigh others.
    """
    if weight <= 0:
        raise ValueError(
            f"weight must be above 0, but it is {weight}. To keep the encoder as it is, freeze luke_encoder."
        )
    attrs = {"upstream": upstream, "weight": weight, "train_precision": "float32", "predict_precision": "float32"}
    wanted = "luke_encoder" if upstream == "*" else f"luke_encoder named {upstream!r}"
    return _node(EncoderShim(None, absent=_NOT_LINKED.format(wanted=wanted)), attrs)


def _node(shim: EncoderShim[Encoder], attrs: dict[str, Any]) -> EncoderModel:
    return Model(ENCODER, encode_windows, attrs=attrs, shims=[shim], init=init_with_example)


def encoder_of(node: EncoderModel) -> EncoderShim[Any]:
    """The shim of an encoder's node. Which module it holds is known where its kind was asked."""
    (shim,) = node.shims
    assert isinstance(shim, EncoderShim)
    return shim


def share_encoder(node: EncoderModel, upstream: EncoderModel) -> None:
    """Let a stand-in run the module of the upstream's encoder."""
    node.shims[0] = upstream.shims[0]
    for name in (*_PRECISION, _RECOMPUTE):
        node.attrs[name] = upstream.attrs[name]


def is_shared(node: EncoderModel) -> bool:
    return "upstream" in node.attrs


def unshare(model: EncoderModel) -> EncoderModel:
    """A copy of the upstream's encoder as a component's own."""
    encoder_of(model).sharing = None
    return model


def encode_windows(
    model: EncoderModel, windows: list[Ints1d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Ints1d]]]:
    shim = encoder_of(model)
    if not windows:
        return [], lambda d_states: []
    lengths = [len(x) for x in windows]
    with shim.running(is_train=is_train) as encoder, number_format(model, is_train=is_train):
        pieces = torch.cat([from_xp(x).to(shim.device).long() for x in windows])
        states_ND = encoder.word_states(Windows(pieces, lengths)).float()

    def backprop(d_states: list[Floats2d]) -> list[Ints1d]:
        gradient = torch.cat([from_xp(x).to(shim.device) for x in d_states])
        if states_ND.requires_grad:
            states_ND.backward(gradient)
        return []

    return [to_floats2d(x) for x in states_ND.detach().split(lengths)], backprop


@contextlib.contextmanager
def number_format(node: EncoderModel, *, is_train: bool) -> Iterator[None]:
    """Gradients, number format and memory for passes of an encoder, as its settings say; what is int8 stays so on a
    CPU."""
    shim = encoder_of(node)
    device = shim.device
    dtype = choose_precision(node.attrs["train_precision" if is_train else "predict_precision"], device)
    with (
        torch.enable_grad() if is_train else torch.inference_mode(),
        passes_in(torch.float32 if shim.is_int8 and device.type == "cpu" else dtype, device),
        recomputing(is_train and node.attrs.get(_RECOMPUTE, False)),
    ):
        yield


def init_with_example(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:
    """Parameters come from a checkpoint (see the components' `initialize`), so nothing is left to infer from X."""
