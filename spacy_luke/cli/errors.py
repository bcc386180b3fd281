"""How every command of `spacy luke` ends on an error: one message that says what was expected, what came and what to
do; and how it warns.

`--traceback`, which every command has, shows where it came from.
"""

import errno
import sqlite3
import sys
import traceback as tracebacks
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import typer
from confection import ConfigValidationError
from wasabi import msg
from wasabi.printer import Printer

from ..stores.plain_text import not_utf8

_HELP = "Show the whole traceback of an error"
_RESUME = (
    "What was saved in {} stays: the same command with --resume (no --overwrite) goes on from the last saved state."
)
_LONGEST = 4000  # characters of a message: some libraries print a whole config
_FULL = {  # advice by the numbers of the system's errors
    errno.EFBIG: "Is the disk full, or the size of files limited?",
    errno.ENOSPC: "Free some room on the disk, or give another folder.",
    errno.EDQUOT: "Free some room of your quota, or give another folder.",
}
_REGISTERED = "If it is your own, give the Python file that registers it: --code FILE.py."
_ADVICE = {  # by the codes of spaCy's errors
    "[E002]": _REGISTERED,
    "[E048]": "Give the code of a language, such as en or de, or xx for any.",
    "[E050]": "Give the folder of a pipeline, such as training/mine/model-best, or the name of an installed one.",
    "[E053]": "Give the folder of a pipeline, such as training/mine/model-best.",
    "[E893]": _REGISTERED,
}
_EXPECTED = (ValueError, ImportError, OSError, BrokenExecutor)  # what our own code raises, and what the machine does


def with_one_message(function: Callable[..., None], *, failed: str) -> Callable[..., None]:
    """The command `function` with the option --traceback; an exception ends it with exit code 1 and one message, and
    warnings are shown without their places in the code.

    failed: the first line of the message. Exceptions of the command line itself (usage, Ctrl-C, exit) pass; where the
    command can go on after Ctrl-C, it says so.
    """

    resumes = "resume" in signature(function).parameters

    @wraps(function)
    def command(*args: Any, traceback: bool, **kwargs: Any) -> None:
        try:
            with plain_warnings():
                function(*args, **kwargs)
        except KeyboardInterrupt:
            if resumes:
                msg.warn(f"Stopped. {_RESUME.format(kwargs['output'])}", spaced=True)
            raise
        except Exception as error:
            if isinstance(error, (typer.Exit, typer.Abort)):
                raise
            if traceback:
                tracebacks.print_exception(error, file=sys.stdout)
            usage = hasattr(error, "format_message")  # an option of the command line that is none
            text = explain(error, output=kwargs.get("output"))
            msg.fail(getattr(error, "failed", failed), text, spaced=True)
            sys.exit(2 if usage else 1)

    own = signature(function)
    option = typer.Option(False, "--traceback", help=_HELP)
    added = Parameter("traceback", Parameter.KEYWORD_ONLY, default=option, annotation=bool)
    command.__signature__ = own.replace(parameters=[*own.parameters.values(), added])  # type: ignore[attr-defined]
    return command


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings in the block are shown as what they say."""
    as_before = warnings.formatwarning
    printer = Printer(no_print=True)
    warnings.formatwarning = lambda message, *place, **line: f"{printer.warn(str(message))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = as_before


@contextmanager
def failing_as(first_line: str) -> Iterator[None]:
    """Errors in the block have a first line of their own."""
    try:
        yield
    except Exception as error:
        error.failed = first_line  # type: ignore[attr-defined]
        raise


def explain(error: BaseException, *, output: object = None) -> str:
    """What a user is told of an exception. output: where results go, for a full disk that does not say which."""
    if hasattr(error, "format_message"):
        text = error.format_message()
    elif isinstance(error, ConfigValidationError):
        text = _wrong_settings(error)
    elif isinstance(error, UnicodeDecodeError):
        text = f"A file: {not_utf8(error, 'OLD')}"
    elif isinstance(error, OSError) and error.errno in _FULL:
        place = error.filename if error.filename is not None else output
        text = f"{'' if place is None else f'{place}: '}{error.strerror}. {_FULL[error.errno]}"
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror} ({type(error).__name__})"
    elif isinstance(error, sqlite3.OperationalError):  # no OSError, whatever the system said
        text = f"A database of the work in between could not be written or read: {error}. Is the disk full?"
    elif type(error).__name__ == "OutOfMemoryError":  # of torch
        text = f"The GPU has too little memory: {str(error).splitlines()[0]} Lower the batch size."
    elif isinstance(error, MemoryError):
        text = f"This machine has too little memory. {error}"
    elif isinstance(error, _EXPECTED) and str(error):
        text = str(error)
    else:
        text = (
            f"{type(error).__name__}: {error} ({_place(error)})\nThis should have been found earlier, with a better "
            "message. Please report it, with what --traceback shows."
        )
    advice = next((advice for code, advice in _ADVICE.items() if code in text), None)
    text += "" if advice is None else f"{'' if text.endswith('.') else '.'} {advice}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _place(error: BaseException) -> str:
    """File and line where it was raised."""
    frames = tracebacks.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "of unknown origin"


def _wrong_settings(error: ConfigValidationError) -> str:
    from ..components.setting_errors import wrong_settings  # what components need takes a second to import

    title = f"{error.title}:" if error.title and not error.title.startswith("Config ") else None
    return "\n".join([*filter(None, (title, error.desc)), *wrong_settings(error)])
