"""Learning from two halves of a data set, each with half of its labels: with and without saying so.

    python benchmarks/joined.py --system joined --seed 0   # one training, a line of results/joined.jsonl
    python benchmarks/joined.py --all                      # every missing one
    python benchmarks/joined.py --table                    # results/joined.md

docs/results/entities.md says what is compared.
"""

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import spacy
from machine import describe_machine
from measuring import MINILM
from ner_data import Sentence, outermost, score
from paired import answers_of_mentions, compare_lines, keep_run
from runs import (
    batches,
    describe_machines,
    describe_mean,
    describe_seeds,
    group_runs,
    make_parser,
    run_as_asked,
    schedule,
    start,
)
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.checkpoint.sources import find_source
from spacy_luke.readers.conll import read_columns
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.joined import make_joined_corpus

RATE, HEAD_MULTIPLE, DROPOUT, EPOCHS, BATCH = 2e-4, 5.0, 0.1, 3, 12
HALVES = {  # labels that each half keeps
    "wikigold": (("PER", "MISC"), ("ORG", "LOC")),
    "wnut17": (("person", "group", "product"), ("location", "corporation", "creative-work")),
}
SYSTEMS = ("whole", "half", "joined", "plain")
SEEDS = (0, 1, 2)
Text = list[Sentence]  # of one document


def main() -> None:
    parser = make_parser(__doc__ or "", "joined")
    parser.add_argument("--task", choices=list(HALVES), default="wikigold")
    parser.add_argument("--system", choices=SYSTEMS, default="joined")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--dev", action="store_true", help="a part of the training texts is the test")
    runs = [{"task": "wikigold", "system": system, "seed": seed} for seed in SEEDS for system in SYSTEMS]
    run_as_asked(
        "joined", parser.parse_args(), run=run, runs=runs, given=["data", "threads"], make_table=make_table, keeps=True
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    start(options)
    texts, tested = read_texts(options)
    checkpoint = read_checkpoint(find_source(MINILM), entities="special", entity_start="words", seed=options.seed)
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("luke_ner", config={"max_window": 128})
    with tempfile.TemporaryDirectory() as folder:
        examples = read_system(nlp, texts, options, Path(folder))
    labels = sorted(x for half in HALVES[options.task] for x in half)
    ner.initialize(lambda: examples, nlp=nlp, labels=labels, weights=lambda: checkpoint, seed=options.seed)
    steps = list(batches(examples, epochs=options.epochs, size=BATCH, seed=options.seed))
    optimizer = make_adamw(schedule(RATE, len(steps)), group_rates={"^head": HEAD_MULTIPLE})
    begin = time.perf_counter()
    for step, batch in enumerate(steps):
        again = [Example(_words(nlp, x.reference), x.reference) for x in batch]
        losses = ner.update(again, drop=DROPOUT, sgd=optimizer)
        optimizer.step_schedules()
        if step % 50 == 0:
            print(step, len(steps), round(losses["luke_ner"], 3), round(time.perf_counter() - begin), flush=True)
    middle = time.perf_counter()
    gold = [_gold(nlp, sentence, labels) for text in tested for sentence in text]
    docs = list(nlp.pipe(_words(nlp, doc) for doc in gold))
    wanted, said = ([[(x.start, x.end, x.label_) for x in doc.ents] for doc in some] for some in (gold, docs))
    scores = score(wanted, said)
    kept = f"joined/{options.task}-{options.system}-{options.seed}.jsonl"
    per_label = {x: score(_only(wanted, x), _only(said, x))["f"] for x in labels}
    return {
        "task": options.task,
        "system": options.system,
        "seed": options.seed,
        "part": "dev" if options.dev else "test",
        **{key: round(value, 2) for key, value in scores.items()},
        "labels": {key: round(value, 2) for key, value in per_label.items()},
        "predictions": keep_run(
            kept,
            answers_of_mentions(wanted, said),
            limit=options.limit,
            dev=options.dev,
            settings={"epochs": options.epochs},
        ),
        "epochs": options.epochs,
        "records": [len(examples), len(gold)],
        "mentions": [sum(len(x.reference.ents) for x in examples), sum(map(len, wanted))],
        "seconds": [round(middle - begin), round(time.perf_counter() - middle)],
        **describe_machine(),
    }


def read_texts(options: argparse.Namespace) -> tuple[list[Text], list[Text]]:
    """The documents to train and to test on: of WikiGold every fourth is the test, of WNUT-17 its own parts."""
    if options.task == "wikigold":
        texts = _read(options.data / "wikigold/CONLL-format/data/wikigold.conll.txt", "conll2003")
        train, test = [x for i, x in enumerate(texts) if i % 4], texts[::4]
    else:
        train = _read(options.data / "wnut17/wnut17train.conll", "wnut")
        test = _read(options.data / "wnut17/emerging.test.annotated", "wnut")
    if options.dev:
        train, test = [x for i, x in enumerate(train) if i % 4], train[::4]
    return train[: options.limit], test[: options.limit]


def read_system(nlp: Any, texts: Sequence[Text], options: argparse.Namespace, folder: Path) -> list[Example]:
    """What a system is trained on. whole: all texts with all labels; half: one half of the texts with all labels;
    joined, plain: both halves, each with half of the labels, which only joined is told."""
    labels = HALVES[options.task]
    everything = tuple(x for half in labels for x in half)
    sources: dict[str, dict[str, Any]] = {}
    for number, own in enumerate(labels):
        if options.system == "half" and number != options.seed % 2:
            continue
        kept = own if options.system in ("joined", "plain") else everything
        docs = [_gold(nlp, sentence, kept) for text in texts[number::2] for sentence in text]
        path = folder / f"{number}.spacy"
        write_docbin(docs, path)
        sources[str(number)] = {"path": path}
        if options.system == "joined":
            sources[str(number)]["entities"] = {"annotates": own}
    return list(make_joined_corpus(sources=sources, seed=options.seed)(nlp))


def _read(path: Path, format: str) -> list[Text]:
    if not path.exists():
        raise SystemExit(f"Expected the data at {path}, but it is not there. Set --data or SPACY_LUKE_SHARED.")
    texts = []
    for document in read_columns(path, format=format):
        ends = [*document.sentence_starts[1:], len(document.words)]
        mentions = [m for layer in document.layers for m in layer]
        texts.append(
            [
                Sentence(document.words[a:b], [(x - a, y - a, label) for x, y, label in mentions if a <= x < b])
                for a, b in zip(document.sentence_starts, ends)
            ]
        )
    return texts


def _gold(nlp: Any, sentence: Sentence, labels: Sequence[str]) -> Doc:
    doc = Doc(nlp.vocab, words=sentence.words, sent_starts=[i == 0 for i in range(len(sentence.words))])
    doc.set_ents([Span(doc, a, b, label=label) for a, b, label in outermost(sentence.mentions) if label in labels])
    return doc


def _words(nlp: Any, gold: Doc) -> Doc:
    return Doc(nlp.vocab, words=[x.text for x in gold], sent_starts=[bool(x.is_sent_start) for x in gold])


def _only(mentions: list[list[tuple[int, int, str]]], label: str) -> list[list[tuple[int, int, str]]]:
    return [[x for x in some if x[2] == label] for some in mentions]


def make_table(results: list[dict[str, Any]]) -> str:
    """Markdown: for each data set and system the mean scores over the seeds, and the distance to the whole."""
    if not results:
        raise SystemExit("There are no results yet; run --all first.")
    whole: dict[str, list[dict[str, Any]]] = {}
    rows: dict[str, list[str]] = defaultdict(list)
    for (task, system), group in group_runs(results, lambda x: (x["task"], x["system"]), [*HALVES, *SYSTEMS]):
        gap = compare_lines(whole.setdefault(task, group), group)
        f1, spread = describe_mean([x["f"] for x in group])
        by_label = " ".join(f"{x} {describe_mean([one['labels'][x] for one in group])[0]}" for x in group[0]["labels"])
        cells = [describe_mean([x[key] for x in group])[0] for key in ("p", "r")]
        seconds = describe_mean([x["seconds"][0] for x in group])[0]
        against = "" if gap is None or group is whole[task] else str(gap)
        given = f"{group[0]['records'][0]:,} / {group[0]['mentions'][0]:,}"
        rows[task].append(
            f"| {task} | {system} | {describe_seeds(group)} | {given} | {f1} | {spread} | {against} | "
            f"{' | '.join(cells)} | {by_label} | {seconds} |"
        )
    sizes = sorted({f"{x['task']} {x['records'][1]:,} / {x['mentions'][1]:,}" for x in results})
    return "\n".join(
        [
            "# Two halves of a data set, each with half of its labels",
            "",
            "Written by `python benchmarks/joined.py --table`; see docs/results/entities.md. F1, precision and",
            "recall in percent, exact span and label, means over the seeds, with the standard deviation of F1. Against",
            "whole: the difference on the same seeds, with its 95 % interval over sentences and seeds.",
            "",
            "| set | system | seeds | sentences / mentions | F1 | sd | against whole | p | r | F1 by label | seconds |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *(row for task in rows for row in rows[task]),
            "",
            f"Sentences / mentions of the test: {'; '.join(sizes)}. Machine: {describe_machines(results)}.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
