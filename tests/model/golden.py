"""Golden files of the reference implementations as our modules and packed inputs."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from spacy_luke.checkpoint.configs import archive_config, luke_config
from spacy_luke.checkpoint.names import archive_names, luke_names
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.losses import gold_answers, start_end_cross_entropy
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

# Pairs of parameters that are easily taken for one another; of the last layer too.
NAMED_SWAPS = {
    ("layers.0.attention.e2e_query.weight", "layers.0.attention.e2w_query.weight"),
    ("layers.0.attention.query.weight", "layers.0.attention.w2e_query.weight"),
    ("layers.{last}.attention.e2w_query.bias", "layers.{last}.attention.w2e_query.bias"),
    ("layers.1.attention.key.weight", "layers.1.attention.value.weight"),
    ("layers.0.attention.key.bias", "layers.0.attention.query.bias"),
    ("layers.0.up.weight", "layers.1.up.weight"),
    ("layers.0.attention_norm.bias", "layers.0.output_norm.bias"),
    ("entities.position.weight", "words.position.weight"),
    ("entities.token_type.weight", "words.token_type.weight"),
    ("entities.norm.weight", "words.norm.weight"),
}


def read_case(shared: Callable[[str], Any], name: str) -> "Case":
    """A case by its name: `luke_*` of the original code, `hf_luke_*` of transformers."""
    if name.startswith("hf_"):
        folder = shared(f"golden/{name}")
        data, tensors = json.loads((folder / "io.json").read_text("utf8")), load_file(folder / "io.safetensors")
        theirs = load_file(folder / "model.safetensors")
        config = luke_config(json.loads((folder / "config.json").read_text("utf8")))
        root = "luke." if any(key.startswith("luke.") for key in theirs) else ""
        names = luke_names(config, root=root)
    else:
        path = shared(f"golden/{name}.safetensors")
        data, tensors = json.loads(path.with_suffix(".json").read_text("utf8")), load_file(path)
        theirs = {key[len("weights/") :]: x for key, x in tensors.items() if key.startswith("weights/")}
        aware = any("w2e_query" in key for key in theirs)
        config = archive_config({"model_config": {**data["config"], "use_entity_aware_attention": aware}})
        rooted = any(key.startswith("luke.") for key in theirs)  # entity disambiguation
        names = luke_names(config, root="luke.") if rooted else archive_names(config)
    state = {ours: theirs[key] for key, ours in names.items() if key in theirs}
    return Case(
        config=config,
        state={key[len("encoder.") :]: x for key, x in state.items() if key.startswith("encoder.")},
        head={key[len("head.") :]: x for key, x in state.items() if key.startswith("head.")},
        pretraining={
            **{key: x for key, x in state.items() if key.startswith(("lm_", "entity_"))},
            **_page_head(theirs),
        },
        inputs={key[len("inputs/") :]: x for key, x in tensors.items() if key.startswith("inputs/")},
        outputs={key[len("outputs/") :]: x for key, x in tensors.items() if key.startswith("outputs/")},
        tolerance=max(1e-5, 10 * data["float32_vs_float64_max_abs_diff"]),
    )


@dataclass(frozen=True)
class Case:
    """state: parameters of the encoder, head: of the classifier, pretraining: of its heads, by our names; tolerance:
    greatest absolute error."""

    config: LukeConfig
    state: dict[str, Tensor]
    head: dict[str, Tensor]
    pretraining: dict[str, Tensor]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    tolerance: float

    def encoder(self) -> LukeEncoder:
        encoder = LukeEncoder(self.config).eval()
        encoder.load_state_dict(self.state)
        return encoder

    def _input(self, *names: str) -> Tensor:
        return next(self.inputs[name] for name in names if name in self.inputs)

    def swaps(self) -> set[tuple[str, str]]:
        """The pairs of parameters that are easily taken for one another, of those that the encoder has."""
        pairs = {tuple(x.format(last=self.config.num_layers - 1) for x in pair) for pair in NAMED_SWAPS}
        found = {pair for pair in pairs if self.state.keys() >= set(pair)}
        assert any(pair[0].startswith("layers.") for pair in found)
        assert all(self.state[a].shape == self.state[b].shape for a, b in found)
        return found

    def swapped(self, one: str, other: str) -> "Case":
        return replace(self, state={**self.state, one: self.state[other], other: self.state[one]})

    @property
    def real_words(self) -> Tensor:
        return self._input("word_attention_mask", "attention_mask").bool()

    @property
    def real_entities(self) -> Tensor:
        return self.inputs["entity_attention_mask"].bool()

    def windows(self) -> Windows:
        real = self.real_words
        types = self._input("word_segment_ids", "token_type_ids")[real]
        return Windows(self._input("word_ids", "input_ids")[real], real.sum(1).tolist(), types)

    def mentions(self) -> Mentions:
        real = self.real_entities
        places = self.inputs["entity_position_ids"][real]
        first, last = places[:, 0], places.max(1).values
        assert torch.equal((places >= 0).sum(1), last - first + 1), "positions of a mention are not consecutive"
        types = self._input("entity_segment_ids", "entity_token_type_ids")[real]
        return Mentions(self.inputs["entity_ids"][real], first, last, real.sum(1).tolist(), types)

    def no_mentions(self) -> Mentions:
        none = torch.empty(0, dtype=torch.long)
        return Mentions(none, none, none, [0] * len(self.real_words))

    def word_error(self, name: str, words_ND: Tensor) -> float:
        """Greatest difference from an output (B, L, D) at real words."""
        return _error(self.outputs[name][self.real_words], words_ND)

    def entity_error(self, name: str, entities_ED: Tensor) -> float:
        """Greatest difference from an output (B, E, D) at real entities."""
        return _error(self.outputs[name][self.real_entities], entities_ED)


def padded_loss(logits: Tensor, labels: Tensor, real: Tensor) -> tuple[float, int]:
    """Sum of the reference's cross-entropy where it is given a label at padding, and how many these are; we read no
    padding, but its mean counts them. logits (B, E, L), labels (B, E) with negative numbers for none, real (B, E)."""
    counted = ~real & (labels >= 0)
    return float(F.cross_entropy(logits[counted], labels[counted], reduction="sum")), int(counted.sum())


def _page_head(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Checkpoints have no place for it, so that no table names it."""
    names = {"decoder.weight": "decoder.weight", "bias": "decoder.bias"}
    given = {ours: theirs.get(f"cls_entity_predictions.{name}") for name, ours in names.items()}
    return {f"page_head.{name}": x for name, x in given.items() if x is not None}


def _error(expected: Tensor, got: Tensor) -> float:
    assert expected.shape == got.shape, (expected.shape, got.shape)
    return float((expected - got.detach()).abs().max())


def answer_loss(logits_N2: Tensor, lengths: list[int], places_B2: Tensor) -> tuple[Tensor, Tensor]:
    return start_end_cross_entropy(logits_N2, gold_answers(places_B2.numpy(), lengths))


def loss_of_answers(case: Any) -> float:
    """From the reference's own logits, padding among them as there; it ignores places beyond the end."""
    means = []
    for side in ("start", "end"):
        losses = [
            float(answer_loss(logits[:, None].expand(-1, 2), [len(logits)], torch.stack([place, place])[None])[0])
            for logits, place in zip(case.outputs[f"{side}_logits"], case.inputs[f"{side}_positions"])
            if place < len(logits)
        ]
        assert losses
        means.append(sum(losses) / len(losses))
    return sum(means) / 2
