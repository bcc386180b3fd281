"""Batches of a training that say themselves in which parts they are learned from, by words."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.training.loop import subdivide_batch
from spacy.util import registry

Batcher = Callable[[Iterable[Example]], Iterator[list[Example]]]


class WordBatch(list[Example]):
    """A batch that is learned from in parts of at most part_words words, None: as a whole."""

    part_words: int | None


@registry.batchers("spacy-luke.batch_by_words.v1")
def make_batcher(words: int, part_words: int | None = None, tolerance: float = 0.2) -> Batcher:
    """Batches of so many words, of which a step is made, each learned from in parts of fewer words: a step may so be
    larger than what memory holds. `spacy luke train` knows of the parts; `spacy train` does not, and reads
    accumulate_gradient instead.

    words: of a batch, that is a step of all processes, a longer Doc alone.
    part_words: of what one process learns from at once; null: its whole share.
    tolerance: share of `words` by which a batch may be longer.
    """
    if words < 1 or (part_words is not None and part_words < 1):
        raise ValueError(f"words and part_words must be numbers from 1, but they are {words} and {part_words}.")

    def batch(examples: Iterable[Example]) -> Iterator[list[Example]]:
        for found in minibatch_by_words(examples, words, tolerance=tolerance):
            made = WordBatch(found)
            made.part_words = part_words
            yield made

    return batch


def divide_batch(share: Sequence[Example], batch: Any, accumulate: int) -> Iterator[list[Example]]:
    """The parts of a process's share of a batch, each for an update: by words where the batch says of how many, else as
    many as [training] accumulate_gradient says. Docs of a part are about as long."""
    if not isinstance(batch, WordBatch):
        yield from subdivide_batch(share, accumulate)
        return
    part: list[Example] = []
    words = 0
    for example in sorted(share, key=lambda example: len(example.predicted)):
        size = len(example.predicted)
        if part and batch.part_words is not None and words + size > batch.part_words:
            yield part
            part, words = [], 0
        part.append(example)
        words += size
    if part:
        yield part
