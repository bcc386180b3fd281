"""Batches of ERNIE's pretraining: entities corrupted as code/run_pretrain.py does, vectors gathered, candidates listed.

N packed pieces of B windows; K masked pieces, A pieces that had an entity before the corruption, E those that have one
after it, C candidates, H width of an entity's vector.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...model.ernie import Knowledge
from ...model.luke import Windows
from ...vectors.store import EntityVectors
from ..stream import BatchSize, Position, Stream, batch_instances
from .instances import Instance
from .sources import ErnieSource

_CANDIDATES = ("batch", "sequence")
_KEPT, _REPLACED, _REMOVED = "kept", "replaced", "removed"
CORRUPTIONS = (_KEPT, _REPLACED, _REMOVED)


@dataclass(frozen=True)
class ErnieBatch:
    """Windows after corruption, and what is asked of them.

    masked_K, linked_A: rows of the packed pieces whose piece, and whose entity, is asked; pieces_K: the pieces; gold_A:
    the entities before the corruption, as rows of candidates_CH; kinds_A: what happened to each, as an index of
        CORRUPTIONS; allowed_AC: candidates of each, None for all; random_B: 1 where the second sentence is a random
        one; name: for messages.
    """

    windows: Windows
    knowledge: Knowledge
    masked_K: Tensor
    pieces_K: Tensor
    linked_A: Tensor
    gold_A: Tensor
    kinds_A: Tensor
    candidates_CH: Tensor
    allowed_AC: Tensor | None
    random_B: Tensor
    name: str

    @property
    def counts(self) -> dict[str, int]:
        return {"mlm": len(self.pieces_K), "nsp": len(self.random_B), "dea": len(self.gold_A)}


def corrupt(
    entities: Sequence[int], candidates: Sequence[int], *, rng: random.Random, replaced: float, removed: float
) -> tuple[list[int], list[int]]:
    """Entities after the corruption, -1 where one was removed, and what happened to each, as an index of CORRUPTIONS.

    candidates: the first stands for no entity; one of the others replaces, perhaps the same one. The draws are those of
    run_pretrain.py, so that the same random numbers corrupt alike.
    """
    after, kinds = [], []
    for entity in entities:
        drawn = rng.random()
        if drawn < replaced:
            after.append(candidates[rng.randint(1, len(candidates) - 1)])
            kinds.append(CORRUPTIONS.index(_REPLACED))
        elif drawn < replaced + removed:
            after.append(-1)
            kinds.append(CORRUPTIONS.index(_REMOVED))
        else:
            after.append(entity)
            kinds.append(CORRUPTIONS.index(_KEPT))
    return after, kinds


def collate(
    instances: Sequence[Instance],
    vectors: EntityVectors,
    *,
    rng: random.Random,
    replaced: float = 0.05,
    removed: float = 0.15,
    candidates: str = "batch",
    name: str = "",
) -> ErnieBatch:
    """Corrupt the entities of a batch and gather their vectors.

    candidates: "batch": the batch's different entities, and a row of zeros for none, which is never right (code); or
    "sequence": the entities of the window alone (paper, equation 7).
    """
    if candidates not in _CANDIDATES:
        raise ValueError(f"candidates must be one of {_CANDIDATES}, but it is {candidates!r}.")
    lengths = [len(instance.pieces_N) for instance in instances]
    entities_N = np.concatenate([instance.entities_N for instance in instances])
    labels_N = np.concatenate([instance.labels_N for instance in instances])
    linked_A, masked_K = np.flatnonzero(entities_N >= 0), np.flatnonzero(labels_N >= 0)
    before_A = entities_N[linked_A]
    rows_C = np.concatenate([[-1], np.unique(before_A)])
    after, kinds = corrupt(before_A.tolist(), rows_C.tolist(), rng=rng, replaced=replaced, removed=removed)
    after_A = np.array(after, dtype=np.int64)
    starts_B = np.cumsum(lengths) - lengths
    window_A = np.searchsorted(starts_B, linked_A, side="right") - 1
    stays_A = after_A >= 0
    gold_A = np.searchsorted(rows_C, before_A)
    candidates_CH = np.zeros((len(rows_C), vectors.size), np.float32)
    candidates_CH[1:] = vectors.gather(rows_C[1:])
    allowed_AC = None
    if candidates == "sequence":
        allowed_BC = np.zeros((len(lengths), len(rows_C)), bool)
        allowed_BC[window_A, gold_A] = True
        allowed_AC = torch.from_numpy(allowed_BC[window_A])
    return ErnieBatch(
        windows=Windows(
            pieces_N=torch.from_numpy(np.concatenate([instance.pieces_N for instance in instances])),
            lengths=lengths,
            types_N=torch.from_numpy(np.concatenate([instance.types_N for instance in instances])),
        ),
        knowledge=Knowledge(
            vectors_EH=torch.from_numpy(candidates_CH[np.searchsorted(rows_C, after_A[stays_A])]),
            at_E=torch.from_numpy((linked_A - starts_B[window_A])[stays_A]),
            counts=np.bincount(window_A[stays_A], minlength=len(lengths)).tolist(),
        ),
        masked_K=torch.from_numpy(masked_K),
        pieces_K=torch.from_numpy(labels_N[masked_K]),
        linked_A=torch.from_numpy(linked_A),
        gold_A=torch.from_numpy(gold_A),
        kinds_A=torch.tensor(kinds, dtype=torch.long),
        candidates_CH=torch.from_numpy(candidates_CH),
        allowed_AC=allowed_AC,
        random_B=torch.tensor([int(instance.is_random) for instance in instances]),
        name=name or f"{instances[0].name} to {instances[-1].name}",
    )


def ernie_stream(
    source: ErnieSource[Any],
    vectors: EntityVectors,
    task: dict[str, Any],
    size: BatchSize,
    seed: int,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> Stream:
    """Batches from a position on; the corruption is a function of the seed and the batch's number."""

    def stream(position: Position) -> Iterator[tuple[ErnieBatch, Position]]:
        batches = batch_instances(
            source, position, size=size, pieces_of=source.pieces_of, rank=rank, world_size=world_size
        )
        for drawn, after in batches:
            number = after.batches - world_size + rank + 1
            rng = random.Random(f"{seed}-0-{number}")
            instances = [source.read(x) for x in drawn]
            name = f"{number} (before {after}): {instances[0].name} to {instances[-1].name}"
            yield collate(instances, vectors, rng=rng, name=name, **task), after

    return stream


def held_out_batches(
    source: ErnieSource[Any], vectors: EntityVectors, task: dict[str, Any], size: int, limit: int, seed: int
) -> list[ErnieBatch]:
    """The first batches of the held-out data's first pass, with a corruption that stays the same."""
    instances = []
    for drawn, after in islice(source.instances(Position()), limit * size):
        if after.epoch:
            break
        instances.append(source.read(drawn))
    groups = [instances[i : i + size] for i in range(0, len(instances), size)]
    return [collate(group, vectors, rng=random.Random(f"{seed}-dev-{i}"), **task) for i, group in enumerate(groups)]
