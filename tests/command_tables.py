"""The page of commands in docs/reference, drawn from the commands: what they do, their arguments and options.

`python -m tests.command_tables` draws it anew; tests/test_docs.py says when it is old.
"""

import json
from pathlib import Path
from typing import Any

import typer.main

from spacy_luke.cli import app
from spacy_luke.cli.examples import EXAMPLES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
INTRODUCTION = """# Commands

<!-- drawn by python -m tests.command_tables -->

All are called as `python -m spacy luke COMMAND`, and say the same by `--help`. A command that fails says in one message
what was expected and what came; what it was to write is then not written, but for data that `init-config` has
converted on the way. All that load or train a pipeline take `--code`, a Python file that registers its components and
functions of your own."""


def shown(default: object) -> str:
    if default is None or default is False or default in ((), [], "") or callable(default):
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default, default=str)}`"


def cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").rstrip(".")


def draw_command(name: str, command: Any) -> list[str]:
    arguments = [x for x in command.params if x.param_type_name == "argument"]
    options = [x for x in command.params if x.param_type_name == "option" and x.name != "help"]
    words = [
        f"{x.name}{'...' if x.nargs == -1 else ''}".upper() if x.required else f"[{x.name}]".upper() for x in arguments
    ]
    about = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    lines = [f"## `{name}`", *about, f"`python -m spacy luke {' '.join([name, *words, '[OPTIONS]'])}`"]
    rows = [
        f"| `{x.name.upper()}` | | {cell(getattr(x, 'help', None))} |" for x in arguments if getattr(x, "help", None)
    ]
    for option in options:
        names = ", ".join(f"`{x}`" for x in [*option.opts, *option.secondary_opts])
        default = "must be given" if option.required else shown(option.default)
        rows.append(f"| {names} | {default} | {cell(option.help)} |")
    lines.append(f"```bash\n{EXAMPLES[name]}\n```")
    return [*lines, "\n".join(["| | default | |", "| --- | --- | --- |", *rows])]


def draw_commands() -> str:
    group = typer.main.get_command(app)
    lines = [INTRODUCTION]
    for name, command in group.commands.items():
        lines += draw_command(name, command)
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(draw_commands(), encoding="utf8")
