"""The reports of a pretraining in spaCy's loggers: they get what they get from `spacy train`."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from confection import Config

from .loop import LoopSettings, ReportStep

LOSSES = ("mlm", "entity", "page")
_SCORES = ("mlm_acc", "entity_acc")


def open_logger(
    logger: Callable[..., Any], config: dict[str, Any], *, losses: list[str], settings: LoopSettings
) -> tuple[ReportStep, Callable[[], None]]:
    """A logger as it stands in a config, for the steps of one stage, whose settings are given. losses: of LOSSES, those
    that there are.

    Loggers ask a pipeline for its trainable components, whose losses they show, and for its config; the tasks of
    pretraining stand for the components. RETURNS: what gets the reports, and what is called at the end.
    """
    scores = [f"{part}{name}" for part in ("", "dev_") for name in _SCORES if name.removesuffix("_acc") in losses]
    training = {**config["training"], "max_steps": settings.max_steps, "eval_frequency": settings.log_every}
    training["score_weights"] = {name: 1.0 / len(scores) for name in scores}
    nlp = SimpleNamespace(
        pipeline=[(name, SimpleNamespace(is_trainable=True)) for name in losses],
        config=Config({**config, "training": training}),
    )
    log_step, finish = logger(nlp, sys.stdout, sys.stderr)
    checkpoints: list[tuple[float, int]] = []

    def report(figures: dict[str, Any] | None) -> None:
        if figures is None:
            log_step(None)
            return
        known = {name: value for name, value in figures.items() if value is not None}
        found = [known[name] for name in scores if name in known]
        score = sum(found) / max(1, len(found))
        checkpoints.append((score, figures["step"]))
        others = {k: v for k, v in known.items() if k not in ("step", "epoch", "seconds", *losses)}
        log_step(
            {
                "epoch": figures["epoch"],
                "step": figures["step"],
                "score": score,
                "other_scores": others,
                "losses": {name: known.get(name, 0.0) for name in losses},
                "checkpoints": checkpoints,
                "seconds": figures["seconds"],
                "words": 0,
            }
        )

    return report, finish
