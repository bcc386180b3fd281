"""What a pipeline is given of a gold Doc: the same settings for every corpus that gives it."""

import inspect
from dataclasses import asdict

import pytest
from confection import ConfigValidationError
from spacy.util import registry

from spacy_luke.readers.given import GivenGold

CORPORA = {"spacy-luke.GoldCorpus.v1": {"path": "a.spacy"}, "spacy-luke.JoinedCorpus.v1": {"sources": {"a": {}}}}


@pytest.mark.parametrize("name", CORPORA)
def test_settings_of_every_corpus(name):
    parameters = inspect.signature(registry.readers.get(name)).parameters
    assert {key: parameters[key].default for key in asdict(GivenGold())} == asdict(GivenGold())
    assert "given" not in parameters
    doc = inspect.getdoc(registry.readers.get(name))
    assert all(f"\n{key}: whether" in doc for key in asdict(GivenGold()))


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"sentence": False}, "sentence"), ({"given": {}}, "given"), ({"pairs": "many"}, "pairs")],
)
def test_wrong_settings(name, wrong, message):
    with pytest.raises(ConfigValidationError, match=message):
        registry.resolve({"corpus": {"@readers": name, **CORPORA[name], **wrong}})


@pytest.mark.parametrize("name", CORPORA)
def test_settings_that_exclude_one_another(name):
    with pytest.raises(ValueError, match="entities and links both give"):
        registry.resolve({"corpus": {"@readers": name, **CORPORA[name], "entities": True, "links": True}})
