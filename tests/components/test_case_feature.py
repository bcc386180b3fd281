"""Components on an encoder that knows the case of words, which its tokenizer does not."""

import pytest
import spacy
import torch

from tests import pipelines
from tests.components import every
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece


def with_cases(**settings):
    tokenizer = make_wordpiece()
    for marker in ("<ent>", "<ent2>"):
        tokenizer.add_special_piece(marker)
    return make_checkpoint(tokenizer=tokenizer, case_feature=True, **settings)


def without_cases(**settings):
    checkpoint = with_cases(**settings)
    del checkpoint.tensors["encoder.words.case.weight"]
    checkpoint.config = type(checkpoint.config)(**{**checkpoint.config.to_dict(), "case_feature": False})
    return checkpoint


def make(maker, checkpoint, folder):
    make_pipeline, ask, _ = every.MAKERS[maker]
    with pytest.MonkeyPatch.context() as patch:
        for module in (pipelines, every):
            patch.setattr(module, "make_checkpoint", checkpoint)
        return make_pipeline(folder), ask


@pytest.fixture(scope="module", params=["shared", "own_full"])
def made(request, tmp_path_factory):
    nlp, ask = make(request.param, with_cases, tmp_path_factory.mktemp("cases"))
    plain, _ = make(request.param, without_cases, tmp_path_factory.mktemp("plain"))
    return nlp, plain, ask


def predict(nlp, ask, texts=SENTENCES, **settings):
    """But for the names that entity_annotator finds, which are exact."""
    found = [every.facts(doc) for doc in nlp.pipe([ask(nlp, text) for text in texts], **settings)]
    return [{key: score for key, score in facts.items() if key[0] != "luke_links"} for facts in found]


def same(some, others):
    for one, other in zip(some, others, strict=True):
        assert one.keys() == other.keys()
        assert all(one[key] == pytest.approx(other[key], abs=1e-4) for key in one)


def encoders(nlp):
    return {id(x.encoder): x.encoder for _, x in nlp.pipeline if hasattr(x, "encoder") and x.encoder.settings}.values()


def test_capitals_are_seen(made):
    nlp, plain, ask = made
    capitals = [text.upper() for text in SENTENCES]
    same(predict(plain, ask, capitals), predict(plain, ask))
    found, of_capitals = predict(nlp, ask), predict(nlp, ask, capitals)
    kinds = {
        key[0]
        for one, other in zip(found, of_capitals, strict=True)
        for key in {*one, *other}
        if abs(one.get(key, 9) - other.get(key, 9)) > 1e-4
    }
    assert {"ent", "type", "link", "luke_answers", "luke_fillers"} <= kinds


def test_batches_and_saving_change_nothing(made, tmp_path):
    nlp, _, ask = made
    found = predict(nlp, ask)
    same(predict(nlp, ask, batch_size=1), found)
    nlp.to_disk(tmp_path / "saved")
    same(predict(spacy.load(tmp_path / "saved"), ask), found)
    again = spacy.load(tmp_path / "saved").from_bytes(nlp.to_bytes())
    same(predict(again, ask), found)


def test_zeros_change_nothing(made):
    nlp, plain, ask = made
    held = [(encoder, encoder.module.words.case.weight.detach().clone()) for encoder in encoders(nlp)]
    for encoder, _ in held:
        encoder.fill({**encoder.module.state_dict(), "words.case.weight": torch.zeros_like(_)})
    same(predict(nlp, ask), predict(plain, ask))
    for encoder, rows in held:
        encoder.fill({**encoder.module.state_dict(), "words.case.weight": rows})


def test_the_rows_are_learned():
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("luke_ner", config={"max_span_words": 3, "model": {"spans_per_word": None}})
    docs = [pipelines.make_gold(nlp, text) for text in SENTENCES[:2]]
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc) for doc in docs]
    ner.initialize(lambda: examples, nlp=nlp, weights=with_cases)
    before = ner.encoder.module.words.case.weight.detach().clone()
    ner.update(examples, sgd=ner.create_optimizer())
    moved = (ner.encoder.module.words.case.weight.detach() - before).abs().max(1).values
    assert moved[:2].min() > 0  # small letters, and capitals at the beginning
    assert not moved[2:].any()  # no other case is in these texts
