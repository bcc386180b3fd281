"""What the quality benchmarks share: result files of one line a run, and training in shuffled batches."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The results of a file, none where there is no file."""
    return [json.loads(x) for x in path.read_text(encoding="utf8").splitlines() if x] if path.exists() else []


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
