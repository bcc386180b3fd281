"""Names that look the same and are two: "ö" is one character in Unicode's form NFC, and an "o" with a mark in NFD."""

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator

_MOST = 1_000_000  # names that are kept in memory


class UnicodeForms:
    """Watches the names that go to a store, and warns of those that are equal but for their Unicode form. Only names
    that are not in form NFC are kept, the first million of them; mostly there are none."""

    def __init__(self) -> None:
        self._others: dict[str, list[str]] = {}  # by their form NFC
        self._kept = 0

    def watch(self, names: Iterable[str]) -> Iterator[str]:
        """The names as they are, each once."""
        for name in names:
            if not name.isascii() and self._kept < _MOST and not unicodedata.is_normalized("NFC", name):
                self._others.setdefault(unicodedata.normalize("NFC", name), []).append(name)
                self._kept += 1
            yield name

    def warn(self, row_of: Callable[[str], int | None], *, what: str) -> None:
        """Once all were watched. row_of: the row of a name, None where the store lacks it: names of one row are one
        entity's. what: how the names are called, such as "ids"."""
        count, example = 0, None
        for name, others in self._others.items():
            row_of_name = {x: row for x in (name, *others) if (row := row_of(x)) is not None}
            if len(set(row_of_name.values())) > 1:
                count += len(row_of_name)
                example = example or list(row_of_name)
        if example:
            warnings.warn(
                f"{count:,} {what} are equal to others but for their Unicode form, such as {example[0]!r}, once as "
                f"{example[0]!a} and once as {example[1]!a}: each is an entity of its own, and what has the other form "
                "does not find it. Bring all sources to one form, in Python with unicodedata.normalize('NFC', text), "
                "and build again.",
                stacklevel=3,
            )


def warn_of_forms(names: Iterable[str], row_of: Callable[[str], int | None], *, what: str) -> None:
    """As `UnicodeForms.warn`, of names that are at hand."""
    forms = UnicodeForms()
    for _ in forms.watch(names):
        pass
    forms.warn(row_of, what=what)
