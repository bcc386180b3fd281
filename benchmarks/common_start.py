"""LUKE's input against baselines without entities and one-way attention, all from one pretraining on masked words and
entities.

    python benchmarks/common_start.py --cache DIR --pretrain                # the common start, kept in DIR
    python benchmarks/common_start.py --cache DIR --task semeval --system luke --seed 0        # one run
    python benchmarks/common_start.py --cache DIR --all                     # every run that is missing
    python benchmarks/common_start.py --table                               # results/common_start.md

A run appends a line to results/common_start.jsonl. docs/results/pretraining.md says what is compared.
"""

import argparse
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import quality
import quality_cloze
import quality_tasks
from measuring import MINILM
from paired import compare_lines, counts_of, read, score
from quality_pretraining import flat, make_shards, pretrain
from runs import (
    describe_mean,
    describe_runs,
    describe_seconds,
    describe_seeds,
    find_lines,
    group_runs,
    make_parser,
    read_lines,
    run_as_asked,
)

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
TASKS = {  # the systems of each, the baseline first: of quality_tasks.py, quality.py, quality_cloze.py
    **dict.fromkeys(("open_entity", "semeval"), ("markers", "luke", "luke_plain", "one_way")),
    "conll2003": ("luke_words", "luke_full", "luke_one_way", "spacy_ner", "token_classifier"),
    "cloze": quality_cloze.SYSTEMS,
}
SYSTEMS = tuple(dict.fromkeys(x for systems in TASKS.values() for x in systems))
FIVE_SEEDS = ("semeval",)  # of the other tasks three
WORDS_ALONE = ("spacy_ner", "token_classifier")  # of Hugging Face's classes, which get the start's words
CLASSIFIER = "token_classifier"
RECORD = "cloze, ReCoRD"
WITHOUT = {  # systems that began with MiniLM as it is, and those from the common start that are held against them
    **{
        task: {**{x: x for x in TASKS[task]}, "luke_mention": "luke", "one_way_mention": "one_way"}
        for task in ("open_entity", "semeval")
    },
    "conll2003": {**{x: x for x in TASKS["conll2003"]}, "luke_mention": "luke_one_way"},
}
WINDOWS = 4  # of 128 pieces a step
STEPS = {"new": 100, "all": 5000}
LINKED = (  # format and files, of which all mentions with an entity are links; no part that a task is tested on
    ("wned", "ed_wned/wikipedia/wikipedia.xml"),
    ("wned", "ed_wned/clueweb/clueweb.xml"),
    ("fewrel", "fewrel/val_wiki.json"),
    ("fewrel", "fewrel/resplit_mgfte/val.json"),
    ("fewrel", "fewrel/resplit_mgfte/test.json"),
)


def main() -> None:
    options = read_options()
    if options.pretrain:
        print(find_start(options))
        return
    runs = [
        {"task": task, "system": x, "seed": seed}
        for seed in range(5)
        for task, systems in TASKS.items()
        for x in systems
        if seed < (5 if task in FIVE_SEEDS else 3)
    ]
    given = ("cache", "data", "threads")
    run_as_asked("common_start", options, run=run, runs=runs, given=given, make_table=make_table)


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "common_start")
    parser.add_argument("--task", choices=TASKS, default="semeval")
    parser.add_argument("--system", choices=SYSTEMS, default="luke")
    parser.add_argument("--pretrain", action="store_true", help="make the common start, and nothing else")
    parser.add_argument("--cache", type=Path, help="folder that keeps the text and the start")
    options = parser.parse_args()
    if not options.table and options.cache is None:
        parser.error("--cache is needed: a folder for the text and what is pretrained")
    if not (options.table or options.all or options.pretrain) and options.system not in TASKS[options.task]:
        parser.error(f"the systems of {options.task} are {', '.join(TASKS[options.task])}")
    return options


def run(options: argparse.Namespace) -> dict[str, Any]:
    """A run of another benchmark, with its settings, from the common start."""
    encoder = find_start(options)
    given = {"system": options.system, "seed": options.seed, "data": options.data, "threads": options.threads}
    if options.task == "conll2003":
        given |= {"dataset": options.task, "train-limit": options.limit, "test-limit": options.limit}
        encoder = write_words(encoder) if options.system in WORDS_ALONE else encoder
        found = quality.run(quality.read_options(written(given)), encoder=encoder, folder="common_start")
        found |= {"task": options.task, "records": found["sentences"]}
    elif options.task == "cloze":
        found = quality_cloze.run(options, encoder=encoder, folder="common_start")
    else:
        given |= {"task": options.task, "limit": options.limit}
        found = quality_tasks.run(quality_tasks.read_options(written(given)), encoder=encoder, folder="common_start")
    metrics = read_lines(encoder.parent / "all" / "metrics.jsonl")
    return found | {"pretraining": {k: round(v, 4) for k, v in metrics[-1].items() if v is not None}}


def written(options: dict[str, Any]) -> list[str]:
    """As on a command line."""
    return [str(x) for name, value in options.items() if value is not None for x in (f"--{name}", value)]


# ---- the common start


def find_start(options: argparse.Namespace) -> Path:
    """The checkpoint, which is made where it is not there: MiniLM with entities that begin with their mention's pieces,
    pretrained on masked words and entities."""
    import torch

    folder = options.cache / "start"
    if not (folder / "model").is_dir():
        if options.threads:
            torch.set_num_threads(options.threads)
        sets = (read_linked(format, options.data / path) for format, path in LINKED)
        settings: dict[str, Any] = {
            "paths.shards": str(make_shards(options, *sets)),
            "model.entity_start": "mention",
            "training.batch_size": WINDOWS,
            "training.eval_every": 1000,
            "training.save_every": 500,
        }
        pretrain(folder, settings, STEPS, limit=options.limit)
    return folder / "model"


def write_words(start: Path) -> Path:
    """A folder of MiniLM with the words of the start, for classes that know no entities; made where it is not there."""
    from safetensors.torch import load_file, save_file

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.families import family_of
    from spacy_luke.checkpoint.sources import find_source

    folder = start.parent / "words"
    if not (folder / "model.safetensors").is_file():
        plain, checkpoint = find_source(MINILM), read_checkpoint(start)
        tensors = load_file(plain / "model.safetensors")
        for name, ours in family_of("bert").known_names(checkpoint.config, root="").items():
            if name in tensors and ours in checkpoint.tensors:
                # The start's pieces have the marks of entities behind them, and its positions count from another row.
                first = checkpoint.config.position_offset if ours == "encoder.words.position.weight" else 0
                tensors[name] = checkpoint.tensors[ours][first : first + len(tensors[name])].contiguous()
        shutil.copytree(plain, folder, ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def read_linked(format: str, path: Path) -> Iterator[Any]:
    """The documents of a data set, 40 sentences of FewRel as one. An entity is named by its title, or, in FewRel, which
    has numbers of Wikidata, by its mention."""
    from spacy_luke.corpus.linked_corpus import Paragraph
    from spacy_luke.readers.datasets.table import read_dataset

    for number, record in enumerate(read_dataset(path, format=format)):
        page = f"{path} {number // 40 if record.text is None else number}"
        if record.text is not None:
            links = [(x.start, x.end, x.kb_id) for x in record.mentions if x.kb_id not in ("", "NIL")]
            text = record.text
        else:
            text, places = joined(record.words or [])
            found = [(places[x.start][0], places[x.end - 1][1]) for x in record.mentions]
            links = [(a, b, text[a:b]) for a, b in found]
        yield Paragraph(page, text, flat(links))


def joined(words: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The words with blanks between them, and where each is."""
    places, end = [], -1
    for word in words:
        places.append((end + 1, end + 1 + len(word)))
        end = places[-1][1]
    return " ".join(words), places


# ---- the table


def make_table(results: list[dict[str, Any]]) -> str:
    if not results:
        raise SystemExit("There are no results yet; run with --all first.")
    lines = [
        "# From one common start",
        "",
        "Written by `python benchmarks/common_start.py --table`; see docs/results/pretraining.md. Percent, mean over "
        "the seeds",
        "and standard deviation (n - 1): open_entity loose micro F1, semeval the official macro F1, conll2003 exact "
        "span and label.",
        "Above the baseline (markers; luke_words, first and last word of a span), and above a token classifier: the "
        "difference on",
        "the same seeds, with its 95 % interval over documents and seeds.",
        "",
        f"| data | system | F1 | ± | above the baseline | above {CLASSIFIER} | seeds | train s | test s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    starts = describe_starts(results)
    results = [*results, *(of_record(x) for x in results if x["task"] == "cloze")]
    groups = group_runs(results, lambda x: (x["task"], x["system"]), order=(*TASKS, RECORD, *SYSTEMS))
    systems = {**TASKS, RECORD: TASKS["cloze"]}
    lines_of = dict(groups)
    for (task, system), group in groups:
        cells = [task, system, *describe_mean([x["f"] for x in group])]
        for base in (systems[task][0], CLASSIFIER):
            gap = compare_lines(lines_of.get((task, base), []), group, counts=counts_of(task))
            cells.append("" if gap is None or system == base else str(gap))
        lines.append("| " + " | ".join([*cells, describe_seeds(group), *describe_seconds(group)]) + " |")
    lines += describe_without(lines_of)
    lines += ["", *starts]
    return "\n".join([*lines, "", describe_runs(results), ""])


def describe_starts(results: list[dict[str, Any]]) -> list[str]:
    """What each pretraining has on held-out pages, and which runs begin with it."""
    runs: dict[str, dict[str, set[int]]] = {}
    for result in results:
        told = result["pretraining"]
        shown = ", ".join(f"{k[4:]} {v:.3f}" for k, v in told.items() if k.startswith("dev_"))
        start = f"A start, {told['step']} steps of {WINDOWS} windows, on held-out pages: {shown}."
        runs.setdefault(start, {}).setdefault(result["task"], set()).add(result["seed"])
    begun = {
        start: "; ".join(f"{task} {', '.join(map(str, sorted(seeds)))}" for task, seeds in own.items())
        for start, own in runs.items()
    }
    return [f"- {start} Seeds of {own}." for start, own in begun.items()]


def describe_without(groups: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[str]:
    """A table of the same systems without this start, on the same documents."""
    lines = [
        "",
        "## Without this start",
        "",
        "The same systems on the same documents, begun with MiniLM as it is (quality_tasks.py and quality.py). In the",
        "common start [MASK] entities begin with their mention's pieces; without it those of `..._mention` do.",
        "Above it: what the system that is named has, from the start, above this one, on the seeds of both.",
        "",
        "| data | system | F1 | ± | above the baseline | seeds | from the start | above it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, systems in WITHOUT.items():
        runs = {x: find_without(task, x) for x in systems}
        baseline, counts = runs[TASKS[task][0]], counts_of(task)
        size = groups[task, TASKS[task][0]][0]["records"][1]
        compared = partial(compare_lines, counts=counts, documents=size)
        for system, started in systems.items():
            if not (group := runs[system]) or (task, started) not in groups:
                continue
            found = [float(score(counts(read(x["predictions"])[:size]).sum(0))) for x in group]
            gap = "" if group is baseline else str(compared(baseline, group))
            above = str(compared(group, groups[task, started]))
            cells = [task, system, *describe_mean(found), gap, describe_seeds(group), started, above]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def find_without(task: str, system: str) -> list[dict[str, Any]]:
    """The lines of a system that began with MiniLM, by seed."""
    if task == "conll2003":
        found = find_lines("quality", dataset=task, system=system)
    else:
        found = [x for x in find_lines("quality_tasks", task=task, system=system) if x["settings"]["tokens"] == "pair"]
    of_seed = {x["seed"]: x for x in found if x.get("predictions")}
    return [of_seed[seed] for seed in sorted(of_seed)]


def of_record(result: dict[str, Any]) -> dict[str, Any]:
    """What a run of quality_cloze.py says of ReCoRD's passages."""
    found = {"task": RECORD, "f": result["scores"]["record_em"], "predictions": result["record_predictions"]}
    return result | found | {"records": [result["records"][0], result["record_passages"]]}


if __name__ == "__main__":
    main()
