"""What `spacy luke tune` and number formats give pipelines of several seeds and data sets: F1 and encoded spans a word.

    python benchmarks/fewer_spans.py --dataset wnut17 --seed 0    # one run
    python benchmarks/fewer_spans.py --all                        # every run that is missing
    python benchmarks/fewer_spans.py --table                      # results/fewer_spans.md

A run trains quality.py's luke_one_way (`spans_per_word` = 0.5), tunes `none_bias` and `proposal_threshold` on the dev
part, and reads the test part with that bias: every proposed span in float32, then those above the tuned threshold in
each format. It appends a line to results/fewer_spans.jsonl. Formats that the chip does not compute are emulated: their
F1 counts, their seconds do not.
"""

import argparse
import logging
import os
import tempfile
import warnings
from collections.abc import Sequence
from statistics import mean
from typing import Any

import proposals
from machine import describe_machine
from measuring import MINILM
from paired import compare_lines, keep
from runs import describe_machines, make_parser, run_as_asked

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
DATA_SETS = ("conll2003", "wnut17", "wikigold", "genia")
SEEDS = (0, 1, 2)
FORMATS = ("float32", "bfloat16")


def main() -> None:
    runs = [{"dataset": name, "seed": seed} for seed in SEEDS for name in DATA_SETS]
    given = ("data", "threads")
    run_as_asked("fewer_spans", read_options(), run=run, runs=runs, given=given, make_table=make_table)


def read_options() -> argparse.Namespace:
    parser = make_parser(__doc__ or "", "fewer_spans")
    parser.add_argument("--dataset", choices=DATA_SETS, default="conll2003")
    return parser.parse_args()


def run(options: argparse.Namespace) -> dict[str, Any]:
    import torch
    from ner_data import DATA_SETS, read_part
    from ner_systems import Settings, batches, make_examples, make_luke

    from spacy_luke.checkpoint.sources import find_source
    from spacy_luke.model.precision import has_bfloat16

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    if options.threads:
        torch.set_num_threads(options.threads)
    data_set = DATA_SETS[options.dataset]
    parts = (data_set.train, data_set.dev, data_set.test)
    train, dev, test = (read_part(options.data, data_set, part)[: options.limit] for part in parts)
    settings = Settings(rate=2e-4)
    system = make_luke(
        "one_way", find_source(MINILM), train, settings=settings, seed=options.seed, nested=data_set.nested
    )
    for batch in batches(len(train), settings=settings, seed=options.seed):
        system.step(batch)
    nlp = system.nlp
    tuned = nlp.get_pipe("luke_ner").tune(make_examples(nlp, dev, nested=data_set.nested), nlp=nlp)
    golds = [example.reference for example in make_examples(nlp, test, nested=data_set.nested)]
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        components = proposals.load_formats(folder, FORMATS)
    rows, threshold = [], tuned["proposal_threshold"]
    for format_, ner in components.items():
        proposals.run(ner, golds[:20], 0.0)  # warm
        for chance in dict.fromkeys((0.0, threshold) if format_ == "float32" else (threshold,)):
            found = proposals.run(ner, golds, chance)
            name = f"fewer_spans/{options.dataset}-{format_}-{'tuned' if chance else 'all'}-{options.seed}.jsonl"
            answers = found.pop("answers")
            kept = None if options.limit else keep(name, answers)
            rows.append({"format": format_, "threshold": chance, "predictions": kept, **found})
    return {
        "dataset": options.dataset,
        "seed": options.seed,
        "tuned": {key: round(value, 4) for key, value in tuned.items()},
        "sentences": [len(train), len(dev), len(test)],
        "words": sum(map(len, golds)),
        "rows": rows,
        "bfloat16": has_bfloat16(torch.device("cpu")),
        **describe_machine(),
    }


# ---- the table


def make_table(results: Sequence[dict[str, Any]]) -> str:
    """Of each data set and format a row: means over the seeds, of what was measured again the last."""
    if not results:
        raise SystemExit("There are no results yet; run with --all first.")
    kept = {(x["dataset"], x["seed"]): x for x in results}
    lines = [
        "# Fewer encoded spans, and number formats",
        "",
        "Written by `python benchmarks/fewer_spans.py --table`: `luke_one_way` of quality.py, with the `none_bias` and",
        "the `proposal_threshold` that `spacy luke tune` finds on the dev part. F1 in percent on the test part, mean",
        "over the seeds. Moved: F1 against all proposed spans in float32 (bfloat16: against float32 with a threshold),",
        "with the 95 % interval over documents and seeds, and of each seed. Speed: processor time of one thread of",
        "this chip beside all spans in float32; bfloat16 has none where the chip emulates it.",
        "",
        "| data | seeds | threshold | format | spans a word | F1 | moved | by seed | speed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in DATA_SETS:
        runs = [kept[name, seed] for seed in SEEDS if (name, seed) in kept]
        if not runs:
            continue
        every = [x["rows"][0] for x in runs]  # all spans in float32
        fewer = {f: [next(r for r in reversed(x["rows"]) if r["format"] == f) for x in runs] for f in FORMATS}
        for format_, rows in (("float32", every), *fewer.items()):
            against = every if format_ == "float32" else fewer["float32"]
            lines.append(describe(name, runs, format_, list(zip(rows, against, every, strict=True))))
    sizes = "; ".join(f"{x['dataset']} {' / '.join(map(str, x['sentences']))}" for x in results if x["seed"] == 0)
    return "\n".join([*lines, "", f"Sentences to train / tune / test: {sizes}.", f"{describe_machines(results)}.", ""])


def describe(name: str, runs: Sequence[dict[str, Any]], format_: str, rows: Sequence[tuple[Any, Any, Any]]) -> str:
    """rows: of each seed the row, the one that it is held against, and the one of all spans in float32."""
    seeds = ", ".join(str(x["seed"]) for x in runs)
    thresholds = ", ".join(dict.fromkeys(f"{own['threshold']:g}" for own, _, _ in rows))
    moved = [own["f"] - other["f"] for own, other, _ in rows]
    first = all(own is other for own, other, _ in rows)
    seeded = [[{**row[i], "seed": x["seed"]} for x, row in zip(runs, rows, strict=True)] for i in (1, 0)]
    gap = None if first else compare_lines(*seeded)
    changes = ["", ""] if gap is None else [gap.describe(digits=2), ", ".join(f"{x:+.2f}" for x in moved)]
    emulated = format_ == "bfloat16" and not all(x["bfloat16"] for x in runs)
    speed = "" if emulated else f"{mean(all_['seconds'] / own['seconds'] for own, _, all_ in rows):.2f}"
    spans, f = (f"{mean(own[key] for own, _, _ in rows):.{n}f}" for key, n in (("spans_per_word", 3), ("f", 2)))
    return f"| {' | '.join([name, seeds, thresholds, format_, spans, f, *changes, speed])} |"


if __name__ == "__main__":
    main()
