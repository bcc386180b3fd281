"""What the quality benchmarks share: result files of one line a run, and training in shuffled batches."""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from machine import describe_machine
from measuring import data_parser

RESULTS = Path(__file__).parent / "results"


def make_parser(description: str, name: str) -> argparse.ArgumentParser:
    """The options of all quality benchmarks. name: of the files of results."""
    parser = data_parser(description)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="records of each part (smoke runs)")
    parser.add_argument("--all", action="store_true", help="every missing run, seed 0 of everything first")
    parser.add_argument("--table", action="store_true", help=f"write results/{name}.md")
    return parser


def run_as_asked(
    name: str,
    options: argparse.Namespace,
    *,
    run: Callable[[argparse.Namespace], dict[str, Any]],
    runs: Sequence[dict[str, Any]],
    given: Sequence[str],
    make_table: Callable[[list[dict[str, Any]]], str],
    keeps: bool = False,
) -> None:
    """Write the table, make every missing run of `runs` (see `run_missing`), or add one run's line to the results.

    given: names of options that each run gets. keeps: a run whose predictions were not kept is missing.
    """
    if options.table:
        table = RESULTS / f"{name}.md"
        table.write_text(make_table(read_lines(RESULTS / f"{name}.jsonl")), encoding="utf8")
        print(table.read_text(encoding="utf8"))
    elif options.all:
        done = [x for x in read_lines(RESULTS / f"{name}.jsonl") if x.get("predictions") or not keeps]
        run_missing(sys.argv[0], runs, done, options={key: getattr(options, key) for key in given})
    else:
        add_line(RESULTS / (f"{name}_dev.jsonl" if getattr(options, "dev", False) else f"{name}.jsonl"), run(options))


def start(options: argparse.Namespace) -> None:
    """Threads and seed of a run."""
    import torch
    from thinc.api import fix_random_seed

    if options.threads:
        torch.set_num_threads(options.threads)
    fix_random_seed(options.seed)


def predict(nlp: Any, examples: Sequence[Any]) -> list[Any]:
    """Run a pipeline, or a component, over the predicted Docs of examples, which take what comes out."""
    for example, doc in zip(examples, list(nlp.pipe(example.predicted for example in examples)), strict=True):
        example.predicted = doc
    return list(examples)


def make_result(
    options: argparse.Namespace, scores: dict[str, Any], *, task: str, score: str, **others: Any
) -> dict[str, Any]:
    """A line of results. score: the name of the main one of the scores."""
    return {
        "task": task,
        "system": options.system,
        "seed": options.seed,
        "part": "dev" if options.dev else "test",
        "f": round(100 * scores[score], 2),
        "scores": {k: round(100 * v, 2) for k, v in scores.items() if isinstance(v, float)},
        **others,
        **describe_machine(),
    }


def group_runs(
    results: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], tuple[Hashable, ...]], order: Sequence[Hashable]
) -> list[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """Results of one key together, the last one of each seed, by seed; keys by the place of their parts in `order`,
    which may lack the last part."""
    groups: dict[tuple[Hashable, ...], dict[int, dict[str, Any]]] = {}
    for x in results:
        groups.setdefault(key(x), {})[x["seed"]] = x
    rank = {name: i for i, name in enumerate(order)}
    ordered = sorted(groups.items(), key=lambda g: [(rank.get(part, len(rank)), str(part)) for part in g[0]])
    return [(found, [of_seed[seed] for seed in sorted(of_seed)]) for found, of_seed in ordered]


def describe_mean(values: Sequence[float]) -> list[str]:
    """Two cells: the mean, and the standard deviation (n - 1), "" of one value."""
    return [f"{mean(values):.1f}", f"{stdev(values):.1f}" if len(values) > 1 else ""]


def describe_seeds(group: Sequence[dict[str, Any]]) -> str:
    return ", ".join(str(x["seed"]) for x in group)


def describe_seconds(group: Sequence[dict[str, Any]]) -> list[str]:
    """Two cells: mean seconds of training and of testing."""
    return [f"{mean(x['seconds'][i] for x in group):.0f}" for i in (0, 1)]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The results of a file, none where there is no file."""
    return [json.loads(x) for x in path.read_text(encoding="utf8").splitlines() if x] if path.exists() else []


def find_lines(name: str, **values: Any) -> list[dict[str, Any]]:
    """Of another benchmark's results those with these values."""
    return [x for x in read_lines(RESULTS / f"{name}.jsonl") if all(x[key] == y for key, y in values.items())]


def add_line(path: Path, result: dict[str, Any]) -> None:
    with path.open("a", encoding="utf8") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps(result), flush=True)


def schedule(rate: float, steps: int) -> Any:
    """Warm-up over a tenth of the steps, then linearly down."""
    from thinc.api import warmup_linear

    return warmup_linear(rate, max(1, steps // 10), steps + 1)


def batches(docs: Sequence[Any], *, epochs: int, size: int, seed: int) -> Iterator[list[Any]]:
    order = random.Random(seed)
    for _ in range(epochs):
        shuffled = order.sample(list(docs), len(docs))
        yield from (shuffled[a : a + size] for a in range(0, len(shuffled), size))


def run_missing(
    script: str, runs: Sequence[dict[str, Any]], done: Sequence[dict[str, Any]], *, options: dict[str, Any]
) -> None:
    """Each run in a process of its own; one whose values are those of a result in `done` is not repeated.

    runs: options of the script by name, the same names in each; options: those of every run, None for its default.
    """
    known = {tuple(x[name] for name in runs[0]) for x in done}
    for run in runs:
        if tuple(run.values()) in known:
            continue
        print(", ".join(f"{name} {value}" for name, value in run.items()), flush=True)
        given = {name: value for name, value in {**run, **options}.items() if value is not None}
        subprocess.run([sys.executable, script, *(str(x) for n, v in given.items() for x in (f"--{n}", v))], check=True)


def describe_runs(results: Sequence[dict[str, Any]]) -> str:
    """A line for the end of a table: sizes and machines."""
    sizes = sorted({f"{x['task']} {x['records'][0]:,} / {x['records'][1]:,}" for x in results})
    return f"Records to train / test: {'; '.join(sizes)}. Machine: {describe_machines(results)}."


def describe_machines(results: Sequence[dict[str, Any]]) -> str:
    return "; ".join(sorted({f"{x['chip']}, {x['threads']} threads, torch {x['versions']['torch']}" for x in results}))
