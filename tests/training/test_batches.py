"""Batches by words, and the parts in which they are learned from."""

import pytest
import spacy
from spacy.training import Example

from spacy_luke.training.batches import divide_batch, make_batcher


def make_examples(*sizes):
    nlp = spacy.blank("en")
    return [Example.from_dict(nlp.make_doc("word " * n), {}) for n in sizes]


def test_parts():
    examples = make_examples(5, 1, 4, 2, 30, 3)
    batches = list(make_batcher(words=12, part_words=6, tolerance=0.0)(examples))
    assert [[len(x) for x in batch] for batch in batches] == [[30], [5, 1, 4, 2], [3]]
    parts = [[[len(x) for x in part] for part in divide_batch(batch, batch, 7)] for batch in batches]
    assert parts == [[[30]], [[1, 2], [4], [5]], [[3]]]
    assert [len(part) for part in divide_batch(batches[1][:1], batches[1], 7)] == [1]  # a share of it
    assert list(divide_batch([], batches[0], 7)) == []


def test_other_batches_are_divided_as_the_config_says():
    examples = make_examples(5, 1, 4, 2)
    assert [[len(x) for x in part] for part in divide_batch(examples, examples, 2)] == [[1, 2], [4, 5]]


def test_whole_shares():
    (batch,) = make_batcher(words=12)(make_examples(5, 1))
    assert [len(part) for part in divide_batch(batch, batch, 1)] == [2]


@pytest.mark.parametrize("settings", [{"words": 0}, {"words": 9, "part_words": 0}])
def test_no_words(settings):
    with pytest.raises(ValueError, match="words and part_words must be numbers from 1"):
        make_batcher(**settings)
