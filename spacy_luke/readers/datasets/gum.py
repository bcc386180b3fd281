"""The names among the mentions of GUM (Zeldes, 2017), which marks all noun phrases that stand for something."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..conll import ColumnDocument, read_columns
from ..records import Mention, Record
from .names import trim_name

_PROPER = ("NNP", "NNPS")  # tags of proper nouns
_JOINING = frozenset("of for the and & 's ’s -".split())  # what may stand between the words of a name
_HEAD_COLUMN, _TAG_COLUMN = 6, 4  # of CoNLL-U
_PERSON = "person"


def read_gum_names(path: str | Path) -> Iterator[Record]:
    """Documents of a CoNLL-U file of GUM with the mentions that are names, nested ones too, under GUM's labels.

    A mention is a name where its head is a proper noun, and the name are the proper nouns around the head, without
    titles of persons: of "the former US president Bill Clinton, who" it is "Bill Clinton". In names of other things
    than persons other words may stand between proper nouns, as in "University of Portsmouth". The title is the
    name of the file, and from the second document on its number.
    """
    words = read_columns(path, format="gum")
    tags = read_columns(path, format="gum", word_column=_TAG_COLUMN)
    heads = read_columns(path, format="gum", word_column=_HEAD_COLUMN)
    for number, (document, tagged, headed) in enumerate(zip(words, tags, heads, strict=True)):
        heads_W = _heads(document, headed.words)
        found = {
            (*place, label)
            for start, end, label in document.layers[0]
            if (place := _name(document.words, tagged.words, heads_W, start, end, person=label == _PERSON))
        }
        yield Record(
            f"{path}, document {number}",
            words=document.words,
            spaces=document.spaces,
            sentence_starts=document.sentence_starts,
            mentions=[Mention(start, end, label) for start, end, label in sorted(_labelled_once(found))],
            title=Path(path).stem if number == 0 else f"{Path(path).stem} {number}",
        )


def _heads(document: ColumnDocument, cells: Sequence[str]) -> list[int]:
    """The word of the document on which each word depends, -1 for none."""
    ends = [*document.sentence_starts[1:], len(cells)]
    found = []
    for start, end in zip(document.sentence_starts, ends):
        found += [start + int(cell) - 1 if cell.isdecimal() and cell != "0" else -1 for cell in cells[start:end]]
    return found


def _name(
    words: Sequence[str], tags: Sequence[str], heads: Sequence[int], start: int, end: int, *, person: bool
) -> tuple[int, int] | None:
    """Where the name in the mention [start, end) is; None where there is none."""
    head = next((i for i in range(start, end) if not start <= heads[i] < end), None)
    if head is None or tags[head] not in _PROPER:
        return None
    first, last = head, head
    while (before := _next(words, tags, first, start - 1, -1, person=person)) is not None:
        first = before
    while (after := _next(words, tags, last, end, 1, person=person)) is not None:
        last = after
    return trim_name(words, first, last + 1, person=person)


def _next(words: Sequence[str], tags: Sequence[str], place: int, limit: int, step: int, *, person: bool) -> int | None:
    """The nearest proper noun that belongs to the name at `place`, before `limit`; at most two other words between."""
    for other in range(place + step, limit, step):
        if tags[other] in _PROPER:
            return other
        if tags[other] == "CD" and other == place + 1 and not person:
            return other
        joins = words[other] == "-" if person else words[other].lower() in _JOINING
        if not joins or abs(other - place) > 2:
            return None
    return None


def _labelled_once(found: set[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Each place with one label: the first by name."""
    places: set[tuple[int, int]] = set()
    for start, end, label in sorted(found):
        if (start, end) not in places:
            places.add((start, end))
            yield start, end, label
