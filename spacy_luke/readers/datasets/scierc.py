"""SciERC (Luan et al., EMNLP 2018): entities and relations of scientific abstracts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..json_files import read_json_lines, take
from ..records import Mention, Place, Record
from .sentences import document_record, join_sentences


def read_scierc(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """SciERC (Luan et al., EMNLP 2018) in DyGIE's JSON lines, a document a line: "sentences" (lists of words), and for
    each of them "ner" ([first word, last word, label]) and "relations" ([first, last, first, last, label]), with words
    counted through the document. Coreference ("clusters") is not read. Entities may be nested."""
    for where, item in read_json_lines(path):
        words, starts = join_sentences(where, item, "sentences")
        mentions: list[Mention] = []
        relations: list[tuple[int, int, str]] = []
        for i, (ner, found) in enumerate(zip(*_by_sentence(where, item, len(starts)), strict=True)):
            at = f"{where}, sentence {i}"
            for row in ner:
                first, last, label = _row(at, row, 2, "ner")
                mentions.append(Mention(first, last + 1, label))
            numbers = {(mention.start, mention.end): k for k, mention in enumerate(mentions)}
            for row in found:
                a, b, c, d, label = _row(at, row, 4, "relations")
                head, tail = (_number(at, numbers, (first, last + 1)) for first, last in ((a, b), (c, d)))
                relations.append((head, tail, label))
        yield document_record(where, words, starts, mentions, relations, text=text)


def _by_sentence(where: str, item: dict[str, Any], n_sentences: int) -> list[list[list[Any]]]:
    lists = [take(where, item, name, list) for name in ("ner", "relations")]
    for name, values in zip(("ner", "relations"), lists):
        if len(values) != n_sentences or not all(isinstance(value, list) for value in values):
            raise ValueError(f"{where}: expected a list for each of the {n_sentences} sentences under {name!r}.")
    return lists


def _row(where: str, row: Any, n_numbers: int, name: str) -> list[Any]:
    expected = [int] * n_numbers + [str]
    if not isinstance(row, list) or [type(x) for x in row] != expected or not row[-1]:
        raise ValueError(f"{where}: expected {n_numbers} numbers and a label under {name!r}, but got {row!r:.80}.")
    return row


def _number(where: str, numbers: dict[Place, int], place: Place) -> int:
    if place not in numbers:
        raise ValueError(
            f"{where}: a relation has the words {place[0]} to {place[1] - 1}, which are no entity of its sentence or "
            "of one before."
        )
    return numbers[place]
