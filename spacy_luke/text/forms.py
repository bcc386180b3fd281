"""When two names are the same: form NFC or NFD, blanks beside punctuation and, where wanted, case make no difference.

A name's key is its text in form NFC, with a blank only between two words: "AT & T" and "AT&T" are one name, and so are
"Ada 's" and "Ada's", since data sets and tokenizers differ in this.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from .scripts import ALONE

NAME_CASES = ("exact", "casefold")


def _ranges(wanted: str) -> str:
    """Of a text with a place for each of the first 65,536 characters those that are no blanks, for a pattern."""
    return "".join(rf"\u{x.start():04x}-\u{x.end() - 1:04x}" for x in re.finditer(r"\S+", wanted))


def _word_characters() -> tuple[str, str]:
    """Letters, digits, the underscore, the marks on letters and the joiners between them, as ranges for a pattern, and
    these without scripts whose characters are words."""
    characters = [chr(code) for code in range(0x10000)]
    words = [x if x.isalnum() or unicodedata.category(x)[0] == "M" or x in "_\u200c\u200d" else " " for x in characters]
    some = _ranges(re.sub(f"[{ALONE}]", " ", "".join(words)))
    return _ranges("".join(words)) + r"\U00010000-\U0003ffff", some + r"\U00010000-\U0001efff"


LETTERS, _WORD = _word_characters()
_WORDS = re.compile(f"[{LETTERS}]+")
_DOTS = re.compile("(?<=i)\u0307")
_NEEDLESS_BLANK = re.compile(f" (?![{_WORD}])|(?<![{_WORD}]) ")
_UNIT = re.compile(f"[{_WORD}]+|\\S")
_STARTS_WORD = re.compile(f"[{_WORD}]")
_TRAIL = re.compile(f"(?:(?![\\d_])[{_WORD}])*")
_BETWEEN = re.compile(f"(?:(?![{ALONE}])[^{_WORD}]|_)+")
_ASCII_BETWEEN = re.compile("[^A-Za-z0-9]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SIGNS = re.compile(r"\d+|(?<=\w)[+#]+(?!\w)")
_POSSESSIVE = re.compile("(?<=.)(?:['\u2019\u02bc][sS]|(?<=[sS])['\u2019\u02bc])$", re.DOTALL)


def check_case(case: str) -> str:
    if case not in NAME_CASES:
        raise ValueError(f"case must be one of {NAME_CASES}, but it is {case!r}.")
    return case


def key_of(text: str, *, case: str) -> str:
    """The form of a name that is compared: NFC, one blank between words and none beside punctuation. casefold: as
    `str.casefold`, otherwise the case counts."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if case == "casefold":
        text = text.casefold()
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
    text = " ".join(text.split())
    return _NEEDLESS_BLANK.sub("", text) if " " in text else text


def distinct(names: Iterable[str], *, case: str) -> list[str]:
    """Names in order, of those with one key the first."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(key_of(name, case=case), name)
    return list(first.values())


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in small letters (see `fold_case`), without punctuation, with the marks on their letters."""
    return tuple(_WORDS.findall(fold_case(text)))


def fold_case(key: str) -> str:
    """What keys that differ in case have in common, also in Turkish ("I" with and without dot), and those that differ
    in the width of their letters."""
    folded = key.casefold()
    if folded.isascii():
        return folded
    return _DOTS.sub("", unicodedata.normalize("NFKC", folded).casefold()).replace("\u0131", "i")


def letters_of(key: str) -> str:
    """A key without blanks and punctuation: "U.S." and "US" have the same."""
    return (_ASCII_BETWEEN if key.isascii() else _BETWEEN).sub("", key)


def loose_form_of(key: str) -> str:
    """What keys that differ in case, width of letters, blanks and punctuation have in common."""
    return letters_of(fold_case(key))


def signs_of(key: str) -> list[str]:
    """What names that have one loose form must share to be one: their numbers ("Windows 1.1" is not "Windows 11", but
    "1,000" is "1000"), and + and # at the end of words ("C++" is not "C")."""
    return _SIGNS.findall(_THOUSANDS.sub("", fold_case(key)))


def title_case_of(key: str) -> str:
    """An all-caps key with a capital at the beginning of each word alone, as deep-ed's and mulrel-nel's
    `modify_uppercase_phrase`; any other key as it is."""
    if key != key.upper():
        return key
    return " ".join(word[:1] + word[1:].lower() for word in key.split(" "))


def without_possessive(key: str) -> str:
    """A key without the 's or the apostrophe of a possessive at its end."""
    return _POSSESSIVE.sub("", key)


@lru_cache(maxsize=1 << 15)
def piece_of(word: str, case: str) -> tuple[str, bool, bool]:
    """The key of a word, and whether it begins and ends with a character of words: only between these is a blank."""
    key = key_of(word, case=case)
    return key, bool(key and _STARTS_WORD.match(key[0])), bool(key and _STARTS_WORD.match(key[-1]))


def units(key: str) -> Iterator[tuple[int, int]]:
    """Words and single other characters of a key, [start, end): where names may begin and end without a tokenizer."""
    return (match.span() for match in _UNIT.finditer(key))


def letters_after(text: str, start: int) -> int:
    """Where the letters that follow at `start` end: in wikitext, "[[bus]]es" is a link of the text "buses"."""
    match = _TRAIL.match(text, start)
    return match.end() if match else start
