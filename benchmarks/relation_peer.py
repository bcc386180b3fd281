"""Relation classification by Hugging Face's LUKE, a window for each pair; the checkpoint that both read."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LABELS = ["no_relation", *(f"relation_{i}" for i in range(96))]  # as many as DocRED has


class Peer:
    """`LukeForEntityPairClassification`, as its documentation calls it: a text and two spans for each pair."""

    def __init__(self, folder: Path):
        from transformers import LukeForEntityPairClassification, LukeTokenizer

        self.model = LukeForEntityPairClassification.from_pretrained(folder).eval()
        self.tokenizer = LukeTokenizer.from_pretrained(folder, task="entity_pair_classification")
        self.times: dict[int, float] = {}

    def classify(self, docs: Sequence[Any], pairs: Sequence[Any], batch: int) -> list[Any]:
        import torch

        answers: list[Any] = []
        for doc, own in zip(docs, pairs):
            for a in range(0, len(own), batch):
                spans = [[(h.start_char, h.end_char), (t.start_char, t.end_char)] for h, t in own[a : a + batch]]
                inputs = self.tokenizer([doc.text] * len(spans), entity_spans=spans, padding=True, return_tensors="pt")
                with torch.inference_mode():
                    best = self.model(**inputs).logits.argmax(-1).tolist()
                answers += [LABELS[i] if i else None for i in best]
        return answers

    def time(self, docs: Sequence[Any], pairs: Sequence[Any], batch: int) -> None:
        self.classify(docs, [pairs[0][:batch]], batch)
        start = time.perf_counter()
        self.classify(docs, pairs, batch)
        self.times[batch] = time.perf_counter() - start
        print(f"Hugging Face, batch {batch}: {len(pairs[0]) / self.times[batch]:.2f} pairs/s", flush=True)


def write_checkpoint(folder: Path, vocabulary: Path, *, size: dict[str, int], seed: int) -> None:
    """A random pair classifier with the real vocabulary."""
    import torch
    from transformers import LukeConfig, LukeForEntityPairClassification, LukeTokenizer

    entities = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
    (folder / "entity_vocab.json").write_text(json.dumps(entities))
    tokenizer = LukeTokenizer(
        vocab_file=str(vocabulary / "vocab.json"),
        merges_file=str(vocabulary / "merges.txt"),
        entity_vocab_file=str(folder / "entity_vocab.json"),
        task="entity_pair_classification",
    )
    if len(tokenizer) < 50_000:  # transformers 5 leaves a vocabulary given as a file unread
        raise SystemExit(
            f"Expected RoBERTa's 50,267 pieces, but LukeTokenizer has {len(tokenizer)}. Use transformers 4.53.2."
        )
    torch.manual_seed(seed)
    config = LukeConfig(
        vocab_size=len(tokenizer),
        entity_vocab_size=len(entities),
        entity_emb_size=256,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        id2label=dict(enumerate(LABELS)),
        label2id={x: i for i, x in enumerate(LABELS)},
        **size,
    )
    model = LukeForEntityPairClassification(config)
    with torch.no_grad():
        for key, x in model.named_parameters():
            x.normal_(std=0.5 if key.startswith("classifier") else 0.02)
            x.add_(1.0 if key.endswith("LayerNorm.weight") else 0.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
