"""How much of luke_ner's predictions on the CPU its matrix products are, and what the rest is.

    python benchmarks/prediction_products.py         # MiniLM, CoNLL-2003: results/prediction_products.json and .md
    python benchmarks/prediction_products.py --encoder encoders/all-mpnet-base-v2

`luke_ner` with one-way attention and a head of noise reads articles of 10 sentences, 16 at a time, with half a span a
word. The formats take turns; the first batches are not counted. The times are those that torch's profiler measures in
operators: products of linear layers, and fused attention, which is two products and a softmax in one operator. These
two products alone are run beside it, of the same sizes, with random numbers in buffers that exist beforehand.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cache
from time import perf_counter
from typing import Any

import spacy
import torch
from machine import describe_machine
from measuring import encoder_parser, name_of, write_report
from ner_data import DATA_SETS, read_part
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from training_step import PRECISIONS, PRODUCTS, UNTIMED, make_batches

from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.checkpoint.sources import find_source

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
WHOLE_ATTENTION = "aten::scaled_dot_product_attention"  # which a dispatch mode sees whole in inference
WANTED = {"float32": 1.25, "bfloat16": 1.5}
INSIDE = "two products of each fused attention"
QUERIES = (64, 512)  # multiplied at once: few, so that their scores stay in the cache, or all; the faster one counts
SHOWN = 6  # operators beside the products
LABELS = ["LOC", "MISC", "ORG", "PER"]


def main() -> None:
    parser = encoder_parser(__doc__)
    parser.add_argument("--layers", type=int, help="of the encoder, the first ones; default: all")
    parser.add_argument("--batches", type=int, default=8, help="that are counted")
    options = parser.parse_args()
    torch.set_num_threads(options.threads or 1)
    warnings.filterwarnings("ignore")
    rows = measure(options)
    result = {"encoder": name_of(options.encoder), "layers": options.layers, "rows": rows, **describe_machine()}
    write_report("prediction_products", result, make_table(result))


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each number format."""
    data_set = DATA_SETS["conll2003"]
    sentences = read_part(options.data, data_set, data_set.test)[: options.limit]
    batches = make_batches(sentences, 10, 16, n=UNTIMED + options.batches)
    components = {precision: make_component(options, precision) for precision in PRECISIONS}
    spent: dict[str, Counter[str]] = {precision: Counter() for precision in PRECISIONS}
    for number, batch in enumerate(batches):
        for precision, ner in components.items():
            found = time_batch(ner, batch)
            if number >= UNTIMED:
                spent[precision].update({**found, INSIDE: time_products(ner, batch)})
    words = sum(len(doc) for batch in batches[UNTIMED:] for doc in batch)
    return [{"precision": precision, "words": words, **describe(times)} for precision, times in spent.items()]


def make_component(options: argparse.Namespace, precision: str) -> Any:
    nlp = spacy.blank("en")
    ner: Any = nlp.add_pipe("luke_ner", config={"model": {"encoder": {"predict_precision": precision}}})
    source = find_source(options.encoder)
    weights = lambda: read_checkpoint(source, entities="special", layers=options.layers)  # noqa: E731
    example = Example(nlp.make_doc("Words."), nlp.make_doc("Words."))
    ner.initialize(lambda: [example], nlp=nlp, labels=LABELS, weights=weights)
    return ner


def time_batch(ner: Any, docs: list[Doc]) -> Counter[str]:
    """Seconds of each operator by itself, and of "all"."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        start = perf_counter()
        ner.predict([doc.copy() for doc in docs])
        seconds = perf_counter() - start
    return Counter({x.key: x.self_cpu_time_total / 1e6 for x in profiler.key_averages()} | {"all": seconds})


class Attentions(TorchDispatchMode):
    """Notes the sizes of the fused attentions that run under it: heads, queries, keys, width, and the number format."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[tuple[int, int, int, int, torch.dtype]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        if func.name() in (ATTENTION, WHOLE_ATTENTION):
            windows, heads, queries, width = args[0].shape
            self.sizes.append((windows * heads, queries, args[1].shape[2], width, args[0].dtype))
        return func(*args, **(kwargs or {}))


def time_products(ner: Any, docs: list[Doc]) -> float:
    """Seconds of the two products of each fused attention of a batch, without the softmax between them."""
    with Attentions() as attentions:
        ner.predict([doc.copy() for doc in docs])
    seconds = []
    for most in QUERIES * 2:
        start = perf_counter()
        for heads, queries, keys, width, dtype in attentions.sizes:
            key_HLK = buffer("keys", dtype, heads, keys, width)
            for first in range(0, queries, most):
                n = min(most, queries - first)
                query_HSK, scores_HSL = (
                    buffer("queries", dtype, heads, n, width),
                    buffer("scores", dtype, heads, n, keys),
                )
                torch.bmm(query_HSK, key_HLK.transpose(1, 2), out=scores_HSL)
                torch.bmm(scores_HSL, key_HLK, out=buffer("out", dtype, heads, n, width))
        seconds.append(perf_counter() - start)
    return min(seconds)


def buffer(name: str, dtype: torch.dtype, *shape: int) -> Tensor:
    """The beginning of one block for each name, so that no product meets cold memory of its own."""
    return block(name, dtype)[: torch.Size(shape).numel()].view(shape)


@cache
def block(name: str, dtype: torch.dtype) -> Tensor:
    return torch.rand(2**24).to(dtype)


def describe(times: Counter[str]) -> dict[str, Any]:
    whole, inside, linear = times.pop("all"), times.pop(INSIDE), sum(times[name] for name in PRODUCTS)
    others = [(name, x) for name, x in times.most_common() if name not in (ATTENTION, *PRODUCTS)]
    return {
        "seconds": round(whole, 3),
        "times_linear": round(whole / linear, 2),
        "times_products": round(whole / (linear + inside), 2),
        "times_linear_and_attention": round(whole / (linear + times[ATTENTION]), 2),
        "shares": {name: round(x / whole, 3) for name, x in others[:SHOWN]},
        "outside_of_operators": round((whole - sum(times.values())) / whole, 3),
    }


def make_table(result: dict[str, Any]) -> str:
    layers = f", first {result['layers']} layers" if result["layers"] else ""
    lines = [
        "# Predictions of `luke_ner` beside their own products",
        "",
        "Written by `python benchmarks/prediction_products.py`; its head says what is measured. One-way attention, "
        f"CoNLL-2003, `{result['encoder']}`{layers}.",
        "The profiler's clock goes on while other programs have the processor, so that ratios count alone.",
        "",
        "| precision | time, in that of its products | wanted | in that of products of linear layers | in that of "
        "these and fused attention | operators with the largest shares of the rest | outside of operators |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        cells = [row["precision"], f"{row['times_products']:.2f}"]
        cells += [f"{WANTED[row['precision']]:g}", f"{row['times_linear']:.2f}"]
        cells.append(f"{row['times_linear_and_attention']:.2f}")
        cells.append(", ".join(f"`{name}` {share:.1%}" for name, share in row["shares"].items()))
        lines.append("| " + " | ".join([*cells, f"{row['outside_of_operators']:.1%}"]) + " |")
    machine = f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}"
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


if __name__ == "__main__":
    main()
