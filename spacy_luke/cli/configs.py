"""What the commands with overrides share: settings of a config that the command line names."""

import difflib
from typing import Any

import typer
from spacy.cli._util import parse_config_overrides


def read_overrides(ctx: typer.Context) -> dict[str, Any]:
    """Settings that the command line overrides, by their names with dots."""
    try:
        return parse_config_overrides(ctx.args)
    except Exception as error:  # an option that is none, nor the override of a setting: those have a dot
        if name := getattr(error, "option_name", None):
            options = [option for parameter in ctx.command.params for option in parameter.opts]
            error.possibilities = difflib.get_close_matches(name, options)  # type: ignore[attr-defined]
        raise
