"""Encoders that configs name: an own one, or a stand-in for the one that a `luke_encoder` component has."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ints1d
from thinc.util import torch2xp, xp2torch

from ..bridge.wrapper import TorchShim
from ..model.config import LukeConfig
from ..model.luke import LukeEncoder, Windows
from ..model.precision import choose_precision

ENCODER = "luke_encoder"  # name of the encoder's node in every model
NOT_LINKED = (
    "A component has the model spacy-luke.SharedEncoder.v1, but no {wanted} stands before it in the pipeline, or it "
    "was "
    "disabled or excluded when the pipeline was loaded. Add one before it (nlp.add_pipe('luke_encoder', before=...)), "
    "or "
    "give the component an encoder of its own, spacy-luke.LukeEncoder.v1."
)


@registry.architectures("spacy-luke.LukeEncoder.v1")
def build_luke_encoder(
    trainable: bool = True,
    train_precision: str = "auto",
    predict_precision: str = "float32",
) -> Model[list[Ints1d], list[Floats2d]]:
    """A LUKE encoder. Its sizes, parameters and tokenizer come from a checkpoint when the pipeline is initialised.

    trainable: false freezes all its parameters.
    train_precision, predict_precision: "float32", "bfloat16" (autocast), or "auto", which asks the chip.

    Alone it maps piece ids of windows, [CLS] and [SEP] included, to word states: (pieces, hidden_size) for each.
    """
    for name in (train_precision, predict_precision):
        choose_precision(name, torch.device("cpu"))
    shim = TorchShim(_build_encoder, trainable=trainable)
    attrs = {"kind": "luke", "train_precision": train_precision, "predict_precision": predict_precision}
    return Model(ENCODER, encode_windows, attrs=attrs, shims=[shim], init=init_with_example)


@registry.architectures("spacy-luke.SharedEncoder.v1")
def build_shared_encoder(upstream: str = "*", weight: float = 1.0) -> Model[list[Ints1d], list[Floats2d]]:
    """The encoder of the pipeline's `luke_encoder` component, in the place of an own one.

    upstream: that component's name; "*" for any. It must come earlier in the pipeline.
    weight: what the component's loss counts in what the encoder learns, beside those of others. Its head learns all the
        same. Losses are means, of a typer those of sums over all types, so that it may outweigh others.
    """
    if weight <= 0:
        raise ValueError(
            f"weight must be above 0, but it is {weight}. To keep the encoder as it is, freeze luke_encoder."
        )
    attrs = {"upstream": upstream, "weight": weight, "kind": None}
    attrs.update(train_precision="float32", predict_precision="float32")
    wanted = "luke_encoder" if upstream == "*" else f"luke_encoder named {upstream!r}"
    shim = TorchShim(_build_encoder, absent=NOT_LINKED.format(wanted=wanted))
    return Model(ENCODER, encode_windows, attrs=attrs, shims=[shim], init=init_with_example)


def share_encoder(node: Model, upstream: Model) -> None:
    """Let a stand-in run the module of the upstream's encoder."""
    node._shims[0] = upstream.shims[0]
    for name in ("kind", "train_precision", "predict_precision"):
        node.attrs[name] = upstream.attrs[name]


def is_shared(node: Model) -> bool:
    return "upstream" in node.attrs


def is_linked(node: Model) -> bool:
    """Whether a stand-in runs the module of an upstream's encoder."""
    return node.shims[0].owner is not None


def unshare(model: Model) -> Model:
    """A copy of the upstream's encoder as a component's own."""
    shim = model.shims[0]
    shim.owner = shim.cache = None
    shim.shares = {}
    return model


def _build_encoder(settings: dict[str, Any]) -> LukeEncoder:
    return LukeEncoder(LukeConfig.from_dict(settings["config"]))


def encode_windows(
    model: Model, windows: list[Ints1d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Ints1d]]]:
    shim: TorchShim = model.shims[0]
    if not windows:
        return [], lambda d_states: []
    lengths = [len(x) for x in windows]
    with shim.running(is_train=is_train) as encoder, number_format(model, shim, is_train=is_train):
        pieces = torch.cat([xp2torch(x, requires_grad=False, device=shim.device).long() for x in windows])
        states_ND = encoder.word_states(Windows(pieces, lengths)).float()

    def backprop(d_states: list[Floats2d]) -> list[Ints1d]:
        gradient = torch.cat([xp2torch(x, requires_grad=False, device=shim.device) for x in d_states])
        if states_ND.requires_grad:
            states_ND.backward(gradient)
        return []

    return [torch2xp(x) for x in states_ND.detach().split(lengths)], backprop


@contextlib.contextmanager
def number_format(encoder_model: Model, shim: TorchShim, *, is_train: bool) -> Iterator[None]:
    """Gradients and number format for passes of an encoder: autocast to bfloat16 where it is chosen. Around several
    passes without gradients it lets them share the cast parameters."""
    dtype = choose_precision(encoder_model.attrs["train_precision" if is_train else "predict_precision"], shim.device)
    with (
        torch.enable_grad() if is_train else torch.inference_mode(),
        torch.autocast(shim.device.type, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16),
    ):
        yield


def init_with_example(model: Model, X: Any = None, Y: Any = None) -> None:
    """Parameters come from a checkpoint (see the components' `initialize`), so nothing is left to infer from X."""
