"""FewRel (Han et al., EMNLP 2018): relations between Wikidata's entities, 700 sentences each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..json_files import read_json, take, take_strings
from ..records import ENTITY_LABEL, Mention, Record, blanks_between


def read_fewrel(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """FewRel (Han et al., EMNLP 2018): an object with a list for each relation, of objects with "tokens", "h" and "t",
    which are [name, id, [the words of each mention]]. All mentions are entities with that id; the pair is the first of
    the head and the first of the tail, which become given entities with score 1, as in ERNIE's experiments."""
    data = read_json(path)
    if not isinstance(data, dict) or not data:
        raise ValueError(f"{path}: expected an object of relations, but got {type(data).__name__} {str(data)[:60]!r}.")
    for label in data:
        for i, item in enumerate(take(str(path), data, label, list)):
            where = f"{path}, relation {label!r}, item {i}"
            words = take_strings(where, item, "tokens")
            heads, tails = (_fewrel_mentions(where, name, take(where, item, name, list)) for name in ("h", "t"))
            yield Record(
                where,
                words=words,
                spaces=blanks_between(words, text=text),
                sentence_starts=[0],
                mentions=[*heads, *tails],
                relations=[(0, len(heads), label)],
                pairs=[(0, len(heads))],
                knowledge=[(one.start, one.end, one.kb_id, 1.0) for one in (heads[0], tails[0]) if one.kb_id],
            )


def _fewrel_mentions(where: str, name: str, value: list[Any]) -> list[Mention]:
    try:
        _, kb_id, places = value
        ranges = [(place[0], place[-1] + 1) for place in places]
        good = ranges and isinstance(kb_id, str)
        good = good and all(list(range(*r)) == list(place) for r, place in zip(ranges, places, strict=True))
    except (ValueError, TypeError, IndexError):
        good = False
    if not good:
        raise ValueError(
            f"{where}: expected {name!r} as [name, id, [[word, ...], ...]] with consecutive words, but got "
            f"{value!r:.80}."
        )
    return [Mention(start, end, ENTITY_LABEL, kb_id=kb_id) for start, end in ranges]
