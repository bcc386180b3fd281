"""Tries of marisa-trie, a library that has no types of its own: texts that are numbered, in little memory."""

from collections.abc import Iterable, Iterator
from typing import Protocol


class Trie(Protocol):
    """Texts, each with a number from 0 on, in an order that depends on the texts alone."""

    def __len__(self) -> int: ...

    def __contains__(self, text: str) -> bool: ...

    def __getitem__(self, text: str) -> int:
        """The number of a text. KeyError where there is no such text."""

    def get(self, text: str) -> int | None:
        """The number of a text, None where there is no such text."""

    def restore_key(self, number: int) -> str:
        """The text of a number."""

    def iterkeys(self, prefix: str = "") -> Iterator[str]:
        """All texts, or those that begin so."""

    def iter_prefixes_with_ids(self, text: str) -> Iterator[tuple[str, int]]:
        """The texts that a text begins with, and their numbers, the shortest first."""

    def tobytes(self) -> bytes:
        """What `map` reads."""

    def map(self, data: memoryview) -> "Trie":
        """The trie of these bytes, which are not copied. RuntimeError where they are none."""


def new_trie(texts: Iterable[str] = ()) -> Trie:
    """A trie. Raises ImportError, with what to install, where the library is missing."""
    try:
        from marisa_trie import Trie as MarisaTrie
    except ImportError as error:
        raise ImportError(
            'Stores of names need the library marisa-trie: pip install "spacy-luke[annotator]", or '
            "pip install marisa-trie."
        ) from error
    trie: Trie = MarisaTrie(texts)
    return trie
