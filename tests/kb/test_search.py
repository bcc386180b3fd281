"""Names with a slip, beginnings of names, vectors that are near."""

import numpy as np
import pytest

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.kb.search import fuzzy_names, nearest_entities
from spacy_luke.vectors.build import build_vectors
from tests.kb.kbs import ENTITIES, small_kb, write_entities


@pytest.fixture
def kb(tmp_path):
    return small_kb(tmp_path)


def found(kb, hits):
    return [(kb.name_of(hit.row), hit.how) for hit in hits]


@pytest.mark.parametrize("text", ["Jpan", "Jappan", "Jaoan", "Jpaan", "JPAN", "jap-n", "Japan."])
def test_one_slip(kb, text):
    (name,) = set(fuzzy_names(kb, text)) or {kb.find_name(text)}
    assert name == "Japan"
    assert found(kb, kb.search(text))[0][0] == "Japan"


@pytest.mark.parametrize("text", ["England", "ENG-LAND", "ſilesia", "Q\u0323\u0307abc", "Ｔｏｋｙｏ", "Ελλάς", "İzmir"])
def test_a_name_is_no_slip_of_itself(tmp_path, text):
    """Letters that are read as others, such as l with a dot, and marks in another order, make no slip."""
    kb = build_kb([write_entities(tmp_path / "e.jsonl", [{"id": "Q1", "names": [text]}])], tmp_path / "kb").kb
    assert list(fuzzy_names(kb, text)) == []
    assert list(fuzzy_names(kb, text + "x")) == [kb.find_name(text)]


@pytest.mark.parametrize("text", ["Jpn", "Jaooan", "", "..."])
def test_two_slips_and_short_texts_find_nothing(kb, text):
    assert list(fuzzy_names(kb, text)) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [("Sao Paulo", "São Paulo"), ("Lódź", "Łódź"), ("Αθηνα", "Αθήνα"), ("Москво", "Москва"), ("القاهة", "القاهرة")],
)
def test_one_slip_in_letters_with_marks_and_other_alphabets(tmp_path, text, name):
    names = ("São Paulo", "Łódź", "Αθήνα", "Москва", "القاهرة")
    rows = [{"id": f"Q{i}", "names": [one]} for i, one in enumerate(names)]
    kb = build_kb([write_entities(tmp_path / "e.jsonl", rows)], tmp_path / "kb").kb
    assert kb.find_name(text) is None
    assert list(fuzzy_names(kb, text)) == [name]


def test_ways_in_order(kb):
    hits = kb.search("clinton")
    assert found(kb, hits) == [
        ("Clinton, Iowa", "name"),
        ("Hillary Clinton", "name"),
        ("Bill Clinton", "name"),
    ]
    assert hits[0].score == 0.5
    assert found(kb, kb.search("Clin")) == [
        ("Clinton, Iowa", "prefix"),
        ("Hillary Clinton", "prefix"),
        ("Bill Clinton", "prefix"),
    ]
    assert found(kb, kb.search("clinton", top=1)) == [("Clinton, Iowa", "name")]
    with pytest.raises(ValueError, match="top must be at least 1"):
        kb.search("x", top=0)


def test_names_that_were_added_are_found(kb, tmp_path):
    kb = add_to_kb(kb, [write_entities(tmp_path / "more.jsonl", [{"id": "L", "names": ["London"]}])]).kb
    assert found(kb, kb.search("Londn")) == [("L", "fuzzy")]
    assert found(kb, kb.search("lond")) == [("L", "prefix")]


def test_slips_of_long_texts_are_not_looked_for(tmp_path, monkeypatch):
    """They are as many as a text has letters, and each is as long as it; names and beginnings are found as ever."""
    long = "name of a law with many words " * 9
    names = [long, "x" * 60]
    rows = [{"id": f"Q{i}", "names": [name]} for i, name in enumerate(names)]
    kb = build_kb([write_entities(tmp_path / "e.jsonl", rows)], tmp_path / "kb").kb
    assert found(kb, kb.search(names[1][1:])) == [("Q1", "fuzzy")]
    looked: list = []
    monkeypatch.setattr(type(kb.segments[0]), "loose_names", lambda self, key: looked.append(key) or iter(()))
    assert found(kb, kb.search(long)) == [("Q0", "name")]
    assert found(kb, kb.search(long[:200])) == [("Q0", "prefix")]
    assert kb.search(long[1:]) == []
    assert len(looked) < 20


@pytest.mark.parametrize("text", ["\ud800", "Japan\ud800", "Jap\udcff", "\ud83d Japan"])
def test_halves_of_characters_are_in_no_name(kb, text):
    assert all(hit.how == "fuzzy" for hit in kb.search(text))
    assert list(kb.names_beginning(text)) == []


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_nearest_vectors_are_those_of_a_plain_search(kb, dtype):
    rows = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    names = [entity["id"] for entity in ENTITIES]
    build_vectors(rows, kb.path / "vectors", names=names, dtype=dtype)
    kb = EntityKB.open(kb.path)
    query = np.random.default_rng(1).normal(size=5).astype(np.float32)
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    expected = [names[i] for i in np.argsort(-cosines)[:3]]
    near = nearest_entities(kb, query, top=3)
    assert [kb.name_of(row) for row, _ in near] == expected
    assert [score for _, score in near] == pytest.approx(sorted(cosines, reverse=True)[:3], abs=0.02)
    hits = kb.search("nothing like it", vector=query, top=3)
    assert found(kb, hits) == [(name, "dense") for name in expected]
    assert len(nearest_entities(kb, query, top=100)) == 8
    with pytest.raises(ValueError, match="Expected a vector of 5 numbers, but got 4"):
        nearest_entities(kb, query[:4], top=3)


def test_no_vectors(kb):
    with pytest.raises(ValueError, match="has no vectors"):
        nearest_entities(kb, np.zeros(3), top=1)


def test_the_best_of_many_beginnings(tmp_path):
    """However many names begin so, and in capitals that nobody typed."""
    rows = [{"id": f"N{i}", "names": [f"Nordwind {i:04}"], "count": 1} for i in range(300)]
    rows.append({"id": "Z", "names": ["Nordwind Zentrale"], "count": 1000})
    rows += [{"id": x, "names": [x], "count": 5} for x in ("New York City", "IBM Deutschland", "Bund für Umwelt")]
    kb = build_kb([write_entities(tmp_path / "e.jsonl", rows)], tmp_path / "kb").kb
    assert found(kb, kb.search("nordwi", top=2))[0] == ("Z", "prefix")
    for text, name in (("new yo", "New York City"), ("ibm d", "IBM Deutschland"), ("bund für", "Bund für Umwelt")):
        assert found(kb, kb.search(text)) == [(name, "prefix")]
