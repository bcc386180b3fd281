"""Other encoders in the place of MiniLM: NER, typing, relations and linking, fine-tuned alike.

    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --task wikigold --rate 5e-5
    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --layers 8 --task open_entity
    python benchmarks/encoders.py --encoder encoders/all-mpnet-base-v2 --task linking --cache kb-mpnet
    python benchmarks/encoders.py --table                                                         # results/encoders.md

What is compared is that of quality.py, quality_tasks.py and linking.py: data, batches, epochs, schedules, heads. Their
own lines are MiniLM's side of the table. What follows after `--` goes to these. A run appends a line to
results/encoders.jsonl; --limit is for smoke runs, which append nothing.
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from link_answers import count_links
from measuring import MINILM, RESULTS, encoder_parser, file_name_of, name_of
from paired import compare_lines, counts_of
from runs import add_line, describe_machines, describe_mean, describe_seeds, group_runs, read_lines

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
        yield as_line(result)


def read_minilm() -> list[dict[str, Any]]:
    """MiniLM's lines of the tasks' own benchmarks, as this benchmark's."""
    lines = [{**x, "task": x["dataset"]} for x in read_lines(RESULTS / "quality.jsonl")]
    lines += read_lines(RESULTS / "quality_tasks.jsonl")
    lines += [as_line(x) for x in read_lines(RESULTS / "linking.jsonl")]
    return [{**x, "encoder": MINILM, "layers": None} for x in lines if x["task"] in SYSTEMS]


def as_line(result: dict[str, Any]) -> dict[str, Any]:
    """Of linking's."""
    return {**result, "task": "linking", "f": result["accuracy"], "system": f"{result['system']} {result['inference']}"}


def key_of(line: dict[str, Any]) -> tuple[str, ...]:
    """What two encoders have in common: the task and its settings, but for the rate and the layers."""
    settings = {key: value for key, value in line["settings"].items() if key not in ("rate", "layers")}
    sizes = line.get("sentences") or line.get("records")  # linking takes all
    return line["task"], line["part"], line["system"], json.dumps([settings, sizes])


def make_table(results: list[dict[str, Any]]) -> str:
    """Markdown: means over the seeds, and what an encoder has above MiniLM."""
    if not results:
        raise SystemExit("There are no results yet; run a task first.")
    asked = {key_of(x) for x in results}
    minilm = [x for x in read_minilm() if key_of(x) in asked]
    groups = group_runs(
        [*results, *minilm],
        lambda x: (*key_of(x), x["encoder"], x["layers"], x["settings"]["rate"]),
        order=(*SYSTEMS, *(x["encoder"] for x in results)),
    )
    baseline = {key[:4]: group for key, group in groups if key[4] == MINILM}
    lines = [
        "# Encoders",
        "",
        "Written by `python benchmarks/encoders.py --table`: the same benchmarks with other encoders. Percent, mean",
        "and standard deviation (n - 1): NER exact F1, open_entity loose micro F1, semeval the official macro F1,",
        "linking accuracy by part. MiniLM's lines are those of quality.py, quality_tasks.py and linking.py. Above: the",
        "same seeds, with the 95 % interval over documents and seeds. Only rates and layers differ; no rate was tuned.",
        "",
        "| task | part | system | encoder | layers | rate | score | ± | above MiniLM | seeds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (*key, encoder, layers, rate), group in groups:
        task, part, system, _ = key
        counts = count_links if task == "linking" else counts_of(task)
        gap = None if encoder == MINILM else compare_lines(baseline.get(tuple(key), []), group, counts=counts)
        cells = [task, part, system, encoder, str(layers or "all"), f"{rate:g}"]
        cells += [*describe_mean([x["f"] for x in group]), "" if gap is None else str(gap), describe_seeds(group)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines([*results, *minilm])}.", ""])


if __name__ == "__main__":
    main()
