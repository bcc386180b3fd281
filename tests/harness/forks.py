"""A function in a forked child: how it ended, what it said, and what it left running."""

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .runner import fork

FAILED = 70  # exit status of a child that raised
SHOWN = 20_000  # last characters of what a child says


@dataclass
class Ended:
    """status: exit status, or the negative signal; said: the end of its output; hung: it was ended after the limit;
    orphans: processes that it left."""

    status: int
    said: str
    seconds: float
    hung: bool = False
    orphans: int = 0

    def describe(self) -> str:
        if self.hung:
            return f"hangs (ended after {self.seconds:.0f} s)"
        return f"signal {signal.Signals(-self.status).name}" if self.status < 0 else f"status {self.status}"


def run_forked(
    function: Callable[[], None],
    *,
    folder: Path,
    limit: float,
    memory: int | None = None,
    file_size: int | None = None,
    after: float | None = None,
) -> Ended:
    """function: what the child does, in `folder`; it may raise SystemExit. limit: seconds. memory, file_size: limits in
    bytes, of memory beside what is used already. after: seconds until it is killed."""
    begin = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    pid = fork()
    if pid == 0:
        _child(function, folder, write, memory, file_size)
    os.close(write)
    os.set_blocking(read, False)
    said = bytearray()
    status, hung = _wait(pid, begin, limit=limit, after=after, read=lambda: _read_all(read, said))
    _read_all(read, said)
    os.close(read)
    seconds = time.monotonic() - begin
    return Ended(status, said.decode("utf8", "replace")[-SHOWN:], seconds, hung, _left(pid))


def _read_all(descriptor: int, said: bytearray) -> None:
    try:
        while some := os.read(descriptor, 1 << 16):
            said += some
    except BlockingIOError:
        return


def _child(function: Callable[[], None], folder: Path, output: int, memory: int | None, file_size: int | None) -> None:
    status = FAILED
    try:
        os.setsid()
        os.chdir(folder)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        sys.stdout = open(1, "w", encoding="utf8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf8", closefd=False)
        _set_limits(memory, file_size)
        function()
        status = 0
    except SystemExit as error:
        code = error.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        status = code if isinstance(code, int) else int(code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def _set_limits(memory: int | None, file_size: int | None) -> None:
    if memory is not None:
        used = int(Path("/proc/self/statm").read_text(encoding="utf8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    if file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))


def _wait(pid: int, begin: float, *, limit: float, after: float | None, read: Callable[[], None]) -> tuple[int, bool]:
    killed = False
    while True:
        read()
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return (-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)), False
        now = time.monotonic() - begin
        if now > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL, True
        if after is not None and not killed and now >= after:
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(0.001 if now < 0.2 else 0.005)


def members(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def _left(session: int, *, patience: float = 3.0) -> int:
    """Processes that are there a while after the one that has started them; they are ended."""
    begin = time.monotonic()
    while left := members(session):
        if time.monotonic() - begin > patience:
            break
        time.sleep(0.05)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(left)
