"""The triples of a graph as Turtle and as JSON-LD, which say the same."""

import json
import re
from pathlib import Path
from typing import Any

from .triples import BASE, PREFIXES, Iri, Literal, Subject, read_subjects

_TURTLE, _JSONLD = "graph.ttl", "graph.jsonld"
_ESCAPED = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def write_turtle(folder: Path, *, base: str = BASE) -> None:
    """graph.ttl beside nodes.jsonl and edges.jsonl, a subject a paragraph. base: of IRIs that are not Wikidata's."""
    with (folder / _TURTLE).open("w", encoding="utf8", newline="\n") as file:
        file.writelines(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())
        for subject in read_subjects(folder, base):
            pairs = " ;\n    ".join(f"{_term(predicate)} {_term(value)}" for predicate, value in subject.triples)
            file.write(f"\n{_term(subject.iri)} {pairs} .\n")


def write_jsonld(folder: Path, *, base: str = BASE) -> None:
    """graph.jsonld beside nodes.jsonl and edges.jsonl, a subject a line. base: of IRIs that are not Wikidata's."""
    with (folder / _JSONLD).open("w", encoding="utf8", newline="\n") as file:
        file.write(f'{{"@context": {json.dumps(PREFIXES)},\n"@graph": [')
        between = "\n"
        for subject in read_subjects(folder, base):
            file.write(between + json.dumps(_node(subject), ensure_ascii=False))
            between = ",\n"
        file.write("\n]}\n")


def _term(term: str | Iri | Literal) -> str:
    """As Turtle writes it; a text with a prefix as it is."""
    if isinstance(term, str):
        return term
    if isinstance(term, Iri):
        return f"<{term.iri}>"
    text = _ESCAPED.sub(lambda x: _ESCAPES.get(x[0], f"\\u{ord(x[0]):04X}"), term.text)
    return f'"{text}"^^{term.datatype}' if term.datatype else f'"{text}"'


def _node(subject: Subject) -> dict[str, Any]:
    node: dict[str, Any] = {"@id": subject.iri.iri}
    for predicate, value in subject.triples:
        if predicate == "rdf:type":
            assert isinstance(value, Iri)
            node.setdefault("@type", []).append(value.iri)
            continue
        name = predicate.iri if isinstance(predicate, Iri) else predicate
        node.setdefault(name, []).append(_value(value))
    return node


def _value(value: Iri | Literal) -> dict[str, str]:
    if isinstance(value, Iri):
        return {"@id": value.iri}
    return {"@value": value.text, **({"@type": value.datatype} if value.datatype else {})}
