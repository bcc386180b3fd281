"""The knowledge base in spaCy's own entity_linker: trained, saved, loaded, in several processes."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.components.linker.spacy_kb import LinkedKB, make_empty_entity_kb, make_entity_kb_loader
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.vectors.build import build_vectors
from tests.kb.kbs import ENTITIES, write_entities

IDS = [entity["id"] for entity in ENTITIES]
SIZE = 4
WORDS = "Clinton met JAPAN 's team in the U.S. .".split()
ENTS = {(0, 1): "Hillary Clinton", (2, 3): "Japan", (7, 8): "United States"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    kb = build_kb([write_entities(folder / "entities.jsonl")], folder / "kb").kb
    vectors = np.random.default_rng(0).normal(size=(len(IDS), SIZE)).astype(np.float32)
    build_vectors(vectors, kb.path / "vectors", names=IDS)
    return kb.path


def gold(nlp, links=ENTS):
    doc = Doc(nlp.vocab, WORDS, sent_starts=[True] + [False] * (len(WORDS) - 1))
    doc.ents = [Span(doc, start, end, label="X", kb_id=link) for (start, end), link in links.items()]
    return doc


def given(nlp):
    doc = gold(nlp)
    doc.ents = [Span(doc, ent.start, ent.end, label="X") for ent in doc.ents]
    return doc


def make_nlp(folder, **settings):
    nlp = spacy.blank("en")
    config = {"generate_empty_kb": {"@misc": "spacy-luke.EmptyEntityKB.v1"}, **settings}
    linker = nlp.add_pipe("entity_linker", config=config)
    linker.set_kb(make_entity_kb_loader(str(folder)))
    return nlp, linker


def test_spacys_linker(folder, tmp_path):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe(
        "entity_linker",
        config={"generate_empty_kb": {"@misc": "spacy-luke.EmptyEntityKB.v1"}, "candidates_batch_size": 8},
    )
    config = nlp.config.copy()
    config["initialize"]["components"]["entity_linker"] = {
        "kb_loader": {"@misc": "spacy-luke.EntityKB.v1", "path": str(folder), "top": 3}
    }
    nlp.config = config
    examples = [Example(given(nlp), gold(nlp, {**ENTS, (0, 1): "Nobody"})), Example(given(nlp), gold(nlp))]
    optimizer = nlp.initialize(lambda: examples)
    assert linker.kb.entity_vector_length == SIZE
    losses = nlp.update(examples, sgd=optimizer)
    assert np.isfinite(losses["entity_linker"])
    assert losses["entity_linker"] > 0
    before = [ent.kb_id_ for ent in nlp(given(nlp)).ents]
    assert before[2] == "United States"
    assert before[0] in IDS
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    kb = loaded.get_pipe("entity_linker").kb
    assert isinstance(kb, LinkedKB)
    assert kb.top == 3
    assert kb.kb.path == tmp_path / "nlp" / "entity_linker" / "kb"
    assert [ent.kb_id_ for ent in loaded(given(loaded)).ents] == before
    loaded.to_disk(tmp_path / "nlp")  # over itself
    assert [ent.kb_id_ for ent in spacy.load(tmp_path / "nlp")(given(loaded)).ents] == before
    again = spacy.blank("en")
    again.add_pipe("entity_linker", config={"generate_empty_kb": {"@misc": "spacy-luke.EmptyEntityKB.v1"}})
    again.from_bytes(nlp.to_bytes())
    assert [ent.kb_id_ for ent in again(given(again)).ents] == before
    docs = list(loaded.pipe([given(loaded) for _ in range(4)], n_process=2, batch_size=2))
    assert [[ent.kb_id_ for ent in doc.ents] for doc in docs] == [before] * 4


def test_candidates(folder):
    vocab = spacy.blank("en").vocab
    kb = make_entity_kb_loader(str(folder))(vocab)
    doc = given(spacy.blank("en"))
    found = kb.get_candidates(doc[0:1])
    assert [(c.entity_, c.alias_) for c in found] == [
        ("Clinton, Iowa", "Clinton"), ("Hillary Clinton", "Clinton"), ("Bill Clinton", "Clinton"),
    ]  # fmt: skip
    assert [c.prior_prob for c in found] == pytest.approx([0.5, 0.3, 0.2])
    assert [c.entity_freq for c in found] == [100, 60, 40]
    assert found[1].entity_vector == pytest.approx(kb.get_vector("Hillary Clinton"))
    assert found[0].entity == vocab.strings["Clinton, Iowa"]
    assert [c.entity_ for c in kb.get_candidates(doc[7:8])] == ["United States"]
    batch = kb.get_candidates_batch([doc[0:1], doc[1:2], doc[0:1]])
    assert [len(candidates) for candidates in batch] == [3, 0, 3]
    assert kb.get_prior_prob("Hillary Clinton", "CLINTON") == pytest.approx(0.3)
    assert kb.get_prior_prob("Nobody", "Clinton") == 0
    assert kb.get_vector("NIL") == [0.0] * SIZE
    assert np.asarray(kb.get_vectors(["Japan", "x"])).shape == (2, SIZE)
    assert (len(kb), kb.get_size_entities(), kb.get_size_aliases(), kb.is_empty()) == (8, 8, 12, False)
    assert kb.contains_entity("Japan")
    assert kb.contains_alias("japan")
    assert not kb.contains_alias("x")
    assert sorted(kb.get_entity_strings()) == sorted(IDS)
    assert "US" in set(kb.get_alias_strings())
    copy = pickle.loads(pickle.dumps(kb))
    assert [c.entity_ for c in copy.get_candidates(doc[0:1])] == [c.entity_ for c in found]
    assert [len(c.get_candidates(doc[0:1])) for c in (LinkedKB(vocab, kb.kb, top=2), kb)] == [2, 3]


def test_without_vectors(tmp_path):
    kb = build_kb([write_entities(tmp_path / "entities.jsonl")], tmp_path / "kb").kb
    nlp, _ = make_nlp(kb.path, incl_context=False)
    nlp.initialize(lambda: [Example(given(nlp), gold(nlp))])
    assert [ent.kb_id_ for ent in nlp(given(nlp)).ents] == ["Clinton, Iowa", "Japan", "United States"]
    nlp, linker = make_nlp(kb.path)
    nlp.initialize(lambda: [Example(given(nlp), gold(nlp))])
    with pytest.raises(ValueError, match=r"has no vector in the knowledge base\. Make vectors"):
        nlp(given(nlp))
    with pytest.raises(ValueError, match="'Japan' has no vector"):
        linker.kb.get_vector("Japan")


def test_some_vectors_are_missing(tmp_path):
    kb = build_kb([write_entities(tmp_path / "entities.jsonl")], tmp_path / "kb").kb
    build_vectors(np.ones((1, SIZE), np.float32), kb.path / "vectors", names=["Hillary Clinton"])
    linked = LinkedKB(spacy.blank("en").vocab, EntityKB.open(kb.path))
    found = linked.get_alias_candidates("Clinton")
    assert found[1].entity_vector == [1.0] * SIZE
    with pytest.raises(ValueError, match="'Clinton, Iowa' has no vector"):
        found[0].entity_vector  # noqa: B018


def test_empty(tmp_path):
    nlp = spacy.blank("en")
    kb = make_empty_entity_kb()(nlp.vocab, 7)
    assert (len(kb), kb.is_empty(), kb.entity_vector_length, kb.get_size_aliases()) == (0, True, 7, 0)
    assert list(kb.get_entity_strings()) == list(kb.get_alias_strings()) == []
    assert not kb.contains_entity("x")
    assert not kb.contains_alias("x")
    with pytest.raises(ValueError, match=r"The knowledge base is empty: give spacy-luke\.EntityKB\.v1"):
        kb.get_candidates(given(nlp)[0:1])
    with pytest.raises(ValueError, match="there is no manifest"):
        kb.from_disk(tmp_path)
    with pytest.raises(ValueError, match="they are damaged"):
        kb.from_bytes(b"\x00\x01")
    with pytest.raises(ValueError, match="top must be at least 1"):
        LinkedKB(nlp.vocab, top=0)


def test_registered():
    assert registry.misc.get("spacy-luke.EntityKB.v1") is make_entity_kb_loader
    assert registry.misc.get("spacy-luke.EmptyEntityKB.v1") is make_empty_entity_kb
