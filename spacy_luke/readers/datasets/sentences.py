"""Documents that come as lists of sentences, which are lists of words."""

from typing import Any

from ..json_files import take, take_strings
from ..records import Mention, Record, blanks_between


def join_sentences(where: str, item: dict[str, Any], name: str) -> tuple[list[str], list[int]]:
    """All words of a document, and the first of each sentence."""
    words: list[str] = []
    starts: list[int] = []
    for i, sentence in enumerate(take(where, item, name, list)):
        starts.append(len(words))
        words += take_strings(where, {f"{name}[{i}]": sentence}, f"{name}[{i}]")
        if len(words) == starts[-1]:
            raise ValueError(f"{where}: sentence {i} has no words.")
    if not words:
        raise ValueError(f"{where}: expected sentences under {name!r}, but there are none.")
    return words, starts


def document_record(
    where: str,
    words: list[str],
    starts: list[int],
    mentions: list[Mention],
    relations: list[tuple[int, int, str]] | None,
    *,
    text: str,
    title: str = "",
) -> Record:
    """starts: the first word of each sentence. text: see `blanks_between`."""
    return Record(
        where,
        title=title,
        words=words,
        spaces=blanks_between(words, text=text),
        sentence_starts=starts,
        mentions=mentions,
        relations=relations,
    )
