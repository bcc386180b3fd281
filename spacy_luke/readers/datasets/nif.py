"""Entity linking in NIF 2.0 (Hellmann et al., 2013), as OpenTapioca publishes RSS-500 and ISTEX: Turtle files."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...annotations import NIL
from ..records import ENTITY, Mention, Record
from .linking import find_near, title_of

TOKEN = re.compile(
    r'\s+|#[^\n]*|(?P<uri><[^<>"{}|^`\\\s]*>)|(?P<string>"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*")'
    r"(?:\^\^(?:<[^<>\s]*>|[\w-]*:\w+)|@[A-Za-z-]+)?|(?P<mark>[;,.](?=\s|$))|(?P<name>@?[\w-]*:[\w-]*|@?[\w-]+)",
    re.DOTALL,
)
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
SHORT = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
WIKIDATA = re.compile(r"https?://(?:www\.)?wikidata\.org/(?:entity|wiki)/(Q\d+)")
WIKIPEDIA = re.compile(r"https?://(?:\w+\.wikipedia\.org/wiki|(?:\w+\.)?dbpedia\.org/resource)/(.+)")


def read_nif(path: str | Path) -> Iterator[Record]:
    """Contexts (nif:isString) with their phrases (nif:beginIndex, nif:endIndex, itsrdf:taIdentRef), by address.

    The id is that of Wikidata, or the title of Wikipedia or DBpedia; any other address (RSS-500's notInWiki), and no
    address, is NIL. Of Turtle the file may use subjects with lists of properties and objects: no blank nodes, no
    collections. Raises ValueError, naming the line, for anything else, and where a phrase belongs to no context,
    or is not what its nif:anchorOf says; up to 40 characters away it is found and counted in the notes.
    """
    path = Path(path)
    resources = _read_turtle(path)
    phrases: dict[str, list[Mention]] = {}
    notes: dict[str, Counter[str]] = {}
    texts = {uri: found["nif:isString"][0] for uri, found in resources.items() if "nif:isString" in found}
    for uri, found in resources.items():
        if "nif:anchorOf" not in found:
            continue
        context = found.get("nif:referenceContext", [""])[0]
        if context not in texts:
            raise ValueError(f"{path}: expected a text for the phrase {uri}, but there is no context {context!r}.")
        try:
            start, end = (int(found[f"nif:{edge}Index"][0]) for edge in ("begin", "end"))
        except (KeyError, ValueError):
            raise ValueError(f"{path}: expected nif:beginIndex and nif:endIndex with numbers of {uri}.") from None
        anchor = found["nif:anchorOf"][0]
        place = find_near(texts[context], anchor, start)
        if place is None or not anchor:
            raise ValueError(
                f"{path}: expected {anchor!r} at [{start}, {end}) of {context}, or near, but there is "
                f"{texts[context][start:end]!r}."
            )
        if (place, place + len(anchor)) != (start, end):
            notes.setdefault(context, Counter())["mentions found beside their offset"] += 1
            start, end = place, place + len(anchor)
        entity = _entity_of(found.get("itsrdf:taIdentRef", [""])[0])
        phrases.setdefault(context, []).append(Mention(start, end, ENTITY, kb_id=entity))
    if not texts:
        raise ValueError(f"{path}: expected contexts with nif:isString, but there are none.")
    for uri in sorted(texts):
        marked = phrases.get(uri, [])
        mentions = list(
            {(mention.start, mention.end, mention.kb_id): mention for mention in sorted(marked, key=_place)}.values()
        )
        counted = notes.setdefault(uri, Counter())
        counted["equal labels counted once"] += len(marked) - len(mentions)
        yield Record(f"{path}, {uri}", text=texts[uri], mentions=mentions, links=True, notes=dict(+counted))


def _place(mention: Mention) -> tuple[int, int]:
    return mention.start, mention.end


def _entity_of(uri: str) -> str:
    if match := WIKIDATA.fullmatch(uri):
        return match[1]
    match = WIKIPEDIA.fullmatch(uri)
    return title_of(unquote(match[1])) if match else NIL


def _read_turtle(path: Path) -> dict[str, dict[str, list[str]]]:
    """Objects by subject and property; properties as they are written, such as nif:isString."""
    resources: dict[str, dict[str, list[str]]] = {}
    statement: list[tuple[str, Any]] = []
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, but byte {error.start} is none.") from None
    for kind, value, place in _tokens(path, text):
        if (kind, value) != ("mark", "."):
            statement.append((kind, value))
            continue
        if not statement or statement[0][1].startswith("@"):
            statement = []
            continue
        _add(resources, statement, f"{path}, line {text.count(chr(10), 0, place) + 1}")
        statement = []
    if statement:
        raise ValueError(f"{path}: expected a full stop after the last statement, but the file ends: is it cut off?")
    return resources


def _add(resources: dict[str, dict[str, list[str]]], statement: list[tuple[str, Any]], where: str) -> None:
    found = resources.setdefault(statement[0][1], {})
    parts: list[list[tuple[str, Any]]] = [[]]
    for token in statement[1:]:
        if token == ("mark", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    for part in filter(None, parts):
        objects = part[1::2]
        commas = part[2::2]
        if len(part) < 2 or len(part) % 2 or any(comma != ("mark", ",") for comma in commas):
            raise ValueError(
                f"{where}: expected a property and its objects with commas, but got {[t[1] for t in part]}."
            )
        found.setdefault(part[0][1], []).extend(value for _, value in objects)


def _tokens(path: Path, text: str) -> Iterator[tuple[str, str, int]]:
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None or match.end() == place:
            line = text.count("\n", 0, place) + 1
            raise ValueError(f"{path}, line {line}: expected Turtle of NIF, but got {text[place : place + 60]!r}.")
        if match.lastgroup is not None:
            kind, value = match.lastgroup, match[match.lastgroup]
            if kind == "uri":
                value = value[1:-1]
            elif kind == "string":
                width = 3 if value.startswith('"""') else 1
                value = ESCAPE.sub(_unescape, value[width:-width])
            yield kind, value, place
        place = match.end()


def _unescape(match: "re.Match[str]") -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" and len(code) > 1 else SHORT.get(code, code)
