"""CoNLL04 (Roth & Yih, 2004) in SpERT's JSON: entities and relations of sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..json_files import read_json_list, take, take_strings
from ..records import Mention, Record, blanks_between
from ..schemes import TagError, decode_tags


def read_conll04(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """CoNLL04 (Roth & Yih, 2004) in SpERT's JSON: a list of sentences with "tokens"; "entities", objects with "type"
    and the words "start" to "end", or "tags" instead (BILOU and the like); and "relations" with "type" and the numbers
    "head" and "tail" of entities."""
    for where, item in read_json_list(path):
        words = take_strings(where, item, "tokens")
        mentions = _spert_entities(where, item, words)
        relations = [
            (take(at, relation, "head", int), take(at, relation, "tail", int), take(at, relation, "type", str))
            for i, relation in enumerate(take(where, item, "relations", list))
            for at in [f"{where}, relation {i}"]
        ]
        spaces = blanks_between(words, text=text)
        yield Record(where, words=words, spaces=spaces, sentence_starts=[0], mentions=mentions, relations=relations)


def _spert_entities(where: str, item: dict[str, Any], words: list[str]) -> list[Mention]:
    if "entities" in item:
        return [
            Mention(take(at, entity, "start", int), take(at, entity, "end", int), take(at, entity, "type", str))
            for i, entity in enumerate(take(where, item, "entities", list))
            for at in [f"{where}, entity {i}"]
        ]
    tags = take_strings(where, item, "tags")
    if len(tags) != len(words):
        raise ValueError(f"{where}: expected a tag for each of the {len(words)} words, but got {len(tags)}.")
    try:
        return [Mention(*mention) for mention in decode_tags(tags)]
    except TagError as error:
        raise ValueError(f"{where}, tag {error.index}: {error}.") from None
