"""Full disks for every command that writes: what was there is whole, one message says what happened, nothing is left.

A limit on the size of files (RLIMIT_FSIZE) fails writes as a full disk does, with EFBIG in place of ENOSPC, and needs
no rights.
"""

import random
import re
import shutil
from pathlib import Path

from .forks import FAILED, Ended
from .kills import CommandKind, Prepared, differ, read_tree
from .runner import Outcome

WORK = re.compile(r"\.work(/|$)")  # in paths: folders of work in between


class DisksKind(CommandKind):
    name, unit, wanted, slow, limit, share = "disks", "full disks", 300, 14, 300.0, 3
    sure = False

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        command = self.commands[number % len(self.commands)]
        made = self.made[command.name]
        work = folder / "work"
        shutil.copytree(made.before, work)
        size = rng.choice([0, int(2 ** rng.uniform(0, 8)), int(2 ** rng.uniform(8, 19)), int(2 ** rng.uniform(8, 19))])
        ended = self.run(command, work, command.arguments, folder, file_size=size)
        outcome = Outcome(counts={command.name: 1})
        if ended.status == 0:
            difference = differ(made.all, read_tree(work, command.changing))
            wrong = [f"it says that it has succeeded, but {difference}"] if difference else []
            outcome.counts["large enough"] = 1
        else:
            wrong = self._check_refusal(ended)
            if not command.parts and command.name != "to_disk":  # which writes over what is there, file by file
                now = read_tree(work, command.changing)
                kept = {name: x for name, x in now.items() if not WORK.search(name)}  # builds go on with it
                before = read_tree(made.before, command.changing)
                difference = differ(before, {name: x for name, x in kept.items() if x is not None or name in before})
                wrong += [f"the folder is not as it was: {difference}"] if difference else []
            elif (state := self.state(command, made, work, folder)).startswith("bad"):
                wrong.append(state)
            outcome.refused = int(not wrong)
            wrong += self._left(made, work)
        outcome.failures += [f"{command.name}, files of {size:,} bytes: {text}" for text in wrong]
        return outcome

    def _check_refusal(self, ended: Ended) -> list[str]:
        if ended.hung or ended.status < 0 or ended.orphans:
            return [f"{ended.describe()}, {ended.orphans} orphans: {ended.said[-1500:]}"]
        if ended.status == FAILED or "Traceback (most" in ended.said or "should have been found earlier" in ended.said:
            return [f"no message of ours: {ended.said[-2000:]}"]
        return (
            []
            if "File too large" in ended.said
            else [f"the message does not say that it is the disk: {ended.said[-800:]}"]
        )

    def _left(self, made: Prepared, work: Path) -> list[str]:
        hidden = [x.relative_to(work).as_posix() for x in work.rglob(".*") if x.name.endswith((".new", ".old"))]
        return [f"left: {hidden[:4]}"] if hidden else []
