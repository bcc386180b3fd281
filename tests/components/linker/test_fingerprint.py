"""Vectors of different encoders do not mix, even where they are equally wide."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.linker.embed_entities import embed_entities
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from tests.kb.kbs import small_kb, write_entities
from tests.tiny import make_checkpoint


def encoder(*, changed=False, normalise=True):
    checkpoint = make_checkpoint(entity_size=32)
    if changed:
        name = next(name for name in checkpoint.tensors if name.startswith("encoder.") and "word" in name)
        checkpoint.tensors[name] = checkpoint.tensors[name] + 0.001
    return TextEncoder(checkpoint, normalise=normalise)


def test_fingerprints():
    same = {encoder().fingerprint() for _ in range(2)}
    assert len(same) == 1
    assert not same & {encoder(changed=True).fingerprint(), encoder(normalise=False).fingerprint()}


@pytest.mark.parametrize("other", [{"changed": True}, {"normalise": False}])
def test_vectors_of_another_encoder_are_not_added(tmp_path, other):
    kb, made = embed_entities(small_kb(tmp_path), encoder())
    assert (made, kb.vectors.encoder) == (8, encoder().fingerprint())
    kb = add_to_kb(kb, [write_entities(tmp_path / "more.jsonl", [{"id": "X", "names": ["Ex"]}])]).kb
    with pytest.raises(ValueError, match="made by another encoder, or with other weights, tokenizer or normalisation"):
        embed_entities(kb, encoder(**other))
    assert len(EntityKB.open(kb.path).vectors) == 8  # as they were
    assert embed_entities(kb, encoder())[1] == 1
    again, made = embed_entities(kb, encoder(**other), again=True, dtype="int8")
    assert (made, again.vectors.encoder) == (9, encoder(**other).fingerprint())
    again.vectors.subset(["X"], tmp_path / "subset")
    assert type(again.vectors).open(tmp_path / "subset").encoder == again.vectors.encoder


def test_a_linker_refuses_vectors_of_another_encoder(tmp_path):
    checkpoint = make_checkpoint(entity_size=32)
    for name in "ab":
        (tmp_path / name).mkdir()
    kb, _ = embed_entities(small_kb(tmp_path / "a"), encoder())
    other, _ = embed_entities(small_kb(tmp_path / "b"), encoder(changed=True))
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("luke_linker", config={"overlap": 16, "model": {"nil": False}})
    doc, gold = (Doc(nlp.vocab, words=["Clinton", "spoke"]) for _ in range(2))
    doc.set_ents([Span(doc, 0, 1, "X")])
    gold.set_ents([Span(gold, 0, 1, "X", kb_id="Bill Clinton")])
    linker.initialize(lambda: [Example(doc, gold)], weights=lambda: checkpoint, kb=lambda: kb)
    with pytest.raises(ValueError, match="were made by another encoder than those that 'luke_linker' was trained with"):
        linker.set_kb(other)
    assert linker.kb is kb
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp").get_pipe("luke_linker")
    with pytest.raises(ValueError, match="made by another encoder"):
        again.set_kb(other)
    again.set_kb(kb)
