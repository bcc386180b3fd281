"""Folders of small encoders of the further families, of noise alone, as transformers would write them."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from spacy_luke.checkpoint.families import PLAIN
from spacy_luke.checkpoint.modernbert import ATTENTION_PARTS, FUSED
from spacy_luke.model.families import build_encoder
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.family_tokenizers import write_bert, write_deberta, write_modernbert, write_mpnet
from tests.tiny import SENTENCES

SIZES = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 130,
    "initializer_range": 0.02,
}
# Buckets of distances, and the reach of local layers, are fewer than the pieces of a sentence.
SETTINGS = {
    "deberta-v2": {
        "num_hidden_layers": 2,
        "relative_attention": True,
        "position_biased_input": False,
        "position_buckets": 16,
        "max_relative_positions": -1,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "pos_att_type": "p2c|c2p",
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "hidden_act": "gelu",
    },
    "mpnet": {"num_hidden_layers": 2, "layer_norm_eps": 1e-5},
    "electra": {"num_hidden_layers": 2, "embedding_size": 24, "type_vocab_size": 2},
    "distilbert": {"n_layers": 2, "dim": 32, "n_heads": 2, "hidden_dim": 48},
    "modernbert": {"num_hidden_layers": 4, "local_attention": 16, "global_attn_every_n_layers": 3},
}
ROOTS = {"deberta-v2": "deberta.", "modernbert": "model."}  # others: none
TOKENIZERS = {
    "deberta-v2": write_deberta,
    "modernbert": write_modernbert,
    "mpnet": write_mpnet,
    "electra": write_bert,
    "distilbert": write_bert,
}


def write_folder(folder: Path, name: str, *, seed: int = 0, **changes: object) -> Path:
    """name: the model_type; changes: settings of config.json."""
    folder.mkdir(exist_ok=True)
    TOKENIZERS[name](folder, SENTENCES * 5, size=330)
    rows = len(PieceTokenizer.from_folder(folder)) + 4  # as published ones, for pieces to come
    data = {"model_type": name, "vocab_size": rows, **SIZES, **SETTINGS[name], **changes}
    (folder / "config.json").write_text(json.dumps(data))
    family = PLAIN[name]
    config = family.config(data, entity_vocab_size=4, entity_size=32, entity_aware=False)
    encoder = build_encoder(config)
    generator = torch.Generator().manual_seed(seed)
    state = {
        f"encoder.{key}": torch.randn(x.shape, generator=generator) * 0.2 + key.endswith("norm.weight")
        for key, x in encoder.state_dict().items()
    }
    names = family.known_names(config, root=ROOTS.get(name, ""))
    tensors = {theirs: state[ours] for theirs, ours in names.items() if ours in state}
    for key in [key for key in tensors if key.endswith(ATTENTION_PARTS[0])]:
        root = key.removesuffix(ATTENTION_PARTS[0])
        tensors[root + FUSED] = torch.cat([tensors.pop(root + part) for part in ATTENTION_PARTS])
    save_file(tensors, folder / "model.safetensors")
    return folder
