"""What a threshold of proposals and a number format give: F1, words a second and encoded spans a word of a pipeline
with `luke_ner`, by data set.

    python benchmarks/proposals.py PIPELINE wikigold=wikigold.test.spacy wnut17=wnut17.test.spacy
    python benchmarks/proposals.py --report        # results/proposals.md from results/proposals.json

All settings take turns on each data set, in one process, on one thread; what counts is the processor time of the
component, without the sentences before it. Words and sentences are the file's; gold labels that the pipeline does not
have are left out.
"""

import argparse
import json
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from machine import describe_machine
from paired import answers_of_mentions, count

RESULTS = Path(__file__).parent / "results"
FORMATS = ("float32", "bfloat16", "int8")
THRESHOLDS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


def main() -> None:
    options = read_options()
    path = RESULTS / f"{options.name}.json"
    if not options.report:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        path.write_text(json.dumps(measure(options), indent=1) + "\n", encoding="utf8")
    text = make_report(json.loads(path.read_text(encoding="utf8")))
    path.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", nargs="?", help="a folder")
    parser.add_argument("sets", nargs="*", help="NAME=FILE.spacy")
    parser.add_argument("--words", type=int, default=6000, help="of each set")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--thresholds", nargs="+", type=float, default=THRESHOLDS)
    parser.add_argument("--repeats", type=int, default=1, help="rounds; the fastest counts")
    parser.add_argument("--name", default="proposals", help="of the files in results/")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from spacy_luke.readers.docbin import read_docbins

    torch.set_num_threads(1)
    components = load_formats(options.pipeline, options.formats)
    result: dict[str, Any] = {**describe_machine(), "rows": []}
    for part in options.sets:
        name, _, file = part.partition("=")
        golds, n = [], 0
        for doc in read_docbins(Path(file), next(iter(components.values())).vocab):
            if n < options.words:
                golds.append(doc)
                n += len(doc)
        next(iter(components.values())).predict([blank(gold) for gold in golds[:20]])
        for _ in range(options.repeats):
            for threshold in options.thresholds:
                for format_, ner in components.items():
                    row = {"set": name, "format": format_, "threshold": threshold, "words": n}
                    found = run(ner, golds, threshold)
                    found.pop("answers")  # of data that may be anybody's
                    result["rows"].append({**row, **found})
    return result


def load_formats(pipeline: str | Path, formats: Sequence[str]) -> dict[str, Any]:
    """The `luke_ner` of a saved pipeline in each number format."""
    import spacy

    from spacy_luke.components.ner import LukeNER
    from spacy_luke.pipelines.quantization import quantize

    components = {}
    for name in formats:
        nlp = spacy.load(pipeline)
        ner = next(proc for _, proc in nlp.pipeline if isinstance(proc, LukeNER))
        if name == "int8":
            quantize(nlp)
        else:
            for node in ner.model.walk():
                if "predict_precision" in node.attrs:
                    node.attrs["predict_precision"] = name
        components[name] = ner
    return components


def run(ner: Any, golds: Sequence[Any], threshold: float) -> dict[str, Any]:
    """Processor seconds, encoded spans a word, F1 in percent, of entities how many are right, found and gold, and these
    as "answers" of each document."""
    docs = [blank(gold) for gold in golds]
    ner.proposal_threshold = threshold
    if ner.encoder.sharing is not None:  # what was read before is not read again
        ner.encoder.sharing.cache.clear()
    with counted(ner.model) as encoded:
        start = time.process_time()
        found = ner.predict(docs)
        seconds = time.process_time() - start
    ner.set_annotations(docs, found)
    spans = [
        [sorted({(e.start, e.end, e.label_) for e in ner.gold_spans(x) if e.label_ in ner.labels}) for x in some]
        for some in (golds, docs)
    ]
    answers = answers_of_mentions(*spans)
    right, wrong, missed = map(int, count(answers).sum((0, 1)))
    return {
        "seconds": seconds,
        "spans_per_word": sum(encoded) / sum(map(len, docs)),
        "f": 200 * right / max(2 * right + wrong + missed, 1),
        "counts": [right, right + wrong, right + missed],
        "answers": answers,
    }


def blank(gold: Any) -> Any:
    from spacy.tokens import Doc

    spaces = [bool(word.whitespace_) for word in gold]
    return Doc(gold.vocab, words=[x.text for x in gold], spaces=spaces, sent_starts=[x.is_sent_start for x in gold])


@contextmanager
def counted(model: Any) -> Iterator[list[int]]:
    """The encoded spans of each batch."""
    plain, encoded = model._func, []

    def forward(model: Any, batch: Any, is_train: bool) -> Any:
        scores, backprop = plain(model, batch, is_train)
        encoded.append(len(scores.kept_K))
        return scores, backprop

    model._func = forward
    yield encoded
    model._func = plain


def make_report(result: dict[str, Any]) -> str:
    rows, lines = result["rows"], [f"# Proposals and number formats\n\n{result['chip']}, one thread.\n"]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    lines += ["| format | threshold | spans a word | words a second | " + " | ".join(sets) + " |"]
    lines += ["| --- " * (4 + len(sets)) + "|"]
    for format_ in dict.fromkeys(row["format"] for row in rows):
        for threshold in dict.fromkeys(row["threshold"] for row in rows):
            own = [row for row in rows if (row["format"], row["threshold"]) == (format_, threshold)]
            by_set = {name: [row for row in own if row["set"] == name] for name in sets}
            seconds = sum(min(row["seconds"] for row in some) for some in by_set.values())
            words = sum(some[0]["words"] for some in by_set.values())
            spans = sum(some[0]["words"] * some[0]["spans_per_word"] for some in by_set.values()) / words
            scores = " | ".join(f"{some[0]['f']:.2f}" for some in by_set.values())
            lines.append(f"| {format_} | {threshold:g} | {spans:.3f} | {words / seconds:,.0f} | {scores} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
