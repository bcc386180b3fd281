"""Notebooks as Jupyter runs them: cells in order, in one namespace; lines that begin with "!" are commands.

A command is run in this process: `!python -m spacy ...` by spaCy's own command line, `!python scripts/...` as a script.
"""

import json
import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

FOLDER = Path(__file__).parents[1] / "notebooks"
COMMAND = re.compile(
    r"^( *)!python ((?:-m spacy|scripts/) ?(?:.*\\\n)*.+)$", re.MULTILINE
)  # "\\" goes on in the next line


def read_cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf8"))["cells"]


def code_of(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read_cells(path) if cell["cell_type"] == "code"]


def commands_of(path: Path) -> list[str]:
    return [f"python {_joined(match[2])}" for code in code_of(path) for match in COMMAND.finditer(code)]


def _joined(command: str) -> str:
    return re.sub(r"\\\n *", "", command)


def run_notebook(path: Path, *, more: dict[str, str], without: Sequence[str] = ()) -> dict[str, Any]:
    """Its names after the last cell. more: options that are added to commands, by the beginning of these; without:
    parts of commands that are left out."""

    def call(line: str) -> None:
        for part in without:
            line = line.replace(part, "")
        if not line.strip():
            return
        for command, options in more.items():
            line += f" {options}" if line.startswith(command) else ""
        words = shlex.split(line)
        if words[0] != "-m":
            argv, sys.argv = sys.argv, words
            try:
                runpy.run_path(words[0], run_name="__main__")
            finally:
                sys.argv = argv
            return
        result = CliRunner().invoke(spacy_app, words[2:])
        print(result.output)
        assert result.exit_code == 0, f"{line}\n{result.output}"

    names: dict[str, Any] = {"__call": call}
    for code in code_of(path):
        exec(
            compile(COMMAND.sub(lambda match: f"{match[1]}__call({_joined(match[2])!r})", code), path.name, "exec"),
            names,
        )
    return names
