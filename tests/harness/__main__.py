"""The command. Each kind runs alone or with others; what several goes give adds up in the results."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from .kinds import KINDS
from .runner import Kind, Run, failing, repeats, run_cases, try_case
from .table import RESULTS, describe, make_table, read_runs, write_runs


def main(arguments: Sequence[str]) -> int:
    given = _parser().parse_args(arguments)
    names = list(KINDS) if given.kinds is None else given.kinds.split(",")
    if wrong := [name for name in names if name not in KINDS]:
        sys.exit(f"Unknown kinds {wrong}: expected some of {', '.join(KINDS)}.")
    kinds = [KINDS[name]() for name in names]
    folder = Path(tempfile.mkdtemp(prefix="harness"))
    try:
        if given.only is not None:
            return _repeat(kinds, given, folder)
        return _again(kinds, given, folder) if given.again else _run(kinds, given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.harness", description=__doc__)
    parser.add_argument("--kinds", help=f"some of {','.join(KINDS)}; all where it is not given")
    parser.add_argument(
        "--minutes", type=float, help="for all kinds together, each its share; what is not reached is said"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this case alone, as a failure names it; nothing is written")
    parser.add_argument("--again", action="store_true", help="repeat what failed; the table says what fails no more")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these kinds")
    parser.add_argument("--output", type=Path, default=RESULTS / "harness.json", help="results, and a table beside it")
    for name, kind in KINDS.items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"{kind.unit} to try in all ({kind.wanted:,})")
    return parser


def _repeat(kinds: list[Kind], given: argparse.Namespace, folder: Path) -> int:
    (kind,) = kinds
    _prepare(kind, folder)
    outcome = try_case(kind, given.only, given.seed, folder / "case")
    print(outcome)
    return len(outcome.failures)


def _again(kinds: list[Kind], given: argparse.Namespace, folder: Path) -> int:
    """Each case of the results that failed, with today's code and what a case draws today."""
    runs, failed = read_runs(given.output), 0
    for kind in kinds:
        cases = [(run, number) for run in runs if run.kind == kind.name for number in _open_cases(run)]
        if cases:
            _prepare(kind, folder)
        for run, number in cases:
            outcome = try_case(kind, number, run.seed, folder / kind.name / "case")
            _say(f"{repeats(run, number)}: {'; '.join(outcome.failures)[:1500] or 'fails no more'}")
            failed += len(outcome.failures)
            if not outcome.failures:
                run.mended.append([number, describe()["commit"]])
                write_runs(given.output, runs, _all(kinds))
    return 1 if failed else 0


def _open_cases(run: Run) -> list[int]:
    return sorted({number for number, _ in run.failures} - {number for number, _ in run.mended})


def _run(kinds: list[Kind], given: argparse.Namespace, folder: Path) -> int:
    runs = [] if not given.output.exists() else read_runs(given.output)
    if given.fresh:
        runs = [run for run in runs if run.kind not in {kind.name for kind in kinds}]
    begin, failed = time.monotonic(), 0
    for i, kind in enumerate(kinds):
        done = [run for run in runs if run.kind == kind.name]
        wanted = getattr(given, kind.name)
        wanted = (kind.wanted if wanted is None else wanted) - sum(run.tried for run in done)
        if wanted <= 0:
            continue
        _prepare(kind, folder)
        first = max((run.last for run in done if run.seed == given.seed), default=0)
        deadline = float("inf")
        if given.minutes is not None:  # its share of the time that is left
            left = begin + 60 * given.minutes - time.monotonic()
            deadline = time.monotonic() + max(left, 0) * kind.share / sum(x.share for x in kinds[i:])
        options = {"jobs": given.jobs, "deadline": deadline, "folder": folder / kind.name / "workers", "say": _say}
        keep = partial(keep_runs, given.output, runs, _all(kinds))
        run = run_cases(kind, wanted=wanted, seed=given.seed, first=first, keep=keep, **options)
        failed += len(run.failures)
        for text in failing(run):
            _say(text)
        keep(run)
        runs.append(run)
    print(make_table(runs, _all(kinds)))
    return 1 if failed else 0


def keep_runs(path: Path, runs: list[Run], kinds: list[Kind], run: Run) -> None:
    """Write the runs and one that is under way."""
    run.machine = run.machine or describe()
    write_runs(path, [*runs, run], kinds)


def _prepare(kind: Kind, folder: Path) -> None:
    place = folder / kind.name / "made"
    place.mkdir(parents=True)
    kind.prepare(place)


def _all(kinds: Sequence[Kind]) -> list[Kind]:
    own = {kind.name: kind for kind in kinds}
    return [own.get(name) or make() for name, make in KINDS.items()]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
