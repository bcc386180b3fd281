"""ZELDA (Milich and Akbik, 2023): links to Wikipedia in JSON lines."""

from collections.abc import Iterator
from pathlib import Path

from ..json_files import read_json_lines, take, take_strings
from ..records import DAMAGED, ENTITY_LABEL, Mention, Record, check_choice
from .linking import title_of
from .places import read_place


def read_zelda(path: str | Path, *, damaged: str = "error") -> Iterator[Record]:
    """ZELDA (Milich and Akbik, 2023): "text", "index" with characters [start, end) of the mentions, and
    "wikipedia_titles", which are the ids; its "wikipedia_ids" are page numbers and not read. damaged: what becomes of
    mentions outside of their text, which two of its test sets have: "error", or "skip", which counts them."""
    check_choice("damaged", damaged, DAMAGED)
    for where, item in read_json_lines(path):
        text, places = take(where, item, "text", str), take(where, item, "index", list)
        titles = take_strings(where, item, "wikipedia_titles")
        if len(titles) != len(places):
            raise ValueError(
                f"{where}: expected a title for each of the {len(places)} mentions, but there are {len(titles)}."
            )
        mentions = [
            Mention(start, end, ENTITY_LABEL, kb_id=title_of(title))
            for i, (place, title) in enumerate(zip(places, titles))
            for start, end in [read_place(f"{where}, mention {i}", place)]
        ]
        inside = [x for x in mentions if damaged == "error" or 0 <= x.start < x.end <= len(text)]
        notes = {"mentions outside of their text, left out": len(mentions) - len(inside)}
        yield Record(where, text=text, mentions=inside, links=True, notes={k: n for k, n in notes.items() if n})
