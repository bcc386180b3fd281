"""A LUKE of the smallest sizes as Hugging Face writes it, of noise, in folders that tests damage."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from spacy_luke.checkpoint.configs import luke_config
from spacy_luke.checkpoint.names import encoder_shapes, head_shapes, luke_names

CONFIG = {
    "model_type": "luke",
    "architectures": ["LukeForMaskedLM"],
    "vocab_size": 11,
    "entity_vocab_size": 7,
    "hidden_size": 8,
    "entity_emb_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 10,
    "max_position_embeddings": 12,
    "type_vocab_size": 1,
    "pad_token_id": 1,
    "layer_norm_eps": 1e-5,
    "use_entity_aware_attention": True,
}


def make_small_luke(**changes):
    """A config and tensors of noise under Hugging Face's names, with every optional part."""
    data = {**CONFIG, **changes}
    config = luke_config(data)
    shapes = encoder_shapes(config)
    for head in head_shapes(config).values():
        shapes.update(head)
    generator = torch.Generator().manual_seed(1)
    names = {ours: theirs for theirs, ours in luke_names(config, root="luke.").items()}
    return data, {names[ours]: torch.randn(shape, generator=generator) for ours, shape in shapes.items()}


def write_small(folder: Path, data, tensors, *, weights="model.safetensors") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(data))
    if data.get("model_type") == "luke":
        rows = {"[PAD]": 0, "[UNK]": 1, "Japan": 2, "[MASK]": 3, "東京": 4, "C++": 5, "[MASK2]": 6}
        (folder / "entity_vocab.json").write_text(json.dumps(rows))
    if weights.endswith(".safetensors"):
        save_file(tensors, folder / weights)
    else:
        torch.save(tensors, folder / weights)
    return folder
