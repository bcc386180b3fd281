"""Cases that are tried in forked workers: one that dies or hangs is a failure of its case, and another one goes on."""

import dataclasses
import json
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

TELL = 20.0  # seconds between two words on how it goes


@dataclass
class Outcome:
    """Of one case. tried: things of the kind's unit (a case may hold several). refused: those among them that got a
    clear refusal that is documented. counts: of what the case was, for the table's second half."""

    tried: int = 1
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


class Kind:
    """A kind of attack. unit: what is counted; wanted: how many in a whole run; slow: how many with the slow tests;
    limit: seconds of processor time after which a case hangs, or of none at all; share: of the time of all kinds, in
    minutes of an hour."""

    name = ""
    unit = ""
    wanted = 0
    slow = 0
    limit = 120.0
    share = 1.0

    def shorten(self) -> None:
        """Leave out what takes long to prepare, for the share of the slow tests."""

    def prepare(self, folder: Path) -> None:
        """What all cases need, made once, before any worker is forked."""

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        """Try case `number`. rng: of this case; folder: of this worker, empty."""
        raise NotImplementedError


@dataclass
class Run:
    """What cases first <= number < last of one seed gave. failures: (case, text). mended: (case, commit) of those that
    failed and were repeated since, with the commit at which they did not fail."""

    kind: str
    seed: int
    first: int
    last: int
    tried: int = 0
    refused: int = 0
    seconds: float = 0.0
    jobs: int = 1
    failures: list[Any] = field(default_factory=list)
    mended: list[Any] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    def add(self, number: int, outcome: Outcome) -> None:
        self.tried += outcome.tried
        self.refused += outcome.refused
        self.failures += [[number, text] for text in outcome.failures]
        self.counts = dict(Counter(self.counts) + Counter(outcome.counts))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def try_case(kind: Kind, number: int, seed: int, folder: Path) -> Outcome:
    """A case here, in this process; what it raises is its failure."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        return kind.case(number, random.Random(f"{kind.name} {seed} {number}"), folder)
    except Exception:
        return Outcome(failures=[f"the case raised: {traceback.format_exc()[-3000:]}"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Worker:
    pid: int
    ask: int  # file descriptors
    answer: int
    text: bytes = b""
    number: int | None = None
    since: float = 0.0  # when the case began, or the processor time that it takes was last seen to grow
    spent: float = 0.0  # processor time of the worker and its children, when the case began
    seen: float = 0.0  # the same, last seen


def run_cases(
    kind: Kind,
    *,
    wanted: int,
    seed: int,
    first: int,
    jobs: int,
    deadline: float,
    folder: Path,
    say: Callable[[str], None],
    keep: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Cases from `first` on until so many things are tried, or until the deadline (of time.monotonic).

    keep: is given what there is so far, now and then, so that a run that is killed has told what it did.
    """
    run = Run(kind.name, seed, first, first, jobs=jobs)
    begin, told = time.monotonic(), time.monotonic()
    numbers = iter(range(first, sys.maxsize))
    workers = [_start(kind, seed, folder / str(i)) for i in range(jobs)]
    try:
        while True:
            now = time.monotonic()
            for i, worker in enumerate(workers):
                if worker.number is not None and (hangs := _hangs(worker, kind.limit, now)):
                    _end(worker)
                    run.add(worker.number, Outcome(failures=[hangs]))
                    say(f"{kind.name} {worker.number}: {hangs}")
                    workers[i] = worker = _start(kind, seed, folder / str(i))
                if worker.number is None and run.tried + _expected(run) * _busy(workers) < wanted and now < deadline:
                    worker.number, worker.since = next(numbers), now
                    worker.spent = worker.seen = processor_seconds(worker.pid)
                    run.last = worker.number + 1
                    os.write(worker.ask, f"{worker.number}\n".encode())
            if not _busy(workers):
                break
            ready, _, _ = select.select([x.answer for x in workers if x.number is not None], [], [], 1.0)
            for i, worker in enumerate(workers):
                if worker.answer in ready and (outcome := _read(worker)) is not None:
                    run.add(worker.number, outcome)
                    for text in outcome.failures:
                        say(f"{kind.name} {worker.number}: {text[:1500]}")
                    worker.number = None
                    if worker.pid < 0:  # it died
                        workers[i] = _start(kind, seed, folder / str(i))
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                run.seconds = told - begin
                keep(run)
                say(f"{kind.name}: {run.tried:,} of {wanted:,} {kind.unit}, {len(run.failures)} failed")
    finally:
        for worker in workers:
            _end(worker)
    run.seconds = time.monotonic() - begin
    return run


def _expected(run: Run) -> float:
    """Things that a case tries, about."""
    return run.tried / max(run.last - run.first, 1)


def _hangs(worker: _Worker, limit: float, now: float) -> str:
    """Why a case counts as one that hangs, "" while it goes on: on a full machine a clock on the wall says nothing."""
    if now - worker.since <= limit:
        return ""
    seen = processor_seconds(worker.pid)
    if seen - worker.spent > limit:
        return f"still running after {seen - worker.spent:.0f} s of processor time"
    if seen <= worker.seen:
        return f"waits for something, {limit:.0f} s without any processor time"
    worker.since, worker.seen = now, seen
    return ""


def processor_seconds(session: int) -> float:
    """What the living processes of a session and their children that have ended have used; 0.0 where there is no
    /proc, so that a case then has its limit on the wall."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf8", errors="replace").rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _busy(workers: list[_Worker]) -> int:
    return sum(worker.number is not None for worker in workers)


def _start(kind: Kind, seed: int, folder: Path) -> _Worker:
    ask, answer = os.pipe(), os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = fork()
    if pid:
        os.close(ask[0])
        os.close(answer[1])
        return _Worker(pid, ask[1], answer[0])
    try:
        os.setsid()  # what the case has started ends with it
        os.close(ask[1])
        os.close(answer[0])
        for line in os.fdopen(ask[0]):
            outcome = try_case(kind, int(line), seed, folder)
            os.write(answer[1], json.dumps(dataclasses.asdict(outcome)).encode() + b"\n")
    finally:
        os._exit(0)


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: libraries have threads, which are idle
        pid = os.fork()
    if pid == 0:
        warnings.resetwarnings()  # which are errors in pytest, but not where commands run
        torch.set_num_threads(1)  # OpenMP's own threads are not there in a child
    return pid


def _read(worker: _Worker) -> Outcome | None:
    """An outcome that is there whole; of a worker that is gone, how it ended."""
    some = os.read(worker.answer, 1 << 20)
    worker.text += some
    if worker.text.endswith(b"\n"):
        outcome = Outcome(**json.loads(worker.text))
        worker.text = b""
        return outcome
    if some:
        return None
    _, status = os.waitpid(worker.pid, 0)
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    _close(worker)
    return Outcome(failures=[f"the process ended by {how}"])


def _end(worker: _Worker) -> None:
    if worker.pid < 0:
        return
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)
    _close(worker)


def _close(worker: _Worker) -> None:
    os.close(worker.ask)
    os.close(worker.answer)
    worker.pid = -1


def failing(run: Run) -> Iterator[str]:
    """Each failure that is not mended, with the command that repeats it."""
    mended = {number for number, _ in run.mended}
    for number, text in run.failures:
        if number not in mended:
            yield f"{repeats(run, number)}\n    " + text.replace("\n", "\n    ")


def repeats(run: Run, number: int) -> str:
    """The command that repeats a case."""
    return f"python -m tests.harness --kinds {run.kind} --seed {run.seed} --only {number}"
