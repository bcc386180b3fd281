"""Folders of plain checkpoints, with tokenizers of ten characters."""

import json

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from spacy_luke.model.families import build_encoder

CHARACTERS = ["@", "#", *"abcdefgh"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 24,
}
# Of classes whose configs have further sizes, or other names for them.
FURTHER = {
    "Electra": {"embedding_size": 12},
    "DistilBert": {
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 20,
        "max_position_embeddings": 24,
    },
    "Deberta": {
        "relative_attention": True,
        "position_biased_input": False,
        "position_buckets": 8,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "pos_att_type": ["p2c", "c2p"],
        "type_vocab_size": 0,
    },
    "Modern": {
        "local_attention": 6,
        "num_hidden_layers": 5,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "cls_token_id": 1,
        "sep_token_id": 2,
    },
}


def write_tokenizer(folder, kind):
    if kind == "bert":
        pieces = BERT + CHARACTERS
        (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    elif kind == "roberta":
        rest = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(CHARACTERS))
        pieces = [*ROBERTA, *CHARACTERS, *rest, "<mask>"]
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
        (folder / "merges.txt").write_text("#version: 0.2\n")
    else:
        pieces = [*ROBERTA, *("▁" + character for character in CHARACTERS), "<mask>"]
        backend = Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], unk_id=3))
        backend.pre_tokenizer = pre_tokenizers.Metaspace()
        backend.save(str(folder / "tokenizer.json"))
    return pieces


def make_plain(transformers, folder, name, *, padding=0):
    """A small model of noise, saved by transformers, with a tokenizer. padding: rows beyond the tokenizer's."""
    kind = getattr(transformers, name)
    style = {"R": "roberta", "X": "xlm-r"}.get(name[0], "bert")
    folder.mkdir(exist_ok=True)
    pieces = write_tokenizer(folder, style)
    further = next((sizes for start, sizes in FURTHER.items() if name.startswith(start)), {})
    sizes = further if "dim" in further else SIZES | further
    model = kind(kind.config_class(vocab_size=len(pieces) + padding, **sizes)).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            gain = key.lower().endswith("norm.weight")  # around 1, or next to nothing would get through
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2 + gain)
    model.tie_weights()
    model.save_pretrained(folder)
    return model, pieces


def make_encoder(checkpoint):
    encoder = build_encoder(checkpoint.config, checkpoint.entities.mask_rows).eval()
    state = {key: value for key, value in checkpoint.tensors.items() if key.startswith("encoder.")}
    encoder.load_state_dict({key.removeprefix("encoder."): value for key, value in state.items()})
    return encoder
