"""Does LUKE's pretraining help? A small encoder pretrained on a part of Wikipedia, against the same start without it.

    python benchmarks/quality_pretraining.py --cache DIR --task wikigold --system luke --seed 0   # one run
    python benchmarks/quality_pretraining.py --cache DIR --all                       # every run that is missing
    python benchmarks/quality_pretraining.py --table                                 # results/quality_pretraining.md

A run appends a line to results/quality_pretraining.jsonl. What is pretrained is made once for each system and seed and
kept in DIR (--task pretrain makes nothing else), as are the data. docs/results/pretraining.md says what is compared.
"""

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import Any

import linking
import quality_tasks
from link_answers import count_links
from machine import describe_machine
from measuring import MINILM
from ner_data import DATA_SETS
from paired import Answers, answers_of_mentions, compare_lines, count, keep
from runs import (
    RESULTS,
    add_line,
    batches,
    describe_mean,
    describe_runs,
    describe_seconds,
    describe_seeds,
    find_lines,
    group_runs,
    make_parser,
    read_lines,
    run_missing,
    schedule,
    start,
)

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
CONFIG = Path(__file__).parents[1] / "configs" / "pretrain_small.cfg"
DUMP = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
SEEDS = (0, 1, 2)
TASKS = ("wikigold", "open_entity", "aida")
SYSTEMS: dict[str, dict[str, Any] | None] = {  # what they override in the config; None: not pretrained
    "start": None,
    "mlm": {"task.entities": None},
    "luke": {},
}
STEPS = {"new": 60, "all": 400}  # of 16 windows of 128 pieces: an epoch and a half
NER = DATA_SETS["wikigold"]


def main() -> None:
    options = read_options()
    if options.table:
        lines = read_lines(RESULTS / "quality_pretraining.jsonl")
        (RESULTS / "quality_pretraining.md").write_text(make_table(lines), encoding="utf8")
        print((RESULTS / "quality_pretraining.md").read_text(encoding="utf8"))
    elif options.all:
        runs = [{"task": task, "system": x, "seed": seed} for seed in SEEDS for x in SYSTEMS for task in TASKS]
        given = {name: getattr(options, name) for name in ("cache", "data", "threads")}
        run_missing(__file__, runs, [x for x in read_lines(options.results) if x.get("predictions")], options=given)
    elif options.task == "pretrain":
        print(find_encoder(options))
    else:
        add_line(options.results, run(options))


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "quality_pretraining")
    parser.add_argument("--task", choices=(*TASKS, "pretrain"), default="wikigold")
    parser.add_argument("--system", choices=SYSTEMS, default="luke")
    parser.add_argument("--cache", type=Path, help="folder that keeps data and pretrained encoders")
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder in fine-tuning")
    parser.add_argument("--documents", type=int, default=200, help="of AIDA, to train the linker on")
    parser.add_argument("--results", type=Path, default=RESULTS / "quality_pretraining.jsonl", help="file of lines")
    options = parser.parse_args()
    if not options.table and options.cache is None:
        parser.error("--cache is needed: a folder for the data and what is pretrained")
    return options


def run(options: argparse.Namespace) -> dict[str, Any]:
    start(options)
    encoder = find_encoder(options)
    start(options)  # again: of fine-tuning, whether or not the encoder was pretrained in this process
    found = {"wikigold": run_ner, "open_entity": run_typing, "aida": run_linking}[options.task](options, encoder)
    metrics = read_lines(encoder.parent / "all" / "metrics.jsonl") if options.system != "start" else []
    return {
        "task": options.task,
        "system": options.system,
        "seed": options.seed,
        **found,
        "pretraining": {k: round(v, 4) for k, v in metrics[-1].items() if v is not None} if metrics else None,
        **describe_machine(),
    }


# ---- pretraining


def find_encoder(options: argparse.Namespace) -> Path:
    """The checkpoint of a system and seed, which is made where it is not there; MiniLM itself for "start"."""
    from spacy_luke.checkpoint.sources import find_source

    changes = SYSTEMS[options.system]
    if changes is None:
        return find_source(MINILM)
    folder = options.cache / f"{options.system}-{options.seed}"
    if not (folder / "model").is_dir():
        settings: dict[str, Any] = {
            "paths.shards": str(make_shards(options)),
            "paths.vectors": "titles" if options.system == "luke" else None,
            "system.seed": options.seed,
            "training.batch_size": 16,
            "training.eval_every": 130,
            **changes,
        }
        pretrain(folder, settings, STEPS, limit=options.limit)
    return folder / "model"


def pretrain(folder: Path, settings: dict[str, Any], steps: Mapping[str, int], *, limit: int | None) -> None:
    """Both stages of the small config with these settings, `limit` steps each in smoke runs; the table stays frozen."""
    from spacy.util import load_config

    from spacy_luke.pretraining.luke.job import pretrain_luke

    frozen = {"new": ["^encoder[.](words|layers)[.]", "entities[.]table"], "all": ["entities[.]table"]}
    overrides = dict(settings)
    for name, most in steps.items():
        overrides[f"stages.{name}.max_steps"] = limit or most
        overrides[f"stages.{name}.optimizer.warmup_steps"] = max(1, (limit or most) // 10)
        overrides[f"stages.{name}.optimizer.frozen"] = frozen[name]
    config = load_config(CONFIG, overrides=overrides, interpolate=True)
    pretrain_luke(config, folder, resume=(folder / "new" / "resume").is_dir())


def make_shards(options: argparse.Namespace, *others: Iterable[Any]) -> Path:
    """Examples of the dump, of GUM, and of other paragraphs."""
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source
    from spacy_luke.corpus.build_shards import build_shards
    from spacy_luke.corpus.examples import ExampleSettings
    from spacy_luke.corpus.from_dumps import build_from_dumps
    from spacy_luke.corpus.linked_corpus import counted, install_corpus, write_part
    from spacy_luke.corpus.vocabulary import build_entity_vocab
    from spacy_luke.readers.sentences import RuleSentences

    folder = options.cache / "data"
    shards = folder / "shards"
    if not shards.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        dump = build_from_dumps([options.data / DUMP], folder / "dump", language="en")
        part, counts = folder / "part-00000.jsonl.gz", Counter[str]()
        paragraphs = chain(dump.paragraphs(), read_gum(options.data / "gum" / "sources"), *others)
        write_part(part, counted(paragraphs, counts))
        corpus = install_corpus([part], folder / "text", language="en", sources=[], counts=dict(counts))
        build_shards(
            [corpus],
            shards,
            tokenizer=read_checkpoint(find_source(MINILM)).tokenizer,
            vocab=build_entity_vocab([corpus]).vocab,
            sentences=RuleSentences("en"),
            settings=ExampleSettings(128, 32, 30),
            progress=True,
        )
    return shards


def read_gum(folder: Path) -> Iterator[Any]:
    """A paragraph for each document: words between blanks, links of its mentions with a title of Wikipedia."""
    from spacy_luke.corpus.linked_corpus import Paragraph

    for path in sorted(folder.glob("*.conllu")):
        text, links = "", []
        opened: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for line in path.read_text(encoding="utf8").splitlines():
            cells = line.split("\t")
            if len(cells) != 10 or not cells[0].isdigit():
                continue
            start, text = len(text), text + cells[1]
            marks = next((x[len("Entity=") :] for x in cells[9].split("|") if x.startswith("Entity=")), "")
            for mark in marks.replace("(", "\n(").replace(")", ")\n").split("\n"):
                name, *parts = mark.strip("()").split("-", 7)
                if mark.startswith("("):
                    opened[name].append((start, parts[6].replace("_", " ") if len(parts) == 7 else ""))
                if mark.endswith(")") and opened[name]:
                    begin, title = opened[name].pop()
                    links += [(begin, len(text), title)] if title else []
            text += "" if "SpaceAfter=No" in cells[9] else " "
        yield Paragraph(path.stem, text.rstrip(), flat(links))


def flat(links: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order, the outer one of those that overlap."""
    kept: list[tuple[int, int, str]] = []
    for link in sorted(links, key=lambda x: (x[0], -x[1])):
        if not kept or link[0] >= kept[-1][1]:
            kept.append(link)
    return kept


# ---- the three tasks


def run_ner(options: argparse.Namespace, encoder: Path) -> dict[str, Any]:
    """`luke_ner` in one-way attention on WikiGold, sentence by sentence, as quality.py does it."""
    import ner_systems
    from ner_data import read_part, score

    train = read_part(options.data, NER, NER.train)[: options.limit]
    test = read_part(options.data, NER, NER.test)[: options.limit]
    settings = ner_systems.Settings(rate=options.rate)
    make = ner_systems.SYSTEMS["luke_one_way"]
    system = make(encoder, train, settings=settings, seed=options.seed, nested=False)
    began = time.perf_counter()
    for batch in ner_systems.batches(len(train), settings=settings, seed=options.seed):
        system.step(batch)
    seconds = time.perf_counter() - began
    gold, mentions = [x.mentions for x in test], system.predict([x.words for x in test])
    return {
        "f": round(score(gold, mentions)["f"], 2),
        "predictions": keep_answers(options, answers_of_mentions(gold, mentions)),
        "settings": {"rate": options.rate, "epochs": settings.epochs},
        "records": [len(train), len(test)],
        "seconds": [round(seconds, 1), round(time.perf_counter() - began - seconds, 1)],
    }


def run_typing(options: argparse.Namespace, encoder: Path) -> dict[str, Any]:
    """Open Entity with the paper's input, as quality_tasks.py does it."""

    from spacy_luke.bridge.optimizer import make_adamw

    task, system, size = quality_tasks.TASKS["open_entity"], quality_tasks.SYSTEMS["luke"], 16
    options.dev = False
    nlp = quality_tasks.build("open_entity", system, tokens="pair")
    train, test = quality_tasks.read_parts(nlp, task, options)
    quality_tasks.initialize(nlp, train, system, seed=options.seed, folder=encoder)
    steps = task.epochs * -(-len(train) // size)
    optimizer = make_adamw(schedule(options.rate, steps), grad_clip=1.0, group_rates={"^head": 5.0})
    began = time.perf_counter()
    for batch in batches(train, epochs=task.epochs, size=size, seed=options.seed):
        quality_tasks.update(nlp, [quality_tasks.fresh(nlp, doc, "open_entity") for doc in batch], optimizer)
        optimizer.step_schedules()
    seconds = time.perf_counter() - began
    found, answers = quality_tasks.score(nlp, test, "open_entity")
    return {
        "f": round(100 * found[task.score], 2),
        "predictions": keep_answers(options, answers),
        "settings": {"rate": options.rate, "epochs": task.epochs},
        "records": [len(train), len(test)],
        "seconds": [round(seconds, 1), round(time.perf_counter() - began - seconds, 1)],
    }


def run_linking(options: argparse.Namespace, encoder: Path) -> dict[str, Any]:
    """AIDA testb without priors, before and after training on some documents of AIDA; vectors of titles by MiniLM for
    all systems."""
    import spacy

    from spacy_luke.checkpoint.checkpoint import read_checkpoint

    settings = {"candidates": 30, "epochs": 3, "batch": 8, "rate": options.rate, "head_rate": 5.0, "prior_rate": 1.0}
    settings |= {"dropout": 0.0, "limit": options.limit}
    own = argparse.Namespace(**{**vars(options), **settings})
    kb = linking.make_kb(options.data, options.cache / "linking" / "kb", linking.read_encoder())
    checkpoint = read_checkpoint(
        encoder, entities="special", entity_start="words", entity_aware=False, seed=options.seed
    )
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-luke.EntityLinker.v2", "attention": "one_way", "prior": False, "nil": False}
    linker: Any = nlp.add_pipe("luke_linker", config={"model": model, "inference": "local", "max_candidates": 30})
    train = linking.read_part(nlp, own, "train")[: options.documents]
    test = linking.read_part(nlp, own, "testb")
    linker.initialize(
        lambda: [linking.example_of(nlp, x) for x in train],
        kb=lambda: kb,
        weights=lambda: checkpoint,
        seed=options.seed,
    )
    untrained = linking.evaluate(nlp, linker, test)["accuracy"]
    seconds = linking.learn(nlp, linker, train, own)
    found = linking.evaluate(nlp, linker, test)
    return {
        "f": found["accuracy"],
        "predictions": keep_answers(options, found["answers"]),
        "untrained": untrained,
        "settings": {"rate": options.rate, "epochs": own.epochs},
        "records": [len(train), len(test)],
        "seconds": [round(seconds, 1), found["spent"]],
    }


def keep_answers(options: argparse.Namespace, answers: Sequence[Answers]) -> str | None:
    """The path of the predictions of a run; None of a smoke run."""
    path = f"quality_pretraining/{options.task}-{options.system}-{options.seed}.jsonl"
    return None if options.limit else keep(path, answers)


# ---- all runs, and the table


def make_table(results: list[dict[str, Any]]) -> str:
    if not results:
        raise SystemExit("There are no results yet; run with --all first.")
    lines = [
        "# Does pretraining help?",
        "",
        "Written by `python benchmarks/quality_pretraining.py --table`; see docs/results/pretraining.md. Percent, mean",
        "over seeds and standard deviation (n - 1). wikigold: F1 of exact spans and labels; open_entity: loose F1;",
        "aida: in-KB accuracy on testb without priors, candidates of PPRforNED; untrained: before any document of AIDA",
        "was seen. Above: the difference on the same seeds and documents, with its 95 % interval over both; markers:",
        "no entities, no pretraining (quality_tasks.py).",
        "",
        "| data | system | score | ± | above start | mlm | markers | untrained | seeds | train s | test s |",
        "|---" * 11 + "|",
    ]
    groups = dict(group_runs(results, lambda x: (x["task"], x["system"]), order=(*TASKS, *SYSTEMS)))
    for (task, system), group in groups.items():
        before = [x["untrained"] for x in group if "untrained" in x]
        cells = [task, system, *describe_mean([x["f"] for x in group])]
        for base in ("start", "mlm", "markers"):
            counts = count_links if task == "aida" else count
            lines_of_base = groups.get((task, base)) or find_lines("quality_tasks", task=task, system=base)
            gap = compare_lines(lines_of_base, group, counts=counts, documents=group[0]["records"][1])
            cells.append("" if gap is None or base == system else str(gap))
        cells += [f"{mean(before):.1f}" if before else ""]
        cells += [describe_seeds(group), *describe_seconds(group)]
        lines.append("| " + " | ".join(cells) + " |")
    figures = {(x["system"], x["seed"]): x["pretraining"] for x in results if x["pretraining"]}
    lines += ["", "Pretraining, held-out pages at the end:", ""]
    for (system, seed), found in sorted(figures.items()):
        shown = ", ".join(f"{k[4:]} {v:.3f}" for k, v in found.items() if k.startswith("dev_"))
        lines.append(f"- {system}, seed {seed}, {found['step']} steps: {shown}")
    lines += ["", describe_runs(results), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
