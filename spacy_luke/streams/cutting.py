"""A stream of texts in parts, and a part in batches, both by words: what a worker is given, and a pipeline at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from .given_texts import GivenText, InputItem, UnreadText, count_words

Item = TypeVar("Item")


class PartLimits(NamedTuple):
    """words, documents: of a part, which ends with the document that reaches one of them."""

    words: int
    documents: int


class StreamPart(NamedTuple):
    """number: of the part, from 0; digest: of all that decides what is found in it."""

    number: int
    items: Sequence[InputItem]
    digest: str


def part_name(number: int) -> str:
    """Sorted as text, names are in the order of the numbers up to a million parts."""
    return f"part-{number:06d}"


def cut_parts(items: Iterable[InputItem], limits: PartLimits) -> Iterator[StreamPart]:
    """The same parts, whoever reads them, of the same items."""
    part: list[InputItem] = []
    number = words = 0
    for item in items:
        part.append(item)
        words += count_words(item.text) if isinstance(item, GivenText) else 1
        if words >= limits.words or len(part) >= limits.documents:
            yield StreamPart(number, part, _digest(part))
            part, words, number = [], 0, number + 1
    if part:
        yield StreamPart(number, part, _digest(part))


def cut_batches(items: Iterable[Item], words: int, count: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Batches of at most so many words, but of one item at least. count: words of an item."""
    batch: list[Item] = []
    size = 0
    for item in items:
        its = count(item)
        if batch and size + its > words:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += its
    if batch:
        yield batch


def _digest(part: Sequence[InputItem]) -> str:
    digest = blake2b(digest_size=16)
    for item in part:
        if isinstance(item, UnreadText):
            fields: tuple[str, ...] = ("unread", item.id, item.place, item.message)
        else:
            fields = (item.id, item.place, item.text, repr(item.questions), repr(item.queries), item.fields)
        for field in fields:
            raw = field.encode("utf8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.hexdigest()
