"""A small ERNIE checkpoint of noise, in the originals' layout."""

import json

import torch

from spacy_luke.model.ernie_families import build_ernie
from tests.checkpoint.plain import BERT, CHARACTERS

CONFIG = {
    "vocab_size": 15,
    "hidden_size": 8,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 10,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_types": ["sim", "mix", "norm"],
}
HEADS = {
    "pretraining": ["cls.predictions", "cls.predictions_ent", "cls.seq_relationship"],
    "entity_classification": ["typing"],
    "pair_classification": ["classifier"],
    "question_answering": ["qa_outputs"],
}
UP = "bert.encoder.layer.1.intermediate.dense_ent.weight"


def make_tensors(task="pretraining"):
    """Noise under the original's names, written out."""
    d, f, e = 8, 10, 100
    shapes = {
        "bert.embeddings.word_embeddings.weight": (15, d),
        "bert.embeddings.position_embeddings.weight": (12, d),
        "bert.embeddings.token_type_embeddings.weight": (2, d),
        "bert.pooler.dense.weight": (d, d),
        "cls.predictions.transform.dense.weight": (d, d),
        "cls.predictions_ent.transform.dense.weight": (e, d),
        "cls.seq_relationship.weight": (2, d),
        "typing.weight": (3, d),
        "classifier.weight": (3, d),
        "qa_outputs.weight": (2, d),
    }
    norms = {"bert.embeddings.LayerNorm": d, "cls.predictions.transform.LayerNorm": d}
    norms["cls.predictions_ent.transform.LayerNorm"] = e
    for i, kind in enumerate([*CONFIG["layer_types"], "sim"]):
        layer = f"bert.encoder.layer.{i}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{layer}attention.{name}.weight"] = (d, d)
            if kind == "norm":
                name = name.replace("self", "self_ent").replace("output", "output_ent")
                shapes[f"{layer}attention.{name}.weight"] = (e, e)
        shapes |= {f"{layer}intermediate.dense.weight": (f, d), f"{layer}output.dense.weight": (d, f)}
        norms |= {f"{layer}attention.output.LayerNorm": d, f"{layer}output.LayerNorm": d}
        if kind == "norm":
            norms[f"{layer}attention.output_ent.LayerNorm"] = e
        if kind != "sim":
            shapes |= {f"{layer}intermediate.dense_ent.weight": (f, e), f"{layer}output.dense_ent.weight": (e, f)}
            norms[f"{layer}output.LayerNorm_ent"] = e
    for name, (rows, *_) in list(shapes.items()):
        if "embeddings" not in name and name != "typing.weight":
            shapes[name.replace("weight", "bias")] = (rows,)
    shapes |= {f"{name}.{part}": (size,) for name, size in norms.items() for part in ("weight", "bias")}
    shapes["cls.predictions.bias"] = (15,)
    heads = tuple(f"{head}." for head in HEADS.get(task, ()))
    generator = torch.Generator().manual_seed(1)
    tensors = {
        name: torch.randn(shape, generator=generator)
        for name, shape in sorted(shapes.items())
        if name.startswith(("bert.", *heads))
    }
    if task == "pretraining":
        tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    return tensors


def write_small(folder, tensors, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    data = {key: x for key, x in {**CONFIG, **changes}.items() if x is not None}
    (folder / "ernie_config.json").write_text(json.dumps(data))
    (folder / "vocab.txt").write_text("\n".join([*BERT, *CHARACTERS]) + "\n")
    torch.save(tensors, folder / "pytorch_model.bin")
    return folder


def make_encoder(checkpoint):
    encoder = build_ernie(checkpoint.config).eval()
    state = {key: x for key, x in checkpoint.tensors.items() if key.startswith("encoder.")}
    encoder.load_state_dict({key.removeprefix("encoder."): x.float() for key, x in state.items()})
    return encoder


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def layer_kinds_of(folder):
    """What the config lists, and "sim" for the layers beyond the list."""
    data = json.loads((folder / "ernie_config.json").read_text("utf8"))
    kinds = data["layer_types"]
    return (*kinds, *["sim"] * (data["num_hidden_layers"] - len(kinds)))
