"""Vectors of entities are made in blocks: by several processes, and on after a stop, with the same bytes."""

import json

import pytest

from spacy_luke.checkpoint.special import without_table
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.linker import embed_entities as module
from spacy_luke.components.linker.embed_entities import embed_entities, entity_text
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.stores.parallel import Engine
from tests.tiny import make_checkpoint

ROWS = [
    {"id": f"Q{i}", "names": [f"Name {i}"], "title": f"Ada {i}", "description": "bank in Accra" if i % 2 else ""}
    for i in range(1, 8)
]


@pytest.fixture
def kb(tmp_path):
    return build_kb([write(tmp_path / "rows.jsonl", ROWS)], tmp_path / "kb").kb


@pytest.fixture
def encoder(monkeypatch):
    monkeypatch.setattr(module, "ENTITIES_AT_ONCE", 3)
    return TextEncoder(without_table(make_checkpoint()))


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return path


def vectors_of(kb):
    return {name: kb.vectors.gather(kb.vectors.rows([name]))[0].tolist() for name in kb.entities()}


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_blocks_are_one(kb, encoder, tmp_path):
    """Of titles and descriptions, whatever the blocks; nothing stays beside the knowledge base."""
    assert entity_text(kb, kb.row("Q1")) == "Ada 1. bank in Accra"
    assert entity_text(kb, kb.row("Q2")) == "Ada 2"
    found, made = embed_entities(kb, encoder)
    assert made == 7
    expected = encoder.encode([entity_text(kb, row) for row in range(7)])
    for row, vector in enumerate(vectors_of(found).values()):
        assert vector == pytest.approx(expected[row].tolist(), abs=1e-6)
    assert hidden(tmp_path) == []
    more = add_to_kb(found, [write(tmp_path / "more.jsonl", [{"id": "X", "names": ["X"]}])], tmp_path / "kb").kb
    again, made = embed_entities(more, encoder)
    assert made == 1
    assert {**vectors_of(again), "X": None} == {**vectors_of(found), "X": None}


def test_it_goes_on_after_a_stop(kb, encoder, tmp_path, monkeypatch):
    """What was made stays; the old files stay as they are until all is made; another encoder begins anew."""
    asked = []

    def stopping(self, texts, **settings):
        asked.append(list(texts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return encode(self, texts, **settings)

    encode = TextEncoder.encode
    with monkeypatch.context() as patched:
        patched.setattr(TextEncoder, "encode", stopping)
        with pytest.raises(KeyboardInterrupt):
            embed_entities(kb, encoder)
        assert type(kb).open(kb.path).vectors is None
        assert hidden(tmp_path) == [".kb.vectors.work"]
        assert not (tmp_path / ".kb.vectors.work" / "encoder.pickle").exists()
        found, made = embed_entities(kb, encoder)
    assert (made, [len(texts) for texts in asked]) == (7, [3, 3, 1, 1])
    assert hidden(tmp_path) == []
    whole, _ = embed_entities(kb, encoder, again=True)
    assert vectors_of(whole) == vectors_of(found)


@pytest.mark.slow  # starts two processes that import torch
def test_processes_do_the_same(kb, tmp_path):
    rows = [{"id": f"E{i}", "names": [f"N{i}"], "title": f"Title {i}"} for i in range(module.ENTITIES_AT_ONCE + 5)]
    kb = build_kb([write(tmp_path / "many.jsonl", rows)], tmp_path / "many").kb
    encoder = TextEncoder(without_table(make_checkpoint()))
    one = vectors_of(embed_entities(kb, encoder)[0])
    found, made = embed_entities(kb, encoder, again=True, engine=Engine(workers=2))
    assert made == module.ENTITIES_AT_ONCE + 5
    for name, vector in vectors_of(found).items():
        assert vector == pytest.approx(one[name], abs=1e-5)
    assert hidden(tmp_path) == []
