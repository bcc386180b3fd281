"""What is known of the two mentions of a pair, and so of its relation: their labels, which some relations cannot have,
and their scores, as a relation is right only if both mentions are.

P pairs, U units, L classes.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from spacy.tokens import Doc
from torch import Tensor

from ...annotations import get_score
from ..mentions import MentionGetter
from .asked import Units

Between = Mapping[str, Sequence[Sequence[str]]]  # of a relation the labels of its heads, and those of its tails
_NO_CHANCE = -1e4  # a logit: probability 0 in float32, but a finite number


def check_between(between: Between) -> None:
    """ValueError where the setting `between` has not two sides for each relation."""
    for label, sides in between.items():
        if len(sides) != 2:
            raise ValueError(
                "between must have for each relation the labels of its heads and those of its tails, such "
                f'as {{"date of birth": [["PER"], ["TIME"]]}}, but for {label!r} it has {sides!r:.80}.'
            )


def barred_classes(
    labels: Sequence[str], pairs_P2: NDArray[np.int64], classes: Sequence[str | None], between: Between
) -> NDArray[np.bool_]:
    """(P, L): which classes a pair of mentions cannot have by the labels of the mentions ("": any)."""
    allowed_SML = np.ones((2, len(labels), len(classes)), dtype=np.bool_)
    for place, name in enumerate(classes):
        for side, known in enumerate(between.get(name, ()) if name is not None else ()):
            allowed_SML[side, :, place] = [not label or label in known for label in labels]
    barred_PL: NDArray[np.bool_] = ~(allowed_SML[0][pairs_P2[:, 0]] & allowed_SML[1][pairs_P2[:, 1]])
    return barred_PL


class Sides:
    """The pairs of a Doc, whose logits (U, L) are told what is known of their mentions.

    between: labels that heads and tails of relations have, {}: of any. scores: whether those of mentions
    (`span._.luke_score`) count; mentions without one are right.
    """

    def __init__(
        self,
        doc: Doc,
        asked: Units,
        getter: MentionGetter,
        classes: Sequence[str | None],
        *,
        between: Between,
        scores: bool,
    ):
        self.chance_P: Tensor | None = None
        self.barred_PL: Tensor | None = None
        spans = {(span.start, span.end): span for span in getter(doc)} if scores or between else {}
        own = [spans.get(mention) for mention in asked.mentions]
        if scores:
            known = [get_score(span) if span is not None else None for span in own]
            chances = [1.0 if score is None else float(score) for score in known]
            both = [chances[head] * chances[tail] for head, tail in asked.units_UK.tolist()]
            self.chance_P = torch.tensor(both, dtype=torch.float32, device="cpu")
        if between:
            labels = [span.label_ if span is not None else "" for span in own]
            self.barred_PL = torch.from_numpy(barred_classes(labels, asked.units_UK, classes, between))

    def tell(self, number_U: NDArray[np.int64], logits_UL: Tensor) -> Tensor:
        """number_U: of the pairs that the logits are of."""
        numbers = torch.from_numpy(number_U)
        if self.chance_P is not None:
            logits_UL = joint_logits(logits_UL, self.chance_P[numbers])
        if self.barred_PL is not None:
            logits_UL = logits_UL.masked_fill(self.barred_PL[numbers], _NO_CHANCE)
        return logits_UL


def joint_logits(logits_UL: Tensor, chance_U: Tensor) -> Tensor:
    """Log-odds of p times a chance, where the logits are log-odds of p; those with chance 1 stay as they are."""
    log_UL = F.logsigmoid(logits_UL) + chance_U.log()[:, None]
    return torch.where(chance_U[:, None] == 1, logits_UL, log_UL - torch.log1p(-log_UL.exp()))
