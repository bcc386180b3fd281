"""The types of mentions, from what relations say of their two sides: the head of "director" is a film.

`ready_relations.py` writes them beside the relations. Types belong to kinds; a mention of one kind has no type of
another. Of its own kind it has those that its relations say, and is not said to lack those that may go with them. Where
all relations of a document are known, what has no relation that tells a type has none. Countries and cities are known
by their names, too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from spacy_luke.kb.starter.peoples import is_people
from spacy_luke.kb.starter.places import COUNTRIES, read_table_lines
from spacy_luke.readers.records import ENTITY_LABEL, Mention, Record

# Types by kinds.
KINDS = {
    "PER": ("actor", "athlete", "character", "filmmaker", "musician", "officer", "politician", "scholar", "writer"),
    "LOC": ("building", "city", "country", "water"),
    "ORG": ("broadcaster", "company", "league", "party", "school", "team"),
    "MISC": ("book", "event", "film", "language", "music", "people", "religion", "software", "television"),
    "TIME": (),
    "NUM": (),
}  # fmt: skip
TYPES = tuple(sorted(one for types in KINDS.values() for one in types))
KIND_OF = {one: kind for kind, types in KINDS.items() for one in types}
# What else a person of a type may be.
BESIDE = {
    "actor": ("filmmaker", "musician", "writer"),
    "filmmaker": ("actor", "writer"),
    "musician": ("actor", "writer"),
    "officer": ("politician",),
    "politician": ("officer", "scholar", "writer"),
    "scholar": ("politician", "writer"),
    "writer": ("filmmaker", "politician", "scholar", "actor"),
}
# Of properties of Wikidata and of KnowledgeNet: what heads and tails are: a type, one of several, or a kind.
ROLES = {
    "P6": ("LOC", "politician"), "P17": ("", "country"), "P22": ("PER", "PER"), "P25": ("PER", "PER"),
    "P26": ("PER", "PER"), "P27": ("PER", "country"), "P35": ("LOC", "politician"), "P36": ("LOC", "city"),
    "P37": ("LOC", "language"), "P39": ("politician", ""), "P40": ("PER", "PER"), "P50": ("book", "writer"),
    "P54": ("athlete", "team"), "P57": ("film", "filmmaker"), "P58": ("film|television", "writer"),
    "P69": ("PER", "school"), "P84": ("building", "PER"), "P86": ("music|film", "musician"),
    "P101": ("scholar", ""), "P102": ("politician", "party"), "P112": ("ORG", ""), "P118": ("team", "league"),
    "P123": ("software|book", "company"), "P140": ("", "religion"),
    "P161": ("film|television", "actor"), "P162": ("film|music|television", ""), "P172": ("", "people"),
    "P175": ("music|film|television", "musician|actor"), "P176": ("", "company"), "P177": ("building", "water"),
    "P178": ("software", "company"), "P206": ("LOC", "water"), "P241": ("officer", ""), "P264": ("", "company"),
    "P272": ("film|television", "company"), "P364": ("film|television|music|book", "language"),
    "P400": ("software", ""), "P403": ("water", "water"), "P407": ("", "language"), "P410": ("officer", ""),
    "P412": ("musician", ""), "P413": ("athlete", ""), "P449": ("television", "broadcaster"),
    "P495": ("", "country"), "P551": ("PER", "LOC"), "P569": ("PER", ""), "P570": ("PER", ""), "P607": ("", "event"),
    "P674": ("", "character"), "P676": ("music", "writer|musician"), "P749": ("ORG", "ORG"), "P937": ("PER", "LOC"),
    "P991": ("event", "politician"), "P1344": ("", "event"), "P1376": ("city", "LOC"),
    "P1408": ("broadcaster", "city"), "P1412": ("PER", "language"), "P1435": ("building", ""),
    "P1441": ("character", ""), "P1877": ("film", "writer"), "P1923": ("event", "team"),
    "P2094": ("athlete", ""), "P3373": ("PER", "PER"),
    "CEO": ("company", "PER"), "CHILD_OF": ("PER", "PER"), "DATE_OF_BIRTH": ("PER", ""), "DATE_OF_DEATH": ("PER", ""),
    "EDUCATED_AT": ("PER", "school"), "EMPLOYEE_OR_MEMBER_OF": ("PER", ""), "NATIONALITY": ("PER", "country"),
    "PLACE_OF_BIRTH": ("PER", "LOC"), "PLACE_OF_RESIDENCE": ("PER", "LOC"), "POLITICAL_AFFILIATION": ("PER", "party"),
    "SPOUSE": ("PER", "PER"), "SUBSIDIARY_OF": ("company", "company"),
}  # fmt: skip
STATES = frozenset(["Georgia", "Michigan", "Washington"])  # which are cities, too
EITHER = {role for roles in ROLES.values() for role in roles if "|" in role}
# What labels mean that are no types, as doc._.luke_scope has it.
OPEN_TYPES = {**{f"{one}?": [one, ""] for one in TYPES}, **{role: role.split("|") for role in EITHER}}


def add_types(record: Record, cities: Collection[str] = (), *, full: bool = False) -> Record:
    """The record with the types of its mentions: those that hold, those that may, with a question mark behind their
    names, and one of several, with | between them (`OPEN_TYPES`); None where nothing is known. full: whether all
    mentions and relations of the record are known."""
    said: defaultdict[int, set[str]] = defaultdict(set)
    for head, tail, label in record.relations or []:
        for number, role in zip((head, tail), ROLES.get(label, ("", "")), strict=True):
            said[number].update([role] if role else [])
    mentions = [
        replace(mention, types=types_of(mention.label, _text(record, mention), said[i], cities, full=full))
        for i, mention in enumerate(record.mentions)
    ]
    return replace(record, mentions=mentions)


def types_of(
    label: str, name: str, roles: Iterable[str], cities: Collection[str] = (), *, full: bool = False
) -> list[str] | None:
    """Of a mention with this label and name, and these roles."""
    roles = {"people" if role == "country" and is_people(name) else role for role in roles}
    if label in ("LOC", "", ENTITY_LABEL):
        roles.update(["country"] if name in country_names() else ["city"] if name in cities else [])
    holding = roles & KIND_OF.keys()
    either = {role for role in roles & EITHER if not holding & set(role.split("|"))}
    kinds = {KIND_OF[one] for one in holding} or (roles | {label}) & KINDS.keys()
    if not kinds and not either:
        return None
    may = {other for one in holding for other in BESIDE.get(one, ())}
    if not holding and not either and not full:
        may = {one for kind in kinds for one in KINDS[kind]}
    return [*sorted(holding | either), *sorted(f"{one}?" for one in may - holding)]


def _text(record: Record, mention: Mention) -> str:
    if record.text is not None:
        return record.text[mention.start : mention.end]
    return " ".join((record.words or [])[mention.start : mention.end])


@cache
def country_names() -> frozenset[str]:
    rows = [fields for _, fields in read_table_lines(COUNTRIES, columns=6)][1:]
    return frozenset(name for _, _, name, _, others, _ in rows for name in (name, *others.split("|")) if name)


def read_cities(path: Path) -> frozenset[str]:
    """Names of GeoNames' cities, without those that are countries, too."""
    return frozenset(fields[0] for _, fields in read_table_lines(path, columns=6)) - country_names() - STATES
