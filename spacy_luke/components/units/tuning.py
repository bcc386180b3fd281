"""Classifiers of units whose scores are calibrated, and compared with a threshold: both are chosen on dev data.

L labels, U units; see `units.asked`.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import get_scope
from ...batch.allowed import AllowedClasses
from ..calibration import SHOWN_FROM, Calibrated
from ..factories import Setting
from ..thresholds import best_label_threshold, check_found, check_positives, precise_threshold
from .asked import Gold, Units
from .classifier import ScoredUnits, UnitClassifier
from .gold_classes import MAY_HOLD, is_sure

Scores = NDArray[np.float32]  # of units and labels (U, L)
Classes = NDArray[np.float32] | NDArray[np.int64]  # gold ones, (U, L) or (U,); below 0 where nothing is known


class ThresholdClassifier(Calibrated, UnitClassifier):
    """A classifier that gives a unit each label whose calibrated probability is above `threshold`."""

    threshold: Setting[float] = Setting(
        0.5,
        "least probability of a label that is given (of relations only with `multi_label`); the paper's for types, a "
        "logit above 0, is 0.5. `python -m spacy luke tune` finds the best one on dev data",
        least=0,
        most=1,
        rule="a probability, from 0 to 1",
    )

    @property
    def has_threshold(self) -> bool:
        return True

    def logits(self, doc: Doc, asked: Units) -> Scores:
        """Of each unit and class (U, L), -inf of a unit that cannot be encoded."""
        return self.table(asked, self.scored([doc], [asked], [[]]), absent=-np.inf)

    def table(self, asked: Units, parts: Iterable[ScoredUnits], *, absent: float) -> Scores:
        """Logits of all units of a Doc (U, L). absent: those of a unit that cannot be encoded. The classes are those of
        the head that has scored them: meanwhile a label may have been added."""
        parts = list(parts)
        width = parts[0].logits_UL.shape[1] if parts else len(self.classes)
        logits_UL = np.full((len(asked), width), absent, dtype=np.float32)
        for _, number_U, rows_UL in parts:
            logits_UL[number_U] = rows_UL.numpy()
        return logits_UL

    def probabilities(self, logits_UL: Scores) -> Scores:
        """What is compared with the threshold; 0 of a unit that cannot be encoded."""
        return sigmoid(self.calibrated_logits(logits_UL))

    def shown_scores(self, logits_UL: Scores, gold: Classes) -> tuple[Scores, NDArray[np.bool_]]:
        """Probabilities, before they are calibrated, of what may be shown, and whether each is right. gold: as of
        `classes_of`."""
        probability_UL = sigmoid(logits_UL)
        shown_UL = (probability_UL > SHOWN_FROM) & (gold >= 0)
        return probability_UL[shown_UL], (gold > 0)[shown_UL]

    def has_label(self, gold: Classes) -> NDArray[np.bool_]:
        """Where a label is gold, of what `classes_of` gives."""
        return np.asarray(gold > 0)

    def tune(
        self,
        examples: Sequence[Example],
        *,
        nlp: Language | None = None,
        gold_mentions: bool = False,
        least: int = 0,
        precision: float | None = None,
        calibrate: bool = True,
    ) -> dict[str, float]:
        """Calibrate the scores on examples, dev data never trained on, and set the threshold that gives the best micro
        F1 (of typing: the loose one); or the lowest one at which this share of what is found is right.

        Labels are those of what is asked about the predicted Docs; others are missed, as the scorers count.
        gold_mentions: the units are those of training instead. nlp: pipeline whose config gets the settings (see
        `settle`). RETURNS: the threshold and the F1 that it gives, of equal ones the nearest to 0.5, with precision
        also that; the temperature and shift, where there are `least` scores to fit. Raises ValueError for fewer than
        `least` gold labels of such units, and where no threshold is as precise.
        """
        if not (self.has_threshold or calibrate):
            raise ValueError(f"'{self.name}' gives each pair one label (multi_label = false), so it has no threshold.")
        examples = list(filter(self.has_gold, examples))
        read = [self.read_gold(x, None if gold_mentions else self.asked_and_known(x)) for x in examples]
        total = sum(map(self.gold_total, examples, read))
        golds = list(map(self._sure_classes, examples, read))
        what = f"gold {self.label_noun}s"
        if not total:
            raise ValueError(f"Expected examples with {what} to tune on, but found none.")
        right = [self.has_label(gold) for gold in golds]
        check_found(right, total, name=self.name, what=what, where=f"of {self.mention_noun} that the pipeline finds")
        check_positives(sum(int(x.sum()) for x in right), least, name=self.name, what=f"{what} of {self.unit_noun}")
        logits = [self.logits(example.predicted, gold.units) for example, gold in zip(examples, read, strict=True)]
        fitted = {}
        if calibrate:
            shown = [self.shown_scores(*one) for one in zip(logits, golds, strict=True)]
            scores, correct = (np.concatenate(x).tolist() for x in zip(*shown, strict=True))
            fitted = self.fit_calibration(scores, correct, nlp=nlp, least=least)
        if not self.has_threshold:
            return fitted
        known = [gold >= 0 for gold in golds]
        probability_N = np.concatenate([self.probabilities(x)[sure] for x, sure in zip(logits, known)])
        gold_N = np.concatenate([x[sure] for x, sure in zip(right, known)])
        threshold, reached = self._threshold(probability_N, gold_N, total=total, precision=precision, least=least)
        self.settle(nlp, threshold=threshold)
        return {"threshold": threshold, **reached, **fitted}

    def _sure_classes(self, example: Example, found: Gold) -> Classes:
        """As `classes_of`, below 0 wherever gold leaves open whether a label holds."""
        gold = self.classes_of(example, found, AllowedClasses(len(self.classes)))
        if self.multi_label:
            gold[~is_sure(gold, self.classes, get_scope(example.reference, self.scope_task))] = MAY_HOLD
        return gold

    def _threshold(
        self, probability_N: Scores, gold_N: NDArray[np.bool_], *, total: int, precision: float | None, least: int
    ) -> tuple[float, dict[str, float]]:
        if precision is None:
            threshold, f1 = best_label_threshold(probability_N, gold_N, total=total)
            return threshold, {self.metric: f1}
        threshold, reached, f1 = precise_threshold(probability_N, gold_N, total=total, precision=precision, least=least)
        return threshold, {self.metric: f1, f"{self.metric[:-1]}p": reached}


def sigmoid(logits_UL: Scores) -> Scores:
    probability_UL: Scores = torch.from_numpy(logits_UL).sigmoid().numpy()
    return probability_UL
