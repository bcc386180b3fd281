"""LitBank (Bamman et al., 2019): entities in 100 novels."""

from collections.abc import Iterator
from pathlib import Path

from ...stores.plain_text import read_lines
from ..lines import decode_line
from ..records import Mention, Record, check_choice
from .names import trim_name
from .places import other_words, same_words

_KINDS = ("all", "names")
_PROPER, _PERSON = "PROP", "PER"
_COLUMNS = 9


def read_litbank(path: str | Path, *, kinds: str = "all") -> Iterator[Record]:
    """A novel of `coref/tsv`: the .ann file, beside it the .txt with a sentence a line.

    A line of the .ann is MENTION, its id, its first sentence and word, its last ones, text, type (PER, FAC, LOC, GPE,
    ORG, VEH) and kind (PROP, NOM, PRON); others tell of coreference. kinds: "all" mentions, or only "names" (PROP),
    without articles and titles of persons. Mentions may be nested. The title is the name of the file. Raises
    ValueError for lines that are none, places outside the text, and where a mention's own text is not what stands
    there.
    """
    check_choice("kinds", kinds, _KINDS)
    path = Path(path)
    text = path.with_suffix(".txt")
    if not text.exists():
        raise ValueError(f"{path}: expected the text beside it, {text.name}, but it is not there.")
    words: list[str] = []
    starts: list[int] = []
    for raw in read_lines(text):
        starts.append(len(words))
        words += raw.split()
    edges = [*starts, len(words)]
    mentions: dict[tuple[int, int, str], None] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            cells = decode_line(path, number, line).split("\t")
            if cells[0] != "MENTION":
                continue
            if len(cells) != _COLUMNS:
                raise ValueError(f"{path}, line {number}: expected {_COLUMNS} columns, but got {len(cells)}.")
            if not all(cell.isdecimal() for cell in cells[2:6]):
                raise ValueError(
                    f"{path}, line {number}: expected numbers of sentences and words, but got {cells[2:6]}."
                )
            first_sentence, first, last_sentence, last = (int(cell) for cell in cells[2:6])
            if not max(first_sentence, last_sentence) < len(starts):
                raise ValueError(f"{path}, line {number}: expected sentences of the {len(starts)} in {text.name}.")
            start, end = edges[first_sentence] + first, edges[last_sentence] + last + 1
            if not edges[first_sentence] <= start < end <= edges[last_sentence + 1]:
                raise ValueError(f"{path}, line {number}: the mention {cells[6]!r} is not inside its sentence.")
            if not same_words(cells[6], stands := " ".join(words[start:end])):
                raise other_words(f"{path}, line {number}", " ".join(cells[2:6]), cells[6], stands)
            if kinds == "all":
                mentions[start, end, cells[7]] = None
            elif cells[8] == _PROPER and (place := trim_name(words, start, end, person=cells[7] == _PERSON)):
                mentions[(*place, cells[7])] = None
    starts = [start for start, after in zip(starts, edges[1:]) if start < after]
    yield Record(
        str(path),
        words=words,
        sentence_starts=starts,
        mentions=[Mention(*place) for place in sorted(mentions)],
        title=path.stem,
    )
