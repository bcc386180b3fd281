"""F1 and speed of luke_ner by the length of Docs: 1 to 200 sentences, on sets that training never saw.

    python benchmarks/lengths.py train --texts sentences --seed 0 --cache DIR   # one training
    python benchmarks/lengths.py score --texts sentences --seed 0 --cache DIR   # its lines of results/lengths.jsonl
    python benchmarks/lengths.py table                                          # results/lengths.md

docs/results/entities.md says what is compared.
"""

import argparse
import os
import random
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import spacy
import torch
from length_data import SETS, Text, divide, join, read_training, take_texts
from machine import describe_machine
from measuring import MINILM, data_parser
from ner_data import Mention, score
from paired import answers_of_mentions, compare_lines, keep
from runs import add_line, describe_machines, read_lines
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import warmup_linear

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.checkpoint.sources import find_source
from spacy_luke.readers.lengths import MixedLengths

RESULTS = Path(__file__).parent / "results"
SIZES = (1, 2, 5, 10, 40, 100, 200)  # sentences of a Doc
RATE, HEAD_MULTIPLE, WARMUP, DROPOUT = 2e-4, 5.0, 0.1, 0.1
BATCH_WORDS = 250  # of a step
EPOCHS = 2
MIXED = {"sentences": 0.7, "joined": 0.3, "max_words": 100}


SYSTEMS = {  # texts of the training, max_window and context of the predictions
    "before": ("sentences", 512, "document"),
    "window": ("sentences", None, "document"),
    "after": ("mixed", None, "document"),
    "sentence": ("sentences", None, "sentence"),
}
SEEDS = (0, 1, 2)


def main() -> None:
    options = read_options()
    if options.do == "table":
        text = make_table(read_lines(RESULTS / "lengths.jsonl"))
        (RESULTS / "lengths.md").write_text(text, encoding="utf8")
        print(text)
        return
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message=".*max_window.*")
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner", config={"max_span_words": 8})
    folder = options.cache / f"{options.texts}-{options.seed}"
    if not folder.exists():
        seconds = train(nlp, read_training(options.data), mixed=options.texts == "mixed", seed=options.seed)
        print(f"{options.texts}, seed {options.seed}: {seconds:.0f} CPU seconds")
        folder.parent.mkdir(parents=True, exist_ok=True)
        nlp.to_disk(folder)
    if options.do == "score":
        for system in options.systems.split(","):
            texts, window, context = SYSTEMS[system]
            if texts == options.texts:
                measure(folder, options, system=system, window=window, context=context)


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("do", choices=["train", "score", "table"])
    parser.add_argument("--texts", choices=["sentences", "mixed"], default="sentences")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument(
        "--part", choices=["dev", "test"], default="test", help="dev: for choosing settings, prints only"
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--limit", type=int, default=300, help="sentences of each set")
    parser.add_argument("--window", type=int, help="max_window instead of the systems'; prints only")
    parser.add_argument("--cache", type=Path, default=Path("training/lengths"), help="folder of the trained pipelines")
    return parser.parse_args()


def train(nlp: Any, texts: Sequence[Text], *, mixed: bool, seed: int) -> float:
    """EPOCHS passes over the texts: each sentence a Doc of its own, or Docs of mixed lengths. RETURNS: seconds of
    CPU."""
    ner = nlp.get_pipe("luke_ner")
    docs = [doc for text in texts for doc in _gold(nlp, text, len(text) if mixed else 1)]
    folder = find_source(MINILM)
    fix_random_seed(seed)
    ner.initialize(
        lambda: [_example(nlp, doc) for doc in docs],
        nlp=nlp,
        labels=["LOC", "ORG", "PER"],
        weights=lambda: read_checkpoint(folder, entities="special", entity_start="words", seed=seed),
        seed=seed,
    )
    lengths = MixedLengths(**MIXED, seed=seed)
    steps: list[list[Doc]] = []
    for epoch in range(EPOCHS):
        part = list(lengths(docs)) if mixed else list(docs)
        random.Random(f"{seed}-{epoch}").shuffle(part)
        steps += _batches(part)
    optimizer = make_adamw(
        warmup_linear(RATE, int(WARMUP * len(steps)), len(steps) + 1), group_rates={"^head": HEAD_MULTIPLE}
    )
    start = time.process_time()
    for step, batch in enumerate(steps):
        losses: dict[str, float] = {}
        ner.update([_example(nlp, doc) for doc in batch], drop=DROPOUT, sgd=optimizer, losses=losses)
        optimizer.step_schedules()
        if step % 50 == 0:
            print(step, len(steps), round(losses["luke_ner"], 3), round(time.process_time() - start), flush=True)
    return time.process_time() - start


def measure(folder: Path, options: argparse.Namespace, *, system: str, window: int | None, context: str) -> None:
    path = RESULTS / "lengths.jsonl"
    known = {(x["system"], x["seed"], x["set"], x["size"]) for x in read_lines(path)}
    nlp = spacy.load(folder)
    ner = nlp.get_pipe("luke_ner")
    ner.cfg["max_window"] = options.window or window
    ner.cfg["context"] = context
    for name in options.sets.split(","):
        texts = take_texts(getattr(SETS[name], options.part)(options.data), options.limit)
        sentences = [sentence for text in texts for sentence in text]
        for size in map(int, options.sizes.split(",")):
            if options.part == "test" and (system, options.seed, name, size) in known:
                continue
            gold = _gold(nlp, sentences, size)
            docs = [_words(nlp, doc) for doc in gold]
            start = time.process_time()
            found = [_mentions(doc) for doc in nlp.pipe(docs, batch_size=64)]
            seconds = time.process_time() - start
            kept = f"lengths/{system}-{options.seed}-{name}-{size}.jsonl"
            of_texts = [divide(texts, [(len(x), y) for x, y in zip(gold, z)]) for z in (map(_mentions, gold), found)]
            whole = options.part == "test" and not options.window
            result = {
                "system": system,
                "seed": options.seed,
                "set": name,
                "size": size,
                **{k: round(v, 2) for k, v in score([_mentions(doc) for doc in gold], found).items()},
                "window": ner.window_size(learning=False),
                "sentences": len(sentences),
                "words": sum(map(len, gold)),
                "mentions": sum(len(doc.ents) for doc in gold),
                "seconds": round(seconds, 2),
                "predictions": keep(kept, answers_of_mentions(*of_texts)) if whole else None,
                **describe_machine(),
            }
            if whole:
                add_line(path, result)
            else:
                print(*(result[x] for x in ("system", "window", "set", "size", "f", "p", "r", "seconds")), flush=True)


def _mentions(doc: Doc) -> list[Mention]:
    return [(x.start, x.end, x.label_) for x in doc.ents]


def make_table(results: Sequence[dict[str, Any]]) -> str:
    """Markdown: for each set and system the mean F1 over the seeds by sentences a Doc, and speed against sentences
    alone."""
    if not results:
        raise SystemExit("There are no results yet; run score first.")
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for x in results:
        groups[x["set"], x["system"], x["size"]].append(x)
    lines = [
        "# F1 of luke_ner by the length of Docs",
        "",
        "Written by `python benchmarks/lengths.py table`; see docs/results/entities.md. F1 in percent, exact span and",
        "label, mean over the seeds; below it words a second of CPU time, as a share of that of sentences alone. Above",
        "others: the same seeds, with the 95 % interval over texts and seeds.",
        "",
        f"| set | system | seeds | window | {' | '.join(map(str, SIZES))} | least, against 1 | 200 above 1 | "
        "200 above `before` |",
        "|---|---|---|---|" + "---|" * (len(SIZES) + 3),
    ]
    for name in SETS:
        for system in SYSTEMS:
            cells = {size: groups[name, system, size] for size in SIZES if groups.get((name, system, size))}
            if len(cells) < len(SIZES):
                continue
            f1 = {size: mean(x["f"] for x in cell) for size, cell in cells.items()}
            seconds = {size: mean(x["seconds"] for x in cell) for size, cell in cells.items()}
            seeds = sorted({x["seed"] for cell in cells.values() for x in cell})
            windows = sorted({x["window"] for x in cells[1]})
            head = [name, system, ", ".join(map(str, seeds)), "-".join(map(str, windows[:: max(len(windows) - 1, 1)]))]
            shown = [f"{f1[size]:.1f}" for size in SIZES]
            shown += [f"{min(f1.values()) - f1[1]:+.1f}", _gap(cells[1], cells[SIZES[-1]])]
            shown.append("" if system == "before" else _gap(groups[name, "before", SIZES[-1]], cells[SIZES[-1]]))
            lines.append(f"| {' | '.join([*head, *shown])} |")
            shares = [f"{seconds[1] / seconds[size]:.2f}" for size in SIZES]
            lines.append(f"| | speed | | | {' | '.join(shares)} | | | |")
    sizes = {x["set"]: f"{x['set']} {x['sentences']} / {x['words']:,} / {x['mentions']}" for x in results}
    lines += [
        "",
        f"Sentences / words / mentions: {'; '.join(sizes.values())}. Machine: {describe_machines(results)}.",
        "",
    ]
    return "\n".join(lines)


def _gap(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> str:
    gap = compare_lines(first, second)
    return "equal" if gap is not None and gap.low == gap.high == 0 else str(gap)


def _batches(docs: Sequence[Doc]) -> Iterator[list[Doc]]:
    """As many words a step, whatever the Docs' lengths; a longer Doc is a step of its own."""
    held: list[Doc] = []
    for doc in docs:
        if held and sum(map(len, held)) + len(doc) > BATCH_WORDS:
            yield held
            held = []
        held.append(doc)
    yield held


def _gold(nlp: Any, sentences: Sequence[Any], size: int) -> list[Doc]:
    docs = []
    for words, starts, mentions in join(sentences, size):
        doc = Doc(nlp.vocab, words=words, sent_starts=[i in set(starts) for i in range(len(words))])
        doc.set_ents([Span(doc, a, b, label=label) for a, b, label in mentions])
        docs.append(doc)
    return docs


def _example(nlp: Any, gold: Doc) -> Example:
    return Example(_words(nlp, gold), gold)


def _words(nlp: Any, gold: Doc) -> Doc:
    return Doc(nlp.vocab, words=[x.text for x in gold], sent_starts=[bool(x.is_sent_start) for x in gold])


if __name__ == "__main__":
    main()
