"""Entity linking in JSON lines: ZELDA, ELEVANT and KILT (GENRE)."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..annotations import NIL
from .json_files import read_json_lines, take, take_strings
from .records import ENTITY, Mention, Place, Record
from .wned import title_of

WIKIDATA_ID = re.compile(r"[QPL]\d+")
NO_ENTITIES = ("DATETIME", "QUANTITY", "QANTITY", "")  # ELEVANT: values, which are no entities; as it is spelt there
UNKNOWN = ("<NIL>", "<NO_MAPPING>")
MARKED = re.compile(r"\s*\[START_ENT\]\s*(.*?)\s*\[END_ENT\]\s*", re.DOTALL)


def read_zelda(path: str | Path) -> Iterator[Record]:
    """ZELDA (Milich and Akbik, 2023): "text", "index" with characters [start, end) of the mentions, and
    "wikipedia_titles", which are the ids; its "wikipedia_ids" are page numbers and not read."""
    for where, item in read_json_lines(path):
        text, places = take(where, item, "text", str), take(where, item, "index", list)
        titles = take_strings(where, item, "wikipedia_titles")
        if len(titles) != len(places):
            raise ValueError(
                f"{where}: expected a title for each of the {len(places)} mentions, but there are {len(titles)}."
            )
        mentions = [
            Mention(start, end, ENTITY, kb_id=title_of(title))
            for i, (place, title) in enumerate(zip(places, titles))
            for start, end in [_place(f"{where}, mention {i}", place)]
        ]
        yield Record(where, text=text, mentions=mentions, links=True)


def read_elevant(path: str | Path) -> Iterator[Record]:
    """ELEVANT (Bast et al., 2022): "text" and "labels" with "span" and "entity_id", a Wikidata id.

    <NIL> and <NO_MAPPING> are NIL, and so is what is no id of Wikidata (a few names that an annotator typed). Dates and
    quantities, which are no entities, are left out, and so are labels that are "optional", which a linker may find or
    not, and coreferences ("coref": pronouns and "the country"), which ELEVANT scores apart. Mentions may nest. Of words
    outside the characters of "evaluation_span" nothing is known. A span with several ids is kept with each. The notes
    of a record count what was left out.
    """
    for where, item in read_json_lines(path):
        text = take(where, item, "text", str)
        annotated = _place(f"{where}, evaluation_span", item["evaluation_span"]) if "evaluation_span" in item else None
        mentions: dict[tuple[int, int, str], Mention] = {}
        notes: Counter[str] = Counter()
        for i, label in enumerate(take(where, item, "labels", list)):
            at = f"{where}, label {i}"
            entity = take(at, label, "entity_id", str)
            start, end = _place(at, label.get("span"))
            if entity in NO_ENTITIES:
                notes["dates and quantities left out"] += 1
            elif label.get("optional"):
                notes["optional labels left out"] += 1
            elif label.get("coref"):
                notes["coreferences left out"] += 1
            elif annotated and not annotated[0] <= start < end <= annotated[1]:
                notes["labels outside the evaluated text left out"] += 1
            else:
                known = bool(WIKIDATA_ID.fullmatch(entity))
                if not known and entity not in UNKNOWN:
                    notes["ids that are none of Wikidata, read as NIL"] += 1
                name = entity if known else NIL
                notes["equal labels counted once"] += (start, end, name) in mentions
                mentions[start, end, name] = Mention(start, end, ENTITY, kb_id=name)
        yield Record(
            where, text=text, mentions=list(mentions.values()), links=True, annotated=annotated, notes=dict(+notes)
        )


def read_kilt(path: str | Path) -> Iterator[Record]:
    """Entity disambiguation of KILT (Petroni et al., 2021) and GENRE (De Cao et al., 2021): a document a mention.

    "input" marks it with [START_ENT] and [END_ENT], which are taken out; the id is the title of the first "output" with
    an "answer" (NIL without any). GENRE's "candidates" have no numbers: each gets the prior 1/n, by id.
    """
    for where, item in read_json_lines(path):
        marked = take(where, item, "input", str)
        found = list(MARKED.finditer(marked))
        if len(found) != 1 or not found[0][1]:
            raise ValueError(
                f"{where}: expected one mention between [START_ENT] and [END_ENT] in 'input', but there are "
                f"{len(found)}."
            )
        before, name, after = marked[: found[0].start()].lstrip(), found[0][1], marked[found[0].end() :].rstrip()
        start = len(before) + bool(before)
        text = " ".join(part for part in (before, name, after) if part)
        outputs = take(where, item, "output", list) if "output" in item else []
        answers = [output["answer"] for output in outputs if isinstance(output, dict) and output.get("answer")]
        place = (start, start + len(name))
        mention = Mention(*place, ENTITY, kb_id=title_of(answers[0] if answers else ""))
        candidates = None
        if "candidates" in item:
            titles = sorted({title_of(title) for title in take_strings(where, item, "candidates")})
            candidates = [(*place, [(title, 1 / len(titles)) for title in titles])]
        yield Record(where, text=text, mentions=[mention], links=True, candidates=candidates)


def _place(where: str, place: Any) -> Place:
    if not isinstance(place, list) or len(place) != 2 or not all(type(edge) is int for edge in place):
        raise ValueError(f"{where}: expected characters [start, end), but got {place!r:.80}.")
    return place[0], place[1]
