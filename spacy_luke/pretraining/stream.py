"""An endless stream of training instances that can be taken up again at any batch.

All that is random in the data is a function of a seed and the place in the stream, so a `Position` is all that resuming
needs to know of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import Field, asdict, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar


@dataclass(frozen=True)
class Position:
    """epoch: passes over the data that are over; start: first document of the block at hand, where there are blocks;
    used: its instances that are used up; batches: batches that were made, of all processes."""

    epoch: int = 0
    start: int = 0
    used: int = 0
    batches: int = 0

    def __str__(self) -> str:
        return f"epoch {self.epoch}, document {self.start}, instance {self.used}"

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


class TrainingBatch(Protocol):
    """What a model is given at once, a dataclass. name: which part of the data it is, for messages; counts: by loss,
    over how many its sum is averaged."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str: ...

    @property
    def counts(self) -> dict[str, int]: ...


# from a position on, each with the position after it
Stream = Callable[[Position], Iterator[tuple[TrainingBatch, Position]]]
InstanceT_co = TypeVar("InstanceT_co", covariant=True)
InstanceT = TypeVar("InstanceT")


class InstanceSource(Protocol[InstanceT_co]):
    """Where instances come from; the same position always gives the same ones.

    counts: what was read and what was left out since the process began, see `instances.report_counts`.
    """

    counts: Counter[str]

    def instances(self, position: Position) -> Iterator[tuple[InstanceT_co, Position]]:
        """Endless: each instance from a position on, with the position after it."""


@dataclass(frozen=True)
class BatchSize:
    """instances: of a batch; pieces: in place of these, the most of a batch, by `pieces_of` an instance; one that has
    more is a batch of its own."""

    instances: int
    pieces: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("batch_size", self.instances), ("batch_pieces", self.pieces)):
            if number is not None and number < 1:
                raise ValueError(f"training.{name} must be a whole number from 1, but it is {number}.")


def batch_instances(
    source: InstanceSource[InstanceT],
    position: Position,
    *,
    size: BatchSize,
    pieces_of: Callable[[InstanceT], int],
    rank: int = 0,
    world_size: int = 1,
) -> Iterator[tuple[list[InstanceT], Position]]:
    """Batches of such a size for one of `world_size` processes, each with the position after it.

    The processes take turns in batches of consecutive instances, which go over the end of an epoch: no instance is
    lost, and no batch is smaller for it. So the batches of a step are the same ones, and have the same numbers, whether
    processes share them or one makes them one after another. Position is of the stream, the same for all processes; its
    `batches` is world_size more than before, and the process's own one is the number `batches - world_size + rank + 1`.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"Expected a rank below the number of processes, but got {rank} of {world_size}.")
    batches, held = position.batches, list[list[InstanceT]]()
    for batch, after in _cut(source.instances(position), size, pieces_of):
        held.append(batch)
        if len(held) == world_size:
            batches += world_size
            yield held[rank], replace(after, batches=batches)
            held = []


def _cut(
    drawn: Iterator[tuple[InstanceT, Position]], size: BatchSize, pieces_of: Callable[[InstanceT], int]
) -> Iterator[tuple[list[InstanceT], Position]]:
    """One batch after the other, with the position after its last instance."""
    batch, pieces, end = list[InstanceT](), 0, Position()
    for instance, after in drawn:
        own = pieces_of(instance) if size.pieces is not None else 0
        if batch and size.pieces is not None and pieces + own > size.pieces:
            yield batch, end
            batch, pieces = [], 0
        batch.append(instance)
        pieces, end = pieces + own, after
        if size.pieces is None and len(batch) == size.instances:
            yield batch, end
            batch = []
