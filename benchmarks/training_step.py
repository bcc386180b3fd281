"""Words a second of a training step of luke_ner on the CPU, and the share of it that its matrix products take.

    python benchmarks/training_step.py               # MiniLM, WikiGold: results/training_step.json and .md
    python benchmarks/training_step.py --encoder encoders/all-mpnet-base-v2 --layers 6

A step: an update with AdamW, on sentences (16 a batch) or on articles of 10 sentences (2 a batch). The formats take
turns; the first steps are not counted. The share: time in torch's operators of matrix products, as its profiler
measures it, of all time of the same steps.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import spacy
import torch
from machine import describe_machine
from measuring import encoder_parser, name_of, write_report
from ner_data import DATA_SETS, Sentence, outermost, read_part
from spacy.tokens import Doc, Span
from spacy.training import Example
from torch.profiler import ProfilerActivity, profile

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.checkpoint.sources import find_source

TEXTS = {"sentences": (1, 16), "articles": (10, 2)}  # sentences of a Doc, Docs of a batch
PRECISIONS = ("float32", "bfloat16")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::_linear_pointwise")
UNTIMED = 3

Step = Callable[[list[Doc]], None]


def main() -> None:
    parser = encoder_parser(__doc__)
    parser.add_argument("--layers", type=int, help="of the encoder, the first ones; default: all")
    parser.add_argument("--steps", type=int, default=12, help="that are counted")
    parser.add_argument("--name", default="training_step", help="of the files in results/")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    rows = [row for texts in TEXTS for row in measure(options, texts)]
    result = {"encoder": name_of(options.encoder), "layers": options.layers, "rows": rows, **describe_machine()}
    write_report(options.name, result, make_table(result))


def measure(options: argparse.Namespace, texts: str) -> list[dict[str, Any]]:
    """A row for each number format, which take turns."""
    data_set = DATA_SETS["wikigold"]
    sentences = read_part(options.data, data_set, data_set.train)[: options.limit]
    steps = {precision: make_step(options, precision, sentences) for precision in PRECISIONS}
    batches = make_batches(sentences, *TEXTS[texts], n=UNTIMED + options.steps)
    seconds: dict[str, list[tuple[float, float]]] = {precision: [] for precision in PRECISIONS}
    for batch in batches:
        for precision, step in steps.items():
            seconds[precision].append(time_step(step, batch))
    words, rows = sum(len(doc) for batch in batches[UNTIMED:] for doc in batch), []
    for precision, of_steps in seconds.items():
        whole, products = (sum(x) for x in zip(*of_steps[UNTIMED:], strict=True))
        row = {"words_per_second": round(words / whole, 1), "share_of_products": round(products / whole, 3)}
        rows.append({"texts": texts, "precision": precision, **row})
    return rows


def make_step(options: argparse.Namespace, precision: str, sentences: Sequence[Sentence]) -> Step:
    nlp = spacy.blank("en")
    ner: Any = nlp.add_pipe("luke_ner", config={"model": {"encoder": {"train_precision": precision}}})
    source = find_source(options.encoder)
    examples = [Example(_words(doc), doc) for doc in make_batches(sentences, 1, len(sentences), n=1)[0]]
    ner.initialize(
        lambda: examples,
        nlp=nlp,
        weights=lambda: read_checkpoint(source, entities="special", layers=options.layers),
    )
    optimizer = make_adamw(1e-4)
    return lambda docs: ner.update([Example(_words(doc), doc) for doc in docs], drop=0.1, sgd=optimizer)


def time_step(step: Step, docs: list[Doc]) -> tuple[float, float]:
    """Seconds of all, and of the products."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        start = time.perf_counter()
        step(docs)
        seconds = time.perf_counter() - start
    spent = {x.key: x.self_cpu_time_total for x in profiler.key_averages()}
    return seconds, sum(spent.get(name, 0.0) for name in PRODUCTS) / 1e6


def make_batches(sentences: Sequence[Sentence], joined: int, size: int, *, n: int) -> list[list[Doc]]:
    """n batches of `size` Docs of so many sentences, from the first one on, again and again."""
    vocab = spacy.blank("en").vocab
    docs = []
    for first in range(0, len(sentences) - joined + 1, joined):
        own = sentences[first : first + joined]
        words = [word for x in own for word in x.words]
        starts = [i == 0 for x in own for i in range(len(x.words))]
        doc, offset, ents = Doc(vocab, words=words, sent_starts=starts), 0, []
        for x in own:
            ents += [Span(doc, offset + a, offset + b, label=label) for a, b, label in outermost(x.mentions)]
            offset += len(x.words)
        doc.ents = ents
        docs.append(doc)
    return [[docs[(i * size + j) % len(docs)] for j in range(size)] for i in range(n)]


def _words(doc: Doc) -> Doc:
    """Without what is to be found."""
    return Doc(doc.vocab, words=[t.text for t in doc], sent_starts=[bool(t.is_sent_start) for t in doc])


def make_table(result: dict[str, Any]) -> str:
    layers = f", first {result['layers']} layers" if result["layers"] else ""
    lines = [
        "# Training steps of `luke_ner` on a CPU",
        "",
        "Written by `python benchmarks/training_step.py`; its head says what is measured. Words of WikiGold, "
        f"`{result['encoder']}`{layers}.",
        "",
        "| texts | precision | words / s | of products |",
        "|---|---|---|---|",
    ]
    for row in result["rows"]:
        cells = (row["texts"], row["precision"], f"{row['words_per_second']:,.0f}", f"{row['share_of_products']:.0%}")
        lines.append("| " + " | ".join(cells) + " |")
    machine = f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}"
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


if __name__ == "__main__":
    main()
