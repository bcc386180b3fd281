"""kill -9 for every command that writes: what was there is whole, or what comes is, and the next run ends as any other.

Half of the kills come at an event of the file system (an audit hook in the child counts them), half at a random time.
"""

import json
import os
import random
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .commands import COMMANDS, Command
from .forks import FAILED, Ended, run_forked
from .inputs import make_inputs
from .runner import Kind, Outcome

EVENTS = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.symlink", "os.truncate", "os.chmod")
EVENTS += (
    "shutil.copyfile",
    "shutil.rmtree",
    "shutil.move",
    "tempfile.mkstemp",
    "tempfile.mkdtemp",
    "os.utime",
    "os.scandir",
)
FEW = ("build-kb, over", "build-kb, --add-to", "build-vectors, over", "convert, over", "to_disk", "save", "train-kge")
TIMES = ("second", "speed", "wps", "time", "metrics_bytes")  # in keys of what holds times, or the length of such
Tree = dict[str, bytes | None]  # contents by path; None of folders


def read_tree(folder: Path, changing: Any = ()) -> Tree:
    """changing: names of files with times, which do not count."""
    found: Tree = {}
    for path in sorted([folder, *folder.rglob("*")]) if folder.exists() else []:
        data = path.read_bytes() if path.is_file() else None
        if path.suffix == ".pt":  # what it holds, not which objects are the same ones, nor the order of keys
            values = _strip(torch.load(path, weights_only=True))
            data = json.dumps(values, default=_numbers, sort_keys=True).encode()
        if path.name in changing:
            data = _without_times(path)
        found[path.relative_to(folder).as_posix()] = data
    return found


def _without_times(path: Path) -> bytes | None:
    if path.suffix not in (".json", ".jsonl"):
        return None
    text = path.read_text(encoding="utf8")
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    return json.dumps([_strip(json.loads(line)) for line in lines]).encode()


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _strip(x) for key, x in value.items() if not any(y in str(key) for y in TIMES)}
    return [_strip(x) for x in value] if isinstance(value, (list, tuple)) else value


def _numbers(value: Any) -> Any:
    return [str(value.dtype), value.tolist()] if isinstance(value, torch.Tensor) else repr(value)


def differ(one: Tree, other: Tree) -> str:
    names = sorted(x for x in {*one, *other} if x not in one or x not in other or one[x] != other[x])
    return ", ".join(
        f"{x} ({'only then' if x not in one else 'no longer' if x not in other else 'differs'})" for x in names[:6]
    )


@dataclass
class Prepared:
    """before: the working folder when the command starts; old, new: its output before and after; all: the working
    folder afterwards; events: of a run; seconds: that it takes; outputs: those before and after."""

    before: Path
    old: Tree
    new: Tree
    all: Tree
    events: int
    seconds: float
    outputs: list[Path]


class CommandKind(Kind):
    """What kills and disks share: each command has run, unharmed."""

    commands = COMMANDS
    sure = True  # whether commands run twice, to see that they do the same

    def shorten(self) -> None:
        self.commands, self.sure = [x for x in COMMANDS if x.name in FEW], False

    def prepare(self, folder: Path) -> None:
        self.place = make_inputs(folder / "inputs")
        self.made = {x.name: self._run_unharmed(x, folder / x.name.replace(" ", "_")) for x in self.commands}

    def _run_unharmed(self, command: Command, folder: Path) -> Prepared:
        work = folder / "before"
        work.mkdir(parents=True)
        for name in command.copies:
            shutil.copytree(self.place / name, work / name)
        if command.before is not None:
            self._expect(self.run(command, work, command.before, folder), command)
        runs = []
        for number in ("1", "2") if self.sure else ("1",):
            shutil.copytree(work, folder / number)
            ended = self.run(command, folder / number, command.arguments, folder, counted=folder / "events")
            self._expect(ended, command)
            runs.append(read_tree(folder / number, command.changing))
        if difference := differ(runs[0], runs[-1]):
            raise ValueError(f"{command.name}: two runs give different files: {difference}")
        outputs = [x / command.output for x in (work, folder / "1")]
        trees = [read_tree(x, command.changing) for x in outputs]
        outputs = [] if command.parts else [x for x in outputs if x.exists()]
        return Prepared(work, *trees, runs[0], int((folder / "events").read_text()), ended.seconds, outputs)

    def _expect(self, ended: Ended, command: Command) -> None:
        if ended.status != 0 or ended.hung or ended.orphans:
            raise ValueError(f"{command.name}, unharmed: {ended.describe()}, {ended.orphans} orphans. {ended.said}")

    def run(
        self,
        command: Command,
        work: Path,
        arguments: Any,
        folder: Path,
        *,
        kill_at: int | None = None,
        counted: Path | None = None,
        **settings: Any,
    ) -> Ended:
        """In a forked child. kill_at: number of the event that it does not survive; counted: file for their number."""

        def work_there() -> None:
            count = _watch(work, kill_at)
            try:
                command.run(self.place, arguments)
            finally:
                if counted is not None:
                    counted.write_text(str(count[0]))

        return run_forked(work_there, folder=work, limit=settings.pop("limit", 100.0), **settings)

    def state(self, command: Command, made: Prepared, work: Path, folder: Path) -> str:
        """What a reader finds now: old, new, absent, refused: ..., or bad: ..."""
        if command.parts:
            return self._parts_state(command, work, folder)
        output = work / command.output
        tree = read_tree(output, command.changing)
        if tree == made.new:
            return "new"
        if tree == made.old:
            return "old"
        if not output.exists():
            return "absent"
        return self._read(command, output, folder, made.outputs, differ(made.old or made.new, tree))

    def _parts_state(self, command: Command, work: Path, folder: Path) -> str:
        found = [work / command.output / x for x in command.parts if (work / command.output / x).exists()]
        states = [self._read(command, x, folder, None, "it is there") for x in found if command.read]
        return next((x for x in states if x.startswith("bad")), "whole" if found else "absent")

    def _read(self, command: Command, output: Path, folder: Path, whole: list[Path] | None, difference: str) -> str:
        if command.read is None:
            return f"bad: neither old nor new: {difference}"

        def look() -> None:
            try:
                found = command.read(output)
            except (ValueError, OSError) as error:
                print(f"{type(error).__name__}: {error}")
                sys.exit(1)
            # Read by this process, too: what a fork computes has another rounding.
            sys.exit(0 if whole is None or any(found == command.read(x) for x in whole) else 2)

        ended = run_forked(look, folder=folder, limit=60.0)
        if ended.status == 0:
            return "whole"
        if ended.status == 1:
            return f"refused: {ended.said[-300:]}"
        return f"bad: opens ({ended.describe()}), but is neither old nor new: {difference}. {ended.said[-1500:]}"


def _watch(work: Path, kill_at: int | None) -> list[int]:
    """Count the events in the working folder from now on; before event kill_at the process kills itself."""
    count, prefix = [0], str(work)

    def hook(event: str, arguments: Any) -> None:
        if event not in EVENTS:
            return
        if event == "open" and not _writes(arguments):
            return
        paths = [os.fspath(x) for x in arguments if isinstance(x, (str, os.PathLike))]
        if not any(x.startswith(prefix) or (isinstance(x, str) and not x.startswith("/")) for x in paths):
            return
        count[0] += 1
        if count[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return count


def _writes(arguments: Any) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(x in mode for x in "wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


class KillsKind(CommandKind):
    name, unit, wanted, slow, limit, share = "kills", "kills", 1000, 30, 300.0, 16

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        command = rng.choices(self.commands, weights=[x.weight for x in self.commands])[0]
        made = self.made[command.name]
        work = folder / "work"
        shutil.copytree(made.before, work)
        if rng.random() < 0.5:
            how = {"kill_at": rng.randint(1, made.events)}
        else:
            how = {"after": rng.uniform(0, 1.1 * made.seconds)}
        ended = self.run(command, work, command.arguments, folder, **how)
        outcome = Outcome(counts={command.name: 1})
        say = f"{command.name}, killed {how} of {made.events} events, {made.seconds:.1f} s: "
        if ended.hung:
            outcome.failures.append(f"{say}it hangs")
        if ended.orphans:
            outcome.failures.append(f"{say}{ended.orphans} processes are left")
        if ended.status not in (0, -signal.SIGKILL):
            outcome.failures.append(f"{say}before the kill {ended.describe()}: {ended.said}")
        state = self.state(command, made, work, folder)
        outcome.counts[f"then {state.partition(':')[0]}"] = 1
        outcome.refused = int(state.startswith("refused"))
        if state.startswith("bad"):
            outcome.failures.append(f"{say}{state}")
        outcome.failures += [say + text for text in self._go_on(command, made, work, folder, outcome)]
        return outcome

    def _go_on(self, command: Command, made: Prepared, work: Path, folder: Path, outcome: Outcome) -> list[str]:
        """The command again: it ends as if nothing had been."""
        arguments = command.again(work)
        if command.resume and command.resume in arguments:
            outcome.counts["resumed"] = 1
        ended = self.run(command, work, arguments, folder)
        finished = bool(command.done) and ended.status == 1 and command.done in " ".join(ended.said.split())
        if finished and not ended.orphans:
            outcome.counts["had ended already"] = 1
        elif ended.status != 0 or ended.hung or ended.orphans:
            how = "the next run raises" if ended.status == FAILED else "the next run fails"
            return [f"{how} ({ended.describe()}, {ended.orphans} orphans): {ended.said[-2500:]}"]
        if difference := differ(made.all, read_tree(work, command.changing)):
            return [f"after the next run ({arguments[-1]}): {difference}"]
        return []
