"""Texts whose pieces were asked for last: components read a Doc one after another, and encode it once."""

from collections.abc import Callable

import numpy as np

CHARACTERS = 1_000_000  # of the texts that are held
Encoded = tuple[np.ndarray, np.ndarray, np.ndarray]


class RecentTexts:
    """What was made of texts, until they have too many characters: then all are forgotten. Threads may use it at once;
    they may encode a text twice."""

    def __init__(self) -> None:
        self._held: dict[str, Encoded] = {}
        self._characters = 0

    def encoded(self, text: str, encode: Callable[[str], Encoded]) -> Encoded:
        """`encode(text)`, whose arrays cannot be changed any more."""
        found = self._held.get(text)
        if found is None:
            found = encode(text)
            for x in found:
                x.flags.writeable = False
            if self._characters + len(text) > CHARACTERS:
                self._held, self._characters = {}, 0
            self._held[text] = found
            self._characters += len(text)
        return found
