"""Turtle and JSON-LD, read back by rdflib: they say the same, and no name becomes syntax."""

from functools import partial

import pytest

from spacy_luke.facts.rdf import write_jsonld, write_turtle
from spacy_luke.facts.triples import BASE, PREFIXES, check_base
from tests.facts.annotated import HOSTILE, hostile_documents, make_graph

rdflib = pytest.importorskip("rdflib")
LUKE, NIF, RDF, WD, WDT = (rdflib.Namespace(PREFIXES[x]) for x in ("luke", "nif", "rdf", "wd", "wdt"))
LABEL = rdflib.URIRef(PREFIXES["rdfs"] + "label")
BASES = {"default": BASE, "own": "https://example.org/é/"}


@pytest.fixture(scope="module", params=BASES)
def written(request, tmp_path_factory):
    base = BASES[request.param]
    formats = [partial(write_turtle, base=base), partial(write_jsonld, base=base)]
    return make_graph(tmp_path_factory.mktemp("rdf"), hostile_documents(), formats=formats), base


@pytest.fixture(scope="module")
def triples(written):
    return rdflib.Graph().parse(written[0].path / "graph.ttl")


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")  # rdflib's own use of it
def test_both_say_the_same(written, triples):
    again = rdflib.Graph().parse(written[0].path / "graph.jsonld")
    assert set(triples) == set(again)
    assert len(triples) > 100


def test_iris_are_whole(triples):
    for term in {x for triple in triples for x in triple if isinstance(x, rdflib.URIRef)}:
        assert term.n3().startswith("<")
        assert not set(term) & set(' <>"{}|\\^`\n')


def test_names(written, triples):
    graph, base = written
    labels = {str(x) for x in triples.objects(None, LABEL)}
    assert labels == {x.name for x in graph.nodes() if x.kind != "value"} | {"1955"}
    assert HOSTILE in labels
    (wild,) = triples.subjects(LABEL, rdflib.Literal(HOSTILE))
    assert str(wild).startswith(f"{base}kb/A%20%22q%22")
    assert str(triples.value(WD.Q84, LABEL)) == "London"


def test_relations(written, triples):
    graph, base = written
    (nil,) = (x for x in graph.nodes() if x.kind == "nil" and x.label == "PER")
    person = rdflib.URIRef(f"{base}nil/{nil.id.removeprefix('nil:')}")
    assert (person, WDT.P19, WD.Q84) in triples
    assert (WD.Q7259, rdflib.URIRef(f"{base}relation/in"), WD.Q84) in triples
    born = rdflib.URIRef(f"{base}relation/born")
    assert [str(x) for x in triples.objects(person, None) if x.n3() == '"1955"'] == []
    assert {str(x) for x in triples.objects(None, born)} == {"1955"}, "a value is a literal"
    assert len(list(triples.subjects(RDF.type, RDF.Statement))) == len(list(graph.edges()))


def test_evidence(written, triples):
    """Every edge's, with its document and the characters of both mentions."""
    graph, _ = written
    texts = {HOSTILE: hostile_documents()[0].text, "plain": hostile_documents()[1].text}
    identifier = rdflib.URIRef(PREFIXES["dcterms"] + "identifier")
    found = []
    for statement in triples.subjects(RDF.type, RDF.Statement):
        for piece in triples.objects(statement, LUKE.evidence):
            text = texts[str(triples.value(triples.value(piece, LUKE.document), identifier))]
            for end in (LUKE.head, LUKE.tail, LUKE.sentence):
                place = triples.value(piece, end)
                start, stop = (int(triples.value(place, x)) for x in (NIF.beginIndex, NIF.endIndex))
                assert str(triples.value(place, NIF.anchorOf)) == text[start:stop]
            found.append((str(triples.value(statement, LUKE.relation)), float(triples.value(piece, LUKE.score))))
    assert sorted(found) == sorted((x.label, y.score) for x in graph.edges() for y in x.evidence)


@pytest.mark.parametrize("base", ["", "graph/", "https://a b/", "https://a.org/<x>", "https://a.org/#x"])
def test_wrong_bases(base):
    with pytest.raises(ValueError, match="Expected a base for IRIs"):
        check_base(base)
