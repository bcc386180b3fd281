"""What commands of project.yml are to be run before another step, and which of their files nobody has put there."""

import shlex
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weasel.util.config import load_project_config, substitute_project_variables


@dataclass
class Plan:
    """steps: what is run, in order: names of commands with their options; made: the files that they make; missing:
    files that are not there and that no command makes, and how each is to be had."""

    steps: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)


class Project:
    """The project.yml of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told: dict[str, Any] = load_project_config(folder, interpolate=False)
        self.directories: Sequence[str] = self._told["directories"]

    def plan(self, needs: Sequence[str]) -> Plan:
        """needs: commands with their options, such as "convert-glue --vars.glue mnli".

        What these need and is not there is made by other commands, but for assets, which a user brings. A command whose
        results are there is not asked for what they were made of.
        """
        plan = Plan()
        for need in needs:
            self._add(need, plan)
        return plan

    def how(self, path: str, told: dict[str, Any] | None = None) -> str:
        """What project.yml says of an asset, or of the first in a folder, with the licence that "as above" stands for;
        "" where there is none."""
        licence = ""
        for asset in (told or self._told)["assets"]:
            about, _, own = asset["description"].partition(" Licence: ")
            licence = licence if own.startswith("as above") else own
            if Path(asset["dest"]).is_relative_to(path):
                fetched = " `python -m spacy project assets` downloads it." if "url" in asset else ""
                return f"{about} Licence: {licence}{fetched}"
        return ""

    def _add(self, need: str, plan: Plan) -> None:
        name, *options = shlex.split(need)
        values = {key.removeprefix("--"): x for key, x in zip(options[::2], options[1::2], strict=True)}
        told = substitute_project_variables(deepcopy(self._told), values)
        commands = {x["name"]: x for x in told["commands"]}
        makers = {path: x for x in commands for path in commands[x].get("outputs", [])}
        outputs = commands[name]["outputs"]
        absent = [path for path in commands[name]["deps"] if path not in plan.made and not self._has(path)]
        if not absent or not all(map(self._has, outputs)):
            for path in absent:
                how = self.how(path, told)
                if how or path not in makers:
                    plan.missing[path] = how
                elif path not in plan.made:
                    self._add(shlex.join([makers[path], *options]), plan)
            plan.steps += [need] if need not in plan.steps else []
        plan.made.update(outputs)

    def _has(self, path: str) -> bool:
        return (self.folder / path).exists()
