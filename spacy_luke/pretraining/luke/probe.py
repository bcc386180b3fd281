"""What pretraining has learned: which entities a masked mention is taken for, and which entities are near one another.

M mentions of a text, E entities of the table.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from ...checkpoint.contents import LukeCheckpoint
from ...checkpoint.names import ENTITY_TABLE
from ...model.families import build_encoder
from ...model.luke import Mentions, Windows
from ...model.masked import MaskedEntityHead

_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
Ranked = list[tuple[str, float]]  # entities with a number, the highest first


@dataclass(frozen=True)
class Prediction:
    """mention: characters [start, end) of the text; entities: with their probabilities."""

    start: int
    end: int
    entities: Ranked


def find_mentions(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without its brackets, and the characters [start, end) of what stood in them. ValueError where nothing
    did."""
    plain, places, at = "", [], 0
    for match in _BRACKETS.finditer(text):
        plain += text[at : match.start()]
        places.append((len(plain), len(plain) + len(match[1])))
        plain += match[1]
        at = match.end()
    if not places:
        raise ValueError(f"Expected a mention in brackets, as in 'She was born in [Paris].', but got {text!r}.")
    return plain + text[at:], places


@dataclass(frozen=True)
class Answers:
    """text: without its brackets; neighbours: the nearest entities, with their cosines, by entity; entities: how many
    the table has."""

    text: str
    predictions: list[Prediction]
    neighbours: dict[str, Ranked]
    entities: int


class Probe:
    """Asks a checkpoint with an entity table, a masked-entity head and a tokenizer."""

    def __init__(self, checkpoint: LukeCheckpoint):
        vocab = checkpoint.entities
        if checkpoint.tokenizer is None or vocab is None or "entity_head.bias" not in checkpoint.tensors:
            raise ValueError(
                "The checkpoint has no masked-entity head, or no tokenizer: expected one of `spacy luke pretrain` "
                "with masked entities, or a LUKE that was published whole."
            )
        special = set(vocab.special_rows().values())
        titles = [(row, title) for row, title in enumerate(vocab.titles()) if title is not None and row not in special]
        if not titles:
            raise ValueError("The checkpoint's entity vocabulary has special entities only (a lite checkpoint).")
        self.tokenizer, self.vocab = checkpoint.tokenizer, vocab
        self.rows_E = torch.tensor([row for row, _ in titles])
        self.titles = [title for _, title in titles]
        self.encoder = build_encoder(checkpoint.config, vocab.mask_rows).eval()
        self.head = MaskedEntityHead(checkpoint.config).eval()
        for module, prefix in ((self.encoder, "encoder."), (self.head, "entity_head.")):
            own = {n[len(prefix) :]: x.float() for n, x in checkpoint.tensors.items() if n.startswith(prefix)}
            module.load_state_dict(own)
        self.table = checkpoint.tensors[ENTITY_TABLE].float()

    def ask(self, text: str, *, near: Sequence[str] = (), top: int = 10, hide: bool = False) -> Answers:
        """The likeliest entities of the mentions in brackets, and the neighbours of the entities `near`, or of each
        mention's first one. See `predict` and `nearest`."""
        plain, places = find_mentions(text)
        found = self.predict(plain, places, top=top, hide=hide)
        asked = near or list(dict.fromkeys(x.entities[0][0] for x in found))
        return Answers(plain, found, {title: self.nearest(title, top=top) for title in asked}, len(self.titles))

    @torch.inference_mode()
    def predict(
        self, text: str, places: Sequence[tuple[int, int]], *, top: int = 10, hide: bool = False
    ) -> list[Prediction]:
        """The likeliest entities of each mention, all of which are masked at once.

        places: their characters [start, end). hide: the mentions' words are masked, too. Raises ValueError for a
        mention without a piece, and a text that is longer than a window.
        """
        pieces_N, starts_N, ends_N = self.tokenizer.encode(text)
        room = self.encoder.config.max_window - 2
        if len(pieces_N) > room:
            raise ValueError(f"The text has {len(pieces_N)} pieces, but the encoder reads {room} at once: shorten it.")
        spans = []
        for start, end in places:
            inside = np.flatnonzero((starts_N < end) & (ends_N > start))
            if not len(inside):
                raise ValueError(f"The mention {text[start:end]!r} has no piece: expected letters or digits in it.")
            spans.append((int(inside[0]), int(inside[-1])))
        if hide:
            for first, last in spans:
                pieces_N[first : last + 1] = self.tokenizer.mask_id
        ids = torch.from_numpy(self.tokenizer.window(pieces_N))
        first_M, last_M = (torch.tensor([span[i] + 1 for span in spans]) for i in (0, 1))
        mentions = Mentions(torch.full_like(first_M, self.vocab.mask_row), first_M, last_M, [len(spans)])
        states_MD = self.encoder.entity_states(Windows(ids, [len(ids)]), mentions)
        shares_ME = self.head(states_MD, self.table)[:, self.rows_E].softmax(-1)
        return [Prediction(a, b, self._rank(shares, top)) for (a, b), shares in zip(places, shares_ME, strict=True)]

    @torch.inference_mode()
    def nearest(self, title: str, *, top: int = 10) -> Ranked:
        """The entities with the highest cosine of their rows with that of an entity, which is not among them."""
        row = self.vocab.row(title)
        if row is None:
            near = difflib.get_close_matches(title, self.titles, n=3)
            raise ValueError(
                f"{title!r} is not in the entity vocabulary of {len(self.titles):,} entities."
                + (f" Is one of {near} meant?" if near else "")
            )
        cosines_E = F.cosine_similarity(self.table[self.rows_E], self.table[row][None], dim=-1)
        cosines_E[self.rows_E == row] = -torch.inf
        return self._rank(cosines_E, min(top, len(self.titles) - 1))

    def _rank(self, scores_E: torch.Tensor, top: int) -> Ranked:
        values, best = scores_E.topk(min(top, len(self.titles)))
        return [(self.titles[i], value) for i, value in zip(best.tolist(), values.tolist())]
