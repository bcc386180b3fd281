"""Logs of trainings, as spacy-luke.ConsoleLogger.v1 and spacy.ConsoleLogger.v3 write them with `output_file`."""

from pathlib import Path
from typing import Any, NamedTuple

import srsly


class Curves(NamedTuple):
    """By step: the score that training chooses by, each score, and each component's loss a step."""

    score: list[tuple[float, float]]
    scores: dict[str, list[tuple[float, float]]]
    losses: dict[str, list[tuple[float, float]]]


def read_log(path: Path) -> Curves:
    """Scores from 0 to 1. ValueError for a file that is none of these logs."""
    curves = Curves([], {}, {})
    last = 0
    try:
        for row in srsly.read_jsonl(path):
            step = int(row["step"])
            if row["score"] is not None:
                curves.score.append((step, float(row["score"])))
            for name, value in (row.get("scores") or {}).items():
                if isinstance(value, int | float) and name.endswith(("_f", "_em", "_accuracy", "_strict")):
                    curves.scores.setdefault(name, []).append((step, float(value) / 100))
            for name, value in row["losses"].items():
                curves.losses.setdefault(name, []).append((step, _loss(value) / max(step - last, 1)))
            last = step
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is no log of a training: expected lines of JSON with 'step', 'score', 'scores' and 'losses', as "
            f"output_file of [training.logger] gets them, but reading it fails by {error!r}."
        ) from error
    if not curves.score:
        raise ValueError(f"{path} has no line with a score: was the training evaluated?")
    return curves


def _loss(value: Any) -> float:
    return float(value) if value is not None else 0.0
