"""What a teacher gives its students: MiniLM with 6 layers teaches its first 4 and 3, on CoNLL-2003.

    python benchmarks/distillation.py --seed 0         # a line for each pipeline in results/distillation.jsonl
    python benchmarks/distillation.py --report         # results/distillation.md from these

The teacher, and each student on gold alone, learn from the same few gold documents; students that are taught learn
from these and from other documents without labels, of which the teacher says what it thinks. All make equally many
steps of equally many words. F1 on test documents, words and sentences given; words a second in turns, in one process.
"""

import argparse
import json
import logging
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import RESULTS, data_parser

CONFIG = Path(__file__).parents[1] / "configs" / "ner_small.cfg"
LAYERS = (4, 3)


def main() -> None:
    options = read_options()
    lines = RESULTS / "distillation.jsonl"
    if not options.report:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        rows = list(measure(options))
        with lines.open("a", encoding="utf8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    text = make_report([json.loads(line) for line in lines.read_text(encoding="utf8").splitlines()])
    (RESULTS / "distillation.md").write_text(text, encoding="utf8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gold-words", type=int, default=8_000)
    parser.add_argument("--text-words", type=int, default=24_000)
    parser.add_argument("--test-words", type=int, default=15_000)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--step-words", type=int, default=400)
    parser.add_argument("--report", action="store_true", help="only write the report again")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import spacy
    import torch

    from spacy_luke.pipelines.comparison import compare_speed, main_scores
    from spacy_luke.pipelines.distillation import distill

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(options, folder)
        made = {"teacher": (6, train(options, folder, 6, folder / "teacher"))}
        for layers in LAYERS:
            made[f"gold, {layers}"] = layers, train(options, folder, layers, folder / f"gold{layers}")
        for layers in LAYERS:
            config = make_config(options, folder, layers)
            teacher, texts = str(folder / "teacher" / "model-last"), folder / "texts.spacy"
            distill(teacher, config, texts, folder / f"taught{layers}")
            made[f"taught, {layers}"] = layers, folder / f"taught{layers}" / "model-last"
        pipelines = [spacy.load(path) for _, path in made.values()]
        speeds = compare_speed(pipelines, lambda nlp: [x.predicted for x in read_test(nlp, folder)], words=4000)
        for (kind, (layers, _)), nlp, speed in zip(made.items(), pipelines, speeds.words_per_second, strict=True):
            score = main_scores(nlp, read_test(nlp, folder))["luke_ner"]
            settings = {key: value for key, value in vars(options).items() if isinstance(value, int)}
            row = {"kind": kind.split(",")[0], "layers": layers, "f": score, "words_per_second": speed}
            yield {**row, "core": speeds.core, **settings, "chip": describe_machine()["chip"]}


def write_data(options: argparse.Namespace, folder: Path) -> None:
    """gold.spacy, texts.spacy (which the seed chooses), dev.spacy and test.spacy."""
    import random

    import spacy

    from spacy_luke.readers.conll import make_column_doc, read_columns
    from spacy_luke.readers.docbin import write_docbin

    vocab = spacy.blank("en").vocab

    def read(part: str) -> list[Any]:
        path = options.data / "conll2003" / part
        return [make_column_doc(vocab, x) for x in read_columns(path, format="conll2003")]

    train = read("eng.train")
    random.Random(options.seed).shuffle(train)
    gold = take(train, options.gold_words)
    write_docbin(gold, folder / "gold.spacy")
    write_docbin(take(train[len(gold) :], options.text_words), folder / "texts.spacy")
    write_docbin(list(islice(read("eng.testa"), 10)), folder / "dev.spacy")
    write_docbin(take(read("eng.testb"), options.test_words), folder / "test.spacy")


def take(docs: Sequence[Any], words: int) -> list[Any]:
    taken: list[Any] = []
    for doc in docs:
        if sum(map(len, taken)) >= words:
            break
        taken.append(doc)
    return taken


def make_config(options: argparse.Namespace, folder: Path, layers: int) -> Any:
    from spacy.util import load_config

    config = load_config(CONFIG)
    config["paths"].update(train=str(folder / "gold.spacy"), dev=str(folder / "dev.spacy"))
    config["system"]["seed"] = options.seed
    config["corpora"]["train"]["lengths"] = None
    config["corpora"]["dev"] = {**config["corpora"]["train"], "path": "${paths.dev}"}
    config["initialize"]["components"]["luke_ner"]["weights"]["layers"] = layers
    training = config["training"]
    training.update(max_epochs=0, max_steps=options.steps, eval_frequency=options.steps)
    training["batcher"]["size"] = options.step_words
    training["logger"] = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    return config


def train(options: argparse.Namespace, folder: Path, layers: int, output: Path) -> Path:
    from spacy.training.initialize import init_nlp

    from spacy_luke.training.loop import train as run

    run(init_nlp(make_config(options, folder, layers)), output)
    return output / "model-last"


def read_test(nlp: Any, folder: Path) -> list[Any]:
    from spacy_luke.pipelines.gold import Given, read_gold

    return read_gold(nlp, folder / "test.spacy", Given(sentences=True))


def make_report(rows: Sequence[dict[str, Any]]) -> str:
    first = rows[0]
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        "# Distillation",
        "",
        f"{first['chip']}, one thread; `python benchmarks/distillation.py`, seeds {', '.join(map(str, seeds))}. "
        f"CoNLL-2003: {first['gold_words']:,} words of gold, {first['text_words']:,} other words without labels, "
        f"{first['steps']} steps of {first['step_words']} words for each pipeline, the first "
        f"{first['test_words']:,} test words. MiniLM has 6 layers; there was no encoder with 12 or 8.",
        "",
        "F1 of `luke_ner`, mean over the seeds, and from the lowest to the highest; words a second in turns.",
        "",
        "| pipeline | layers | F1 | from to | above gold alone | below the teacher | words a second | beside it |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]

    def mean(kind: str, layers: int, key: str) -> float:
        return statistics.mean(row[key] for row in rows if (row["kind"], row["layers"]) == (kind, layers))

    best, fastest = mean("teacher", 6, "f"), mean("teacher", 6, "words_per_second")
    for kind, layers in dict.fromkeys((row["kind"], row["layers"]) for row in rows):
        scores = [row["f"] for row in rows if (row["kind"], row["layers"]) == (kind, layers)]
        score, speed = mean(kind, layers, "f"), mean(kind, layers, "words_per_second")
        more = f"{score - mean('gold', layers, 'f'):+.2f}" if kind == "taught" else ""
        less = "" if kind == "teacher" else f"{best - score:.2f}"
        spread = f"{min(scores):.2f} to {max(scores):.2f}"
        name = {"teacher": "teacher, on gold", "gold": "on gold alone", "taught": "taught"}[kind]
        cells = [name, str(layers), f"{score:.2f}", spread, more, less, f"{speed:,.0f}", f"{speed / fastest:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
