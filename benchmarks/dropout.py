"""Time of a training step with this package's dropout beside the same step with torch's, on the CPU.

    python benchmarks/dropout.py                     # results/dropout.json and .md

A step: forward and backward of an encoder of MiniLM's size over windows of words and entities, dropout 0.1 everywhere. Both
alternate in one process; medians count. The step without any dropout stands beside.
"""

import argparse
import json
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, List

import torch
import torch.nn.functional as F
from machine import describe_machine

from spacy_luke.model import attention as attention_module
from spacy_luke.model import dropout as dropout_module
from spacy_luke.model.config import EncoderConfig
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows, initialize

RESULTS = Path(__file__).parent / "results"
SHAPES = {"16 windows of 128": (16, 128), "30 of 60": (30, 60), "4 of 400": (4, 400)}  # words; and 8 entities in each
OURS = (dropout_module.dropout, attention_module.dropout, attention_module._attention)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    rows: List[Dict[str, Any]] = []
    for aware in (True, False):
        config = EncoderConfig(
            vocab_size=1000,
            hidden_size=384,
            num_layers=6,
            num_heads=12,
            intermediate_size=1536,
            entity_size=384,
            entity_vocab_size=1000,
            entity_aware=aware,
        )
        encoder = LukeEncoder(config).train()
        initialize(encoder, std=config.initializer_range, generator=torch.Generator().manual_seed(0))
        for shape, (windows, words) in SHAPES.items():
            for precision in ("float32", "bfloat16"):
                seconds = measure(encoder, windows, words, precision, options.repeats)
                rows.append({"aware": aware, "shape": shape, "precision": precision, "seconds": seconds})
                print(rows[-1], flush=True)
    result = {"rows": rows, "repeats": options.repeats, **describe_machine()}
    path = options.results / "dropout.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    path.with_suffix(".md").write_text(make_table(result), encoding="utf8")
    print(path.with_suffix(".md").read_text(encoding="utf8"))


def measure(encoder: LukeEncoder, windows: int, words: int, precision: str, repeats: int) -> Dict[str, float]:
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

    ways: Dict[str, Callable[[], float]] = {
        "ours": lambda: run_with(*OURS, step),
        "torch": lambda: run_with(F.dropout, F.dropout, fused_attention, step),
        "none": lambda: run_without(encoder, step),
    }
    times: Dict[str, List[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, run in ways.items():
            seconds = run()
            if repeat:
                times[way].append(seconds)
    return {way: median(x) for way, x in times.items()}


def run_with(words: Any, weights: Any, attention: Any, step: Callable[[], float]) -> float:
    dropout_module.dropout, attention_module.dropout, attention_module._attention = words, weights, attention
    try:
        return step()
    finally:
        dropout_module.dropout, attention_module.dropout, attention_module._attention = OURS


def run_without(encoder: LukeEncoder, step: Callable[[], float]) -> float:
    encoder.eval()
    try:
        return step()
    finally:
        encoder.train()


def fused_attention(q: Any, k: Any, v: Any, *, scale: float, rate: float, mask: Any = None) -> Any:
    """What `_attention` was before, and is on a GPU."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate, scale=scale)


def make_table(result: Dict[str, Any]) -> str:
    lines = [
        "# Dropout on a CPU",
        "",
        "Written by `python benchmarks/dropout.py`. Seconds of a training step (forward, backward), median, and how many times as",
        "fast as with torch's dropout.",
        "",
        "| attention | windows | precision | ours s | torch's s | without s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in result["rows"]:
        s = x["seconds"]
        cells = ["entity-aware" if x["aware"] else "ordinary", x["shape"], x["precision"]]
        cells += [f"{s[way]:.3f}" for way in ("ours", "torch", "none")] + [f"{s['torch'] / s['ours']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    versions = result["versions"]
    lines += ["", f"Machine: {result['chip']}, {result['threads']} threads, torch {versions['torch']}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
