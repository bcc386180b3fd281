"""ERNIE's golden files as our modules and packed inputs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from spacy_luke.checkpoint.configs import ernie_config
from spacy_luke.checkpoint.ernie_names import DECODER, ernie_names
from spacy_luke.checkpoint.names import find_root
from spacy_luke.model.ernie import ErnieConfig, ErnieEncoder, Knowledge
from spacy_luke.model.luke import Windows


def read_ernie_case(shared: Callable[[str], Any], name: str) -> "ErnieCase":
    path = shared(f"golden/{name}.safetensors")
    data, tensors = json.loads(path.with_suffix(".json").read_text("utf8")), load_file(path)

    def part(prefix: str) -> dict[str, Tensor]:
        return {key.removeprefix(prefix): x for key, x in tensors.items() if key.startswith(prefix)}

    theirs = part("weights/")
    kinds = data["config"]["layer_types"]
    config = ernie_config(data["config"], layer_kinds=kinds, entity_size=100, entity_heads=4)
    names = ernie_names(config, root=find_root(theirs, ("bert.", "")))
    assert {DECODER, *names} >= set(theirs)
    return ErnieCase(
        config,
        {names[key]: x for key, x in theirs.items() if key != DECODER},
        part("inputs/"),
        part("outputs/"),
        max(1e-5, 10 * data["float32_vs_float64_max_abs_diff"]),
    )


@dataclass(frozen=True)
class ErnieCase:
    """state: parameters by our names ("encoder.*" and heads); tolerance: greatest absolute error."""

    config: ErnieConfig
    state: dict[str, Tensor]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    tolerance: float

    def fill(self, module: nn.Module, prefix: str) -> nn.Module:
        """The module with the parameters of this prefix: all of them, and no other."""
        module.load_state_dict({k.removeprefix(prefix): x for k, x in self.state.items() if k.startswith(prefix)})
        return module.eval()

    def layers(self, *kinds: str) -> list[int]:
        """Numbers of the layers of these kinds."""
        return [i for i, kind in enumerate(self.config.layer_kinds) if kind in kinds]

    def encoder(self) -> ErnieEncoder:
        return self.fill(ErnieEncoder(self.config), "encoder.")

    @property
    def real_words(self) -> Tensor:
        return self.inputs["attention_mask"].bool()

    @property
    def real_slots(self) -> Tensor:
        return self.inputs["ent_mask"].bool()

    def windows(self) -> Windows:
        real = self.real_words
        return Windows(self.inputs["input_ids"][real], real.sum(1).tolist(), self.inputs["token_type_ids"][real])

    def knowledge(self) -> Knowledge:
        assert self.real_slots[:, 0].all()
        linked = self.real_slots.clone()
        linked[:, 0] = False
        return Knowledge(self.inputs["input_ent"][linked], linked.nonzero()[:, 1], linked.sum(1).tolist())

    def word_error(self, name: str, words: Tensor) -> float:
        """Greatest difference from an output (B, S, ...) at real pieces."""
        return difference(self.outputs[name][self.real_words], words)

    def slot_error(self, name: str, entities_MH: Tensor) -> float:
        """Greatest difference from an output (B, S, H) where the mask of entities is 1, which is in the slots'
        order."""
        return difference(self.outputs[name][self.real_slots], entities_MH)

    def error(self, name: str, got: Tensor) -> float:
        return difference(self.outputs[name], got)


def difference(expected: Tensor, got: Tensor) -> float:
    assert expected.shape == got.shape, (expected.shape, got.shape)
    return float((expected - got.detach()).abs().max()) if expected.numel() else 0.0


def swapped(state: dict[str, Tensor], one: str, other: str) -> dict[str, Tensor]:
    assert state[one].shape == state[other].shape
    return {**state, one: state[other], other: state[one]}


def rolled(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {**state, name: torch.roll(state[name], 1, 0)}
