"""scripts/ernie_corpus.py: a graph and linked documents from small dumps; and that both are read where they go."""

import json
import sys
from pathlib import Path

import pytest

from spacy_luke.corpus.linked_corpus import Paragraph
from spacy_luke.kge.triples import read_graph
from spacy_luke.readers.entity_documents import make_entity_documents
from tests.corpus import written

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import ernie_corpus


def claim(tail, rank="normal"):
    value = {"id": tail} if tail.startswith("Q") else tail
    return {"mainsnak": {"datavalue": {"value": value}}, "rank": rank}


def item(name, page, **claims):
    return {"id": name, "sitelinks": {"enwiki": {"title": page}} if page else {}, "claims": claims}


ITEMS = [
    item("Q1", "Ada Lovelace", P19=[claim("Q2"), claim("Q2")], P21=[claim("Q9")], P569=[claim("1815")]),
    item("Q2", "London", P17=[claim("Q3", "deprecated"), claim("Q4"), claim("Q3", "preferred")]),
    item("Q3", "United Kingdom", P36=[claim("Q2")]),
    item("Q4", None, P36=[claim("Q2")]),
    {"id": "P19", "sitelinks": {"enwiki": {"title": "x"}}, "claims": {}},
]
HELD_OUT = "Held out. " * 10
PARAGRAPHS = [
    Paragraph("Y", "Too short.", []),
    Paragraph("Z", HELD_OUT, []),
    Paragraph("Ada Lovelace", "Ada of London.", [(0, 3, "Ada Lovelace"), (7, 13, "London")]),
    Paragraph("Ada Lovelace", "She was Nobody." + " She wrote." * 8, [(8, 14, "Nobody")]),
]


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "wikidata.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, ITEMS)) + "\n]\n", encoding="utf8")
    return path


def test_truthy_facts_among_pages(dump, tmp_path):
    counts = ernie_corpus.write_graph(dump, tmp_path / "kg/triples.tsv", tmp_path / "kg/titles.tsv")
    facts = (tmp_path / "kg/triples.tsv").read_text().splitlines()
    assert facts == ["Q1\tP19\tQ2", "Q2\tP17\tQ3", "Q3\tP36\tQ2"]
    assert counts == {"facts": 3, "items": 3}
    assert sorted(x.name for x in (tmp_path / "kg").iterdir()) == ["titles.tsv", "triples.tsv"]
    assert ernie_corpus.read_titles(tmp_path / "kg/titles.tsv") == {
        "Ada Lovelace": "Q1",
        "London": "Q2",
        "United Kingdom": "Q3",
    }
    assert read_graph([tmp_path / "kg/triples.tsv"]).triples["train"].shape == (3, 3)


def test_documents(dump, tmp_path):
    ernie_corpus.write_graph(dump, tmp_path / "triples.tsv", tmp_path / "titles.tsv")
    written.write_corpus(lambda counts: iter(PARAGRAPHS), tmp_path / "corpus", language="en")
    paths = [tmp_path / name for name in ("corpus", "titles.tsv", "out/linked.jsonl", "out/dev.jsonl")]
    counts = ernie_corpus.write_documents(*paths)
    assert counts == {"pages": 2, "pages too short, left out": 1, "entities": 2, "links to pages without an item": 1}
    assert json.loads(paths[3].read_text(encoding="utf8")) == {"text": HELD_OUT, "entities": []}
    (document,) = make_entity_documents(str(paths[2]))(0)
    found = [(text[a:b], name) for text, entities in document.sentences for a, b, name in entities]
    assert found == [("Ada", "Q1"), ("London", "Q2")]


def test_what_is_refused(dump, tmp_path):
    written.write_corpus(lambda counts: iter(PARAGRAPHS[:2]), tmp_path / "corpus", language="en")
    ernie_corpus.write_graph(dump, tmp_path / "triples.tsv", tmp_path / "titles.tsv")
    with pytest.raises(ValueError, match="has no link to a page"):
        ernie_corpus.write_documents(*(tmp_path / x for x in ("corpus", "titles.tsv", "a.jsonl", "b.jsonl")))
    with pytest.raises(ValueError, match="expected facts between items with a page of dewiki"):
        ernie_corpus.write_graph(dump, tmp_path / "c.tsv", tmp_path / "d.tsv", site="dewiki")
