"""Documents become a graph: ids, names, scores and evidence, whatever the order and the size of what is sorted."""

import json
import random

import pytest

from spacy_luke.facts.build import build_facts
from spacy_luke.facts.store import GRAPH_STORE, FactGraph
from tests.facts.annotated import document, hostile_documents, link, make_graph, write_lines

LONDON = ("London", "LOC", link("Q84", title="London", types=["city"]))


def files(graph):
    return {path.name: path.read_bytes() for path in sorted(graph.path.iterdir())}


def family(number):
    """Documents of two persons of one name."""
    poet = ["poems", "verses", "rhymes", ("Ada Byron", "PER"), ("Poem", "MISC"), "stanza"]
    banker = ["credits", "loans", "interest", ("Ada Byron", "PER"), ("Bank", "MISC"), "deposit"]
    return [document(f"d{i}", poet if i % 2 else banker) for i in range(number)]


def test_nodes_edges_and_mentions(tmp_path):
    one = document(
        "one",
        [("Ada Lovelace", "PER"), "was born in", LONDON, "in", ("1815", "TIME"), "on a", ("day", "TIME")],
        [(0, "place of birth", 1, 0.75, "P19"), (0, "date of birth", 2, 0.5, "P569"), (0, "residence", 1, 0.25)],
        scores=[0.5, None, 1.0],
    )
    two = document(
        "two",
        [("Lovelace", "PER"), "(", ("Ada  Lovelace", "PER"), ") of", LONDON],
        [(0, "place of birth", 2, 0.5, "P19")],
    )
    graph = make_graph(tmp_path, [one, two])
    nodes = {x.name: x for x in graph.nodes()}
    assert sorted(nodes) == ["1815", "Ada Lovelace", "London"]
    ada, london = nodes["Ada Lovelace"], nodes["London"]
    assert (ada.kind, ada.label, ada.mentions, ada.documents, ada.score) == ("nil", "PER", 3, 2, 0.9)
    assert list(ada.names.items()) == [("Ada Lovelace", 2), ("Lovelace", 1)]
    assert (london.id, london.kind, london.types, london.link_score) == ("Q84", "linked", ["city"], 0.9)
    assert nodes["1815"].kind == "value"
    edges = {x.label: x for x in graph.edges()}
    born = edges["place of birth"]
    assert (born.head, born.property, born.tail) == (ada.id, "P19", "Q84")
    assert (born.score, born.combined, born.times, born.documents) == (0.75, 0.875, 2, 2)
    assert [x.document for x in born.evidence] == ["one", "two"]
    assert born.evidence[0].head.text == one.text[: born.evidence[0].head.end] == "Ada Lovelace"
    assert [x.text for x in born.evidence[1].sentences] == [two.text]
    assert edges["date of birth"].tail == nodes["1815"].id
    mentions = list(graph.mentions())
    assert [x.text for x in mentions if x.node == ada.id] == ["Ada Lovelace", "Lovelace", "Ada  Lovelace"]
    assert "day" not in {x.text for x in mentions}
    assert graph.info["counts"] == {"entities": 7, "relations": 4, "values without a relation, left out": 1}
    assert (graph.manifest["documents"], graph.manifest["mentions"]) == (2, 6)


def test_neither_order_nor_parts_nor_room_matter(tmp_path):
    documents = [*family(30), *hostile_documents()]
    whole = make_graph(tmp_path, documents)
    random.Random(0).shuffle(documents)
    parts = [write_lines(tmp_path / f"part-{i}.jsonl", documents[i::3]) for i in (2, 0, 1)]
    again = build_facts(parts, tmp_path / "again", room=2000)
    assert files(whole) == files(again)
    twice = build_facts([*parts, parts[0]], tmp_path / "twice")
    assert files(twice)["nodes.jsonl"] == files(whole)["nodes.jsonl"]
    assert twice.info["counts"]["documents given twice, taken once"] == len(documents[2::3])
    assert twice.info["counts"]["entities"] == whole.info["counts"]["entities"]


def test_later_documents_rename_nothing(tmp_path):
    before = {(x.document, x.start): x.node for x in make_graph(tmp_path, family(9), name="before").mentions()}
    after = {(x.document, x.start): x.node for x in make_graph(tmp_path, family(120), name="after").mentions()}
    assert {key: after[key] for key in before} == before
    assert len({x for (_, start), x in after.items()}) == len(set(before.values()))


def test_an_earlier_graph_keeps_its_ids(tmp_path):
    """Also where the new documents come first, and where the context says otherwise by now."""
    banker = family(1)
    late = [x.model_copy(update={"id": f"x{x.id}"}) for x in family(6)]
    earlier = make_graph(tmp_path, late, name="earlier")
    old = {(x.document, x.start): x.node for x in earlier.mentions()}
    fresh = {(x.document, x.start): x.node for x in make_graph(tmp_path, banker + late, name="fresh").mentions()}
    assert any(fresh[key] != old[key] for key in old)
    kept = make_graph(tmp_path, banker + late, name="kept", previous=earlier, similarity=1.0)
    found = {(x.document, x.start): x.node for x in kept.mentions()}
    assert {key: found[key] for key in old} == old
    joined = make_graph(tmp_path, banker + late, name="joined", previous=earlier)
    byron = {x.document: x.node for x in joined.mentions() if x.text == "Ada Byron"}
    assert byron["d0"] == byron["xd0"] != byron["xd1"]


def test_filters(tmp_path):
    texts = [("Ada", "PER"), "and", ("Bob", "ORG"), "of", LONDON, "and", ("Rome", "LOC", link("Q220", score=0.25))]
    relations = [(0, "knows", 1, 0.5), (0, "in", 2, 0.75), (1, "in", 3, 0.25), (2, "near", 2, 1.0)]
    one = document("one", texts, relations, scores=[0.75, 0.25, None, 0.5])
    whole = make_graph(tmp_path, [one])
    assert whole.info["counts"]["relations of a thing with itself, left out"] == 1
    graph = make_graph(tmp_path, [one], min_score=0.5, min_link_score=0.5, min_relation_score=0.5)
    assert {x.name: x.kind for x in graph.nodes()} == {"Ada": "nil", "London": "linked", "Rome": "nil"}
    assert [(x.label, x.score) for x in graph.edges()] == [("in", 0.75)]
    assert graph.info["counts"] == {
        "entities": 4,
        "entities of a low score, left out": 1,
        "links of a low score, left out": 1,
        "relations": 4,
        "relations of a low score, left out": 1,
        "relations of a thing with itself, left out": 1,
        "relations of what is no entity here, left out": 1,
    }
    graph = make_graph(tmp_path, [one], labels=["PER", "LOC"], relations=["in"])
    assert {x.name for x in graph.nodes()} == {"Ada", "London", "Rome"}
    assert [x.label for x in graph.edges()] == ["in"]


def test_evidence(tmp_path):
    """The best is listed, all is counted; what a text says twice, and a copy of a text, makes nothing surer."""
    ada, rome = ("Ada", "PER", link("Q1")), ("Rome", "LOC", link("Q220"))
    text = [ada, "in", rome, ".", ada, "of", rome]
    documents = [document(f"d{i}", text, [(0, "in", 1, 0.5), (2, "in", 3, 0.25)]) for i in range(2)]
    documents += [document(f"e{i}", [str(i), ada, "at", rome], [(0, "in", 1, 0.5)]) for i in range(400)]
    (edge,) = make_graph(tmp_path, documents[:2]).edges()
    assert (edge.score, edge.combined, edge.times, edge.documents) == (0.5, 0.5, 4, 2)
    assert [(x.document, x.score) for x in edge.evidence] == [("d0", 0.5), ("d1", 0.5), ("d0", 0.25), ("d1", 0.25)]
    (edge,) = make_graph(tmp_path, documents, max_evidence=3).edges()
    assert (edge.times, edge.documents) == (404, 402)
    assert [x.document for x in edge.evidence] == ["d0", "d1", "e0"]


def test_sentences_of_evidence(tmp_path):
    """Of mentions in two sentences both, of a very long sentence what is around the mentions."""
    ada, rome = ("Ada", "PER", link("Q1")), ("Rome", "LOC", link("Q220"))
    far = document("far", [ada, "went.", "She", "saw", rome], [(0, "in", 1, 1.0)], sentences=[(0, 9), (10, 22)])
    long = document("long", ["x " * 1000, ada, "y " * 2000, rome], [(0, "in", 1, 1.0)])
    none = document("none", ["x " * 1000, ada, rome], [(0, "in", 1, 1.0)], sentences=None)
    (edge,) = make_graph(tmp_path, [far, long, none]).edges()
    found = {x.document: [y.text for y in x.sentences] for x in edge.evidence}
    assert found["far"] == ["Ada went.", "She saw Rome"]
    assert [len(x) for x in found["long"]] == [500 + 3 + 500, 500 + 4]
    assert found["none"] == [none.text[-(200 + 8) :]]


def test_two_documents_of_one_id(tmp_path):
    with pytest.raises(ValueError, match=r"Two documents that differ have the id 'd0'\. Give each its own, or"):
        make_graph(tmp_path, [document("d0", ["a"]), document("d0", ["b"])])
    assert not (tmp_path / "graph").exists()


def test_documents_without_an_id(tmp_path):
    """Their text is it."""
    documents = [document(None, [name, ("Ada", "PER")]) for name in "ab"]
    first, second = (x.document for x in make_graph(tmp_path, documents).mentions())
    assert first.startswith("text:")
    assert first != second


def test_nothing_is_replaced_that_is_no_graph(tmp_path):
    make_graph(tmp_path, family(2))
    make_graph(tmp_path, family(3))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").touch()
    with pytest.raises(ValueError, match="holds something else than a graph of facts"):
        make_graph(tmp_path, family(2), name="mine")
    with pytest.raises(ValueError, match=r"Expected documents in .*empty\.jsonl, but there are none"):
        make_graph(tmp_path, [], name="empty")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["empty.jsonl", "graph", "graph.jsonl", "mine", "mine.jsonl"]


def test_a_damaged_graph_is_found(tmp_path):
    graph = make_graph(tmp_path, family(2))
    lines = (graph.path / "nodes.jsonl").read_text()
    (graph.path / "nodes.jsonl").write_text(lines.replace("Byron", "Bacon"))
    with pytest.raises(ValueError, match=r"nodes\.jsonl is damaged"):
        FactGraph.open(graph.path)
    assert json.loads((graph.path / "manifest.json").read_text())["format"] == GRAPH_STORE.form


def test_what_was_opened_before_another_graph_is_not_read_as_it(tmp_path):
    graph = make_graph(tmp_path, family(2))
    assert len(list(make_graph(tmp_path, family(3)).mentions())) > 0
    for read in (graph.nodes, graph.edges, graph.mentions):
        with pytest.raises(ValueError, match="is not the graph of facts that was opened"):
            read()
