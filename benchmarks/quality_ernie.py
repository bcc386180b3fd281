"""What entity vectors are worth: ERNIE's K-Encoder on a small BERT, against the same encoder without entities.

    python benchmarks/quality_ernie.py --vectors DIR --pretrained DIR --task fewrel --system ernie --seed 0   # one run
    python benchmarks/quality_ernie.py --vectors DIR --pretrained DIR --all                 # every run that is missing
    python benchmarks/quality_ernie.py --table                                              # results/quality_ernie.md

A run appends a line to results/quality_ernie.jsonl. docs/results/ernie.md says what is compared, and how the
vectors (`spacy luke train-kge`) and the pretrained encoders (`spacy luke pretrain-ernie`) were made.
"""

import argparse
import json
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

from measuring import MINILM
from paired import answers_of, compare_lines, count, keep_run, score
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
SEEDS = (0, 1, 2)
THRESHOLDS = {"open_entity": 0.3}  # of scores of given entities; 0 elsewhere
FEWREL = ("fewrel/val_wiki.json", "fewrel/resplit_mgfte/val.json", "fewrel/resplit_mgfte/test.json")
SENTENCES = (
    "We spoke about it yesterday .",
    "Nobody had expected it at all .",
    "The report mentions it twice .",
    "They asked us about it again and again .",
)
KINDS = {  # of entities in the positive control, and their types in CoDEx
    "person": ("human",),
    "film": ("film",),
    "work": ("profession", "occupation"),
    "state": ("sovereign state", "country"),
    "city": ("big city", "city", "city with millions of inhabitants", "city of the United States"),
    "university": ("university", "public university", "private not-for-profit educational institution"),
    "record label": ("record label",),
    "genre": ("music genre", "film genre"),
}


@dataclass(frozen=True)
class Task:
    component: str
    score: str
    train: int
    test: int
    epochs: int
    fresh: float = 5.0  # rate of head and K-Encoder, in rates of the words
    pooler: float = 1.0  # rate of [CLS]'s pooler


@dataclass(frozen=True)
class System:
    """pretrained: the folder of --pretrained whose encoder is fine-tuned, None: MiniLM itself; kinds: of layers of a
    fresh one, None: some with a K-Encoder; entities: whether the Docs' entities are read; features, pooler: what the
    head reads, and whether the pooler begins anew."""

    pretrained: str | None
    entities: bool
    kinds: list[str] | None = None
    features: str = "pooled"
    pooler: str = "checkpoint"


TASKS = {
    "open_entity": Task("ernie_typer", "types_micro_f", 1000, 1000, 8, fresh=20.0, pooler=20.0),
    "fewrel": Task("ernie_relation", "relations_accuracy", 40, 20, 4),  # records of each of 42 relations
    "control": Task("ernie_typer", "types_micro_f", 640, 200, 4),
}
SYSTEMS = {
    "bert": System(None, False, ["sim"] * 6),
    "ernie": System("dea", True),
    "ernie_no_entities": System("dea", False),
    "ernie_no_dea": System("no_dea", True),
    "ernie_fresh": System(None, True),  # not pretrained at all
    "bert_pooler": System(None, False, ["sim"] * 6, pooler="fresh"),
    "ernie_pooler": System("dea", True, pooler="fresh"),
    "bert_marks": System(None, False, ["sim"] * 6, features="marks"),
    "ernie_marks": System("dea", True, features="marks"),
}
BASELINES = {"ernie_marks": "bert_marks", "ernie_pooler": "bert_pooler"}  # of all others: bert


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
    parser.add_argument("--pretrained", type=Path, help="folder with the pretrained encoders dea/ and no_dea/")
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
    train, test = PARTS[options.task](nlp, options)
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
    known = [with_vector(doc, options) for doc in test]
    of_known = count([x for x, has in zip(answers, known, strict=True) if has])
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
        known=[sum(known), round(float(score(of_known.sum(0))), 2) if any(known) else None],
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

    source = MINILM if system.pretrained is None else str(options.pretrained / system.pretrained)
    weights = make_ernie_loader(
        source, vectors=str(options.vectors), layer_kinds=system.kinds, seed=options.seed, pooler=system.pooler
    )
    component = nlp.get_pipe(TASKS[options.task].component)
    examples = [fresh(nlp, doc) for doc in train]
    component.initialize(lambda: examples, nlp=nlp, weights=weights, seed=options.seed)
    return component


def read_open_entity(nlp: Any, options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    from spacy_luke.readers.datasets.table import dataset_docs

    task = TASKS["open_entity"]

    def read(part: str, n: int) -> list[Any]:
        path = options.data / "open_entity_ernie" / f"{part}.json"
        return list(islice(dataset_docs(nlp, path, format="open_entity"), options.limit or n))

    return read("train", task.train), read("dev" if options.dev else "test", task.test)


def read_fewrel(nlp: Any, options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """The 42 relations present, divided by `divide_records` with seed 0, the first records of each relation."""
    from spacy_luke.readers.datasets.table import read_dataset
    from spacy_luke.readers.records import make_doc
    from spacy_luke.readers.splits import divide_records

    task = TASKS["fewrel"]

    def read(part: str, n: int) -> list[Any]:
        records = [x for file in FEWREL for x in read_dataset(options.data / file, format="fewrel")]
        taken: Counter = Counter()
        docs = []
        for record in divide_records(records, part=part, seed=0):
            label = record.relations[0][2]
            taken[label] += 1
            if taken[label] <= (options.limit or n):
                docs.append(make_doc(nlp, record))
        return docs

    return read("train", task.train), read("dev" if options.dev else "test", task.test)


def read_control(nlp: Any, options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """Neutral sentences about entities of CoDEx: only their vectors tell what they are. As many entities of each kind,
    which are of no other; no entity is in two parts."""
    from spacy.tokens import Span

    from spacy_luke.vectors.store import EntityVectors

    types = json.loads((options.data / "codex" / "types" / "entity2types.json").read_text(encoding="utf8"))
    names = json.loads((options.data / "codex" / "types" / "en" / "types.json").read_text(encoding="utf8"))
    store = EntityVectors.open(options.vectors)
    kind_of = {label: kind for kind, labels in KINDS.items() for label in labels}
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for entity, found in sorted(types.items()):
        kinds = {kind_of[names[x]["label"]] for x in found if x in names and names[x]["label"] in kind_of}
        if len(kinds) == 1 and store.row(entity) >= 0:
            by_kind[kinds.pop()].append(entity)
    task, rng = TASKS["control"], random.Random(0)
    parts: dict[str, list[Any]] = {"train": [], "dev": [], "test": []}
    sizes = {"train": task.train // len(KINDS), "dev": 15, "test": task.test // len(KINDS)}
    for kind, entities in by_kind.items():
        if len(entities) < sum(sizes.values()):
            raise SystemExit(
                f"Expected {sum(sizes.values())} entities of the kind {kind}, but there are {len(entities)}."
            )
        rng.shuffle(entities)
        start = 0
        for part, size in sizes.items():
            for number, entity in enumerate(entities[start : start + size]):
                doc = nlp.make_doc(SENTENCES[number % len(SENTENCES)])
                word = next(word for word in doc if word.text == "it")
                doc.spans["luke_types"] = [Span(doc, word.i, word.i + 1, kind)]
                doc.user_data["luke_knowledge"] = [[word.idx, word.idx + 2, entity, 1.0]]
                parts[part].append(doc)
            start += size
    return parts["train"], parts["dev" if options.dev else "test"]


PARTS = {"open_entity": read_open_entity, "fewrel": read_fewrel, "control": read_control}


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
    lines = [
        "# ERNIE: quality",
        "",
        "Written by `python benchmarks/quality_ernie.py --table`; see docs/results/ernie.md. Percent, mean over "
        "the seeds",
        "and standard deviation (n - 1). Scores: open_entity loose micro F1, fewrel accuracy, control loose micro F1 "
        "of one",
        f"type for each mention ({len(KINDS)} types, equally frequent: chance is {100 / len(KINDS):.1f}). Vectors: of "
        f"the test part's",
        "entities how many have one. With a vector: the score of the documents that have an entity with one. Above its",
        "baseline: `bert` with the same readout, on the same seeds, with the 95 % interval over documents and seeds.",
        "",
        "| data | system | score | ± | above its baseline | with a vector | seeds | vectors | epochs | train s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups = group_runs(
        results, lambda x: (x["task"], x["system"], json.dumps(x["settings"])), order=(*TASKS, *SYSTEMS)
    )
    of = {(task, system): group for (task, system, _), group in groups}
    for (task, system, _), group in groups:
        base = BASELINES.get(system, "bert")
        gap = None if base == system else compare_lines(of.get((task, base), []), group)
        known = [x["known"][1] for x in group if x.get("known") and x["known"][1] is not None]
        counts = group[0]["coverage"]
        vectors = f"{counts.get('have a vector', 0)} of {sum(counts.values())}" if counts else "none read"
        cells = [task, system, *describe_mean([x["f"] for x in group]), "" if gap is None else str(gap)]
        cells += [f"{mean(known):.1f}" if known else "", describe_seeds(group), vectors]
        cells += [str(group[0]["settings"]["epochs"]), describe_seconds(group)[0]]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", describe_runs(results), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
