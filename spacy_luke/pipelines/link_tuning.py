"""Links on dev data: their scores are calibrated, and the threshold is chosen by precision."""

from collections.abc import Sequence

import numpy as np
from spacy.language import Language
from spacy.training import Example

from ..components.linker.component import LukeLinker
from ..components.linker.gold import count_links
from ..components.thresholds import precise_threshold
from ..scorers.reliability import Judged, judged
from .score_tables import items_of

_OPEN = {"threshold": 0.0, "temperature": 1.0, "shift": 0.0}  # settings with which all links are shown as they are


def tune_links(
    proc: LukeLinker,
    examples: Sequence[Example],
    *,
    nlp: Language,
    least: int,
    precision: float | None,
    calibrate: bool,
) -> dict[str, float]:
    """With calibrate fit temperature and shift to the links of the mentions that the getter finds in the predicted
    Docs. Then choose the best threshold (see `LukeLinker.tune`); with precision the lowest one at which this share of
    the links that are shown is right.

    RETURNS: what was found, as `tune` does. Raises ValueError for fewer than `least` gold mentions with an entity, and
    where the pipeline finds no mentions.
    """
    total = count_links(examples, least, name=proc.name, ignore=proc.labels_ignore)
    proc.check_mentions(examples)
    judged = _judge_all(proc, examples)
    scores, right = [score for score, _ in judged], [x for _, x in judged]
    fitted = proc.fit_calibration(scores, right, nlp=nlp, least=least) if calibrate else {}
    if precision is None:
        return {**proc.tune(examples, nlp=nlp, least=least), **fitted}
    score_N = proc.calibrated(np.array(scores))
    threshold, reached, f1 = precise_threshold(
        score_N, np.array(right, dtype=bool), total=total, precision=precision, least=least
    )
    proc.settle(nlp, threshold=threshold)
    return {"threshold": threshold, "links_strict_f": f1, "links_strict_p": reached, **fitted}


def _judge_all(proc: LukeLinker, examples: Sequence[Example]) -> Judged:
    """What would be shown without threshold, with scores that are not calibrated."""
    copies = [Example(example.predicted.copy(), example.reference) for example in examples]
    docs = [example.predicted for example in copies]
    before = {name: proc.cfg[name] for name in _OPEN}
    read_items = items_of(proc)
    assert read_items is not None, "links are items"
    try:
        proc.cfg.update(_OPEN)
        proc.set_annotations(docs, proc.predict(docs))
        return judged(read_items(copies))
    finally:
        proc.cfg.update(before)
