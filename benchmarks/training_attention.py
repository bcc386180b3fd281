"""Time of a training step of an encoder with this package's attention and dropout beside torch's own, on the CPU.

    python benchmarks/training_attention.py          # results/training_attention.json and .md

A step: forward and backward of an encoder of MiniLM's size over windows of words and entities. Torch's own:
scaled_dot_product_attention and torch.nn.functional.dropout. Both alternate in one process; medians count.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from machine import describe_machine
from pretraining import SIZES
from runs import describe_machines

from spacy_luke.model import attention_groups as attention_module
from spacy_luke.model import dropout as dropout_module
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.fresh import initialize
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

RESULTS = Path(__file__).parent / "results"
SHAPES = {"16 windows of 128": (16, 128), "30 of 60": (30, 60), "4 of 400": (4, 400)}  # words; and 8 entities in each
OURS = (dropout_module.dropout, attention_module.dropout, attention_module.attend_heads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    for aware, rate in product((True, False), (0.1, 0.0)):
        config = LukeConfig(
            vocab_size=1000,
            entity_vocab_size=1000,
            entity_aware=aware,
            dropout=rate,
            attention_dropout=rate,
            **SIZES["minilm"],
        )
        encoder = LukeEncoder(config).train()
        initialize(encoder, std=config.initializer_range, generator=torch.Generator().manual_seed(0))
        for shape, (windows, words) in SHAPES.items():
            for precision in ("float32", "bfloat16"):
                seconds = measure(encoder, windows, words, precision, options.repeats)
                rows.append(
                    {"aware": aware, "dropout": rate, "shape": shape, "precision": precision, "seconds": seconds}
                )
                print(rows[-1], flush=True)
    result = {"rows": rows, "repeats": options.repeats, **describe_machine()}
    path = options.results / "training_attention.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    path.with_suffix(".md").write_text(make_table(result), encoding="utf8")
    print(path.with_suffix(".md").read_text(encoding="utf8"))


def measure(encoder: LukeEncoder, windows: int, words: int, precision: str, repeats: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    batch = Windows(torch.randint(5, 1000, (windows * words,), generator=generator), [words] * windows)
    places_E = torch.randint(1, words - 3, (windows * 8,), generator=generator)
    entities_E = torch.randint(3, 1000, (windows * 8,), generator=generator)
    mentions = Mentions(entities_E, places_E, places_E + 2, [8] * windows)

    def step() -> float:
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16) if precision == "bfloat16" else nullcontext():
            words_ND, entities_ED = encoder(batch, mentions)
        (words_ND.float().square().mean() + entities_ED.float().square().mean()).backward()
        encoder.zero_grad(set_to_none=True)
        return time.perf_counter() - start

    ways: dict[str, Callable[[], float]] = {
        "ours": lambda: run_with(*OURS, step),
        "torch": lambda: run_with(F.dropout, F.dropout, fused_attention, step),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, run in ways.items():
            seconds = run()
            if repeat:
                times[way].append(seconds)
    return {way: median(x) for way, x in times.items()}


def run_with(words: Any, weights: Any, attention: Any, step: Callable[[], float]) -> float:
    dropout_module.dropout, attention_module.dropout, attention_module.attend_heads = words, weights, attention
    try:
        return step()
    finally:
        dropout_module.dropout, attention_module.dropout, attention_module.attend_heads = OURS


def fused_attention(q: Any, k: Any, v: Any, *, rate: float, mask: Any = None) -> Any:
    scale = v.shape[-1] ** -0.5
    if q.shape[-1] != v.shape[-1] and not rate:  # the fused kernel wants one width
        padded = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
        return F.scaled_dot_product_attention(q, k, padded, attn_mask=mask, scale=scale)[..., : v.shape[-1]]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate, scale=scale)


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# Attention and dropout in training on a CPU",
        "",
        "Written by `python benchmarks/training_attention.py`. Seconds of a training step (forward, backward), median, "
        "and how many",
        "times as fast as with torch's attention and dropout.",
        "",
        "| attention | dropout | windows | precision | ours s | torch's s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in result["rows"]:
        s = x["seconds"]
        cells = ["entity-aware" if x["aware"] else "ordinary", str(x["dropout"]), x["shape"], x["precision"]]
        cells += [f"{s[way]:.3f}" for way in ("ours", "torch")] + [f"{s['torch'] / s['ours']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines([result])}.", ""])


if __name__ == "__main__":
    main()
