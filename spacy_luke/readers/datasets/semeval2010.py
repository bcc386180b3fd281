"""Sentences with <e1>..</e1> and <e2>..</e2> and their relation: SemEval-2010 task 8 and KBP37."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..lines import decode_line
from ..records import ENTITY_LABEL, TEXTS, Mention, Place, Record, check_choice
from .pairs import pair_record

_MARKS = ("<e1>", "</e1>", "<e2>", "</e2>")
_ANY_MARK = re.compile("|".join(_MARKS))
_OPENING_BEFORE_BLANK = re.compile(r"(^|\s)?(<e[12]>)\s+")
_CLOSING_AFTER_BLANK = re.compile(r"\s+(</e[12]>)(\s|$)?")


def read_semeval2010(path: str | Path) -> Iterator[Record]:
    """SemEval-2010 task 8 (Hendrickx et al., 2010), TRAIN_FILE.TXT and TEST_FILE_FULL.TXT: blocks of a number, a tab
    and the sentence in quotation marks, with <e1>..</e1> and <e2>..</e2>; then the label; then perhaps a comment.

    The pair is (e1, e2), and the label, such as Cause-Effect(e2,e1), says the direction. "Other" is no relation.
    """
    for where, sentence, label in _read_blocks(Path(path)):
        text, mentions = _read_marks(where, sentence)
        yield pair_record(where, label, ("Other",), mentions, text=text)


def read_kbp37(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """KBP37 (Zhang & Wang, 2015) and RELX (Köksal & Özgür, 2020): blocks as those of SemEval-2010; "no_relation" is
    none.

    text: "file": the sentence as it stands, except that blanks inside the marks go with these; "paper": also without
    the blank before a full stop, as LUKE's code has it (examples/relation_classification/reader.py).
    """
    check_choice("text", text, TEXTS)
    for where, sentence, label in _read_blocks(Path(path)):
        sentence = sentence.replace(" .", ".") if text == "paper" else sentence
        marked, mentions = _read_marks(where, sentence.strip())
        yield pair_record(where, label, ("no_relation",), mentions, text=marked)


def _read_blocks(path: Path) -> Iterator[tuple[str, str, str]]:
    """Where, sentence and label of each block of lines."""
    block: list[str] = []
    first = 0
    with path.open("rb") as file:
        lines = enumerate(file, 1)
        for number, raw in lines:
            line = decode_line(path, number, raw)
            if line.strip():
                first = first if block else number
                block.append(line)
            elif block:
                yield _read_block(path, first, block)
                block = []
    if block:
        yield _read_block(path, first, block)
    if not first:
        raise ValueError(f"{path}: expected sentences with their relations, but the file holds none.")


def _read_block(path: Path, number: int, block: list[str]) -> tuple[str, str, str]:
    where = f"{path}, line {number}"
    name, tab, sentence = block[0].partition("\t")
    sentence = sentence.strip()
    if not tab or not name.strip().isdecimal() or not sentence:
        raise ValueError(f"{where}: expected a number, a tab and a sentence, but got {block[0]!r:.80}.")
    comment = block[2:]
    if len(block) < 2 or len(comment) > 1 or (comment and not comment[0].startswith("Comment")):
        raise ValueError(
            f"{where}: expected a sentence, a line with its relation, perhaps one with 'Comment:', and a blank line, "
            f"but got {len(block)} lines: {[line[:30] for line in block[:4]]}."
        )
    if len(sentence) > 1 and sentence[0] == sentence[-1] == '"':
        sentence = sentence[1:-1]
    return where, sentence, block[1].strip()


def _read_marks(where: str, sentence: str) -> tuple[str, list[Mention]]:
    """The sentence without its marks, and the mentions e1 and e2. A blank just inside a mark belongs outside."""
    sentence = _OPENING_BEFORE_BLANK.sub(lambda m: (" " if m[1] is None else m[1]) + m[2], sentence)
    sentence = _CLOSING_AFTER_BLANK.sub(lambda m: m[1] + (" " if m[2] is None else m[2]), sentence)
    text, places, end = "", {}, 0
    for mark in _ANY_MARK.finditer(sentence):
        text += sentence[end : mark.start()]
        end = mark.end()
        if mark[0] in places:
            raise ValueError(f"{where}: expected {mark[0]} once, but it stands there again: {sentence!r:.200}.")
        places[mark[0]] = len(text)
    text += sentence[end:]
    if missing := [mark for mark in _MARKS if mark not in places]:
        raise ValueError(
            f"{where}: expected the marks {', '.join(_MARKS)}, but {missing[0]} is missing: {sentence!r:.200}."
        )
    spans: list[Place] = [(places["<e1>"], places["</e1>"]), (places["<e2>"], places["</e2>"])]
    return text, [Mention(start, end, ENTITY_LABEL) for start, end in spans]
