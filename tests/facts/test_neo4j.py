"""The CSV that Neo4j imports, read back by Python's csv: hostile names stay, and each relation has its nodes."""

import csv
import json
import re

import pytest

from spacy_luke.facts.neo4j import BETWEEN, LOADING, type_of, write_neo4j
from tests.facts.annotated import HOSTILE, hostile_documents, make_graph

NO_LINES = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
NAMES = ("nodes", "documents", "relations", "mentions")
# The Operations Manual, "CSV header format": columns of an import, and what a field of a type of properties is.
NODES, RELATIONS = {":ID": 1, ":LABEL": 1}, {":START_ID": 1, ":END_ID": 1, ":TYPE": 1}
TYPES = {"long": r"-?\d+", "double": r"-?\d+(\.\d+)?(e-?\d+)?", "string": r"[^\x00-\x1f\x7f]*"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return make_graph(tmp_path_factory.mktemp("neo4j"), hostile_documents(), formats=[write_neo4j])


@pytest.fixture(scope="module")
def tables(graph):
    """Rows by the names of their columns."""
    found = {}
    for name in NAMES:
        with (graph.path / f"neo4j-{name}-header.csv").open(encoding="utf8", newline="") as file:
            (header,) = csv.reader(file)
        with (graph.path / f"neo4j-{name}.csv").open(encoding="utf8", newline="") as file:
            found[name] = [dict(zip(header, row, strict=True)) for row in csv.reader(file)]
    return found


def test_one_line_a_row(graph, tables):
    for name in NAMES:
        text = (graph.path / f"neo4j-{name}.csv").read_text(encoding="utf8")
        assert len(text.splitlines()) == text.count("\n") == len(tables[name])
        assert f"neo4j-{name}-header.csv,neo4j-{name}.csv" in LOADING


def test_nodes(graph, tables):
    nodes = {x.id: x for x in graph.nodes()}
    rows = tables["nodes"]
    assert len({x[":ID"] for x in rows}) == len(rows) == len(nodes) > 4
    wild = next(x for x in rows if x["title"])
    assert wild["title"] == NO_LINES.sub(" ", HOSTILE)
    assert wild["types:string[]"].split(BETWEEN) == [NO_LINES.sub(" ", HOSTILE)]
    assert wild[":LABEL"].split(BETWEEN) == ["Entity", "A_q_b_c_d_e_f_41_é_en_x"]
    ada = next(x for x in rows if x["name"] == "Ada")
    assert (ada[":LABEL"], ada["kind"], ada["mentions:long"], ada["score:double"]) == (
        f"Entity{BETWEEN}PER",
        "linked",
        "1",
        "0.9",
    )
    for row in rows:
        node = nodes.get(row["id"]) or next(x for x in nodes.values() if NO_LINES.sub(" ", x.id) == row["id"])
        assert row["names:string[]"].split(BETWEEN) == [NO_LINES.sub(" ", x) for x in node.names]
        assert (row["link_score:double"] == "") == (node.link_score is None)


def test_relations(graph, tables):
    ids = {x[":ID"] for x in tables["nodes"]}
    rows = tables["relations"]
    assert {x[":START_ID"] for x in rows} | {x[":END_ID"] for x in rows} <= ids
    assert [x[":TYPE"] for x in rows if x["label"] == "place of birth"] == ["PLACE_OF_BIRTH"]
    edges = sorted(graph.edges(), key=lambda x: x.score)
    for row, edge in zip(sorted(rows, key=lambda x: float(x["score:double"])), edges, strict=True):
        assert row["label"] == NO_LINES.sub(" ", edge.label)
        assert json.loads(row["evidence"]) == [x.model_dump() for x in edge.evidence], "to the character"


def test_documents(graph, tables):
    ids = {x[":ID"] for x in tables["documents"]}
    assert len(ids) == 2
    assert {x["id"] for x in tables["documents"]} == {NO_LINES.sub(" ", HOSTILE), "plain"}
    assert {x[":END_ID"] for x in tables["mentions"]} == ids
    places = [x["starts:long[]"].split(BETWEEN) for x in tables["mentions"]]
    assert sorted(int(y) for x in places for y in x) == sorted(x.start for x in graph.mentions())
    assert {x[":TYPE"] for x in tables["mentions"]} == {"MENTIONED_IN"}


def test_types():
    assert [type_of(x) for x in ("place of birth", "né à", "--", "a_b", "P19")] == [
        "PLACE_OF_BIRTH", "NÉ_À", "RELATION", "A_B", "P19"
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_columns_and_fields_are_as_the_manual_says(tables, name):
    """`neo4j-admin database import`: the columns of the kind, each once, and properties whose fields are of their
    types; an empty one is none. No database of Neo4j is here to load them."""
    wanted = NODES if name in ("nodes", "documents") else RELATIONS
    rows = tables[name]
    header = list(rows[0])
    assert {x: header.count(x) for x in header if x.startswith(":")} == wanted
    properties = [x.partition(":") for x in header if not x.startswith(":")]
    assert len({x for x, _, _ in properties}) == len(properties), "a property has one column"
    for column, _, kind in properties:
        plain = kind.removesuffix("[]") or "string"
        assert column.isidentifier()
        for row in rows:
            field = row[f"{column}:{kind}" if kind else column]
            values = field.split(BETWEEN) if kind.endswith("[]") else [field]
            assert field == "" or all(re.fullmatch(TYPES[plain], x) for x in values), (column, field)
    for row in rows:
        assert all(row[x] for x in wanted), "what finds a node, and what a relation is called, is there"
        assert all(row.get(":LABEL", "x").split(BETWEEN))


def test_every_end_of_a_relation_is_one_node(tables):
    """Ids are unique over all files of nodes, which share one space of ids."""
    ids = [x[":ID"] for name in ("nodes", "documents") for x in tables[name]]
    assert len(set(ids)) == len(ids)
    ends = {x[end] for name in ("relations", "mentions") for x in tables[name] for end in (":START_ID", ":END_ID")}
    assert ends <= set(ids)
