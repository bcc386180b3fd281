"""Hostile files: each is read by a command in a child with limits of time and memory, and ends in one message or does
no harm.

An audit hook in the child sees what is run, connected to, or written outside the working folder.
"""

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .forks import FAILED, run_forked
from .inputs import make_inputs
from .runner import Kind, Outcome

SECONDS, MEMORY = 40.0, 3 << 30
RUN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "pty.spawn",
    "socket.connect",
    "socket.bind",
)
CHANGE = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.symlink",
    "os.link",
    "os.truncate",
    "os.chmod",
    "os.chown",
)
HARM = "HARM DONE: "
Make = Callable[
    [Path, random.Random], Sequence[str]
]  # writes files in the folder and gives the arguments of `spacy luke`


@dataclass(frozen=True)
class Attack:
    """family: what the table counts it as; refused: whether it must be (otherwise it may also do no harm)."""

    family: str
    name: str
    make: Make
    refused: bool = False


class HostileKind(Kind):
    name, unit, wanted, slow, limit, share = "hostile", "files", 600, 90, 120.0, 5

    def prepare(self, folder: Path) -> None:
        from .hostile_checkpoints import checkpoint_attacks
        from .hostile_data import data_attacks
        from .hostile_pages import page_attacks

        self.place = make_inputs(folder / "inputs")
        families: dict[str, list[Attack]] = {}
        for attack in (*checkpoint_attacks(), *data_attacks(), *page_attacks()):
            families.setdefault(attack.family, []).append(attack)
        self.attacks = list(_in_turn(list(families.values())))

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        attack = self.attacks[number % len(self.attacks)]
        work = folder / "work"
        work.mkdir()
        arguments = attack.make(work, rng)
        outcome = Outcome(counts={attack.family: 1})
        ended = run_forked(lambda: self._run(arguments, work), folder=work, limit=SECONDS, memory=MEMORY)
        say = f"{attack.family}, {attack.name}: "
        if ended.hung or ended.status < 0 or ended.orphans:
            outcome.failures.append(f"{say}{ended.describe()}, {ended.orphans} orphans: {ended.said[-600:]}")
        elif ended.status == FAILED or "Traceback (most" in ended.said or "should have been found" in ended.said:
            outcome.failures.append(f"{say}no message of ours: {ended.said[-1500:]}")
        elif ended.status == 0 and attack.refused:
            outcome.failures.append(f"{say}it is accepted: {ended.said[-600:]}")
        elif "too little memory" in ended.said:
            outcome.failures.append(f"{say}the memory is taken before it is refused: {ended.said[-600:]}")
        if HARM in ended.said:
            outcome.failures.append(f"{say}{ended.said[ended.said.index(HARM) :][:400]}")
        if any(folder.glob("canary*")) or Path(tempfile.gettempdir(), "harness_canary").exists():
            outcome.failures.append(f"{say}something is written outside the folder")
        outcome.refused = int(ended.status not in (0, FAILED) and not outcome.failures)
        return outcome

    def _run(self, arguments: Sequence[str], work: Path) -> None:
        from spacy.cli._util import app

        import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)

        torch.set_num_threads(1)
        _guard(work)
        if callable(arguments):
            arguments(self.place)
            return
        filled = [x.replace("PLACE", str(self.place)) for x in arguments]
        app(["luke", *filled], prog_name="spacy", standalone_mode=True)


def _guard(work: Path) -> None:
    """Say what is done that no reader of files should do."""
    allowed = (
        str(work),
        tempfile.gettempdir() + "/tmp",
        tempfile.gettempdir() + "/.spacy_luke",
        "/dev/",
        str(Path.home() / ".cache"),
    )

    def hook(event: str, arguments: Any) -> None:
        if event in RUN and "ldconfig" not in repr(arguments) and "uname" not in repr(arguments):
            os.write(1, f"{HARM}{event} {arguments!r:.200}\n".encode())
        elif event in CHANGE or (event == "open" and _writes(arguments)):
            path = arguments[0]
            path = os.path.abspath(os.fspath(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
            path = path.decode("utf8", "replace") if isinstance(path, bytes) else path
            if path and not path.startswith(allowed) and "__pycache__" not in path:
                os.write(1, f"{HARM}{event} {path[:200]}\n".encode())

    sys.addaudithook(hook)


def _writes(arguments: Any) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(x in mode for x in "wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _in_turn(groups: list[list[Attack]]) -> Iterator[Attack]:
    """One of each group after the other, so that few cases are of many families."""
    longest = max(map(len, groups))
    for i in range(longest):
        yield from (group[i] for group in groups if i < len(group))


def families(attacks: Sequence[Attack]) -> Counter:
    return Counter(attack.family for attack in attacks)
