"""scripts/ready_relations.py and scripts/corpus_docs.py: relations get the names of properties, and what is not known
of a pair is said."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import RELATIONS_TASK, TYPES_TASK, get_scope
from spacy_luke.annotations import TYPES as TYPES_KEY
from tests.readers.datasets.knowledge_page import ROWS, write_page

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from ready_types import KINDS, ROLES, TYPES, read_cities, types_of  # noqa: E402

SENTENCE = {"tokens": ["Ed", "sang", "Bo"], "h": ["bo", "Q2", [[2]]], "t": ["ed", "Q1", [[0]]]}


def document(title):
    return {
        "title": title,
        "sents": [["Ed", "Ott", "of", "Bonn"], ["Ed", "left"]],
        "vertexSet": [
            [{"sent_id": 0, "pos": [0, 2], "type": "PER"}, {"sent_id": 1, "pos": [0, 1], "type": "PER"}],
            [{"sent_id": 0, "pos": [3, 4], "type": "LOC"}],
        ],
        "labels": [{"h": 0, "t": 1, "r": "P19"}, {"h": 0, "t": 1, "r": "P1001"}],
    }


@pytest.fixture
def data(tmp_path):
    """Small files as the data sets have them: a document of each part, by its title."""
    for name in ("redocred", "knowledge_net", "fewrel/resplit_mgfte", "wikidata_slice"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "wikidata_slice/cities15000.tsv").write_text("Bonn\tBonn\t50.7\t7.1\tDE\t300000\n")
    documents = [document(title) for title in ("Göteborg", "Berlin", "Paris")]
    (tmp_path / "redocred/dev_revised.json").write_text(json.dumps(documents))
    rows = [row.replace(">12<", f">{n}<", 1) for n in range(20) for row in ROWS]  # of documents of all parts
    write_page(tmp_path / "knowledge_net/human_readable-v10-notest.zip", rows)
    sentences = [{**SENTENCE, "tokens": ["Ed", "sang", "Bo", str(i)]} for i in range(20)]
    for i, name in enumerate(("val_wiki", "resplit_mgfte/val", "resplit_mgfte/test")):
        relations = {label: [{**x, "tokens": [*x["tokens"], label]} for x in sentences] for label in ("P175", f"P9{i}")}
        (tmp_path / f"fewrel/{name}.json").write_text(json.dumps(relations))
    return tmp_path


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(SCRIPTS / name), run_name="__main__")


def docs_of(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def relations(doc):
    return [(x.head.text, x.tail.text, x.label) for x in doc._.luke_relations]


def test_files(data, tmp_path, monkeypatch, capsys):
    run(monkeypatch, "ready_relations.py", data, tmp_path / "out")
    for part in ("train", "dev", "test"):
        (doc,) = docs_of(tmp_path / f"out/redocred.{part}.spacy")
        assert relations(doc) == [("Ed Ott", "Bonn", "place of birth"), ("Ed", "Bonn", "place of birth")]
        assert [x.label_ for x in doc.ents] == ["PER", "LOC", "PER"]
        assert get_scope(doc, RELATIONS_TASK).is_full
    passage, *others = docs_of(tmp_path / "out/knowledge_net.train.spacy")
    assert all(map(relations, others))  # a passage whose facts are of pronouns is left out
    assert relations(passage) == [("Ed Ott", "Bonn", "place of birth"), ("Ed Ott", "A&B", "employer or member of")]
    scope = get_scope(passage, RELATIONS_TASK)
    assert scope.meaning("employer or member of") == {"employer", "member of"}
    assert scope.is_annotated("spouse")
    assert not scope.is_annotated("employer")
    sentences = docs_of(tmp_path / "out/fewrel.train.spacy")
    labels = [label for doc in sentences for _, _, label in relations(doc)]
    assert set(labels) == {"performer"}
    assert (len(labels), len(sentences) - len(labels)) == (16, 14)  # 3 in 10 of 48 other ones
    assert "redocred.train: 1 documents, 6 words, 2 relations" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("label", "name", "roles", "types"),
    [
        ("PER", "Ed", ["athlete"], ["athlete"]),
        ("PER", "Ed", ["officer", "PER"], ["officer", "politician?"]),
        ("PER", "Ed", ["PER"], [f"{one}?" for one in KINDS["PER"]]),
        ("PER", "Ed", ["musician|actor"], ["musician|actor"]),
        ("PER", "Ed", ["musician|actor", "actor"], ["actor", "filmmaker?", "musician?", "writer?"]),
        ("LOC", "Bonn", [], [f"{one}?" for one in KINDS["LOC"]]),
        ("LOC", "Peru", [], ["country"]),
        ("MISC", "Peruvian", ["country"], ["people"]),
        ("TIME", "1843", [], []),
        ("ENTITY", "Ed", ["city"], ["city"]),
        ("ENTITY", "Ed", ["PER"], [f"{one}?" for one in KINDS["PER"]]),
        ("ENTITY", "Ed", [], None),
    ],
)
def test_types(label, name, roles, types):
    assert types_of(label, name, roles) == types


@pytest.mark.parametrize(
    ("label", "name", "roles", "types"),
    [
        ("PER", "Ed", [], []),
        ("PER", "Ed", ["PER"], []),
        ("PER", "Ed", ["officer"], ["officer", "politician?"]),
        ("LOC", "Bonn", [], ["city"]),
        ("LOC", "Peru", [], ["country"]),
        ("LOC", "Alps", [], []),
        ("LOC", "Bonn", ["water"], ["city", "water"]),
        ("PER", "Bonn", [], []),
    ],
)
def test_types_where_all_is_known(label, name, roles, types):
    assert types_of(label, name, roles, {"Bonn"}, full=True) == types


def test_cities(tmp_path):
    path = tmp_path / "cities.tsv"
    path.write_text("Bonn\tBonn\t50\t7\tDE\t300000\nPeru\tPeru\t1\t1\tUS\t90000\n")
    assert read_cities(path) == {"Bonn"}


def test_roles_are_types_or_kinds():
    roles = {one for pair in ROLES.values() for role in pair for one in role.split("|") if one}
    assert roles <= {*TYPES, *KINDS}
    assert set(TYPES) <= roles


def test_types_are_written(data, tmp_path, monkeypatch):
    run(monkeypatch, "ready_relations.py", data, tmp_path / "out")
    (doc,) = docs_of(tmp_path / "out/redocred.train.spacy")
    scope = get_scope(doc, TYPES_TASK)
    assert scope.is_annotated("city")
    assert scope.meaning("city?") == {"city", ""}
    assert [(x.text, x.label_) for x in doc.spans[TYPES_KEY]] == [("Ed Ott", ""), ("Bonn", "city"), ("Ed", "")]


def test_corpus_docs(data, tmp_path, monkeypatch):
    run(monkeypatch, "ready_relations.py", data, tmp_path / "out")
    source = {"path": "${paths.data}/redocred.dev.spacy", "entities": {"labels": {"PER": "P", "*": ""}}}
    corpus = {"@readers": "spacy-luke.JoinedCorpus.v1", "sources": {"a": source}}
    config = spacy.blank("en").config.copy()
    config["paths"]["data"] = "nowhere"
    config["corpora"] = {"dev": corpus}
    config.to_disk(tmp_path / "x.cfg")
    arguments = (tmp_path / "x.cfg", "dev", tmp_path / "dev.spacy", "--paths.data", tmp_path / "out")
    run(monkeypatch, "corpus_docs.py", *arguments)
    (doc,) = docs_of(tmp_path / "dev.spacy")
    assert [x.label_ for x in doc.ents] == ["P", "P"]
    assert len(relations(doc)) == 2
