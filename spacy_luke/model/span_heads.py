"""Task heads on an encoder's states.

N packed word states, E spans, D model width, L labels, W states of words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import Dropout
from .linear import Linear

FEATURES = {"all": 3, "words": 2, "entity": 1}  # how many states a span's features join

LENGTHS = 16  # lengths in words that the proposer tells apart; the last stands for all longer ones


class SpanHead(nn.Module):
    """A linear layer on [first word; last word; entity] of each span (LUKE, section 4.3; the original's
    `no_entity_feature` is features="words", its `no_word_feature` features="entity"); with proposer_size also a
    proposer, whose hidden layer has that size."""

    def __init__(self, hidden_size: int, n_labels: int, *, features: str = "all", proposer_size: int = 0):
        super().__init__()
        if features not in FEATURES:
            raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
        self.features = features
        self.dropout = Dropout(0.1)
        self.classifier = nn.Linear(FEATURES[features] * hidden_size, n_labels)
        self.proposer = SpanProposer(hidden_size, size=proposer_size) if proposer_size else None

    def forward(self, words_ND: Tensor, first_E: Tensor, last_E: Tensor, entities_ED: Tensor) -> Tensor:
        """words_ND: packed word states; first_E, last_E: rows of them, both inclusive. RETURNS: logits (E, L)."""
        states = [] if self.features == "entity" else [words_ND.index_select(0, x_E) for x_E in (first_E, last_E)]
        if self.features != "words":
            states.append(entities_ED)
        logits_EL: Tensor = self.classifier(self.dropout(torch.cat(states, -1)))
        return logits_EL


class EntityHead(nn.Module):
    """A linear layer on the joined features of K entity tokens: one for typing, a pair for relations (LUKE, sections
    4.1 and 4.2), placeholder and candidate for cloze questions (section 4.4).

    features: "entity" is the paper's; "all" and "words" as in `SpanHead`. The paper's relation head has no bias.
    """

    def __init__(self, hidden_size: int, n_labels: int, *, states: int, features: str = "entity", bias: bool = True):
        super().__init__()
        if features not in FEATURES:
            raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
        self.features = features
        self.dropout = Dropout(0.1)
        self.classifier = nn.Linear(states * FEATURES[features] * hidden_size, n_labels, bias=bias)

    def forward(
        self,
        words_ND: Tensor | None,
        first_E: Tensor,
        last_E: Tensor,
        entities_ED: Tensor | None,
        units_UK: Tensor,
    ) -> Tensor:
        """words_ND: None where features = "entity"; first_E, last_E: rows of it, both inclusive; entities_ED: None
        where features = "words"; units_UK: entity tokens of each unit, in the order of its features. RETURNS: logits
        (U, L)."""
        states = []
        for unit_U in units_UK.unbind(1):
            if words_ND is not None and self.features != "entity":
                states += [words_ND.index_select(0, x_E[unit_U]) for x_E in (first_E, last_E)]
            if entities_ED is not None and self.features != "words":
                states.append(entities_ED.index_select(0, unit_U))
        logits_UL: Tensor = self.classifier(self.dropout(torch.cat(states, -1)))
        return logits_UL


class SpanProposer(nn.Module):
    """Scores any span from the states of its first and last piece, cheaply: which ones deserve an entity token.

    One hidden layer on [first; last] plus a vector for the span's length in words. The two halves of the hidden layer
    are computed once a piece, so that a span costs one addition.
    """

    def __init__(self, hidden_size: int, *, size: int):
        super().__init__()
        self.first = Linear(hidden_size, size)
        self.last = Linear(hidden_size, size, bias=False)
        self.length = nn.Embedding(LENGTHS, size)
        self.score = nn.Linear(size, 1)

    def forward(self, words_ND: Tensor, first_E: Tensor, last_E: Tensor, length_E: Tensor) -> Tensor:
        """length_E: words of each span, from 1. RETURNS: logits (E,)."""
        hidden = (
            self.first(words_ND)[first_E] + self.last(words_ND)[last_E] + self.length(length_E.clamp(max=LENGTHS) - 1)
        )
        logits_E1: Tensor = self.score(F.relu(hidden))
        return logits_E1.squeeze(-1)


@dataclass(frozen=True)
class Choice:
    """How many spans of each window are kept. window_E: the window of each span; kept_K: which places the kept ones
    have among the spans of all windows, of each window the best first; counts: how many are kept of each window."""

    window_E: Tensor
    kept_K: Tensor
    counts: Sequence[int]


def plan_choice(counts: Sequence[int], budgets: Sequence[int]) -> Choice:
    """Of windows with so many spans, which keep at most so many; made on the host (see `to_device`)."""
    counts_B = np.array(counts, dtype=np.int64)
    window_E = np.repeat(np.arange(len(counts_B)), counts_B)
    kept_B = np.minimum(counts_B, np.array(budgets, dtype=np.int64))
    place_E = np.arange(len(window_E)) - (np.cumsum(counts_B) - counts_B)[window_E]
    kept_K = np.flatnonzero(place_E < kept_B[window_E])
    return Choice(torch.from_numpy(window_E), torch.from_numpy(kept_K), kept_B.tolist())


def choose_best(scores_E: Tensor, choice: Choice) -> Tensor:
    """The best spans of each window, in their old order: indices of spans (K,).

    scores_E: proposal logits of the spans, which stand one window after another. Ties go to the span that stands first.
    How many are kept is known before, so that nothing waits for the scores' device.
    """
    order_E = torch.argsort(scores_E, descending=True, stable=True)
    order_E = order_E[torch.argsort(choice.window_E[order_E], stable=True)]
    return torch.sort(order_E[choice.kept_K]).values
