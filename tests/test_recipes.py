"""docs/howto/recipes.md: each recipe runs where the other package is, on a pipeline that finds something."""

import json
import re
import warnings
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Span

from spacy_luke.annotations import Relation, register_extensions

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "recipes.md"
TEXTS = ["Ada Lovelace lived in London.", "Nobody came."]


@Language.component("finds_ada")
def finds_ada(doc):
    if doc[0].text == "Ada":
        doc.set_ents([Span(doc, 0, 2, "PER", kb_id="Q7259"), Span(doc, 4, 5, "LOC")])
        doc.ents[0]._.luke_score = 0.75
        doc._.luke_relations = [Relation(doc.ents[0], doc.ents[1], "residence", 0.5)]
    return doc


def run(heading: str) -> dict:
    """What the recipe under a heading has defined."""
    register_extensions()
    nlp = spacy.blank("en")
    nlp.add_pipe("finds_ada")
    section = PAGE.read_text(encoding="utf8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    names = {"nlp": nlp, "texts": TEXTS, "__name__": "recipe"}
    exec(code, names)
    return names


def need(package: str) -> None:
    """Skip where it is not; what it warns of while it is imported is its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package, reason=f"needs {package}")


def test_label_studio():
    first, second = run("Label Studio")["tasks"]
    ada, london, residence = first["predictions"][0]["result"]
    assert ada["value"] == {"start": 0, "end": 12, "text": "Ada Lovelace", "labels": ["PER"]}
    assert (residence["from_id"], residence["to_id"], residence["labels"]) == (ada["id"], london["id"], ["residence"])
    assert (first["data"]["text"], first["predictions"][0]["score"]) == (TEXTS[0], 0.75)
    assert second["predictions"][0]["result"] == []
    json.dumps([first, second])


@pytest.mark.filterwarnings("ignore")
def test_presidio():
    need("presidio_analyzer")
    recognizer = run("Presidio")["recognizer"]
    found = recognizer.analyze(TEXTS[0], ["PERSON", "LOCATION"])
    assert [(x.entity_type, x.start, x.end, x.score) for x in found] == [
        ("PERSON", 0, 12, 0.75),
        ("LOCATION", 22, 28, 0.5),
    ]
    assert [x.entity_type for x in recognizer.analyze(TEXTS[0], ["LOCATION"])] == ["LOCATION"]


@pytest.mark.filterwarnings("ignore")
def test_langchain():
    need("langchain_core")
    first, second = run("LangChain")["documents"]
    assert first.metadata["entities"] == [("Ada Lovelace", "PER", "Q7259"), ("London", "LOC", None)]
    assert first.metadata["triples"] == [("Ada Lovelace", "residence", "London")]
    assert (second.page_content, second.metadata["triples"]) == (TEXTS[1], [])


@pytest.mark.filterwarnings("ignore")
def test_llama_index():
    need("llama_index.core")
    first, second = run("LlamaIndex")["nodes"]
    nodes, relations = (first.metadata[key] for key in ("nodes", "relations"))
    assert [(x.name, x.label) for x in nodes] == [("Q7259", "PER"), ("London", "LOC")]
    assert [(x.source_id, x.label, x.target_id) for x in relations] == [(nodes[0].id, "residence", nodes[1].id)]
    assert second.metadata["nodes"] == []
