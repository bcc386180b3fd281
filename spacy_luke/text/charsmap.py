"""SentencePiece's character normalisation (nmt_nfkc and the like), exactly, with character offsets.

The `tokenizers` library has it too (`Precompiled`), but normalises by grapheme: it loses marks after some characters
and does not compose conjoining Hangul. Reference: google/sentencepiece src/normalizer.cc, which replaces the longest
prefix that is in the map, again and again; its map is a double-array trie (s-yata/darts-clone) over UTF-8 bytes.
"""

import re
import unicodedata
from functools import lru_cache

import numpy as np

_NUL = b"\0"


@lru_cache(maxsize=100_000)
def continues(char: str) -> bool:
    """Whether a key of several characters may go on with this one: marks, Hangul vowels and finals, kana marks."""
    return unicodedata.category(char)[0] == "M" or "\u1160" <= char <= "\u11ff" or char in "\uff9e\uff9f"


def check_charsmap(data: bytes) -> None:
    """ValueError where the trie, whose size is in the first four bytes, is not in the others."""
    size = int.from_bytes(data[:4], "little")
    if len(data) < 8 or size % 4 or size > len(data) - 4:
        raise ValueError(f"Expected a compiled character map, but its {len(data)} bytes do not hold one.")


class Charsmap:
    """The compiled map of a SentencePiece model; an empty one changes nothing."""

    def __init__(self, data: bytes) -> None:
        if data:
            check_charsmap(data)
        size = int.from_bytes(data[:4], "little")
        self.data = data
        self._units = memoryview(data[4 : 4 + size]).cast("I")  # little-endian, as all machines that torch runs on
        self._normal = data[4 + size :]
        self._single = lru_cache(maxsize=100_000)(self._changes)

    def normalize(self, text: str) -> tuple[str, np.ndarray | None, np.ndarray | None]:
        """The normalised text, and for each of its characters [start, end) in `text` (None where nothing changes)."""
        chars = sorted(set(text))
        changed = "".join(char for char in chars if self._single(char))
        joined = "".join(char for char in chars if continues(char))
        choices = [f"[{re.escape(changed)}]"] if changed else []
        choices += [f".(?=[{re.escape(joined)}])"] if joined else []
        if not choices:
            return text, None, None
        out: list[str] = []
        starts: list[np.ndarray] = []
        ends: list[np.ndarray] = []
        done = 0
        for match in re.finditer("|".join(choices), text, re.DOTALL):
            start = match.start()
            if start < done:
                continue
            size, normal = self._longest(text[start : start + 8])
            if size == 0:
                continue
            out += [text[done:start], normal]
            starts += [np.arange(done, start), np.full(len(normal), start)]
            ends += [np.arange(done + 1, start + 1), np.full(len(normal), start + size)]
            done = start + size
        out.append(text[done:])
        starts.append(np.arange(done, len(text)))
        ends.append(np.arange(done + 1, len(text) + 1))
        return "".join(out), np.concatenate(starts), np.concatenate(ends)

    def _changes(self, char: str) -> bool:
        return self._longest(char)[0] > 0

    def _longest(self, text: str) -> tuple[int, str]:
        """The longest prefix of `text` that is in the map: its characters (0 for none), and what it becomes."""
        if not self.data:
            return 0, ""
        units, data = self._units, text.encode("utf8")
        found, value = 0, 0
        node = _offset(units[0])
        for at, byte in enumerate(data, start=1):
            node ^= byte
            unit = units[node]
            if unit & 0x800000FF != byte:
                break
            node ^= _offset(unit)
            if unit >> 8 & 1:
                found, value = at, units[node] & 0x7FFFFFFF
        if not found:
            return 0, ""
        normal = self._normal[value : self._normal.index(_NUL, value)].decode("utf8")
        return len(data[:found].decode("utf8")), normal


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
