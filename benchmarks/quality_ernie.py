"""What entity vectors are worth: ERNIE's K-Encoder on a small BERT, against the same encoder without entities.

    python benchmarks/quality_ernie.py --vectors DIR --pretrained DIR --task fewrel --system ernie --seed 0   # one run
    python benchmarks/quality_ernie.py --vectors DIR --pretrained DIR --all                 # every run that is missing
    python benchmarks/quality_ernie.py --table                                              # results/quality_ernie.md

A run appends a line to results/quality_ernie.jsonl. docs/results/ernie.md says what is compared, and how the
vectors (`benchmarks/kge.py`) were made. Each seed has pretrainings of its own (`spacy luke pretrain-ernie`).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from ernie_data import KINDS, READERS
from measuring import MINILM
from paired import Answers, Floats, answers_of, compare_lines, count, keep_run, read, score
from runs import (
    batches,
    describe_mean,
    describe_runs,
    describe_seconds,
    describe_seeds,
    group_runs,
    make_parser,
    make_result,
    predict,
    run_as_asked,
    schedule,
    start,
)

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
CONFIG = Path(__file__).parents[1] / "configs" / "ernie_pretrain_small.cfg"
SEEDS = (0, 1, 2)
THRESHOLDS = {"open_entity": 0.3}  # of scores of given entities; 0 elsewhere


@dataclass(frozen=True)
class Task:
    """test: records; None: all."""

    component: str
    score: str
    train: int
    test: int | None
    epochs: int
    fresh: float = 5.0  # rate of head and K-Encoder, in rates of the words
    pooler: float = 1.0  # rate of [CLS]'s pooler


# Of the small pretraining, beside its config, so many steps on the same texts each.
PRETRAININGS = {
    "dea": [],
    "no_dea": ["--task.dea", "false"],
    "words": ["--task.dea", "false", "--model.layer_kinds", json.dumps(["sim"] * 6)],  # no K-Encoder, no entities
}


@dataclass(frozen=True)
class System:
    """pretrained: which of PRETRAININGS is fine-tuned, None: MiniLM itself; kinds: of layers of a
    fresh one, None: some with a K-Encoder; entities: whether the Docs' entities are read; features, pooler: what the
    head reads, and whether the pooler begins anew."""

    pretrained: str | None
    entities: bool
    kinds: list[str] | None = None
    features: str = "pooled"
    pooler: str = "checkpoint"


TASKS = {
    "open_entity": Task("ernie_typer", "types_micro_f", 1000, None, 8, fresh=20.0, pooler=20.0),
    "fewrel": Task("ernie_relation", "relations_accuracy", 40, None, 4),  # to learn from, of each of 42 relations
    "control": Task("ernie_typer", "types_micro_f", 640, 200, 4),
}
SYSTEMS = {
    "bert": System(None, False, ["sim"] * 6),
    "ernie": System("dea", True),
    "ernie_no_entities": System("dea", False),
    "ernie_no_dea": System("no_dea", True),
    "ernie_fresh": System(None, True),  # not pretrained at all
    "bert_more": System("words", False),  # BERT with as many extra steps
    "bert_pooler": System(None, False, ["sim"] * 6, pooler="fresh"),
    "ernie_pooler": System("dea", True, pooler="fresh"),
    "bert_marks": System(None, False, ["sim"] * 6, features="marks"),
    "bert_more_marks": System("words", False, features="marks"),
    "ernie_marks": System("dea", True, features="marks"),
    "ernie_no_entities_marks": System("dea", False, features="marks"),
}
BASES = ("bert", "bert_more", "ernie_no_entities")
READOUTS = ("_marks", "_pooler")  # ends of names; of others: the pooled [CLS]


def main() -> None:
    runs = [{"task": task, "system": x, "seed": seed} for seed in SEEDS for task in TASKS for x in SYSTEMS]
    given = ("data", "vectors", "pretrained", "threads")
    options = read_options()
    run_as_asked("quality_ernie", options, run=run, runs=runs, given=given, make_table=make_table, keeps=True)


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "quality_ernie")
    parser.add_argument("--task", choices=TASKS, default="open_entity")
    parser.add_argument("--system", choices=SYSTEMS, default="ernie")
    parser.add_argument("--vectors", type=Path, help="a store of CoDEx-M vectors")
    parser.add_argument("--pretrained", type=Path, help="folder of pretrained encoders; what is missing is made")
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder's words")
    parser.add_argument(
        "--fresh-multiple", type=float, help="rate of head and K-Encoder, in rates of the words; default: the task's"
    )
    parser.add_argument(
        "--pooler-multiple", type=float, help="rate of [CLS]'s pooler, in rates of the words; default: the task's"
    )
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, help="default: that of the task")
    parser.add_argument("--dev", action="store_true", help="score the dev part instead of the test part")
    options = parser.parse_args()
    if not options.table and (options.vectors is None or options.pretrained is None):
        parser.error("--vectors and --pretrained are needed, by which documents with a vector are scored apart, too")
    return options


def run(options: argparse.Namespace) -> dict[str, Any]:
    from spacy_luke.bridge.optimizer import make_adamw
    from spacy_luke.scorers.items import relation_items, type_items

    start(options)
    task, system = TASKS[options.task], SYSTEMS[options.system]
    nlp = build(options.task, system)
    train, test = READERS[options.task](nlp, options, (task.train, task.test))
    epochs = options.epochs or task.epochs
    component = initialize(nlp, train, system, options)
    steps = epochs * -(-len(train) // options.batch)
    fresh_rate = task.fresh if options.fresh_multiple is None else options.fresh_multiple
    pooler = task.pooler if options.pooler_multiple is None else options.pooler_multiple
    rates = {"^head|entity_(up|down|attention|output)": fresh_rate, "pooler": pooler}
    optimizer = make_adamw(schedule(options.rate, steps), grad_clip=1.0, group_rates=rates)
    began = time.perf_counter()
    for batch in batches(train, epochs=epochs, size=options.batch, seed=options.seed):
        component.update([fresh(nlp, doc) for doc in batch], drop=0.1)
        component.finish_update(optimizer)
        optimizer.step_schedules()
    trained = time.perf_counter()
    examples = [fresh(nlp, doc) for doc in test]
    covered = coverage(component, examples)
    scores = component.score(predict(nlp, examples))
    items = (relation_items if options.task == "fewrel" else type_items)(examples)
    answers = answers_of(items, len(examples))
    kept = f"quality_ernie/{options.task}-{options.system}-{options.seed}.jsonl"
    settings = {"rate": options.rate, "fresh": fresh_rate, "pooler": pooler, "batch": options.batch, "epochs": epochs}
    return make_result(
        options,
        scores,
        task=options.task,
        score=task.score,
        coverage=covered,
        settings=settings,
        records=[len(train), len(test)],
        seconds=[round(trained - began, 1), round(time.perf_counter() - trained, 1)],
        with_vector=[number for number, doc in enumerate(test) if with_vector(doc, options)],
        predictions=keep_run(kept, answers, limit=options.limit, dev=options.dev, settings=settings),
    )


def with_vector(doc: Any, options: argparse.Namespace) -> bool:
    """Whether one of the entities of a gold Doc that a system may read has a vector."""
    from spacy_luke.annotations import get_knowledge
    from spacy_luke.vectors.store import EntityVectors

    least = THRESHOLDS.get(options.task, 0.0)
    ids = [one.id for one in get_knowledge(doc) if one.score > least]
    return bool(ids) and bool((EntityVectors.open(options.vectors).rows(ids) >= 0).any())


def build(task: str, system: System) -> Any:
    import spacy

    nlp = spacy.blank("en")
    getter = {"@misc": "spacy-luke.given_entities.v1", "threshold": THRESHOLDS.get(task, 0.0)}
    settings: dict[str, Any] = {"knowledge": getter if system.entities else None}
    settings["model"] = {"features": system.features}
    if task == "fewrel":
        settings["none"] = None
    else:
        settings["getter"] = {"@misc": "spacy-luke.span_group.v1", "key": "luke_mentions"}
        settings["always_best"] = task == "control"
    nlp.add_pipe(TASKS[task].component, config=settings)
    return nlp


def initialize(nlp: Any, train: Sequence[Any], system: System, options: argparse.Namespace) -> Any:
    from spacy_luke.checkpoint.sources import make_ernie_loader

    source = MINILM if system.pretrained is None else str(pretrain(system.pretrained, options))
    weights = make_ernie_loader(
        source, vectors=str(options.vectors), layer_kinds=system.kinds, seed=options.seed, pooler=system.pooler
    )
    component = nlp.get_pipe(TASKS[options.task].component)
    examples = [fresh(nlp, doc) for doc in train]
    component.initialize(lambda: examples, nlp=nlp, weights=weights, seed=options.seed)
    return component


def pretrain(name: str, options: argparse.Namespace) -> Path:
    """The encoder of a pretraining with the run's seed, which is made unless the folder has it."""
    output = options.pretrained / f"{name}-{options.seed}"
    if not (output / "model").exists():
        given = {
            "--output": output,
            "--paths.pieces": options.data / "ernie_pretrain_sample" / "wiki",
            "--paths.vectors": options.vectors,
            "--system.seed": options.seed,
        }
        arguments = [str(x) for pair in given.items() for x in pair]
        command = [sys.executable, "-m", "spacy", "luke", "pretrain-ernie", str(CONFIG), *arguments]
        subprocess.run([*command, *PRETRAININGS[name]], check=True)
    return output / "model"


def coverage(component: Any, examples: Sequence[Any]) -> dict[str, int]:
    from spacy_luke.bridge.documents import read_document

    counts: Counter = Counter()
    if component.known is not None:
        for example in examples:
            document = read_document(example.predicted, component.tokenizer)
            component.known.find(example.predicted, document, counts=counts)
    return dict(counts)


def fresh(nlp: Any, doc: Any) -> Any:
    """An example whose prediction has the words, the mentions or pairs, and the entities."""
    from spacy.training import Example

    from spacy_luke.readers.given import copy_given

    return Example(copy_given(doc, nlp.vocab, mentions=True, pairs=True), doc)


def make_table(results: list[dict[str, Any]]) -> str:
    above = " | ".join(f"above `{base}`" for base in BASES)
    lines = [
        "# ERNIE: quality",
        "",
        "Written by `python benchmarks/quality_ernie.py --table`; see docs/results/ernie.md. Percent, mean over the",
        "seeds and standard deviation (n - 1). Scores: open_entity loose micro F1, fewrel accuracy, control loose",
        f"micro F1 of one type for each mention ({len(KINDS)} types, equally frequent: chance {100 / len(KINDS):.1f}).",
        "Vectors: of the test part's entities how many have one. Above `bert`, `bert_more`, which was pretrained in as",
        "many steps, without entities, and `ernie_no_entities`, which is `ernie`, but reads none: those with the same",
        "readout, on the same seeds, with the 95 % interval over documents and seeds. With a vector: of the documents",
        "that have an entity with one.",
        "",
        f"| data | system | score | ± | {above} | with a vector | {above} | seeds | vectors | epochs | train s |",
        "|---" * (9 + 2 * len(BASES)) + "|",
    ]
    groups = group_runs(
        results, lambda x: (x["task"], x["system"], json.dumps(x["settings"])), order=(*TASKS, *SYSTEMS)
    )
    of = {(task, system): group for (task, system, _), group in groups}
    for (task, system, _), group in groups:
        readout = next((x for x in READOUTS if system.endswith(x)), "")
        found = [of.get((task, f"{base}{readout}"), []) for base in BASES]
        known = partial(count_some, numbers=group[0]["with_vector"])
        of_known = [float(score(known(read(x["predictions"])).sum(0))) for x in group]
        counts = group[0]["coverage"]
        vectors = f"{counts.get('have a vector', 0)} of {sum(counts.values())}" if counts else "none read"
        cells = [task, system, *describe_mean([x["f"] for x in group])]
        cells += [describe_gap(base, group, count) for base in found]
        cells += [f"{mean(of_known):.1f}", *(describe_gap(base, group, known) for base in found)]
        cells += [describe_seeds(group), vectors]
        cells += [str(group[0]["settings"]["epochs"]), describe_seconds(group)[0]]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", describe_runs(results), ""]
    return "\n".join(lines)


def describe_gap(
    base: list[dict[str, Any]], group: list[dict[str, Any]], counts: Callable[[Sequence[Answers]], Floats]
) -> str:
    gap = None if base is group else compare_lines(base, group, counts=counts)
    return "" if gap is None else str(gap)


def count_some(documents: Sequence[Answers], *, numbers: Sequence[int]) -> Floats:
    """As `count`, of the documents with these numbers."""
    return count([documents[number] for number in numbers])


if __name__ == "__main__":
    main()
