"""textcat with soft gold categories."""

import pytest
import spacy
from spacy.training import Example

TEXTS = {"aa aa aa": 0.9, "bb bb bb": 0.2, "cc cc cc": 0.5}


def make_examples(nlp, scores):
    return [
        Example.from_dict(nlp.make_doc(text), {"cats": {"similar": score, "dissimilar": 1 - score}})
        for text, score in scores.items()
    ]


def test_it_learns_scores(tmp_path):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    examples = make_examples(nlp, TEXTS)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(80):
        nlp.update(examples, sgd=optimizer)
    for text, score in TEXTS.items():
        assert nlp(text).cats["similar"] == pytest.approx(score, abs=0.05)
    scores = nlp.evaluate(make_examples(nlp, TEXTS))
    assert scores["glue_spearman"] == pytest.approx(1.0)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert [again(text).cats for text in TEXTS] == [nlp(text).cats for text in TEXTS]


def test_what_is_no_distribution():
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    for cats in ({"similar": 0.5, "dissimilar": 0.4}, {"similar": 1.5, "dissimilar": -0.5}):
        wrong = Example.from_dict(nlp.make_doc("x"), {"cats": cats})
        with pytest.raises(ValueError, match="from 0 to 1 that sum to 1, or none, but document 1"):
            nlp.initialize(lambda wrong=wrong: [*make_examples(nlp, {"a": 0.5}), wrong])
