"""ZELDA, ELEVANT, KILT and NIF: entity linking in other files than AIDA's."""

import json

import pytest
from spacy.tokens import DocBin

from spacy_luke.annotations import (
    get_rows,
)
from spacy_luke.readers.datasets.table import dataset_docs
from tests.readers.datasets.link_files import NLP, links, read, write


def lines(path, *items):
    return write(path, "".join(json.dumps(item) + "\n" for item in items))


def test_zelda(tmp_path):
    item = {"id": 1, "text": "Bonn and Rome", "index": [[9, 13], [0, 4]], "wikipedia_titles": ["Rome", "Bonn_x"]}
    (doc,), _ = read(lines(tmp_path / "z.jsonl", item), "zelda")
    assert links(doc) == [("Bonn", "ENTITY", "Bonn x"), ("Rome", "ENTITY", "Rome")]
    for change, error in [
        ({"index": [[0, 4]]}, "a title for each of the 1"),
        ({"index": [[0, 4], 3]}, r"mention 1: expected characters \[start, end\)"),
        ({"index": [[0, 4], [9, 99]]}, "must hold characters of the text"),
    ]:
        with pytest.raises(ValueError, match=error):
            read(lines(tmp_path / "z.jsonl", {**item, **change}), "zelda")


def test_zelda_with_mentions_outside_of_their_text(tmp_path):
    """Two of its nine test sets have one; the rest can be read all the same."""
    item = {"id": 1, "text": "Bonn", "index": [[0, 4], [0, 49]], "wikipedia_titles": ["Bonn", "Bonn (band)"]}
    (doc,), counts = read(lines(tmp_path / "z.jsonl", item), "zelda", damaged="skip")
    assert links(doc) == [("Bonn", "ENTITY", "Bonn")]
    assert counts["notes: mentions outside of their text, left out"] == 1
    with pytest.raises(ValueError, match="damaged must be one of"):
        read(lines(tmp_path / "z.jsonl", item), "zelda", damaged="drop")


def test_elevant(tmp_path):
    def label(start, end, entity, **more):
        return {"span": [start, end], "entity_id": entity, **more}

    text = "Title: Mary of Bonn met 3 kings in Rome. Rest"
    labels = [
        *(label(7, 19, "Q1"), label(15, 19, "Q2", parent=0), label(15, 19, "Q3", parent=0)),
        *(label(20, 23, "<NIL>"), label(24, 25, "QUANTITY"), label(26, 31, "kings"), label(26, 31, "Q4", coref=True)),
        *(label(35, 39, "Q5", optional=True), label(41, 45, "Q6"), label(35, 39, "Q7"), label(35, 39, "Q7")),
    ]
    item = {"id": 1, "text": text, "evaluation_span": [7, 40], "labels": labels}
    (doc,), counts = read(lines(tmp_path / "e.jsonl", item), "elevant")
    assert [(s.text, s.kb_id_) for s in doc.spans["luke_links"]] == [
        *(("Mary of Bonn", "Q1"), ("Bonn", "Q2"), ("Bonn", "Q3"), ("met", "NIL"), ("kings", "NIL"), ("Rome", "Q7"))
    ]
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
        *(("Mary of Bonn", "Q1"), ("met", "NIL"), ("kings", "NIL"), ("Rome", "Q7"))
    ]
    assert [word.text for word in doc if word.ent_iob == 0] == ["Title", ":", "Rest"]
    assert {name.removeprefix("notes: "): n for name, n in counts.items() if n} == {
        "linked mentions inside or across others": 2,
        "dates and quantities left out": 1,
        "ids that are none of Wikidata, read as NIL": 1,
        "coreferences left out": 1,
        "optional labels left out": 1,
        "labels outside the evaluated text left out": 1,
        "equal labels counted once": 1,
    }
    grouped = next(iter(dataset_docs(NLP, tmp_path / "e.jsonl", format="elevant", spans_key="sc")))
    assert len(grouped.spans["sc"]) == 6
    assert not grouped.ents
    again = next(DocBin(store_user_data=True, docs=[doc]).get_docs(NLP.vocab))
    assert [(s.text, s.kb_id_) for s in again.spans["luke_links"]] == [
        (s.text, s.kb_id_) for s in doc.spans["luke_links"]
    ]
    assert [word.ent_iob for word in again] == [word.ent_iob for word in doc]


def test_kilt(tmp_path):
    marked = "He met [START_ENT] Mary [END_ENT] in Bonn ."
    item = {"id": "1", "input": marked, "output": [{"answer": "Mary_I"}], "candidates": ["Mary II", "Mary I"]}
    bare = {"id": "2", "input": "[START_ENT] Rome [END_ENT]", "output": [{"provenance": []}]}
    (first, second), _ = read(lines(tmp_path / "k.jsonl", item, bare), "kilt")
    assert (first.text, links(first)) == ("He met Mary in Bonn .", [("Mary", "ENTITY", "Mary I")])
    assert get_rows(first, "luke_candidates") == [[7, 11, [["Mary I", 0.5], ["Mary II", 0.5]]]]
    assert (second.text, links(second)) == ("Rome", [("Rome", "ENTITY", "NIL")])
    assert get_rows(second, "luke_candidates") is None
    with pytest.raises(ValueError, match="expected one mention between"):
        read(lines(tmp_path / "k.jsonl", {**item, "input": "Mary"}), "kilt")
    (second,), _ = read(lines(tmp_path / "k.jsonl", {**item, "output": [{"answer": None}, {"answer": ""}]}), "kilt")
    assert links(second) == [("Mary", "ENTITY", "NIL")]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([{"answer": 5}], r"line 1, output 0: expected 'answer' \(str\), but got 5"),
        ([{"answer": "A"}, {"answer": ["B"]}], r"line 1, output 1: expected 'answer' \(str\), but got \['B'\]"),
        (["A"], "line 1, output 0: expected an object with 'answer', but got 'A'"),
        ("A", r"line 1: expected 'output' \(list\), but got 'A'"),
    ],
)
def test_damaged_kilt(tmp_path, output, message):
    item = {"input": "[START_ENT] Rome [END_ENT]", "output": output}
    with pytest.raises(ValueError, match=message):
        read(lines(tmp_path / "k.jsonl", item), "kilt")


NIF_CORE = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
NIF = r"""@prefix nif: <http://x#> .
# a comment
<http://d/1#char=0,22> a nif:Context , nif:String ;
    nif:isString "In \"Bonn\" \u00e9t\u00E9, Rome. X"@en .
<http://d/1#char=4,8> a nif:Phrase ; nif:anchorOf "Bonn" ; nif:beginIndex "4"^^xsd:int ; nif:endIndex "8"^^xsd:int ;
    nif:referenceContext <http://d/1#char=0,22> ; itsrdf:taIdentRef <http://www.wikidata.org/entity/Q586> .
<http://d/1#char=17,21> nif:anchorOf "Rome" ; nif:beginIndex "17" ; nif:endIndex "21" ;
    nif:referenceContext <http://d/1#char=0,22> ; itsrdf:taIdentRef <http://dbpedia.org/resource/Ancient_Rom%65> ; .
<http://d/1#char=22,23> nif:anchorOf "X" ; nif:beginIndex "22" ; nif:endIndex "23" ;
    nif:referenceContext <http://d/1#char=0,22> ; itsrdf:taIdentRef <http://aksw.org/notInWiki/X> .
"""


SHORT_NIF = r"""@prefix n: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
PREFIX dbr: <http://dbpedia.org/resource/>
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix oke: <http://o/> .
@base <http://d/> .
<1#char=0,44> a n:Context ; n:isString 'F. W. De Klerk met Ada in Z\u00FCrich, with It.' .
<1#char=0,14> n:anchorOf "F. W. De Klerk" ; n:beginIndex 0 ; n:endIndex 14 ; n:referenceContext <1#char=0,44> ;
    itsrdf:taIdentRef oke:F._W._De_Klerk .
oke:F._W._De_Klerk a oke:Person ; owl:sameAs oke:Other , dbr:F._W._de_Klerk.
<1#char=19,22> n:anchorOf "Ada" ; n:beginIndex 19 ; n:endIndex 22 ; n:referenceContext <1#char=0,45> ;
    itsrdf:taIdentRef wd:Q7259 .
<1#char=26,32> n:anchorOf "Z\u00FCrich" ; n:beginIndex 26 ; n:endIndex 32 ; n:referenceContext <1#char=0,44> ;
    itsrdf:taIdentRef <http://dbpedia.org/resource/Z\u00FCrich> .
<1#char=39,41> n:anchorOf "It" ; n:beginIndex 39 ; n:endIndex 41 ; n:referenceContext <1#char=0,44> ;
    itsrdf:taIdentRef oke:It_1 .
"""


def test_nif_in_short(tmp_path):
    """Prefixes of any name, dots in names, owl:sameAs, escapes in addresses, a base; what becomes NIL is counted."""
    (doc,), counts = read(write(tmp_path / "a.ttl", SHORT_NIF), "nif")
    linked = [(ent.text, ent.kb_id_) for ent in doc.ents]
    assert linked == [("F. W. De Klerk", "F. W. de Klerk"), ("Ada", "Q7259"), ("Zürich", "Zürich"), ("It", "NIL")]
    assert counts["notes: ids of no item or page, read as NIL"] == 1
    assert counts["notes: contexts found by their document"] == 1
    with pytest.raises(ValueError, match="line 11: expected a prefix that is declared, but got 'wd:Q7259'"):
        read(write(tmp_path / "a.ttl", SHORT_NIF.replace("@prefix wd:", "@prefix w:")), "nif")


def test_nif_in_full(tmp_path):
    """N-Triples: full addresses of properties alone, a statement a line."""
    triples = [
        ("1#c=0,4", "rdf-syntax-ns#type", f"<{NIF_CORE}Context>"),
        ("1#c=0,4", "isString", '"Bonn"'),
        ("1#c=0,4x", "anchorOf", '"Bonn"'),
        ("1#c=0,4x", "beginIndex", '"0"^^<http://www.w3.org/2001/XMLSchema#int>'),
        ("1#c=0,4x", "endIndex", '"4"'),
        ("1#c=0,4x", "referenceContext", "<http://d/1#c=0,4>"),
        ("1#c=0,4x", "http://www.w3.org/2005/11/its/rdf#taIdentRef", "<http://www.wikidata.org/entity/Q586>"),
    ]
    lines = [
        f"<http://d/{subject}> <{'' if name.startswith('http') else NIF_CORE}{name}> {value} .\n"
        for subject, name, value in triples
    ]
    (doc,), _ = read(write(tmp_path / "a.ttl", "".join(lines)), "nif")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("Bonn", "Q586")]


def test_nif(tmp_path):
    (doc,), counts = read(write(tmp_path / "a.ttl", NIF), "nif")
    assert doc.text == 'In "Bonn" été, Rome. X'
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("Bonn", "Q586"), ("Rome", "Ancient Rome"), ("X", "NIL")]
    assert counts["notes: mentions found beside their offset"] == 2
    for old, new, error in [
        (" .\n# a", " .\n[ ] # a", "line 2: expected Turtle"),
        ("nif:isString", "nif:other", "no context"),
        ('"4"^^xsd:int', '"x"', "with numbers"),
        ('anchorOf "Bonn"', 'anchorOf "Cologne"', "expected 'Cologne' at"),
        ("nif:Context , nif:String", "nif:Context nif:String", "line 4: expected a property and its objects"),
        ("notInWiki/X> .", "notInWiki/X>", "is it cut off"),
    ]:
        with pytest.raises(ValueError, match=error):
            read(write(tmp_path / "a.ttl", NIF.replace(old, new)), "nif")
