"""Where the biases of a fresh head begin: at the log-odds of the training data, or at 0 as in the papers' code."""

from math import log

import pytest
from spacy.tokens import Span

from spacy_luke.annotations import set_queries
from tests.pipelines import QUERY, make_example, make_pipeline
from tests.tiny import SENTENCES

NAMES = ("luke_ner", "luke_typer", "luke_relation", "luke_cloze")


def examples_of(nlp):
    """Of each text three mentions have types, of which two are places; of three candidates one fills the gap."""
    for text in SENTENCES[:3]:
        example = make_example(nlp, text, nlp.get_pipe("sentencizer")(nlp.make_doc(text)))
        gold = example.reference
        gold.spans["luke_types"] = [Span(gold, i, i + 1, label) for i, label in enumerate(("place", "place", "person"))]
        example.predicted.set_ents([Span(example.predicted, i, i + 1, "X") for i in range(3)])
        places = [(word.idx, word.idx + len(word)) for word in gold[:3]]
        set_queries(gold, [{"query": QUERY, "candidates": places, "answers": places[:1]}])
        yield example


def biases(name, **settings):
    """All biases of a fresh head."""
    nlp = make_pipeline(name)
    examples = list(examples_of(nlp))
    nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp, **settings)
    found = dict(nlp.get_pipe(name).head.named_parameters())
    assert found["classifier.weight"].any()
    return {key: x.tolist() for key, x in found.items() if key.endswith("bias")}


@pytest.mark.parametrize("name", NAMES)
def test_zeros(name):
    found = biases(name, bias_init="zeros")
    assert "classifier.bias" in found
    assert [key for key, x in found.items() if any(x)] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_shares_of_the_training_data_are_the_default(name):
    found = biases(name)
    assert found == biases(name, bias_init="prior")
    classifier = found["classifier.bias"]
    if name == "luke_ner":
        assert classifier[0] > 1  # of spans that are none
        assert classifier[1:] == [0, 0]
        assert found["proposer.score.bias"][0] < -1
    elif name == "luke_relation":
        assert classifier[0] < 0
    else:  # 3 or 6 of 9, with one more of each kind
        shares = {"luke_typer": [(3 + 1) / (9 + 2), (6 + 1) / (9 + 2)], "luke_cloze": [(3 + 1) / (9 + 2)]}[name]
        assert classifier == pytest.approx([log(x / (1 - x)) for x in shares])


@pytest.mark.parametrize("name", NAMES)
def test_another_word_is_refused(name):
    with pytest.raises(ValueError, match=rf"components.{name}\] bias_init must be one of .*, but it is 'zero'"):
        biases(name, bias_init="zero")
