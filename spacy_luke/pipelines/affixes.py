"""spaCy's tokenizer in time that grows with a text, not with the square of its longest stretch without a blank.

It takes punctuation off a stretch sign by sign, and looks for the next one in all that is left: 80,000 characters of
"!?" take minutes, in which nothing else of the process runs.
"""

import re
from collections.abc import Callable
from typing import Any

from spacy.language import Language
from spacy.tokenizer import Tokenizer  # type: ignore[import-not-found]

WINDOW = 256  # characters at an end in which an affix is looked for

Search = Callable[[str], "re.Match[str] | None"]


class NearSearch:
    """Looks for an affix near an end of a string, and in all of it only where what is found reaches farther.

    search: of an expression that begins with ^ or ends with $, as a tokenizer of spaCy's has it. The tokenizer saves
    the pattern of `__self__`.
    """

    def __init__(self, search: Search, *, at_end: bool) -> None:
        self.search, self.at_end = search, at_end
        self.__self__ = getattr(search, "__self__", None)

    def __call__(self, text: str) -> "re.Match[str] | None":
        if len(text) <= WINDOW:
            return self.search(text)
        found = self.search(text[-WINDOW:] if self.at_end else text[:WINDOW])
        edge = found is not None and (found.start() == 0 if self.at_end else found.end() == WINDOW)
        return self.search(text) if edge else found

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.search, self.at_end)


def look_near(nlp: Language) -> None:
    """Let the tokenizer of a pipeline look for affixes near the ends alone; it finds the same words. A tokenizer of
    another class stays as it is."""
    tokenizer = nlp.tokenizer
    if type(tokenizer) is not Tokenizer:
        return
    for name, at_end in (("prefix_search", False), ("suffix_search", True)):
        search = getattr(tokenizer, name)
        if search is not None and not isinstance(search, NearSearch):
            setattr(tokenizer, name, NearSearch(search, at_end=at_end))


def _make(search: Search, at_end: bool) -> NearSearch:
    return NearSearch(search, at_end=at_end)
