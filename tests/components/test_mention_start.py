"""Every component on an encoder whose [MASK] entities begin with their mention's pieces, in both attention modes."""

from dataclasses import replace

import pytest
import spacy

from tests import pipelines
from tests.components import every
from tests.tiny import SENTENCES, make_checkpoint


def start_from_mentions(**settings):
    checkpoint = make_checkpoint(**settings)
    checkpoint.config = replace(checkpoint.config, mention_start=True)
    return checkpoint


@pytest.fixture(scope="module", params=["shared", "own_full"])
def made(request, tmp_path_factory):
    """A pipeline with every component, and the same one whose encoder looks at the row of [MASK] alone."""
    make, ask, _ = every.MAKERS[request.param]
    plain = make(tmp_path_factory.mktemp("plain"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (pipelines, every):
            patch.setattr(module, "make_checkpoint", start_from_mentions)
        nlp = make(tmp_path_factory.mktemp("made"))
    return nlp, plain, ask


def predict(nlp, ask, **settings):
    return [every.facts(doc) for doc in nlp.pipe([ask(nlp, text) for text in SENTENCES], **settings)]


def same(some, others):
    for one, other in zip(some, others, strict=True):
        assert one.keys() == other.keys()
        assert all(one[key] == pytest.approx(other[key], abs=1e-4) for key in one)


def kinds(found, others):
    """What differs: the first part of each key."""
    pairs = [(one, other) for one, other in zip(found, others, strict=True)]
    return {key[0] for one, other in pairs for key in {*one, *other} if abs(one.get(key, 9) - other.get(key, 9)) > 1e-4}


def test_every_head_that_reads_entities_sees_it(made):
    nlp, plain, ask = made
    found, without = predict(nlp, ask), predict(plain, ask)
    differing = kinds(found, without)
    assert {"ent", "type", "link", "luke_fillers", "relation"} <= differing
    assert "vector" not in differing  # in one-way attention words do not see entities
    assert "category" not in differing


def test_batches_and_saving_change_nothing(made, tmp_path):
    nlp, _, ask = made
    found = predict(nlp, ask)
    same(predict(nlp, ask, batch_size=1), found)
    nlp.to_disk(tmp_path / "saved")
    same(predict(spacy.load(tmp_path / "saved"), ask), found)


def test_the_rows_are_those_of_the_table(made):
    """The module has the special rows of the table alone, renumbered; what is exported has all."""
    nlp, _, _ = made
    component = nlp.get_pipe("luke_encoder" if "luke_encoder" in nlp.pipe_names else "luke_ner")
    specials = component.encoder.settings["specials"]
    assert component.encoder.module.entities.mask_rows == (specials["[MASK]"], specials["[MASK2]"])
    checkpoint = component.to_checkpoint()
    assert checkpoint.config.mention_start
    assert checkpoint.entities.mask_rows == make_checkpoint().entities.mask_rows == [3, 5]
    assert component.encoder.module.entities.mask_rows != (3, 5)
