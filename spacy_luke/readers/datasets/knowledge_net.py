"""KnowledgeNet (Mesquita et al., EMNLP 2019): sentences with facts of 15 properties of Wikidata, as the page on which
its authors show them."""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...stores.plain_text import not_utf8, read_text
from ..records import Mention, Record, check_choice

_COLUMNS = 10  # fold, document, first and last character of passage, subject and object, property, passage
_ROW = re.compile(r"<tr><td.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
_TAG = re.compile(r"</?(?:p|a|span)\b[^>]*>")
_LINK = re.compile(r'<span id="(subject|object)"><a href="[^"]*/(Q\d+)"')
_NO_FACT = "-"  # in place of the characters, where a passage was read for a property and states no fact of it

PROPERTIES = {  # labels of subject and object
    "CEO": ("ORG", "PER"),
    "CHILD_OF": ("PER", "PER"),
    "DATE_FOUNDED": ("ORG", "DATE"),
    "DATE_OF_BIRTH": ("PER", "DATE"),
    "DATE_OF_DEATH": ("PER", "DATE"),
    "EDUCATED_AT": ("PER", "ORG"),
    "EMPLOYEE_OR_MEMBER_OF": ("PER", "ORG"),
    "FOUNDED_BY": ("ORG", "PER"),
    "HEADQUARTERS": ("ORG", "LOC"),
    "NATIONALITY": ("PER", "LOC"),
    "PLACE_OF_BIRTH": ("PER", "LOC"),
    "PLACE_OF_RESIDENCE": ("PER", "LOC"),
    "POLITICAL_AFFILIATION": ("PER", "ORG"),
    "SPOUSE": ("PER", "PER"),
    "SUBSIDIARY_OF": ("ORG", "ORG"),
}
PRONOUNS = frozenset("he she it they i we you him her them me us his its their my our your hers theirs who".split())

Place = tuple[int, int]


class KnowledgeRow(NamedTuple):
    """A line of the page: a fact with the places and ids of subject and object, or that a passage, which was read for a
    property, states none (ends is None). place: of the passage in its document; ends: in the passage; fold: of the
    authors, 1 to 4 (5 is withheld)."""

    where: str
    fold: int
    document: str
    place: Place
    text: str
    property: str
    ends: tuple[Place, Place] | None
    ids: dict[str, str]


def read_knowledge_net(path: str | Path, *, pronouns: str = "leave out") -> Iterator[Record]:
    """A record for each passage of the page "human readable" (html, or the zip that it comes in), a sentence with all
    facts that are stated of it, in the order of the page. Its title is the number of its document.

    Mentions are the subjects and objects of facts: other names are not marked, so that nothing is said about entities,
    and the pairs that are asked about are those of the facts. Labels of mentions follow from the property. A passage
    was read for some properties alone: `Record.notes` counts those without a fact. pronouns: "leave out" facts of "he"
    and the like, or "keep" them.
    """
    check_choice("pronouns", pronouns, ("leave out", "keep"))
    passages: dict[tuple[str, Place], list[KnowledgeRow]] = {}
    for row in read_knowledge_rows(Path(path)):
        passages.setdefault((row.document, row.place), []).append(row)
    for rows in passages.values():
        yield _passage(rows, keep=pronouns == "keep")


def _passage(rows: list[KnowledgeRow], *, keep: bool) -> Record:
    first = rows[0]
    if other := [row for row in rows if row.text != first.text]:
        raise ValueError(f"{other[0].where}: its passage is not that of {first.where}, which has the same place.")
    numbers: dict[tuple[int, int, str], int] = {}
    mentions: list[Mention] = []
    relations: list[tuple[int, int, str]] = []
    left_out = 0
    for row in rows:
        if row.ends is None:
            continue
        if not keep and any(first.text[a:b].lower() in PRONOUNS for a, b in row.ends):
            left_out += 1
            continue
        for (start, end), label, side in zip(row.ends, PROPERTIES[row.property], ("subject", "object")):
            if (start, end, label) not in numbers:
                numbers[start, end, label] = len(mentions)
                mentions.append(Mention(start, end, label, kb_id=row.ids.get(side, "")))
        head, tail = (numbers[*end, label] for end, label in zip(row.ends, PROPERTIES[row.property]))
        if row.ends[0] != row.ends[1]:
            relations.append((head, tail, row.property))
    return Record(
        first.where,
        title=first.document,
        text=first.text,
        sentence_starts=[0],
        mentions=mentions,
        has_entities=False,
        relations=relations,
        pairs=list(dict.fromkeys((head, tail) for head, tail, _ in relations)),
        notes={
            "properties of which a passage states nothing": sum(row.ends is None for row in rows),
            "facts of pronouns, left out": left_out,
        },
    )


def read_knowledge_rows(path: Path) -> Iterator[KnowledgeRow]:
    """All that the page says, facts of pronouns too, for those who score by it."""
    found = 0
    for found, match in enumerate(_ROW.finditer(_read_page(path)), 1):
        where = f"{path}, row {found}"
        cells = _CELL.findall(match[0])
        if len(cells) != _COLUMNS:
            raise ValueError(f"{where}: expected {_COLUMNS} cells, but there are {len(cells)}.")
        yield _read_row(where, cells)
    if not found:
        raise ValueError(f"{path}: expected the page of KnowledgeNet with a table of facts, but it has no row.")


def _read_row(where: str, cells: list[str]) -> KnowledgeRow:
    fold, document, *places, name, passage = cells
    try:
        number, start, end = int(fold), int(places[0]), int(places[1])
        ends = None if places[2] == _NO_FACT else [int(x) - start for x in places[2:]]
    except ValueError:
        raise ValueError(f"{where}: expected places as numbers, but got {[fold, *places]}.") from None
    if name not in PROPERTIES:
        raise ValueError(f"{where}: expected one of the properties {sorted(PROPERTIES)}, but got {name!r}.")
    text = _TAG.sub("", passage).removeprefix(" ")
    if ends is None:
        return KnowledgeRow(where, number, document, (start, end), text, name, None, {})
    a, b, c, d = ends
    if not (0 <= a < b <= len(text) and 0 <= c < d <= len(text)):
        raise ValueError(f"{where}: subject or object, [{a}, {b}) and [{c}, {d}), is not in its passage {text!r:.80}.")
    return KnowledgeRow(
        where, number, document, (start, end), text, name, ((a, b), (c, d)), dict(_LINK.findall(passage))
    )


def _read_page(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        return read_text(path)
    with zipfile.ZipFile(path) as archive:
        pages = [name for name in archive.namelist() if name.endswith(".html") and not name.startswith("__MACOSX")]
        if len(pages) != 1:
            raise ValueError(f"{path}: expected one page (.html) in it, but there are {len(pages)}.")
        try:
            return archive.read(pages[0]).decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: {not_utf8(error, path)}") from None
