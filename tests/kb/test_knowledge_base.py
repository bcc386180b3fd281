"""Looking names and entities up; adding; files that are not whole."""

import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.stores.folder import MANIFEST
from spacy_luke.vectors.build import build_vectors
from tests.kb.kbs import ENTITIES, small_kb, write_entities
from tests.sealing import change_manifest

TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=6).filter(str.strip)


@pytest.fixture
def kb(tmp_path):
    return small_kb(tmp_path)


def write_names(path, *lines):
    path.write_text("name\tentity\tcount\n" + "".join(line + "\n" for line in lines), encoding="utf8")
    return path


def test_entities(kb):
    assert len(kb) == len(ENTITIES)
    assert kb.n_names == 12
    for entity in ENTITIES:
        row = kb.row(entity["id"])
        assert kb.name_of(row) == entity["id"]
        assert kb.description(row) == entity.get("description", "")
        assert kb.count(row) == entity["count"]
        assert kb.is_person(row) == entity.get("person", False)
    assert sorted(kb.entities()) == sorted(entity["id"] for entity in ENTITIES)
    assert kb.row("Nippon") == kb.row("\ud800") == kb.row("") == -1
    assert "Japan" in kb
    assert 3 not in kb
    assert kb.is_person(-1) is False
    assert kb.vectors is None
    assert kb.info == {"sources": ["entities.jsonl"], "entities read": 8}
    with pytest.raises(ValueError, match="Expected a row from 0 to 7, but got -1"):
        kb.name_of(-1)
    with pytest.raises(ValueError, match="but got 8"):
        kb.description(8)


def test_priors_and_top(kb):
    assert kb.candidates("Japan") == [
        ("Japan", pytest.approx(0.9)),
        ("Japan national football team", pytest.approx(0.1)),
    ]
    assert [entity for entity, _ in kb.candidates("Clinton", top=2)] == ["Clinton, Iowa", "Hillary Clinton"]
    assert kb.candidate_rows("Nippon") == [(kb.row("Japan"), 1.0)]
    assert kb.candidates("Atlantis") == []
    assert kb.candidates("") == kb.candidates("...") == []
    with pytest.raises(ValueError, match="top must be at least 1"):
        kb.candidates("Japan", top=0)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Japan", "Japan"),
        ("JAPAN", "Japan"),
        ("japan", "Japan"),
        ("jApAn", "Japan"),
        ("Japan's", "Japan"),
        ("Japan ’s", "Japan"),
        ("JAPAN'S", "Japan"),
        ("UNITED STATES", "United States"),
        ("united  states", "United States"),
        ("United-States", "United States"),
        ("U.S.", "US"),
        ("U. S.", "US"),
        ("us", "us"),
        ("US", "US"),
        ("U.s.", "US"),
        ("CLINTON , IOWA", "Clinton,Iowa"),
        ("Clinton Iowa", "Clinton,Iowa"),
        ("Sa\u0303o Paulo", "São Paulo"),
        ("SÃO PAULO", "São Paulo"),
        ("'s", None),
        ("'", None),
        ("\u200b", None),
        ("Jap", None),
        ("Japan\ud800", None),
        ("\0", None),
    ],
)
def test_fall_backs(kb, name, found):
    assert kb.find_name(name) == found
    assert kb.candidates(name) == ([] if found is None else kb.candidates(found))


def test_the_most_frequent_of_several(tmp_path):
    names = write_names(tmp_path / "names.tsv", "Apple\tA\t5", "APPLE\tB\t1", "aPPLE\tC\t9", "ap-ple\tD\t100")
    kb = build_kb([names], tmp_path / "kb").kb
    assert kb.find_name("apple") == "aPPLE"
    assert kb.find_name("ap ple") == "ap-ple"


def test_redirects(tmp_path):
    dump = """<mediawiki><siteinfo><namespaces><namespace key="0" /></namespaces></siteinfo>
    <page><title>A</title><revision><text>'''A''' is [[B]].</text></revision></page>
    <page><title>B</title><revision><text>#REDIRECT [[C]]</text></revision></page>
    <page><title>C</title><revision><text>#REDIRECT [[A]]</text></revision></page>
    <page><title>D</title><revision><text>#REDIRECT [[E]]</text></revision></page>
    <page><title>E</title><revision><text>#REDIRECT [[D]]</text></revision></page></mediawiki>"""
    (tmp_path / "dump.xml").write_text(dump, encoding="utf8")
    built = build_kb([tmp_path / "dump.xml"], tmp_path / "kb")
    kb = built.kb
    assert [kb.row(title) for title in "ABCDEF"] == [0, 0, 0, -1, -1, -1]
    assert kb.candidates("B") == [("A", 1.0)]
    assert kb.count(0) == 1
    assert "2 redirects to nothing" in built.left_out


def test_pickle_save_and_vectors(kb, tmp_path):
    names = [entity["id"] for entity in ENTITIES]
    build_vectors(np.arange(16, dtype=np.float32).reshape(8, 2), kb.path / "vectors", names=names)
    kb = EntityKB.open(kb.path)
    assert kb.vectors.size == 2
    data = pickle.dumps(kb)
    assert len(data) < 500
    assert pickle.loads(data).candidates("US") == kb.candidates("US")
    kb.save(tmp_path / "copy")
    copy = EntityKB.open(tmp_path / "copy")
    copy.verify()
    assert copy.vectors.gather([copy.vectors.row("Japan")]).tolist() == [[0, 1]]
    assert os.path.samefile(copy.path / "0" / "names", kb.path / "0" / "names")
    kb.save(kb.path)  # over itself
    EntityKB.open(kb.path).verify()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(ValueError, match="holds something else"):
        kb.save(tmp_path / "other")


def test_adding(kb, tmp_path):
    build_vectors(np.ones((8, 2), np.float32), kb.path / "vectors", names=[entity["id"] for entity in ENTITIES])
    kb = EntityKB.open(kb.path)
    rows = [
        {"id": "Clinton, New York", "names": ["Clinton", "Clinton, New York"], "prior": 0.25, "description": "A town."},
        {"id": "Chelsea Clinton", "names": ["Chelsea"], "prior": 1, "person": 1},
    ]
    more = write_entities(tmp_path / "more.jsonl", rows)
    names = write_names(tmp_path / "names.tsv", "Land of the Rising Sun\tJapan\t3", "the town\tClinton, New York\t1")
    larger = add_to_kb(kb, [more, names], tmp_path / "larger").kb
    assert len(larger) == 10
    assert [larger.name_of(row) for row in range(8)] == [kb.name_of(row) for row in range(8)]
    assert sorted(larger.name_of(row) for row in (8, 9)) == ["Chelsea Clinton", "Clinton, New York"]
    assert larger.candidates("Land of the Rising Sun") == [("Japan", 1.0)]
    assert larger.candidates("the town") == [("Clinton, New York", 1.0)]
    assert dict(larger.candidates("clinton")) == {**dict(kb.candidates("Clinton")), "Clinton, New York": 0.25}
    town = larger.row("Clinton, New York")
    assert (larger.description(town), larger.count(town), larger.is_person(town)) == ("A town.", 0, False)
    assert larger.is_person(larger.row("Chelsea Clinton"))
    assert larger.vectors.rows(["Japan", "Chelsea Clinton"]).tolist()[1] == -1
    larger.verify()
    assert os.path.samefile(larger.path / "0" / "names", kb.path / "0" / "names")
    assert len(larger.info["added"]) == 1
    again = write_entities(tmp_path / "again.jsonl", [{"id": "Hamburg", "names": ["Hamburg", "Clinton"]}])
    third = add_to_kb(larger, [again]).kb
    assert third.path == larger.path
    assert third.name_of(10) == "Hamburg"
    assert dict(third.candidates("Clinton")) == {  # one link more, and a prior that was given
        **{name: pytest.approx(prior * 200 / 201) for name, prior in kb.candidates("Clinton")},
        "Clinton, New York": 0.25,
        "Hamburg": pytest.approx(1 / 201),
    }
    with pytest.raises(ValueError, match="Expected a row from 0 to 10, but got 11"):
        third.count(11)


def test_what_is_there_cannot_be_added(kb, tmp_path):
    more = write_entities(tmp_path / "more.jsonl", [ENTITIES[0]])
    with pytest.raises(ValueError, match="'Japan' is in the knowledge base already"):
        add_to_kb(kb, [more])
    names = write_names(tmp_path / "names.tsv", "x\tNowhere\t1")
    with pytest.raises(ValueError, match="'x' means 'Nowhere', which no source of entities has"):
        add_to_kb(kb, [names])
    assert add_to_kb(kb, [names], settings=KBSettings(unknown="add")).kb.row("Nowhere") == 8


def test_as_plain_dicts(tmp_path_factory):
    @given(st.dictionaries(st.tuples(TEXT, st.sampled_from(["X", "Y", "Zé", "X y"])), st.integers(1, 5), min_size=1))
    def check(pairs):
        from spacy_luke.text.forms import key_of

        folder = tmp_path_factory.mktemp("kb")
        rows = [{"name": name, "entity": entity, "count": n} for (name, entity), n in pairs.items()]
        (folder / "names.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
        kb = build_kb([folder / "names.jsonl"], folder / "kb", most=2).kb
        plain: dict = {}
        for (name, entity), n in pairs.items():
            weights = plain.setdefault(key_of(name, case="exact"), {})
            weights[entity] = weights.get(entity, 0) + n
        assert sorted(kb.names()) == sorted(plain)
        for name, weights in plain.items():
            total = sum(weights.values())
            expected = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
            assert kb.candidates(name) == [(entity, pytest.approx(n / total)) for entity, n in expected]

    check()


def test_same_files_from_the_same_sources(tmp_path):
    source = write_entities(tmp_path / "entities.jsonl")
    folders = [build_kb([source], tmp_path / name, most=most).kb.path for name, most in (("a", 1), ("b", 100))]
    for path in sorted(folders[0].rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (folders[1] / path.relative_to(folders[0])).read_bytes(), path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "entities.jsonl"]


def test_names_and_entities_in_parts(tmp_path):
    rows = [
        {"id": f"E{i % 70:02d} {i}", "names": [f"Name {i % 90}", f"Änne {i}.", "All of them"], "count": i + 1}
        for i in range(200)
    ]
    whole, parts = (
        build_kb([write_entities(tmp_path / "entities.jsonl", rows)], tmp_path / name, most=most).kb
        for name, most in (("whole", 1000), ("parts", 1))
    )
    sizes = [(kb.path / "0" / "names").stat().st_size for kb in (whole, parts)]
    assert sizes[1] > sizes[0] + 10 * 64  # a trie for each sixteen texts
    assert sorted(whole.entities()) == sorted(parts.entities()) == sorted(row["id"] for row in rows)
    assert sorted(whole.names()) == sorted(parts.names())
    for name in [*whole.names(), "ALL OF THEM", "anne 7", "änne 7", "Name"]:
        assert whole.candidates(name) == parts.candidates(name)
        assert sorted(whole.names_beginning(name[:6])) == sorted(parts.names_beginning(name[:6]))
    for row in map(parts.row, whole.entities()):
        own = whole.row(parts.name_of(row))
        assert (parts.record(row), parts.count(row)) == (whole.record(own), whole.count(own))
    ids = [sorted((kb.name_of(x.row), x.how, x.score) for x in kb.search("Äne 17", top=50)) for kb in (whole, parts)]
    assert ids[0] == ids[1]
    assert ids[0]
    parts.verify()


def test_ten_thousand_candidates(tmp_path):
    names = write_names(tmp_path / "names.tsv", *[f"John\tJohn {i}\t{i + 1}" for i in range(10_000)])
    kb = build_kb([names], tmp_path / "kb").kb
    found = kb.candidates("John")
    assert len(found) == 10_000
    assert found[0].entity == "John 9999"
    assert sum(prior for _, prior in found) == pytest.approx(1)
    assert kb.candidates("JOHN", top=3) == found[:3]
    (tmp_path / "kb30").mkdir()
    from spacy_luke.aliases.counts import Limits

    built = build_kb([names], tmp_path / "kb30", settings=KBSettings(Limits(max_words=None, max_candidates=30)))
    assert len(built.kb.candidates("John")) == 30
    assert built.left_out == ["9,970 candidates beyond max_candidates"]


FILES = ("0/names", "0/descriptions.txt", "0/counts.npy", "0/loose_hashes.npy", "0/redirect_numbers.npy")


@pytest.mark.parametrize("name", FILES)
def test_half_a_file(kb, name):
    path = kb.path / name
    size = path.stat().st_size
    os.truncate(path, size // 2)
    with pytest.raises(ValueError, match=f"not a whole knowledge base: expected {size:,} bytes in {name}"):
        EntityKB.open(kb.path)
    path.unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        EntityKB.open(kb.path)


def test_changed_bytes(kb):
    path = kb.path / "0" / "persons.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"persons.npy is damaged"):
        EntityKB.open(kb.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version 3, but this spacy_luke reads version 2"),
        ({"format": "x"}, "no knowledge base: manifest.json says format 'x'"),
        ({"segments": []}, "manifest.json is not whole"),
        ({"segments": [{"entities": "8", "names": 1, "candidates": 1}]}, "manifest.json is not whole"),
        ({"files": {}}, "manifest.json is not whole"),
        ({"info": None}, "manifest.json is not whole"),
    ],
)
def test_other_manifests(kb, change, message):
    change_manifest(kb.path, **change)
    with pytest.raises(ValueError, match=message):
        EntityKB.open(kb.path)


def test_no_knowledge_base(tmp_path):
    with pytest.raises(ValueError, match=r"there is no manifest.json. Build one with"):
        EntityKB.open(tmp_path / "nothing")
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(ValueError, match="is not readable"):
        EntityKB.open(tmp_path)


def test_a_failure_leaves_the_old_one(kb, tmp_path, monkeypatch):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "X", "names": ["x"]}\n{"id": "X", "names": ["x"]}\n')
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"bad.jsonl: the id 'X' is in line 1 and again in line 2"):
        build_kb([bad], kb.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    EntityKB.open(kb.path).verify()
