"""ELEVANT (Bast et al., 2022): links to Wikidata in JSON lines."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...annotations import NIL
from ..json_files import read_json_lines, take
from ..records import ENTITY_LABEL, Mention, Record
from .places import read_place

_WIKIDATA_ID = re.compile(r"[QPL]\d+")
_NO_ENTITIES = ("DATETIME", "QUANTITY", "QANTITY", "")  # ELEVANT: values, which are no entities; as it is spelt there
_UNKNOWN = ("<NIL>", "<NO_MAPPING>")


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
        annotated = (
            read_place(f"{where}, evaluation_span", item["evaluation_span"]) if "evaluation_span" in item else None
        )
        mentions: dict[tuple[int, int, str], Mention] = {}
        notes: Counter[str] = Counter()
        for i, label in enumerate(take(where, item, "labels", list)):
            at = f"{where}, label {i}"
            entity = take(at, label, "entity_id", str)
            start, end = read_place(at, label.get("span"))
            if entity in _NO_ENTITIES:
                notes["dates and quantities left out"] += 1
            elif label.get("optional"):
                notes["optional labels left out"] += 1
            elif label.get("coref"):
                notes["coreferences left out"] += 1
            elif annotated and not annotated[0] <= start < end <= annotated[1]:
                notes["labels outside the evaluated text left out"] += 1
            else:
                known = bool(_WIKIDATA_ID.fullmatch(entity))
                if not known and entity not in _UNKNOWN:
                    notes["ids that are none of Wikidata, read as NIL"] += 1
                name = entity if known else NIL
                notes["equal labels counted once"] += (start, end, name) in mentions
                mentions[start, end, name] = Mention(start, end, ENTITY_LABEL, kb_id=name)
        yield Record(
            where, text=text, mentions=list(mentions.values()), links=True, annotated=annotated, notes=dict(+notes)
        )
