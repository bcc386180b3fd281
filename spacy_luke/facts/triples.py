"""A graph as triples, a subject after the other, for the forms of RDF.

Items of Wikidata and its properties have Wikidata's IRIs, all else one under a base of the user's. A relation is a
triple, and a reified statement beside it (rdf:Statement) with scores and evidence: document, sentence, and the mentions
as NIF has them, by their characters. A value that is said of something is a literal.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ..pages.schema import read_forms
from .forms import Evidence, GraphEdge, GraphNode, TextPlace
from .nodes import node_kind
from .store import EDGES_FILE, NODES_FILE

BASE = "urn:spacy-luke:"
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "nif": "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#",
    "itsrdf": "http://www.w3.org/2005/11/its/rdf#",
    "luke": "urn:spacy-luke:vocabulary#",
}
_IRI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x20<>\"{}|\\^`\x7f]*")
_ITEM, _PROPERTY = re.compile(r"Q[0-9]+"), re.compile(r"P[0-9]+")


class Iri(NamedTuple):
    """A whole IRI."""

    iri: str


class Literal(NamedTuple):
    """A text, or the lexical form of a number. datatype: such as xsd:decimal, "" of a text."""

    text: str
    datatype: str = ""


class Subject(NamedTuple):
    """Triples of one subject: (predicate, object), the predicate with a prefix or an `Iri`."""

    iri: Iri
    triples: list[tuple[str | Iri, Iri | Literal]]


def check_base(base: str) -> str:
    if not _IRI.fullmatch(base) or "#" in base:
        raise ValueError(
            f"Expected a base for IRIs, such as https://example.org/graph/, but got {base!r}. It has a scheme, no "
            "blank and no #."
        )
    return base


def read_subjects(folder: Path, base: str) -> Iterator[Subject]:
    """Of the graph in a folder: nodes, then of each edge its triple, its statement and its evidence. A mention that is
    evidence of several edges comes with each."""
    names = _Names(base)
    for node in read_forms(folder / NODES_FILE, GraphNode):
        if node.kind != "value":
            yield _describe(node, names)
    for edge in read_forms(folder / EDGES_FILE, GraphEdge):
        yield from _state(edge, names)


class _Names:
    """IRIs of what a graph has."""

    def __init__(self, base: str) -> None:
        self.base = base

    def node(self, id: str) -> Iri:
        if _ITEM.fullmatch(id):
            return Iri(PREFIXES["wd"] + id)
        kind, _, rest = id.partition(":")
        return Iri(f"{self.base}{kind}/{quote(rest, safe='')}" if rest else f"{self.base}{quote(id, safe='')}")

    def relation(self, edge: GraphEdge) -> Iri:
        if _PROPERTY.fullmatch(edge.property):
            return Iri(PREFIXES["wdt"] + edge.property)
        if edge.property.startswith(("http://", "https://")) and _IRI.fullmatch(edge.property):
            return Iri(edge.property)
        return Iri(f"{self.base}relation/{quote(edge.label, safe='')}")

    def statement(self, edge: GraphEdge) -> str:
        parts = "\0".join((edge.head, edge.label, edge.property, edge.tail))
        return f"{self.base}statement/{blake2b(parts.encode('utf8'), digest_size=12).hexdigest()}"

    def document(self, id: str) -> str:
        return f"{self.base}document/{quote(id, safe='')}"

    def place(self, document: str, place: TextPlace) -> Iri:
        return Iri(f"{self.document(document)}#char={place.start},{place.end}")


def _number(value: int) -> Literal:
    return Literal(str(value), "xsd:integer")


def _score(value: float) -> Literal:
    text = format(Decimal(repr(value)), "f")
    return Literal(text if "." in text else f"{text}.0", "xsd:decimal")


def _describe(node: GraphNode, names: _Names) -> Subject:
    found: list[tuple[str | Iri, Iri | Literal]] = [("rdf:type", Iri(f"{PREFIXES['luke']}Node"))]
    found.append(("rdfs:label", Literal(node.name)))
    found += [("skos:altLabel", Literal(name)) for name in node.names if name != node.name]
    if node.description:
        found.append(("dcterms:description", Literal(node.description)))
    if _IRI.fullmatch(node.url):
        found.append(("rdfs:seeAlso", Iri(node.url)))
    found += [("dcterms:identifier", Literal(x)) for x in node.ids]
    if _ITEM.fullmatch(node.wikidata) and node.wikidata != node.id:
        found.append(("skos:closeMatch", Iri(PREFIXES["wd"] + node.wikidata)))
    found += [("luke:type", Literal(x)) for x in node.types]
    found += [("luke:label", Literal(node.label)), ("luke:kind", Literal(node.kind))]
    found += [("luke:mentions", _number(node.mentions)), ("luke:documents", _number(node.documents))]
    if node.score is not None:
        found.append(("luke:score", _score(node.score)))
    if node.link_score is not None:
        found.append(("luke:linkScore", _score(node.link_score)))
    return Subject(names.node(node.id), found)


def _state(edge: GraphEdge, names: _Names) -> Iterator[Subject]:
    head, relation = names.node(edge.head), names.relation(edge)
    said = (" ".join(x.text.split()) for x in (edge.evidence[0].head, edge.evidence[0].tail))
    head_text, tail_text = map(Literal, said)
    tail = tail_text if node_kind(edge.tail) == "value" else names.node(edge.tail)
    yield Subject(head, [(relation, tail)])
    if node_kind(edge.head) == "value":
        yield Subject(head, [("rdfs:label", head_text)])
    statement = names.statement(edge)
    pieces = [Iri(f"{statement}/{number}") for number in range(len(edge.evidence))]
    found: list[tuple[str | Iri, Iri | Literal]] = [("rdf:type", Iri(f"{PREFIXES['rdf']}Statement"))]
    found += [("rdf:subject", head), ("rdf:predicate", relation), ("rdf:object", tail)]
    found += [("luke:relation", Literal(edge.label)), ("luke:score", _score(edge.score))]
    found += [("luke:combined", _score(edge.combined)), ("luke:times", _number(edge.times))]
    found += [("luke:documents", _number(edge.documents)), *(("luke:evidence", x) for x in pieces)]
    yield Subject(Iri(statement), found)
    for iri, evidence in zip(pieces, edge.evidence):
        yield from _prove(iri, evidence, edge, names)


def _prove(iri: Iri, evidence: Evidence, edge: GraphEdge, names: _Names) -> Iterator[Subject]:
    places = {x: names.place(evidence.document, x) for x in (evidence.head, evidence.tail, *evidence.sentences)}
    document = Iri(names.document(evidence.document))
    yield Subject(
        iri,
        [
            ("luke:document", document),
            ("luke:score", _score(evidence.score)),
            ("luke:head", places[evidence.head]),
            ("luke:tail", places[evidence.tail]),
            *(("luke:sentence", places[x]) for x in evidence.sentences),
        ],
    )
    yield Subject(document, [("dcterms:identifier", Literal(evidence.document))])
    for place, where in places.items():
        found: list[tuple[str | Iri, Iri | Literal]] = [("nif:anchorOf", Literal(place.text))]
        found += [("nif:beginIndex", Literal(str(place.start), "xsd:nonNegativeInteger"))]
        found += [("nif:endIndex", Literal(str(place.end), "xsd:nonNegativeInteger"))]
        for end, node in ((evidence.head, edge.head), (evidence.tail, edge.tail)):
            if place is end and node_kind(node) != "value":
                found.append(("itsrdf:taIdentRef", names.node(node)))
        yield Subject(where, found)
