"""Turtle and N-Triples, as far as data sets need them: statements with lists of properties and objects, prefixes, names
with dots, escapes. No blank nodes in brackets, no collections."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from ...stores.plain_text import read_text

_TOKEN = re.compile(
    r'\s+|#[^\n]*|<(?P<uri>[^<>"{}|^`\s]*)>'
    r"""|(?P<string>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"(?:\^\^(?:<[^<>\s]*>|[\w.-]*:[\w.-]*\w)|@[A-Za-z]+(?:-[A-Za-z0-9]+)*)?"
    r"|(?P<name>[\w.-]*:(?:(?:[\w:%-]|\.(?=[\w:%.\\-])|\\[_~.\-!$&'()*+,;=/?\#@%])*))"
    r"|(?P<word>@?[A-Za-z]+|[+-]?(?:\d*\.)?\d+(?:[eE][+-]?\d+)?)|(?P<mark>[;,.])",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_SHORT = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_KNOWN = {  # prefixes that files use without saying them
    "nif": "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#",
    "itsrdf": "http://www.w3.org/2005/11/its/rdf#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

Resources = dict[str, dict[str, list[str]]]


class Token(NamedTuple):
    """kind: uri, string, name (with a prefix), word or mark. place: its first character."""

    kind: str
    value: str
    place: int


def read_turtle(path: Path) -> Resources:
    """Objects by subject and property, all of them addresses in full, or texts. ValueError names the line of what is
    none of it."""
    text = read_text(path)
    resources: Resources = {}
    names = _Names(dict(_KNOWN))
    statement: list[Token] = []
    for token in _tokens(path, text):
        if token[:2] != ("mark", "."):
            statement.append(token)
            if _is_declared(statement):
                names.declare(statement)
                statement = []
            continue
        where = f"{path}, line {text.count(chr(10), 0, token.place) + 1}"
        if statement and statement[0].value in ("@prefix", "@base"):
            names.declare(statement)
        elif statement:
            _add(resources, statement, names, where)
        statement = []
    if statement:
        raise ValueError(f"{path}: expected a full stop after the last statement, but the file ends: is it cut off?")
    return resources


class _Names:
    """Addresses in full of what a file writes in short."""

    def __init__(self, prefixes: dict[str, str]) -> None:
        self._prefixes, self._base = prefixes, ""

    def declare(self, statement: list[Token]) -> None:
        if statement[0].value.lower().endswith("base"):
            self._base = self._address(statement[-1].value)
        else:
            self._prefixes[statement[1].value.rstrip(":")] = self._address(statement[-1].value)

    def value(self, token: Token, where: str) -> str:
        if token.kind == "uri":
            return self._address(token.value)
        if token.kind == "name":
            prefix, _, local = token.value.partition(":")
            if prefix == "_":
                return token.value  # a blank node
            if prefix not in self._prefixes:
                raise ValueError(f"{where}: expected a prefix that is declared, but got {token.value!r}.")
            return self._prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)
        return _TYPE if token[:2] == ("word", "a") else token.value

    def _address(self, uri: str) -> str:
        uri = _ESCAPE.sub(_unescape, uri) if "\\" in uri else uri
        return urljoin(self._base, uri) if self._base else uri


def _is_declared(statement: list[Token]) -> bool:
    """Whether it is a declaration of SPARQL's form, which has no full stop."""
    first = statement[0].value.upper() if statement[0].kind == "word" else ""
    return (first == "PREFIX" and len(statement) == 3) or (first == "BASE" and len(statement) == 2)


def _add(resources: Resources, statement: list[Token], names: _Names, where: str) -> None:
    found = resources.setdefault(names.value(statement[0], where), {})
    parts: list[list[Token]] = [[]]
    for token in statement[1:]:
        if token[:2] == ("mark", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    for part in filter(None, parts):
        objects, commas = part[1::2], part[2::2]
        if len(part) < 2 or len(part) % 2 or any(comma[:2] != ("mark", ",") for comma in commas):
            raise ValueError(
                f"{where}: expected a property and its objects with commas, but got {[t.value for t in part]}."
            )
        values = [names.value(token, where) for token in objects]
        found.setdefault(names.value(part[0], where), []).extend(values)


def _tokens(path: Path, text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.end() == place:
            line = text.count("\n", 0, place) + 1
            raise ValueError(f"{path}, line {line}: expected Turtle, but got {text[place : place + 60]!r}.")
        if match.lastgroup is not None:
            kind, value = match.lastgroup, match[match.lastgroup]
            if kind == "string":
                width = 3 if value[:3] in ('"""', "'''") else 1
                value = _ESCAPE.sub(_unescape, value[width:-width])
            yield Token(kind, value, place)
        place = match.end()


def _unescape(match: "re.Match[str]") -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" and len(code) > 1 else _SHORT.get(code, code)
