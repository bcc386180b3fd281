"""Which pieces and which entities of a window LUKE's pretraining hides, as luke/pretraining/batch_generator.py does it.

All draws come from a generator that the caller makes of a seed and a place in the data, so that nothing else, neither
the batch nor the process, changes what is hidden. N pieces of a window without the special ones, M its entities.
"""

from dataclasses import dataclass

import numpy as np

_DRAWS = ("fixed", "bernoulli")
HIDDEN = -1  # the label of what is not asked


@dataclass(frozen=True)
class MaskingSettings:
    """Shares of what is asked, and what stands in its place.

    words, entities: shares of pieces and of entities that are asked; None: none ever (masked words alone, table 8 of
    the paper; or masked entities alone, for disambiguation), and with entities None the encoder gets no entity tokens.
    whole_words: all pieces of a word or none. random_words, kept_words: shares of the words asked that a random piece,
    and that the word itself stands for; the others become [MASK]; random_entities, kept_entities: the same.
    entity_draw: "fixed": max(1, round(share * M)) entities of each window, as the original; "bernoulli": each with this
        probability.
    """

    words: float | None = 0.15
    entities: float | None = 0.15
    whole_words: bool = True
    random_words: float = 0.1
    kept_words: float = 0.1
    random_entities: float = 0.0
    kept_entities: float = 0.0
    entity_draw: str = "fixed"

    def __post_init__(self) -> None:
        if self.words is None and self.entities is None:
            raise ValueError("Expected a share of words or of entities to mask, but both are None: nothing is learned.")
        for name in ("words", "entities"):
            if (share := getattr(self, name)) is not None and not 0 < share <= 1:
                raise ValueError(f"The share of {name} to mask must be above 0 and at most 1, or None; it is {share}.")
            rest = [getattr(self, f"{kind}_{name}") for kind in ("random", "kept")]
            if min(rest) < 0 or sum(rest) > 1:
                raise ValueError(
                    f"random_{name} and kept_{name} must be from 0 and at most 1 together, but they are {rest[0]} and "
                    f"{rest[1]}."
                )
        if self.entity_draw not in _DRAWS:
            raise ValueError(f"entity_draw must be one of {_DRAWS}, but it is {self.entity_draw!r}.")


@dataclass(frozen=True)
class Vocabularies:
    """What may stand in for what is hidden.

    mask_piece, mask_entity: [MASK]; pieces_P: pieces that may replace one; first_entity, entities: rows [first, end) of
    the entity table that may replace one.
    """

    mask_piece: int
    mask_entity: int
    pieces_P: np.ndarray
    first_entity: int
    entities: int


def mask_words(
    pieces_N: np.ndarray,
    word_starts_N: np.ndarray,
    *,
    settings: MaskingSettings,
    vocabularies: Vocabularies,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Pieces after masking, and of each the piece that is asked or -1; int64 (N,).

    max(1, round(share * N)) pieces are asked, or fewer where whole words do not fill this number; words that do not fit
    any more are passed over. Where no word fits, one piece alone becomes [MASK]. All pieces of a word have the same
    fate.
    """
    after_N, labels_N = pieces_N.astype(np.int64), np.full(len(pieces_N), HIDDEN, np.int64)
    if settings.words is None or not len(pieces_N):
        return after_N, labels_N
    budget = max(1, round(len(pieces_N) * settings.words))
    starts = word_starts_N.copy() if settings.whole_words else np.ones(len(pieces_N), bool)
    starts[0] = True  # a window may begin inside a word
    begins = np.flatnonzero(starts)
    chosen = _fill(np.diff(np.append(begins, len(pieces_N))), rng.permutation(len(begins)), budget)
    if not chosen:
        at = int(rng.integers(len(pieces_N)))
        labels_N[at], after_N[at] = after_N[at], vocabularies.mask_piece
        return after_N, labels_N
    word_N = np.cumsum(starts) - 1
    fates = np.full(len(begins), np.nan)
    fates[chosen] = rng.random(len(chosen))
    fate_N = fates[word_N]
    asked_N = ~np.isnan(fate_N)
    labels_N[asked_N] = pieces_N[asked_N]
    masked_N = fate_N < 1 - settings.random_words - settings.kept_words
    random_N = asked_N & ~masked_N & (fate_N < 1 - settings.kept_words)
    after_N[masked_N] = vocabularies.mask_piece
    after_N[random_N] = rng.choice(vocabularies.pieces_P, size=int(random_N.sum()))
    return after_N, labels_N


def _fill(sizes: np.ndarray, order: np.ndarray, budget: int) -> list[int]:
    """Words in this order, without those that would go over the budget."""
    chosen: list[int] = []
    for word in order.tolist():
        size = int(sizes[word])
        if size <= budget:
            chosen.append(word)
            budget -= size
            if not budget:
                break
    return chosen


def mask_entities(
    entities_M: np.ndarray, *, settings: MaskingSettings, vocabularies: Vocabularies, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Entities after masking, and of each the entity that is asked or -1; int64 (M,)."""
    after_M, labels_M = entities_M.astype(np.int64), np.full(len(entities_M), HIDDEN, np.int64)
    if settings.entities is None or not len(entities_M):
        return after_M, labels_M
    if settings.entity_draw == "fixed":
        chosen = rng.permutation(len(entities_M))[: max(1, round(len(entities_M) * settings.entities))]
    else:
        chosen = np.flatnonzero(rng.random(len(entities_M)) < settings.entities)
    labels_M[chosen] = entities_M[chosen]
    fates = rng.random(len(chosen))
    masked = fates < 1 - settings.random_entities - settings.kept_entities
    replaced = ~masked & (fates < 1 - settings.kept_entities)
    after_M[chosen[masked]] = vocabularies.mask_entity
    after_M[chosen[replaced]] = rng.integers(vocabularies.first_entity, vocabularies.entities, size=int(replaced.sum()))
    return after_M, labels_M
