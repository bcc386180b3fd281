"""Finding the names of a store in a text whose words are known."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..text.forms import piece_of, units
from .store import AliasStore, float32
from .trie import Trie


class Match(NamedTuple):
    """A name in a text: its words [start, end), and its number in the store."""

    start: int
    end: int
    number: int


@dataclass(frozen=True)
class Words:
    """A text in the form of keys, and the characters [start, end) of its words in it; blanks are no words.

    number_W: which item of what it was made from each word is.
    """

    text: str
    start_W: list[int]
    end_W: list[int]
    number_W: list[int]


@dataclass(frozen=True)
class Filter:
    """Which names are looked for: link probability and best prior at least these, words at most these (None: any)."""

    min_link_probability: float = 0.0
    min_prior: float = 0.0
    max_words: int | None = None


def join_words(words: Iterable[tuple[str, bool]], *, case: str) -> Words:
    """Words and whether a blank follows each. An item that is blank itself is a blank; an empty line in it ends a
    paragraph, which no name crosses."""
    parts: list[str] = []
    found = Words("", [], [], [])
    length, blank, after_word = 0, False, False
    for number, (word, followed) in enumerate(words):
        piece, begins, ends = piece_of(word, case)
        if not piece:
            if word.count("\n") > 1:
                parts.append("\n")
                length, after_word = length + 1, False
            blank = True
            continue
        if blank and after_word and begins:
            parts.append(" ")
            length += 1
        found.start_W.append(length)
        length += len(piece)
        found.end_W.append(length)
        found.number_W.append(number)
        parts.append(piece)
        blank, after_word = followed, ends
    return Words("".join(parts), found.start_W, found.end_W, found.number_W)


def split_key(key: str) -> Words:
    """The units of a key (see `text.forms.units`) as words: for texts without a tokenizer."""
    spans = list(units(key))
    return Words(key, [start for start, _ in spans], [end for _, end in spans], list(range(len(spans))))


def match_names(
    store: AliasStore, words: Words, *, names: Filter = Filter(), overlaps: bool = False
) -> Iterator[Match]:
    """From the left the longest name at each word, then on behind it, as LUKE's reference code does
    (examples/legacy/reading_comprehension/utils/feature.py); overlaps: every name at each word, the shorter first."""
    text, starts, word_at = words.text, words.start_W, {end: i for i, end in enumerate(words.end_W)}
    n_words, longest, lookup, rate = len(starts), store.longest, store.numbers_of_prefixes, store.link_probability_of
    reach = n_words if names.max_words is None else names.max_words
    min_link, min_prior = float32(names.min_link_probability), float32(names.min_prior)
    i = 0
    while i < n_words:
        start = starts[i]
        stop = min(words.end_W[min(i + reach, n_words) - 1], start + longest)
        found = None
        for key, number in lookup(text[start:stop]):
            last = word_at.get(start + len(key))
            if last is None or rate(number) < min_link:
                continue
            if min_prior and store.best_prior_of(number) < min_prior:
                continue
            found = Match(i, last + 1, number)
            if overlaps:
                yield found
        if found is None or overlaps:
            i += 1
        else:
            yield found
            i = found.end


def count_names(trie: Trie, words: Words, counts: "array[int]", *, longest: int) -> None:
    """Add to `counts`, for each number of the trie, the places of its key: all of them, also those inside of others."""
    text, ends = words.text, set(words.end_W)
    for start in words.start_W:
        for key, number in trie.iter_prefixes_with_ids(text[start : start + longest]):
            if start + len(key) in ends:
                counts[number] += 1
