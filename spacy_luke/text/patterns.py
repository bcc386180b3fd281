"""Regular expressions of other people's tokenizers: only those that read any text in time that grows with its length.

The `tokenizers` library matches by backtracking (Oniguruma), where `(a+)+$` or `a*a*b` take minutes for some thousand
letters. A pattern passes where this cannot happen: from each place on, it tries a bounded number of ways, and then
repeats without ever going back. That is, in each of its alternatives nothing is unlimited but at the end, and what is
unlimited there is followed only by what may be absent. All patterns of the tokenizers that our families of encoders
have are such, or are named in KNOWN.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from tokenizers import Tokenizer

_MOST_TRIED = 10_000  # characters read in all ways to match what is limited, from one place
_LONGEST = 10_000  # characters of a pattern
_DEEPEST = 50  # groups in groups
_LONGEST_WORD = 1000  # of WordPiece, which takes the square of a word's length
# Patterns that go back, but not far, because a later alternative takes what they gave up.
KNOWN = {
    # GPT-2
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    # Llama 3 and others of OpenAI's cl100k; Qwen 2
    *(
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        for digits in (r"\p{N}{1,3}", r"\p{N}")
    ),
}


class _Refused(Exception):
    """Says why."""


@dataclass(frozen=True)
class _Part:
    """ways: in how many ways at most it matches from one place; length: of the longest, what is unlimited once.
    unlimited: whether it may be of any length, and then is the last that can fail. empty: whether it may be absent, so
    that it cannot fail."""

    ways: int
    length: int
    unlimited: bool = False
    empty: bool = False


def check_patterns(tokenizer: Tokenizer, *, source: str) -> None:
    """Raises ValueError where a text could take time that grows faster than its length."""
    words = getattr(tokenizer.model, "max_input_chars_per_word", 0)
    if words > _LONGEST_WORD:
        raise ValueError(
            f"The tokenizer of {source} reads words of up to {words:,} characters, and WordPiece takes the square of "
            f"their length. Set max_input_chars_per_word to {_LONGEST_WORD:,} or less; BERT's is 100."
        )
    for step in (tokenizer.normalizer, tokenizer.pre_tokenizer):
        for pattern in [] if step is None else _patterns_of(json.loads(step.__getstate__())):
            if why := refusal(pattern):
                raise ValueError(
                    f"The tokenizer of {source} has the regular expression {pattern!r:.200}, which may take very long "
                    f"for some texts: {why}. Write it without, or save the tokenizer with another pre-tokenizer, such "
                    "as ByteLevel with use_regex."
                )


def _patterns_of(value: Any) -> list[str]:
    """All {"Regex": pattern} in a step of a tokenizer."""
    if isinstance(value, dict):
        own = [value["Regex"]] if isinstance(value.get("Regex"), str) else []
        return own + [x for inner in value.values() for x in _patterns_of(inner)]
    return [x for inner in value for x in _patterns_of(inner)] if isinstance(value, list) else []


def refusal(pattern: str) -> str | None:
    """Why a pattern may take longer than the text is long; None where it cannot."""
    if pattern in KNOWN:
        return None
    if len(pattern) > _LONGEST:
        return f"it has {len(pattern):,} characters, more than {_LONGEST:,}"
    try:
        _Reader(pattern).read()
    except _Refused as refused:
        return str(refused)
    return None


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.text, self.at, self.depth = pattern, 0, 0

    def read(self) -> None:
        self._alternatives()
        if self.at < len(self.text):
            raise _Refused("its brackets do not match")

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        part = _bounded(sum(part.ways for part in parts), max(part.length for part in parts))
        return replace(part, unlimited=any(x.unlimited for x in parts), empty=any(x.empty for x in parts))

    def _sequence(self) -> _Part:
        whole = _Part(1, 0, empty=True)
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._repeated()
            if whole.unlimited and not part.empty:
                raise _Refused(f"what may be of any length is followed by more, up to {self.text[: self.at][-20:]!r}")
            sizes = _bounded(whole.ways * part.ways, whole.length + part.length)
            whole = replace(sizes, unlimited=whole.unlimited or part.unlimited, empty=whole.empty and part.empty)
        return whole

    def _repeated(self) -> _Part:
        part = self._one()
        while counts := self._counts():
            least, most = counts
            if part.unlimited and (most is None or most > 1):
                raise _Refused(f"what may be of any length is repeated, up to {self.text[: self.at][-20:]!r}")
            times = max(least, 1) if most is None else most
            ways = part.ways ** min(times, 64) * (1 if most is None else most - least + 1)
            sizes = _bounded(ways, part.length * times)
            part = replace(sizes, unlimited=part.unlimited or most is None, empty=part.empty or least == 0)
        return part

    def _counts(self) -> tuple[int, int | None] | None:
        """Least and most times; None where nothing is repeated. Whether it is greedy makes no difference here."""
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                self._take("?")
                return counts
        end = self.text.find("}", self.at)
        if self.text[self.at : self.at + 1] != "{" or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not (low + high).isascii() or not all(x.isdigit() for x in (low, high) if x) or not (low or high):
            return None
        self.at = end + 1
        self._take("?")
        least = int(low[:9] or 0)
        return least, (int(high[:9]) if high else None) if comma else least

    def _one(self) -> _Part:
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            self._class()
        elif char == "\\":
            self._escape()
        elif char in "^$":
            return _Part(1, 0)
        return _Part(1, 1)

    def _group(self) -> _Part:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Refused(f"it has more than {_DEEPEST} groups in groups")
        looks = False
        if self._take("*"):
            raise _Refused("it has '(*', which is not known here")
        if self._take("?"):
            opened = next((x for x in ("<=", "<!", "=", "!", ":", ">") if self._take(x)), None)
            looks = opened in ("<=", "<!", "=", "!")
            if opened is None:
                self._flags()
        if self.text[self.at - 1] == ")":  # of flags alone, which hold for what follows
            part = _Part(1, 0, empty=True)
        else:
            part = self._alternatives()
            if not self._take(")"):
                raise _Refused("its brackets do not match")
        self.depth -= 1
        if looks and part.unlimited:
            raise _Refused("it looks ahead or back without limit")
        return _Part(part.ways, part.length) if looks else part

    def _flags(self) -> None:
        """Such as i in (?i:...) or (?i), or the name of a group."""
        ends = [x for x in (self.text.find(":", self.at), self.text.find(")", self.at)) if x >= 0]
        flags = self.text[self.at : min(ends)] if ends else "?"
        if not set(flags) <= set("ims-"):
            raise _Refused(f"it has {'(?' + flags[:10]!r}, which is not known here")
        self.at += len(flags) + 1

    def _class(self) -> None:
        """[...], with classes inside it."""
        depth, first = 1, True
        self._take("^")
        while depth:
            if self.at >= len(self.text):
                raise _Refused("its brackets do not match")
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            if char == "[":
                depth += 1
            elif char == "]" and not first:
                depth -= 1
            first = False

    def _escape(self) -> None:
        """One character or class of characters, or a place; what may be longer is not known here."""
        if self.at >= len(self.text):
            raise _Refused("it ends in a backslash")
        char = self.text[self.at]
        self.at += 1
        if char.isdigit() or char in "XRKkgNyY":
            raise _Refused(f"it has \\{char}, which is not known here")
        if char in "pPx" and self._take("{"):
            end = self.text.find("}", self.at)
            self.at = end + 1 if end >= 0 else len(self.text)
        elif char == "x":
            self.at += 2
        elif char == "u":
            self.at += 4

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True


def _bounded(ways: int, length: int) -> _Part:
    if ways * max(length, 1) > _MOST_TRIED:
        raise _Refused(f"from one place it may read more than {_MOST_TRIED:,} characters before it fails")
    return _Part(ways, length)
