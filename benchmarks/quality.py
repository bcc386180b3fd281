"""NER quality: luke_ner in both modes against spaCy's `ner` and a plain token classifier, one small encoder for all.

    python benchmarks/quality.py --dataset conll2003 --system luke_one_way --seed 0   # one run
    python benchmarks/quality.py --all                                                # every run that is missing
    python benchmarks/quality.py --table                                              # results/quality.md

A run appends a line to results/quality.jsonl; with --dev it scores the dev part, for choosing settings, and appends to
results/quality_dev.jsonl. docs/results/entities.md says what is compared.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from machine import describe_machine
from measuring import MINILM, data_parser
from paired import answers_of_mentions, compare_lines, count_outermost, find_inner, keep_run, read, score
from runs import describe_machines, describe_seconds, describe_seeds, group_runs, read_lines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
DATA_SETS = ("conll2003", "wnut17", "wikigold", "genia")
SYSTEMS = ("luke_full", "luke_one_way", "luke_mention", "luke_case", "luke_words", "spacy_ner", "token_classifier")
LEFT_OUT = {("wikigold", x) for x in ("luke_full", "spacy_ner", "token_classifier")}
LEFT_OUT |= {("genia", x) for x in ("luke_mention", "luke_case", "luke_words")}
BASELINES = ("luke_words", "luke_one_way")
NESTING = ("token_classifier", "luke_one_way")  # that others are held against where mentions nest
SEEDS = (0, 1, 2)
RATES = dict.fromkeys(SYSTEMS, 2e-4)  # the best of 1e-4 and 2e-4 on CoNLL's dev part; README.md says who was tuned


def main() -> None:
    options = read_options()
    if options.table:
        (RESULTS / "quality.md").write_text(make_table(read_lines(RESULTS / "quality.jsonl")), encoding="utf8")
        print((RESULTS / "quality.md").read_text(encoding="utf8"))
    elif options.all:
        run_missing(options)
    else:
        result = run(options)
        path = RESULTS / ("quality_dev.jsonl" if options.dev else "quality.jsonl")
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--dataset", choices=DATA_SETS, default="conll2003")
    parser.add_argument("--system", choices=SYSTEMS, default="luke_one_way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, help="learning rate of the encoder; default: the one chosen on dev")
    parser.add_argument("--head-multiple", type=float, default=5.0, help="rate of new layers, in rates of the encoder")
    parser.add_argument("--batch", type=int, default=8, help="sentences a step")
    parser.add_argument("--spans-per-word", type=float, default=0.5, help="of luke_one_way")
    parser.add_argument("--max-span-words", type=int, default=8, help="of both luke modes")
    parser.add_argument(
        "--flat-bias", action="store_true", help="of token_classifier: its bias begins at 0, not at shares of tags"
    )
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--train-limit", type=int, help="only the first sentences of the training part (smoke runs)")
    parser.add_argument("--test-limit", type=int, help="only the first sentences of the test part (smoke runs)")
    parser.add_argument("--dev", action="store_true", help="score the dev part instead of the test part")
    parser.add_argument("--all", action="store_true", help="every missing run, seed 0 of everything first")
    parser.add_argument("--table", action="store_true", help="write results/quality.md")
    return parser.parse_args(arguments)


def run(
    options: argparse.Namespace, *, encoder: Path | None = None, layers: int | None = None, folder: str = "quality"
) -> dict[str, Any]:
    """Train once and score once. encoder: a folder; None: MiniLM's. layers: of it, the first ones; None: all. folder:
    of the predictions."""
    import torch
    from ner_data import DATA_SETS, read_part, score
    from ner_systems import SYSTEMS, Settings, batches

    from spacy_luke.checkpoint.sources import find_source

    if options.threads:
        torch.set_num_threads(options.threads)
    encoder = encoder or find_source(MINILM)
    data_set = DATA_SETS[options.dataset]
    train = read_part(options.data, data_set, data_set.train)[: options.train_limit]
    test = read_part(options.data, data_set, data_set.dev if options.dev else data_set.test)[: options.test_limit]
    settings = Settings(
        rate=options.rate or RATES[options.system],
        head_multiple=options.head_multiple,
        epochs=options.epochs,
        batch=options.batch,
        spans_per_word=options.spans_per_word,
        max_span_words=options.max_span_words,
        layers=layers,
        flat_bias=options.flat_bias,
    )
    system = SYSTEMS[options.system](encoder, train, settings=settings, seed=options.seed, nested=data_set.nested)
    start = time.perf_counter()
    for batch in batches(len(train), settings=settings, seed=options.seed):
        system.step(batch)
    train_seconds = time.perf_counter() - start
    start = time.perf_counter()
    found_mentions = system.predict([sentence.words for sentence in test])
    test_seconds = time.perf_counter() - start
    answers = answers_of_mentions([x.mentions for x in test], found_mentions)
    told = {key: x for key, x in asdict(settings).items() if key not in ("layers", "flat_bias") or x}
    kept = f"{folder}/{options.dataset}-{len(train)}-{options.system}-{options.seed}.jsonl"
    kept = keep_run(kept, answers, limit=options.test_limit, dev=options.dev, settings=told)
    train_words, test_words = (sum(len(x.words) for x in part) for part in (train, test))
    return {
        "dataset": options.dataset,
        "system": options.system,
        "seed": options.seed,
        "part": "dev" if options.dev else "test",
        **{k: round(v, 2) for k, v in score([x.mentions for x in test], found_mentions).items()},
        "settings": told,
        "sentences": [len(train), len(test)],
        "seconds": [round(train_seconds, 1), round(test_seconds, 1)],
        "words_per_second": [round(train_words * options.epochs / train_seconds), round(test_words / test_seconds)],
        "predictions": kept,
        **describe_machine(),
    }


def run_missing(options: argparse.Namespace) -> None:
    """Each run in a process of its own; one whose predictions are kept is not repeated."""
    done = {key_of(x) for x in read_lines(RESULTS / "quality.jsonl") if x.get("predictions")}
    wanted = [(s, d, y) for s in SEEDS for d in DATA_SETS for y in SYSTEMS if (d, y) not in LEFT_OUT]
    for number, (seed, dataset, system) in enumerate(wanted, 1):
        if (dataset, system, seed, options.epochs, options.batch, RATES[system]) in done:
            continue
        print(f"run {number} of {len(wanted)}: {dataset} {system} seed {seed}", flush=True)
        command = [sys.executable, __file__, "--dataset", dataset, "--system", system, "--seed", str(seed)]
        command += ["--epochs", str(options.epochs), "--batch", str(options.batch), "--data", str(options.data)]
        command += ["--threads", str(options.threads)] if options.threads else []
        subprocess.run(command, check=True)


def key_of(result: dict[str, Any]) -> tuple:
    settings = result["settings"]
    return result["dataset"], result["system"], result["seed"], settings["epochs"], settings["batch"], settings["rate"]


def row_of(result: dict[str, Any]) -> tuple[str, str, str]:
    """Of the table: runs of one have the same settings and training."""
    settings = json.dumps({**result["settings"], "train": result["sentences"][0]})
    return result["dataset"], result["system"], settings


def make_table(results: list[dict[str, Any]]) -> str:
    """Markdown: mean and standard deviation over the seeds, with times."""
    if not results:
        raise SystemExit("There are no results yet; run with --all first.")
    groups = dict(group_runs(results, key=row_of, order=(*DATA_SETS, *SYSTEMS)))
    lines = [
        "# NER quality",
        "",
        "Written by `python benchmarks/quality.py --table`; see docs/results/entities.md. F1, precision and recall in",
        "percent, exact span and label; mean over the seeds and standard deviation (n - 1). Above: the difference on",
        "the same seeds, with its 95 % interval over sentences and seeds. On GENIA spaCy's ner cannot nest and had far",
        "too few steps: the figure of an untrained system.",
        "",
        f"| data | trained on | system | F1 | ± | {' | '.join(f'above {x}' for x in BASELINES)} | P | R | seeds | "
        "rate | batch | epochs | train s | test s | words/s train | words/s test |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (dataset, system, settings), group in groups.items():
        gaps = [compare_lines(groups.get((dataset, base, settings), []), group) for base in BASELINES]
        above = ["" if gap is None or base == system else str(gap) for base, gap in zip(BASELINES, gaps, strict=True)]
        f1 = [x["f"] for x in group]
        deviation = f"{stdev(f1):.2f}" if len(f1) > 1 else ""
        numbers = [f"{mean(x[k] for x in group):.2f}" for k in ("f", "p", "r")]
        rates = [f"{mean(x['words_per_second'][i] for x in group):.0f}" for i in (0, 1)]
        cells = [dataset, f"{group[0]['sentences'][0]:,}", system, numbers[0], deviation, *above, *numbers[1:]]
        cells += [describe_seeds(group)]
        cells += [f"{group[0]['settings']['rate']:g}"]
        cells += [str(group[0]["settings"][name]) for name in ("batch", "epochs")]
        lines.append("| " + " | ".join([*cells, *describe_seconds(group), *rates]) + " |")
    lines += describe_nested(groups)
    sizes = sorted({f"{x['dataset']} {x['sentences'][0]:,} / {x['sentences'][1]:,}" for x in results})
    lines += ["", f"Sentences to train / test: {'; '.join(sizes)}. Machine: {describe_machines(results)}.", ""]
    return "\n".join(lines)


def describe_nested(groups: dict[tuple[str, str, str], list[dict[str, Any]]]) -> list[str]:
    """A table of what is nested in GENIA."""
    lines = [
        "",
        "## Nested mentions of GENIA",
        "",
        "Gold mentions inside of others that are found, and predictions inside of others, of each seed; F1 of the",
        "mentions that are inside of no other, of gold and predictions, with the same differences.",
        "",
        f"| system | found | inside of others | outermost, F1 | ± | {' | '.join(f'above {x}' for x in NESTING)} |",
        "|---|---|---|---|---|" + "---|" * len(NESTING),
    ]
    for (dataset, system, settings), group in groups.items():
        if dataset != "genia":
            continue
        runs = [read(x["predictions"]) for x in group]
        inner = [[find_inner(gold) for gold, _ in run] for run in runs]
        of = sum(map(len, inner[0]))
        right = [sum(len(a & set(found)) for a, (_, found) in zip(x, run)) for x, run in zip(inner, runs)]
        inside = [sum(len(find_inner(found)) for _, found in run) for run in runs]
        f1 = [float(score(count_outermost(run).sum(0))) for run in runs]
        gaps = [
            compare_lines(groups.get((dataset, base, settings), []), group, counts=count_outermost) for base in NESTING
        ]
        cells = [system, *(", ".join(map(str, x)) for x in (right, inside)), f"{mean(f1):.2f}", f"{stdev(f1):.2f}"]
        cells[1] += f" of {of}"
        cells += ["" if gap is None or base == system else str(gap) for base, gap in zip(NESTING, gaps, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    main()
