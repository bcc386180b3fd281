"""`spacy luke graph`."""

import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.facts.store import FactGraph
from tests.facts.annotated import document, hostile_documents, link, write_lines


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "found.jsonl", hostile_documents())

    def run(*arguments, inputs=("found.jsonl",), output="graph"):
        result = CliRunner().invoke(spacy_app, ["luke", "graph", *inputs, output, *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_formats(run):
    code, text = run("-f", "neo4j", "-f", "turtle", "-f", "jsonld", "-f", "turtle")
    assert code == 0, text
    assert "graph: 2 documents, 5 nodes, 5 edges, 6 mentions" in text
    assert "neo4j-admin database import full neo4j --array-delimiter=U+001F" in text
    graph = FactGraph.open("graph", verify=True)
    names = {"nodes.jsonl", "edges.jsonl", "mentions.jsonl", "graph.ttl", "graph.jsonld", "neo4j-nodes.csv"}
    assert names <= set(graph.manifest["files"])
    assert run()[0] == 0, "a graph may be replaced"
    assert set(FactGraph.open("graph").manifest["files"]) == {"nodes.jsonl", "edges.jsonl", "mentions.jsonl"}


def test_settings(run):
    code, text = run(
        "--min-score", "0.5", "--min-link-score", "0.95", "--min-relation-score", "0.6", "--labels", "PER, LOC",
        "--relations", "place of birth", "--values", "", "--shortened", "PER", "--similarity", "0.2",
        "--no-join-links", "--own-ids", "--max-evidence", "1", "--base", "https://a.org/", "-f", "turtle",
    )  # fmt: skip
    assert code == 0, text
    graph = FactGraph.open("graph")
    assert graph.info["settings"] == {
        "min_score": 0.5,
        "min_link_score": 0.95,
        "min_relation_score": 0.6,
        "labels": ["LOC", "PER"],
        "relations": ["place of birth"],
        "values": [],
        "shortened": ["PER"],
        "similarity": 0.2,
        "join_links": False,
        "own_ids": True,
        "max_evidence": 1,
    }
    assert {x.kind for x in graph.nodes()} == {"nil"}
    assert [x.label for x in graph.edges()] == ["place of birth"]
    assert "<https://a.org/nil/" in (graph.path / "graph.ttl").read_text(encoding="utf8")


def test_entities_that_share_an_item(run, tmp_path):
    """Their own ids stay; that they become one node is told, and can be helped."""
    first, second = (link(f"SKU-{i}", wikidata="Q84", title=f"Thing {i}") for i in (1, 2))
    one = document("one", [("Mercury", "ORG", first), "of", ("Freddie", "PER", second)], [(0, "of", 1, 0.5)])
    write_lines(tmp_path / "found.jsonl", [one])
    code, text = run("-f", "neo4j", "-f", "turtle", "-f", "jsonld")
    assert code == 0, text
    assert (
        "1 nodes that are several entities of a knowledge base, by one item of Wikidata, such as Q84: SKU-1, " in text
    )
    assert "--own-ids makes each a node of its own" in text
    graph = FactGraph.open("graph")
    assert [(x.id, x.ids) for x in graph.nodes()] == [("Q84", ["SKU-1", "SKU-2"])]
    assert [x.entity for x in graph.mentions()] == ["SKU-1", "SKU-2"]
    for name in ("neo4j-nodes.csv", "graph.ttl", "graph.jsonld"):
        assert "SKU-1" in (graph.path / name).read_text(encoding="utf8")
    code, text = run("--own-ids", "-f", "turtle")
    assert "several entities" not in text
    nodes = {x.id: (x.wikidata, x.ids) for x in FactGraph.open("graph").nodes()}
    assert nodes == {"kb:SKU-1": ("Q84", ["SKU-1"]), "kb:SKU-2": ("Q84", ["SKU-2"])}
    assert [(x.head, x.tail) for x in FactGraph.open("graph").edges()] == [("kb:SKU-1", "kb:SKU-2")]
    turtle = (graph.path / "graph.ttl").read_text(encoding="utf8")
    assert "<urn:spacy-luke:kb/SKU-1> rdf:type" in turtle
    assert "skos:closeMatch <http://www.wikidata.org/entity/Q84>" in turtle


def test_previous(run, tmp_path):
    ada = ["wrote", ("Ada", "PER"), "of", ("Rome", "LOC", link("Q220"))]
    write_lines(tmp_path / "old.jsonl", [document("z", ada)])
    write_lines(tmp_path / "new.jsonl", [document("a", ada), document("z", ada)])
    assert run(inputs=["old.jsonl"], output="old")[0] == 0
    assert run("--previous", "old", inputs=["new.jsonl"], output="new")[0] == 0
    ids = [{x.id for x in FactGraph.open(name).nodes()} for name in ("old", "new")]
    assert ids[0] == ids[1]
    assert run(inputs=["new.jsonl"], output="other")[0] == 0
    assert {x.id for x in FactGraph.open("other").nodes()} != ids[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--min-score", "2"], "min_score must be from 0 to 1, but it is 2.0"),
        (["--base", "graph"], "Expected a base for IRIs"),
        (["--previous", "mine"], "mine is no graph of facts: there is no manifest.json. Build one with"),
    ],
)
def test_mistakes(run, tmp_path, arguments, message):
    (tmp_path / "mine").mkdir()
    code, text = run(*arguments)
    assert code == 1
    assert "No graph was written." in text
    assert message in text
    assert not (tmp_path / "graph").exists()
