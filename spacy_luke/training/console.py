"""The console's log of a training: a row for each evaluation, a column of its own for each loss and each score."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import srsly
from spacy.language import Language
from spacy.util import registry

from ..stores.progress import ProgressBar

Log = Callable[[dict[str, Any] | None], None]
Logger = Callable[[Language, IO[str], IO[str]], tuple[Log, Callable[[], None]]]
_PREFIXES = ("luke_", "ernie_")  # of components' names, which say nothing in a column's
_NUMBER = 7  # characters of one


@registry.loggers("spacy-luke.ConsoleLogger.v1")
def make_console_logger(progress_bar: bool = True, output_file: str | Path | None = None) -> Logger:
    """As spacy.ConsoleLogger.v3, with names of columns that are written out, so that no two are the same, and without
    components that have no loss of their own, such as luke_encoder.

    progress_bar: of the steps until the next evaluation; there is none where the output goes to a file.
    output_file: gets the same as lines of JSON; an older one is replaced, also where a killed training goes on.
    """

    def set_up(
        nlp: Language, stdout: IO[str] = sys.stdout, stderr: IO[str] = sys.stderr
    ) -> tuple[Log, Callable[[], None]]:
        losing = [name for name, proc in nlp.pipeline if _has_loss(proc)]
        weights = nlp.config["training"]["score_weights"]
        scores = [name for name, weight in weights.items() if weight is not None]
        header = ["epoch", "step", *_loss_names(losing), *scores, "score"]
        sizes = [max(len(name), _NUMBER) for name in header]
        file = None
        if output_file is not None:
            Path(output_file).parent.mkdir(parents=True, exist_ok=True)
            file = open(output_file, "w", encoding="utf8")
        _write(header, sizes, stdout)
        _write(["-" * size for size in sizes], sizes, stdout)
        bar: ProgressBar[Any] | None = None

        def log(info: dict[str, Any] | None) -> None:
            nonlocal bar
            if info is None:
                if bar is not None:
                    bar.update()
                return
            if bar is not None:
                bar.close()
            lost = {name: float(info["losses"].get(name, 0.0)) for name in losing}
            found = {name: _score(name, info["other_scores"].get(name)) for name in scores}
            numbers = [*lost.values(), *found.values(), 100 * float(info["score"])]
            row = [str(info["epoch"]), str(info["step"]), *("-" if x is None else f"{x:.2f}" for x in numbers)]
            _write(row, sizes, stdout)
            if file is not None:
                line = {"epoch": info["epoch"], "step": info["step"], "losses": lost, "scores": found}
                file.write(srsly.json_dumps(line | {"score": float(info["score"])}) + "\n")
                file.flush()
            if progress_bar:
                total = nlp.config["training"]["eval_frequency"]
                bar = ProgressBar(None, "until the next evaluation", total=total, stream=stderr, lines=False)

        def finish() -> None:
            if bar is not None:
                bar.close()
            if file is not None:
                file.close()

        return log, finish

    return set_up


def _has_loss(proc: Any) -> bool:
    return bool(getattr(proc, "is_trainable", False) and getattr(proc, "has_loss", True))


def _loss_names(names: Sequence[str]) -> list[str]:
    """Such as "loss ner" of luke_ner; whole names where these would be the same."""
    short = [next((name.removeprefix(x) for x in _PREFIXES if name.startswith(x)), name) for name in names]
    return [f"loss {x}" for x in (short if len(set(short)) == len(short) else names)]


def _score(name: str, value: Any) -> float | None:
    """In points; spaCy's "speed" is in words a second. None where there was nothing to score on."""
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise ValueError(
            f"The score {name!r} is no number, but a {type(value).__name__}: set its weight in "
            "[training.score_weights] to null."
        )
    return float(value) if name == "speed" else 100 * float(value)


def _write(row: Sequence[str], sizes: Sequence[int], stdout: IO[str]) -> None:
    print("  ".join(cell.rjust(size) for cell, size in zip(row, sizes, strict=True)), file=stdout, flush=True)
