"""Where sentences begin, by blank lines, by lines that end on purpose, and by full stops.

Nothing here looks into a word: sentences begin with words, and blanks and line breaks are the end of the one before.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

_BREAK = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_NEW_PAGE = "\f\u2029"  # a line break that is as good as a blank line
# What a line of a list, or a heading in Markdown, begins with. Letters need a bracket: "A." is most often a name's.
_BULLET = re.compile(
    r"(?:[-*+\u2022\u2023\u25e6\u25aa\u25cf\u00b7\u2013\u2014]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\)|#{1,6})\s+\S"
)
_RULE = re.compile(r"(?:[-=_*~#+|: ]){3,}$")  # a line that is drawn
_NARROW = 40  # characters: shorter lines were not broken for want of room

Line = tuple[int, int, str, str]  # first word, one past the last, the text between, what breaks stand before it


def line_starts(words: Sequence[str], spaces: Sequence[bool]) -> list[int]:
    """Words that begin a sentence because of the lines that they stand in, ascending.

    words: of a text, its white space among them as spaCy keeps it; spaces: whether a blank follows each. A sentence
        begins
    - after a blank line;
    - with a line that a list's bullet or number begins;
    - after a line that ends early: the next word would have fitted into the longest line of the paragraph, or into
      NARROW characters; but not where the next line goes on with a small letter, or is an indented one of a list. So
      headings, addresses, and rows of tables end, and text that was broken to a width does not.
    """
    starts = []
    for paragraph in _paragraphs(words, spaces):
        starts.append(paragraph[0][0])
        width = max(_NARROW, *(len(text) for _, _, text, _ in paragraph))
        in_list = False
        for (_, _, before, _), (first, _, text, white) in zip(paragraph, paragraph[1:]):
            in_list = in_list or bool(_BULLET.match(before))
            fits = len(before) + 1 + len(text.split(maxsplit=1)[0]) <= width
            goes_on = text[0].islower() or (in_list and bool(_BREAK.split(white)[-1]))
            is_drawn = bool(_RULE.match(before) or _RULE.match(text))
            if _BULLET.match(text) or is_drawn or (fits and not goes_on):
                starts.append(first)
    return starts


def sentence_starts(words: Sequence[str], spaces: Sequence[bool], *, full_stops: Collection[str]) -> list[int]:
    """Words that begin a sentence by `line_starts`, or after a word of `full_stops` and the closing marks that follow
    it, as spaCy's sentencizer has it; but not after the number of a list."""
    by_line = line_starts(words, spaces)
    starts, numbers = set(by_line), _list_numbers(words, spaces, by_line)
    seen = False
    for i, word in enumerate(words):
        if i in starts:
            seen = False
        if word.isspace():
            continue
        if word in full_stops:
            seen = seen or i not in numbers
        elif seen and not _closes(word, apart=i == 0 or spaces[i - 1] or words[i - 1].isspace()):
            starts.add(i)
            seen = False
    return sorted(starts)


def _closes(word: str, *, apart: bool) -> bool:
    """Whether a word after a full stop belongs to it still: marks alone, but for what opens a quotation or a bracket.
    apart: whether white space stands before it."""
    kinds = [unicodedata.category(x) for x in word]
    opens = kinds[0] in ("Ps", "Pi") or (apart and word[0] in "\"'")
    return all(kind[0] == "P" for kind in kinds) and not opens


def _list_numbers(words: Sequence[str], spaces: Sequence[bool], starts: Sequence[int]) -> Collection[int]:
    """Words that are the full stop after a number which begins a line."""
    return {i + 1 for i in starts if i + 1 < len(words) and words[i].isdigit() and len(words[i]) < 4 and not spaces[i]}


def _paragraphs(words: Sequence[str], spaces: Sequence[bool]) -> Iterator[list[Line]]:
    """Lines with text, those without a blank line between them together."""
    held: list[Line] = []
    for line in _lines(words, spaces):
        breaks = _BREAK.findall(line[3])
        if held and (len(breaks) > 1 or any(x in _NEW_PAGE for x in breaks)):
            yield held
            held = []
        held.append(line)
    if held:
        yield held


def _lines(words: Sequence[str], spaces: Sequence[bool]) -> Iterator[Line]:
    first, text, white, before = -1, "", "", ""
    for i, word in enumerate(words):
        blank = " " if spaces[i] else ""
        if word.isspace():
            white += word + blank
            continue
        if first >= 0 and _BREAK.search(white):
            yield first, i, text.strip(), before
            first = -1
        if first < 0:
            first, text, before = i, "", white
        else:
            text += white
        text, white = text + word + blank, ""
    if first >= 0:
        yield first, len(words), text.strip(), before
