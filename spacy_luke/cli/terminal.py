"""What holds for all commands of `spacy luke`: --version, no colours where nobody sees them, and any letters."""

import codecs
import io
import os
import sys
from collections.abc import Sequence

import typer
from wasabi import msg

from .. import __version__
from ..pages.terminal import draw_table, terminal_width


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"spacy-luke {__version__}")
        raise typer.Exit


def begin(
    asked: bool = typer.Option(False, "--version", callback=_say_version, is_eager=True, help="Say the version"),
) -> None:
    """LUKE and its relatives: data, checkpoints, pipelines."""
    quieten()
    take_any_letter()


def quieten() -> None:
    """No colours in a file, a pipe or an output that is closed, and none where NO_COLOR is set (no-color.org); bars
    and animations leave these by themselves."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        os.environ["ANSI_COLORS_DISABLED"] = "1"  # for printers that spaCy makes
        msg.show_color = False
        msg.hide_animation = True


def take_any_letter() -> None:
    """Names and tables have letters that not every encoding of the output has, such as that of a pipe or file on
    Windows: these get UTF-8, unless PYTHONIOENCODING says what they shall get; then, and in a terminal, "?" stands for
    what it lacks. What UTF-8 itself lacks, such as a byte of a file's name that is none, is shown as its number."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    if codecs.lookup(out.encoding).name == "utf-8":
        out.reconfigure(errors="backslashreplace")
    elif out.isatty() or os.environ.get("PYTHONIOENCODING"):
        out.reconfigure(errors="replace")
    else:
        out.reconfigure(encoding="utf8", errors="backslashreplace")


def show_heading(text: str) -> None:
    """A line of its own, in bold where there are colours."""
    typer.echo(f"\n{typer.style(text, bold=True) if msg.show_color else text}")


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as wide as the terminal at most, whose first column is text and whose others are numbers."""
    typer.echo(f"\n{draw_table(header, rows, width=terminal_width(), numbers=header[1:])}\n")
