"""Small fine-tuned checkpoints of noise, in the layouts of those who fine-tuned."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from spacy_luke.checkpoint.configs import archive_config, luke_config
from spacy_luke.checkpoint.names import archive_names, encoder_shapes, head_shapes, luke_names
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

SIZES = {
    "hidden_size": 16,
    "entity_emb_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
}
BERT_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@", "#", "*"]
# The original's heads: names, features in hidden sizes, labels, bias, and rows that fine-tuning adds and keeps.
HEADS = {
    "typing": ("entity_classification", "typing", 1, 4, True, 1, 2),
    "relation": ("entity_pair_classification", "classifier", 2, 4, False, 2, 3),
    "record": ("cloze", "scorer", 2, 1, True, 3, 2),
    "squad": ("question_answering", "qa_outputs", 1, 2, True, 0, None),
    "ner": ("span_classification", "classifier", 3, 5, True, 0, 2),
}


def noise(shape, generator, *, gain=False):
    return torch.randn(shape, generator=generator) * 0.2 + gain


def write_wordpiece(folder: Path, size: int, *, markers=()) -> Path:
    """A tokenizer of `size` pieces, the markers among them as its last."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = BERT_PIECES + [f"w{i}" for i in range(size - len(BERT_PIECES) - len(markers))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    added = {marker: len(pieces) + i for i, marker in enumerate(markers)}
    (folder / "added_tokens.json").write_text(json.dumps(added))
    return folder


def make_original(case: str, *, plain=40, entities=9, seed=0):
    """metadata.json of the model that fine-tuning began with, and the state dict that fine-tuning saves."""
    _, head, width, labels, bias, added, kept = HEADS[case]
    data = {**SIZES, "vocab_size": plain, "entity_vocab_size": entities, "bert_model_name": "roberta-base"}
    tuned = {**data, "vocab_size": plain + added, "entity_vocab_size": kept or entities}
    config = archive_config({"model_config": tuned})
    shapes = {**encoder_shapes(config), **head_shapes(config)["pooler"]}
    theirs = {ours: name for name, ours in archive_names(config).items()}
    generator = torch.Generator().manual_seed(seed)
    state = {theirs[ours]: noise(shape, generator, gain=ours.endswith("norm.weight")) for ours, shape in shapes.items()}
    state[f"{head}.weight"] = noise((labels, width * SIZES["hidden_size"]), generator)
    if bias:
        state[f"{head}.bias"] = noise((labels,), generator)
    return {"model_config": data, "max_seq_length": 32}, state


def write_vocab(folder: Path, entities=9) -> None:
    titles = ["[PAD]", "[UNK]", "[MASK]", *(f"Entity {i}" for i in range(entities - 3))]
    (folder / "entity_vocab.tsv").write_text("".join(f"{title}\t{99 - i}\n" for i, title in enumerate(titles)))


def write_original(folder: Path, metadata, state) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps(metadata))
    write_vocab(folder, metadata["model_config"]["entity_vocab_size"])
    torch.save(state, folder / "pytorch_model.bin")
    return folder


def make_huggingface(architecture: str, *, width: int, labels: int, bias: bool, seed=0, **changes):
    """config.json and tensors of Hugging Face's class."""
    data = {**SIZES, "vocab_size": 40, "entity_vocab_size": 4, "model_type": "luke", "architectures": [architecture]}
    data |= {"id2label": {str(i): f"L{i}" for i in range(labels)}, "label2id": {f"L{i}": i for i in range(labels)}}
    data |= changes
    config = luke_config(data)
    theirs = {ours: name for name, ours in luke_names(config, root="luke.").items()}
    shapes = {**encoder_shapes(config), **head_shapes(config)["pooler"]}
    generator = torch.Generator().manual_seed(seed)
    state = {theirs[ours]: noise(shape, generator, gain=ours.endswith("norm.weight")) for ours, shape in shapes.items()}
    state["classifier.weight"] = noise((labels, width * data["hidden_size"]), generator)
    if bias:
        state["classifier.bias"] = noise((labels,), generator)
    return data, state


def read_golden(shared, case: str):
    """metadata.json, state dict, inputs, outputs and tolerance of a golden case of the original code."""
    path = shared(f"golden/luke_{case}.safetensors")
    data, tensors = json.loads(path.with_suffix(".json").read_text("utf8")), load_file(path)
    parts = {
        kind: {key.removeprefix(kind): x for key, x in tensors.items() if key.startswith(kind)}
        for kind in ("weights/", "inputs/", "outputs/")
    }
    return {"model_config": data["config"]}, *parts.values(), max(1e-5, 10 * data["float32_vs_float64_max_abs_diff"])


def run_encoder(checkpoint, inputs):
    """States of the words (B, S, D) and entities (B, E, D) of padded inputs; zeros where they are padding."""
    encoder = LukeEncoder(checkpoint.config).eval()
    encoder.load_state_dict(
        {name.removeprefix("encoder."): x for name, x in checkpoint.tensors.items() if name.startswith("encoder.")}
    )
    words, entities = inputs["word_attention_mask"].bool(), inputs["entity_attention_mask"].bool()
    places = inputs["entity_position_ids"][entities]
    windows = Windows(inputs["word_ids"][words], words.sum(1).tolist(), inputs["word_segment_ids"][words])
    mentions = Mentions(
        inputs["entity_ids"][entities], places[:, 0], places.max(1).values, entities.sum(1).tolist(),
        inputs["entity_segment_ids"][entities],
    )  # fmt: skip
    with torch.no_grad():
        words_ND, entities_ED = encoder(windows, mentions)
    words_BSD = torch.zeros(*words.shape, words_ND.shape[-1])
    entities_BED = torch.zeros(*entities.shape, entities_ED.shape[-1])
    words_BSD[words], entities_BED[entities] = words_ND, entities_ED
    return words_BSD, entities_BED
