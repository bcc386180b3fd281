"""Words with their tags or mentions as JSON: data sets of the Hugging Face hub, and what GLiNER trains on."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..json_files import read_json_objects, take
from ..records import Mention, Record
from ..schemes import TagError, decode_tags

_WORDS = ("tokens", "words", "tokenized_text")
_MENTIONS = "ner"  # as GLiNER calls them
_TAGS = ("ner_tags", "tags", "labels", _MENTIONS)


def read_tokens(path: str | Path, *, tag_names: str | None = None) -> Iterator[Record]:
    """A JSON list of objects, or an object a line; each is a document.

    Words stand under "tokens", "words" or "tokenized_text". Under "ner_tags", "tags", "labels" or "ner" is either a
    tag for each word, of any scheme of `schemes`, or a list of mentions [first word, last word, label] (GLiNER), which
    may overlap; an empty list under "ner" has no mentions. tag_names: the names of tags that are numbers, in the order
    of the numbers, with commas between them: those of the data set's `features["ner_tags"].feature.names`.

    Raises ValueError, naming the line or item, for what is not so.
    """
    names = None if tag_names is None else [name.strip() for name in tag_names.split(",")]
    for where, item in read_json_objects(path):
        words = _words(where, item)
        name = _field(where, item, _TAGS)
        found = take(where, item, name, list)
        if all(isinstance(x, list) for x in found) and (found or name == _MENTIONS):
            mentions = [_mention(where, x, len(words)) for x in found]
        else:
            mentions = _decoded(where, _tags(where, found, names), len(words))
        yield Record(where, words=words, mentions=mentions)


def _field(where: str, item: dict[str, Any], names: Sequence[str]) -> str:
    there = [name for name in names if isinstance(item.get(name), list)]
    if len(there) != 1:
        raise ValueError(
            f"{where}: expected one list under {', '.join(map(repr, names[:-1]))} or {names[-1]!r}, but found "
            f"{' and '.join(map(repr, there)) or 'none'} among {sorted(item)}."
        )
    return there[0]


def _words(where: str, item: dict[str, Any]) -> list[str]:
    words = take(where, item, _field(where, item, _WORDS), list)
    if wrong := [i for i, word in enumerate(words) if not isinstance(word, str) or not word.strip()]:
        raise ValueError(f"{where}: expected words, but number {wrong[0]} is {words[wrong[0]]!r}.")
    return words


def _mention(where: str, given: list[Any], length: int) -> Mention:
    if [type(x) for x in given] != [int, int, str] or not given[2]:
        raise ValueError(f"{where}: expected a mention as [first word, last word, label], but got {given!r:.80}.")
    first, last, label = given
    if not 0 <= first <= last < length:
        raise ValueError(
            f"{where}: the mention {given!r:.80} is not within its {length} words, which count from 0; the last word "
            "of a mention is in it."
        )
    return Mention(first, last + 1, label)


def _tags(where: str, given: list[Any], names: list[str] | None) -> list[str]:
    """The tags as strings."""
    if names is None and any(type(tag) is int for tag in given):
        raise ValueError(
            f"{where}: its tags are numbers, whose names the file does not have: give them, in the order of the "
            'numbers, e.g. --tag-names O,B-PER,I-PER, from the data set\'s features["ner_tags"].feature.names.'
        )
    tags = []
    for i, tag in enumerate(given):
        if type(tag) is int and names is not None:
            if not 0 <= tag < len(names):
                raise ValueError(f"{where}: tag {i} is {tag}, but there are {len(names)} names, which count from 0.")
            tag = names[tag]
        if not isinstance(tag, str):
            raise ValueError(f"{where}: expected tags, but number {i} is {tag!r}.")
        tags.append(tag)
    return tags


def _decoded(where: str, tags: list[str], length: int) -> list[Mention]:
    if len(tags) != length:
        raise ValueError(f"{where}: expected a tag for each of {length} words, but there are {len(tags)}.")
    try:
        return [Mention(*mention) for mention in decode_tags(tags)]
    except TagError as error:
        raise ValueError(f"{where}, word {error.index}: {error}.") from None
