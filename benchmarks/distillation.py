"""What a teacher gives its students, on CoNLL-2003: the first layers of an encoder learn from more layers of it.

    python benchmarks/distillation.py --seed 0         # a line for each pipeline in results/distillation.jsonl
    python benchmarks/distillation.py --encoder encoders/all-mpnet-base-v2 --rate 1e-4 --teacher 9 --students 3
    python benchmarks/distillation.py --report         # results/distillation.md from these

The teacher, and each student on gold alone, learn from the same few gold documents; students that are taught learn
from these and from other documents without labels, of which the teacher says what it thinks. Students make equally
many steps of equally many words, with the lesson and without; --others are taught nothing. F1 on all test documents,
words and sentences given; words a second in turns, in one process. With --folder a run that was stopped goes on.
"""

import argparse
import logging
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import MINILM, RESULTS, data_parser, name_of
from paired import answers_of_ents, compare_lines, keep
from runs import add_line, read_lines

CONFIG = Path(__file__).parents[1] / "configs" / "ner_small.cfg"
LINES = RESULTS / "distillation.jsonl"
NAMES = {"teacher": "teacher, on gold", "other": "on gold, as the teacher", "gold": "on gold alone", "taught": "taught"}
KINDS = list(NAMES)
SETTINGS = ("seed", "gold_words", "text_words", "teacher_steps", "steps", "step_words", "rate")


def main() -> None:
    options = read_options()
    if not options.report:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as name:
            for row in measure(options, options.folder or Path(name)):
                add_line(LINES, row)
    text = make_report(read_lines(LINES))
    (RESULTS / "distillation.md").write_text(text, encoding="utf8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--encoder", default=MINILM, help="a folder, or package:NAME/FOLDER")
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder; MiniLM's best is 2e-4")
    parser.add_argument("--teacher", type=int, default=6, help="layers of the teacher")
    parser.add_argument("--students", type=int, nargs="*", default=[2], help="layers of each student")
    parser.add_argument("--others", type=int, nargs="*", default=[], help="layers of pipelines on gold alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gold-words", type=int, default=20_000)
    parser.add_argument("--text-words", type=int, default=100_000)
    parser.add_argument("--teacher-steps", type=int, default=1_200, help="of the teacher, and of --others")
    parser.add_argument("--steps", type=int, default=1_200, help="of the students")
    parser.add_argument("--step-words", type=int, default=400)
    parser.add_argument("--folder", type=Path, help="for data and pipelines; what lies in it is not made again")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    return parser.parse_args()


def measure(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    import spacy
    import torch

    torch.set_num_threads(1)
    if not (folder / "test.spacy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_data(options, folder)
    found = list_pipelines(options)
    pipelines = [spacy.load(make(options, folder, kind, layers)) for kind, layers in found]
    tests, scores, speeds = measure_all(pipelines, folder)
    for (kind, layers), test, score, speed in zip(found, tests, scores, speeds.words_per_second, strict=True):
        row = {"kind": kind, "layers": layers, "f": score, "words_per_second": speed, "core": speeds.core}
        row["predictions"] = keep(f"distillation/{name_run(options)}/{kind}{layers}.jsonl", answers_of_ents(test))
        row["beside_teacher"] = speed / speeds.words_per_second[0]
        row["encoder"], row["chip"] = name_of(options.encoder), describe_machine()["chip"]
        row["test_words"] = sum(len(x.reference) for x in test)
        yield {**row, **{key: getattr(options, key) for key in SETTINGS}, "teacher": options.teacher}


def list_pipelines(options: argparse.Namespace) -> list[tuple[str, int]]:
    students = [(kind, layers) for kind in ("gold", "taught") for layers in options.students]
    return [("teacher", options.teacher), *students, *(("other", layers) for layers in options.others)]


def make(options: argparse.Namespace, folder: Path, kind: str, layers: int) -> Path:
    """Train a pipeline, unless the folder has it: its folder."""
    output = folder / f"{kind}{layers}"
    trained = output / "trained"  # marks that the training went to its end
    if not trained.exists():
        steps = options.steps if kind in ("gold", "taught") else options.teacher_steps
        config = make_config(options, folder, layers, steps)
        if kind == "taught":
            teach(options, folder, config, output)
        else:
            train(config, output)
        trained.touch()
        print(f"{kind}, {layers} layers, seed {options.seed}: trained", flush=True)
    return output / "model-last"


def name_run(options: argparse.Namespace) -> str:
    """Of the predictions' folder."""
    settings = (options.teacher, *(getattr(options, key) for key in SETTINGS))
    return "-".join([name_of(options.encoder).replace("package:", "").replace("/", "-"), *(f"{x:g}" for x in settings)])


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
    write_docbin(read("eng.testb"), folder / "test.spacy")


def take(docs: Sequence[Any], words: int) -> list[Any]:
    taken: list[Any] = []
    for doc in docs:
        if sum(map(len, taken)) >= words:
            break
        taken.append(doc)
    return taken


def make_config(options: argparse.Namespace, folder: Path, layers: int, steps: int) -> Any:
    from spacy.util import load_config

    config = load_config(CONFIG)
    paths = {"train": folder / "gold.spacy", "dev": folder / "dev.spacy", "weights": options.encoder}
    config["paths"].update({key: str(value) for key, value in paths.items()})
    config["system"]["seed"] = options.seed
    config["corpora"]["train"]["lengths"] = None
    config["corpora"]["dev"] = {**config["corpora"]["train"], "path": "${paths.dev}"}
    config["initialize"]["components"]["luke_ner"]["weights"]["layers"] = layers
    training = config["training"]
    training.update(max_epochs=0, max_steps=steps, eval_frequency=steps)
    training["optimizer"]["learn_rate"]["initial_rate"] = options.rate
    training["batcher"]["size"] = options.step_words
    training["logger"] = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    return config


def train(config: Any, output: Path) -> None:
    from spacy.training.initialize import init_nlp

    from spacy_luke.training.loop import train as run

    run(init_nlp(config), output, overwrite=True)


def teach(options: argparse.Namespace, folder: Path, config: Any, output: Path) -> None:
    from spacy_luke.pipelines.distillation import distill

    teacher = str(folder / f"teacher{options.teacher}" / "model-last")
    distill(teacher, config, folder / "texts.spacy", output, overwrite=True)


def read_test(nlp: Any, folder: Path) -> list[Any]:
    from spacy_luke.pipelines.gold import Given, read_gold

    return read_gold(nlp, folder / "test.spacy", Given(sentences=True))


def measure_all(pipelines: Sequence[Any], folder: Path) -> tuple[list[list[Any]], list[float], Any]:
    """Of each pipeline the Examples of the test documents, and F1 of the entities; and their speeds in turns."""
    from spacy_luke.pipelines.comparison import compare_speed, main_scores

    tests = [read_test(nlp, folder) for nlp in pipelines]
    scores = []
    for nlp, test in zip(pipelines, tests, strict=True):
        (f,) = (score for name, score in main_scores(nlp, test).items() if name in ("ner", "luke_ner"))
        scores.append(f)
    return tests, scores, compare_speed(pipelines, lambda nlp: [x.predicted for x in read_test(nlp, folder)])


def make_report(rows: Sequence[dict[str, Any]]) -> str:
    """Of each encoder, teacher and settings a table; of what was measured again, the last."""
    kept = {(*describe_run(x), x["seed"], x["kind"], x["layers"]): x for x in rows}
    lines = [
        "# Distillation",
        "",
        "Written by `python benchmarks/distillation.py`: `luke_ner` on CoNLL-2003, the first layers of an encoder. "
        "What is taught learns",
        "from gold and from other documents without labels, of which the teacher says what it thinks. F1: mean over "
        "the seeds, and from",
        "the lowest to the highest. Above others: the same seeds, with the 95 % interval over documents and seeds.",
        "Words a second: in turns, in one process of one thread, float32.",
    ]
    for run in dict.fromkeys(map(describe_run, kept.values())):
        lines += ["", *make_table([x for x in kept.values() if describe_run(x) == run])]
    return "\n".join(lines) + "\n"


def describe_run(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["encoder"], row["teacher"], *(row[key] for key in SETTINGS if key != "seed")


def make_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    first = rows[0]
    seeds = ", ".join(map(str, sorted({row["seed"] for row in rows})))
    lines = [
        f"## {first['encoder'].removeprefix('package:').partition('/')[0]}, a teacher of {first['teacher']} layers",
        "",
        f"{first['gold_words']:,} words of gold, {first['text_words']:,} without labels; {first['teacher_steps']} "
        f"steps of {first['step_words']} words for the teacher",
        f"and what is on gold alone as it is, {first['steps']} for students; learning rate {first['rate']:g}; "
        f"{first['test_words']:,} test words; seeds {seeds}.",
        f"{first['chip']}.",
        "",
        "| pipeline | layers | seeds | F1 | from to | above gold alone | above the teacher | words a second | "
        "beside the teacher |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, layers in sorted({(x["kind"], x["layers"]) for x in rows}, key=lambda x: (-x[1], KINDS.index(x[0]))):
        own = [row for row in rows if (row["kind"], row["layers"]) == (kind, layers)]
        f, speed, beside = (mean_of(own, key) for key in ("f", "words_per_second", "beside_teacher"))
        spread = f"{min(x['f'] for x in own):.2f} to {max(x['f'] for x in own):.2f}" if len(own) > 1 else ""
        above = ["" if kind != "taught" else compare(own, rows, "gold", layers)]
        above.append("" if kind == "teacher" else compare(own, rows, "teacher", first["teacher"]))
        cells = [NAMES[kind], str(layers), str(len(own)), f"{f:.2f}", spread, *above, f"{speed:,.0f}"]
        lines.append(f"| {' | '.join([*cells, f'{beside:.2f}'])} |")
    return lines


def mean_of(rows: Sequence[dict[str, Any]], key: str) -> float:
    return float(statistics.mean(row[key] for row in rows))


def compare(own: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], kind: str, layers: int) -> str:
    """F1 above that of another pipeline, by the seeds that both have; "" of none."""
    gap = compare_lines([row for row in rows if (row["kind"], row["layers"]) == (kind, layers)], own)
    return "" if gap is None else str(gap)


if __name__ == "__main__":
    main()
