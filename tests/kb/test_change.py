"""Knowledge bases that live: counts are merged, entities replaced and removed, additions joined, vectors kept."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spacy_luke.aliases.counts import Limits
from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.change import add_to_kb, change_kb, compact_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.vectors.build import build_vectors
from tests.kb.kbs import ENTITIES, dump_of, small_kb, write_entities


def london(folder, count=1_000_000):
    return small_kb(folder, [{"id": "A", "names": ["London"], "count": count}])


def add(kb, folder, *rows, **kwargs):
    return add_to_kb(kb, [write_entities(folder / "more.jsonl", rows)], **kwargs).kb


def everything(kb):
    """All that a knowledge base knows, whatever its rows are."""
    entities = {name: (kb.record(row), kb.count(row), kb.is_person(row)) for row, name in enumerate(kb.entities())}
    names = {name: {entity: round(prior, 5) for entity, prior in kb.candidates(name)} for name in set(kb.names())}
    return entities, names


def vectors_of(kb):
    return {name: kb.vectors.gather(kb.vectors.rows([name])).tolist() for name in kb.entities()}


@pytest.mark.slow
def test_what_is_added_does_not_beat_what_is_there(tmp_path):
    """Thirty entities of one link each beside one of a million."""
    kb = london(tmp_path)
    for i in range(30):
        kb = add(kb, tmp_path, {"id": f"C{i}", "names": ["London"], "count": 1})
    found = kb.candidates("London")
    assert found[0] == ("A", pytest.approx(1_000_000 / 1_000_030))
    assert sum(prior for _, prior in found) == pytest.approx(1, abs=1e-6)
    assert len(found) == len(kb) == 31
    assert [kb.name_of(row) for row in range(31)] == ["A", *(f"C{i}" for i in range(30))]
    assert len(kb.segments) <= 6
    assert len(kb.info["added"]) == 30
    kb.verify()


def test_adding_is_as_building_at_once(tmp_path_factory):
    row = st.tuples(st.sampled_from("abcdef"), st.sampled_from("XYZ"), st.integers(1, 50))

    @given(st.lists(st.lists(row, min_size=1, max_size=4), min_size=2, max_size=6))
    @settings(max_examples=8, phases=[Phase.generate])
    def check(parts):
        folder = tmp_path_factory.mktemp("kb")

        def table(rows, name):
            lines = "".join(f"{name}\t{entity}\t{count}\n" for name, entity, count in rows)
            (folder / name).write_text("name\tentity\tcount\n" + lines)
            return folder / name

        free = KBSettings(unknown="add")
        kb = build_kb([table(parts[0], "0.tsv")], folder / "kb", settings=free).kb
        for i, rows in enumerate(parts[1:], 1):
            before = list(kb.entities())
            kb = add_to_kb(kb, [table(rows, f"{i}.tsv")], settings=free).kb
            assert list(kb.entities())[: len(before)] == before
        weights: dict = {}
        for name, entity, count in (row for rows in parts for row in rows):
            weights.setdefault(name, Counter())[entity] += count
        for compacted in (kb, compact_kb(kb, folder / "one").kb):
            for name, counts in weights.items():
                expected = {entity: pytest.approx(n / counts.total(), rel=1e-5) for entity, n in counts.items()}
                assert dict(compacted.candidates(name)) == expected

    check()


def test_compacting_changes_nothing_but_the_rows(tmp_path):
    kb = small_kb(tmp_path)
    about = {"title": "Town", "wikidata": "Q5", "url": "en", "types": ["town"], "description": "A town."}
    kb = add(kb, tmp_path, {"id": "T", "names": ["Clinton"], "prior": 0.25, "person": 1, **about})
    kb = add(kb, tmp_path, {"id": "U", "names": ["Clinton", "New"], "count": 7})
    build_vectors(np.arange(20, dtype=np.float32).reshape(10, 2), kb.path / "vectors", names=list(kb.entities()))
    kb = EntityKB.open(kb.path)
    before, vectors = (
        everything(kb),
        {name: kb.vectors.gather(kb.vectors.rows([name])).tolist() for name in kb.entities()},
    )
    assert len(kb.segments) == 3
    compacted = compact_kb(kb, tmp_path / "one").kb
    compacted.verify()
    assert len(compacted.segments) == 1
    assert everything(compacted) == before
    assert vectors_of(compacted) == vectors
    assert compacted.row("Q5") == compacted.row("T")
    assert everything(compact_kb(compacted).kb) == before  # in its place


def test_a_name_of_several_segments_is_one(tmp_path):
    kb = london(tmp_path)
    for i in range(3):
        kb = add(kb, tmp_path, {"id": f"C{i}", "names": ["London", f"n{i}"], **({"prior": 0.1} if i == 1 else {})})
        assert len(kb.segments) > 1
        assert kb.n_names == len(set(kb.names())) == i + 2
        assert f"{i + 2} names" in repr(kb)
    assert len(kb.segments) > 2


def test_totals_survive_limits(tmp_path):
    """Of a name whose rare candidates were left out the priors do not sum up to 1, and stay so."""
    (tmp_path / "n.tsv").write_text("name\tentity\tcount\nx\tA\t8\nx\tB\t1\nx\tC\t1\n")
    kb = build_kb([tmp_path / "n.tsv"], tmp_path / "kb", settings=KBSettings(Limits(2, 0, None, None))).kb
    assert kb.candidates("x") == [("A", pytest.approx(0.8))]
    compacted = compact_kb(kb, tmp_path / "one").kb
    assert compacted.candidates("x") == [("A", pytest.approx(0.8))]
    kb = add(compacted, tmp_path, {"id": "D", "names": ["x"], "count": 10})
    assert dict(kb.candidates("x")) == {"A": pytest.approx(0.4), "D": pytest.approx(0.5)}


def test_entities_are_replaced_and_removed(tmp_path):
    kb = small_kb(tmp_path)
    build_vectors(np.ones((8, 2), np.float32), kb.path / "vectors", names=[entity["id"] for entity in ENTITIES])
    kb = EntityKB.open(kb.path)
    new = {"id": "Hillary Clinton", "names": ["Clinton"], "description": "A politician.", "count": 160}
    source = write_entities(tmp_path / "new.jsonl", [new, {"id": "X", "names": ["Ex"]}])
    built = change_kb(kb, [source], tmp_path / "changed", remove=["Clinton, Iowa", "Japan"])
    changed = built.kb
    changed.verify()
    assert len(changed) == 7
    hillary = changed.row("Hillary Clinton")
    assert (changed.description(hillary), changed.count(hillary), changed.is_person(hillary)) == (
        "A politician.",
        160,
        False,
    )
    assert dict(changed.candidates("Clinton")) == {
        "Hillary Clinton": pytest.approx(0.8),
        "Bill Clinton": pytest.approx(0.2),
    }
    assert changed.candidates("Hillary Clinton") == []  # a name that the new row has not
    assert changed.candidates("Japan") == [("Japan national football team", 1.0)]
    assert changed.candidates("Nippon") == changed.candidates("Clinton, Iowa") == []
    assert changed.row("Japan") == -1
    known = changed.vectors.rows(["Bill Clinton", "Hillary Clinton", "Japan", "X"]) >= 0
    assert known.tolist() == [True, False, False, False]
    assert changed.info["changed"] == [{"sources": ["new.jsonl"], "replaced": 1, "removed": 2, "entities read": 2}]
    assert everything(kb) == everything(EntityKB.open(kb.path))  # the old one is as it was


def test_what_is_replaced_keeps_the_ids_that_lead_to_it(tmp_path):
    pages = {"London": "A city.", "Londinium": "#REDIRECT [[London]]", "Rome": "A city. See [[London]] and [[Rome]]."}
    (tmp_path / "dump.xml").write_text(dump_of(pages))
    kb = build_kb([tmp_path / "dump.xml"], tmp_path / "kb").kb
    assert kb.name_of(kb.row("Londinium")) == "London"
    source = write_entities(tmp_path / "new.jsonl", [{"id": "London", "names": ["London"], "description": "Large."}])
    replaced = change_kb(kb, [source], tmp_path / "replaced").kb
    assert replaced.description(replaced.row("Londinium")) == "Large."
    assert change_kb(kb, folder=tmp_path / "removed", remove=["London"]).kb.row("Londinium") == -1


def test_the_most_frequent_of_names_in_several_segments(tmp_path):
    """As it is once they are one."""
    kb = small_kb(tmp_path, [{"id": "A", "names": ["ACME"], "count": 1}, {"id": "X", "names": ["x"], "count": 1}])
    kb = add(kb, tmp_path, {"id": "B", "names": ["Acme"], "count": 1000})
    assert len(kb.segments) == 2
    for one in (kb, compact_kb(kb, tmp_path / "one").kb):
        assert (one.find_name("acme"), one.find_name("Ac-me")) == ("Acme", "Acme")


def test_what_cannot_be_removed(tmp_path):
    kb = small_kb(tmp_path)
    with pytest.raises(ValueError, match=r"1 are not in .*kb, the first 'Nobody'"):
        change_kb(kb, remove=["Japan", "Nobody"])
    with pytest.raises(ValueError, match=r"No name with an entity of .*kb would be left"):
        change_kb(kb, remove=[entity["id"] for entity in ENTITIES])
    assert len(EntityKB.open(kb.path)) == len(ENTITIES)


def test_an_id_of_two_entities_is_told(tmp_path):
    """Own ids go before Wikidata ids and titles, then what is there already, then the first of the alphabet."""
    rows = [{"id": f"x{i}", "names": [f"n{i}"], "wikidata": "Q5"} for i in (2, 1)]
    rows += [{"id": "Q7", "names": ["o"]}, {"id": "x3", "names": ["n3"], "wikidata": "Q7", "title": "T", "url": "en"}]
    built = build_kb([write_entities(tmp_path / "e.jsonl", rows)], tmp_path / "kb")
    told = "2 Wikidata ids, titles of pages or redirects that are those of another entity, the first 'Q5': 'x1', and"
    assert built.left_out == [f"{told} not 'x2'"]
    assert [built.kb.name_of(built.kb.row(x)) for x in ("Q5", "Q7", "T")] == ["x1", "Q7", "x3"]
    more = [{"id": "x0", "names": ["n0"], "wikidata": "Q5"}, {"id": "y", "names": ["y"], "title": "x1", "url": "en"}]
    added = add_to_kb(built.kb, [write_entities(tmp_path / "more.jsonl", more)], tmp_path / "larger")
    assert added.left_out == [f"{told} not 'x0'"]
    assert [added.kb.name_of(added.kb.row(x)) for x in ("Q5", "x1")] == ["x1", "x1"]
    again = add_to_kb(built.kb, [write_entities(tmp_path / "own.jsonl", [{"id": "z", "names": ["z"]}])], tmp_path / "z")
    assert again.left_out == []


def test_an_id_that_leads_to_one_entity_by_two_ways_is_none_of_two(tmp_path):
    (tmp_path / "w.json").write_text(
        '{"entity": "Q2", "redirect": "Q1"}\n{"id": "Q1", "labels": {"en": {"value": "A"}}}\n'
    )
    rows = [{"id": "Q1", "names": ["A"], "wikidata": "Q2"}, {"id": "B", "names": ["B"], "wikidata": "Q3"}]
    sources = [tmp_path / "w.json", *(write_entities(tmp_path / name, rows) for name in ("a.jsonl", "b.jsonl"))]
    built = build_kb(sources, tmp_path / "kb")
    assert built.left_out == []
    assert [built.kb.name_of(built.kb.row(x)) for x in ("Q1", "Q2", "Q3")] == ["Q1", "Q1", "B"]


def test_another_id_does_not_replace(tmp_path):
    kb = small_kb(tmp_path, [{"id": "x1", "names": ["Ex"], "wikidata": "Q5"}, {"id": "x2", "names": ["Two"]}])
    source = write_entities(tmp_path / "q.jsonl", [{"id": "Q5", "names": ["Five"]}])
    with pytest.raises(ValueError, match=r"q.jsonl, line 1: The id 'Q5' is that of 'x1' in the knowledge base already"):
        add_to_kb(kb, [source])
    built = change_kb(kb, [source], tmp_path / "changed")
    assert set(built.kb.entities()) == {"x1", "x2", "Q5"}
    assert built.kb.name_of(built.kb.row("Q5")) == "Q5"
    assert built.kb.info["changed"][0]["replaced"] == 0
    assert "the first 'Q5': 'Q5', and not 'x1'" in built.left_out[0]
    removed = change_kb(kb, folder=tmp_path / "removed", remove=["Q5", "x1"])
    assert removed.kb.info["changed"][0]["removed"] == 1
    assert list(removed.kb.entities()) == ["x2"]


def test_given_priors_beside_counts_are_told(tmp_path):
    kb = london(tmp_path)
    source = write_entities(tmp_path / "more.jsonl", [{"id": "B", "names": ["London", "Ld"], "prior": 0.5}])
    built = add_to_kb(kb, [source])
    assert dict(built.kb.candidates("London")) == {"A": 1.0, "B": 0.5}
    (told,) = built.left_out
    assert told.startswith("nothing; but the priors of 1 names sum up to more than 1, the first 'London': priors that")
    assert add_to_kb(built.kb, [write_entities(tmp_path / "c.jsonl", [{"id": "C", "names": ["See"]}])]).left_out == []


def test_a_knowledge_base_of_before_has_no_totals(tmp_path):
    """What is added to it is added to its priors, as before, and told."""
    kb = london(tmp_path)
    (kb.path / "0" / "totals.npy").unlink()
    manifest = json.loads((kb.path / "manifest.json").read_text())
    segments = [{key: n for key, n in entry.items() if key != "shares"} for entry in manifest["segments"]]
    values = {"segments": segments, "info": manifest["info"]}
    EntityKB.kind.write_manifest(kb.path, values, names=[x for x in manifest["files"] if "totals" not in x])
    source = write_entities(tmp_path / "more.jsonl", [{"id": "B", "names": ["London"], "count": 1}])
    built = add_to_kb(EntityKB.open(kb.path), [source])
    assert dict(built.kb.candidates("London")) == {"A": 1.0, "B": 1.0}
    assert "the priors of 1 names sum up to more than 1" in built.left_out[0]
    assert everything(compact_kb(built.kb, tmp_path / "one").kb)[1] == {"London": {"A": 1.0, "B": 1.0}}


@pytest.mark.parametrize("sizes", [pytest.param([1] * 18, marks=pytest.mark.slow), [1, 5, 2, 2, 9, 1, 1, 1]])
def test_segments_stay_few(tmp_path, sizes):
    kb = london(tmp_path)
    for i, size in enumerate(sizes):
        rows = [{"id": f"{i}.{j}", "names": [f"n{i}.{j}"], "count": 1} for j in range(size)]
        kb = add(kb, tmp_path, *rows)
        assert len(kb) == 1 + sum(sizes[: i + 1])
    kb.verify()
    assert len(kb.segments) <= np.log2(sum(sizes)) + 2
    assert all(kb.candidates(f"n{i}.0") == [(f"{i}.0", 1.0)] for i in range(len(sizes)))
