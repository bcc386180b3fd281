"""docs/howto/graph.md: its recipes run on a graph."""

import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Span

from spacy_luke.facts.rdf import write_turtle
from tests.facts.annotated import document, link, make_graph

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "graph.md"
RECIPES = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """Where Ada was born, and what is one and two steps away."""
    monkeypatch.chdir(tmp_path)
    ada, london = ("Ada Byron", "PER"), ("London", "LOC", link("Q84"))
    england, crown = ("England", "LOC", link("Q21")), ("Crown", "ORG", link("Q5"))
    documents = [
        document("birth", [ada, "was born in", london], [(0, "place of birth", 1, 0.75, "P19")]),
        document("guess", [ada, "was seen in", london], [(0, "residence", 1, 0.5, "P551")]),
        document("place", [london, "lies in", england], [(0, "located in", 1, 1.0, "P131")]),
        document("other", [england, "has a", crown], [(0, "has", 1, 1.0)]),
    ]
    return make_graph(tmp_path, documents, formats=[write_turtle])


def test_there_are_as_many():
    assert len(RECIPES) == 3


def test_retrieval(graph, capsys):
    pytest.importorskip("networkx")
    question = spacy.blank("en")("Where was ADA BYRON born?")
    question.set_ents([Span(question, 2, 4, "PER")])
    names = {"question": question}
    exec(RECIPES[0], names)
    exec(RECIPES[1], names)
    assert capsys.readouterr().out.splitlines() == [
        "1.5 birth Ada Byron was born in London",
        "1.0 guess Ada Byron was seen in London",
    ]
    london = names["find_things"](names["graph"], [("?", "Q84")])
    assert london == {"Q84"}
    two = names["retrieve"](names["graph"], names["things"], steps=2)
    assert [x[1] for x in two] == ["birth", "guess", "place"]
    assert names["load"]("graph", least=0.6).number_of_edges() == 3


def test_triples(graph):
    pytest.importorskip("rdflib")
    names = {}
    exec(RECIPES[2], names)
    assert names["born"] == [("Ada Byron", "London", 0.75)]
