"""Names of entities by the page that links them, and where they stand in its texts (LUKE, appendix C).

The file is that of the original repository (examples/reading_comprehension/mention_candidates), and what `spacy luke
page-names` writes: {title of a page: {name: title of its entity}}.
"""

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from ..json_files import read_json
from .linking import title_of

Names = dict[str, str]  # of a page: lower-cased name -> entity


class PageNames:
    """The names of each page, lower-cased; those that then mean two entities are left out."""

    def __init__(self, pages: Mapping[str, Mapping[str, str]]):
        self.pages = {title: lower_names(names) for title, names in pages.items()}

    @classmethod
    def read(cls, path: str | Path) -> "PageNames":
        pages = read_json(path)
        if not isinstance(pages, dict) or not all(
            isinstance(names, dict) and all(isinstance(x, str) for x in names.values()) for names in pages.values()
        ):
            raise ValueError(f"{path}: expected an object {{page: {{name: entity}}}}, but got {str(pages)[:80]!r}.")
        return cls(pages)

    def of(self, title: str) -> Names | None:
        """title: of a page, also as in its address, with underscores. None for a page that is not known."""
        written = (title, title.replace("_", " "), title_of(unquote(title)))
        return next((self.pages[x] for x in written if x in self.pages), None)


def lower_names(names: Mapping[str, str]) -> Names:
    found: Names = {}
    several = set()
    for name, entity in names.items():
        lowered = name.lower().strip()
        if lowered and found.setdefault(lowered, entity) != entity:
            several.add(lowered)
    return {name: entity for name, entity in found.items() if name not in several}


def find_names(text: str, names: Names) -> list[tuple[int, int, str]]:
    """Places [start, end) of names in a text with their entities, from left to right the longest at each place, none
    inside another. A name begins after a blank or with a punctuation mark, and ends before one of the two, as pieces
    that are no continuations do in the original."""
    if not names:
        return []
    longest = max(map(len, names))
    after_blank = [not i or text[i - 1].isspace() for i in range(len(text))]
    starts = [i for i, x in enumerate(text) if not x.isspace() and (_divides(text, i) or after_blank[i])]
    ends = [i for i in range(1, len(text) + 1) if i == len(text) or text[i].isspace() or _divides(text, i)]
    found: list[tuple[int, int, str]] = []
    reached = first = 0
    for start in starts:
        if start < reached:
            continue
        while first < len(ends) and ends[first] <= start:
            first += 1
        last = first
        while last < len(ends) and ends[last] - start <= longest:
            last += 1
        for end in reversed(ends[first:last]):
            if (entity := names.get(text[start:end].lower())) is not None:
                found.append((start, end, entity))
                reached = end
                break
    return found


def _divides(text: str, place: int) -> bool:
    """Whether a punctuation mark stands there, by BERT's rule: all that is neither letter nor number in ASCII, too."""
    mark = text[place]
    if mark.isascii():
        return not mark.isalnum() and mark.isprintable() and not mark.isspace()
    return unicodedata.category(mark).startswith("P")
