"""What is hidden: the stated rates, whole words, what stands in the place, and nothing but a seed and a place
decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.pretraining.luke.masking import HIDDEN, MaskingSettings, Vocabularies, mask_entities, mask_words

VOCABULARIES = Vocabularies(mask_piece=4, mask_entity=2, pieces_P=np.arange(100, 1000), first_entity=3, entities=50)


def words_of(n, starts, seed, **settings):
    pieces = np.arange(2000, 2000 + n, dtype=np.int32)
    rng = np.random.default_rng(seed)
    after, labels = mask_words(pieces, starts, settings=MaskingSettings(**settings), vocabularies=VOCABULARIES, rng=rng)
    return pieces, after, labels


def entities_of(n, seed, **settings):
    entities = np.arange(10, 10 + n, dtype=np.int32)
    rng = np.random.default_rng(seed)
    return entities, *mask_entities(entities, settings=MaskingSettings(**settings), vocabularies=VOCABULARIES, rng=rng)


@given(st.integers(1, 300), st.integers(0, 10**6), st.booleans(), st.sampled_from([0.15, 0.3, 1.0]))
def test_what_is_asked(n, seed, whole, share):
    starts = np.random.default_rng(seed).random(n) < 0.6
    pieces, after, labels = words_of(n, starts, seed, words=share, whole_words=whole)
    asked = labels != HIDDEN
    assert (labels[asked] == pieces[asked]).all()
    assert (after[~asked] == pieces[~asked]).all()
    budget = max(1, round(share * n))
    assert 1 <= asked.sum() <= budget
    if not whole:
        assert asked.sum() == budget
    word = np.cumsum(starts)
    fates = [(after[word == w] == 4).sum() / (word == w).sum() for w in np.unique(word[asked])]
    if whole and asked.sum() > 1:  # a single piece may stand alone where no word fits
        for w in np.unique(word[asked]):
            assert asked[word == w].all()
        assert set(fates) <= {0.0, 1.0}  # all pieces of a word have the same fate


@pytest.mark.parametrize("whole", [True, False])
def test_the_rates_of_words(whole):
    counts = {"masked": 0, "random": 0, "kept": 0, "pieces": 0}
    for seed in range(300):
        starts = np.random.default_rng(seed).random(400) < 0.7
        pieces, after, labels = words_of(400, starts, seed, whole_words=whole)
        asked = labels != HIDDEN
        counts["pieces"] += 400
        counts["masked"] += (after[asked] == 4).sum()
        counts["kept"] += (after[asked] == pieces[asked]).sum()
        replaced = after[asked & (after != 4) & (after != pieces)]
        assert ((replaced >= 100) & (replaced < 1000)).all()
        counts["random"] += len(replaced)
    asked = counts["masked"] + counts["random"] + counts["kept"]
    assert asked / counts["pieces"] == pytest.approx(0.15, abs=0.001)
    for name, share in (("masked", 0.8), ("random", 0.1), ("kept", 0.1)):
        assert counts[name] / asked == pytest.approx(share, abs=0.015), name


def test_every_place_is_asked_alike():
    times = sum(words_of(40, np.ones(40, bool), seed)[2] != HIDDEN for seed in range(4000))
    assert times.min() > 0.8 * times.mean()


def test_a_word_that_does_not_fit():
    """One piece of it stands for it, and becomes [MASK]."""
    starts = np.zeros(20, bool)
    _, after, labels = words_of(20, starts, 0)
    assert (labels != HIDDEN).sum() == 1
    assert (after == 4).sum() == 1


def test_windows_without_pieces():
    _, after, labels = words_of(0, np.ones(0, bool), 0)
    assert len(after) == len(labels) == 0


@pytest.mark.parametrize(("n", "asked"), [(0, 0), (1, 1), (3, 1), (9, 1), (10, 2), (11, 2), (20, 3), (128, 19)])
def test_a_fixed_number_of_entities(n, asked):
    """max(1, round(0.15 n)), as Python rounds, which the original does."""
    for seed in range(20):
        entities, after, labels = entities_of(n, seed)
        assert (labels != HIDDEN).sum() == asked
        assert (after[labels != HIDDEN] == 2).all()
        assert (after[labels == HIDDEN] == entities[labels == HIDDEN]).all()
        assert (labels[labels != HIDDEN] == entities[labels != HIDDEN]).all()


def test_entities_drawn_one_by_one():
    asked = [(entities_of(20, seed, entities=0.3, entity_draw="bernoulli")[2] != HIDDEN).sum() for seed in range(2000)]
    assert np.mean(asked) == pytest.approx(6, abs=0.15)
    assert np.var(asked) == pytest.approx(20 * 0.3 * 0.7, abs=0.5)


def test_the_rates_of_entities():
    counts = np.zeros(3)
    for seed in range(2000):
        entities, after, labels = entities_of(20, seed, random_entities=0.2, kept_entities=0.3)
        chosen = labels != HIDDEN
        counts += [(after[chosen] == 2).sum(), 0, (after[chosen] == entities[chosen]).sum()]
        counts[1] += chosen.sum()
        others = after[chosen & (after != 2) & (after != entities)]
        assert ((others >= 3) & (others < 50)).all()
    assert counts[0] / counts[1] == pytest.approx(0.5, abs=0.02)
    assert counts[2] / counts[1] == pytest.approx(0.3 + 0.2 / 47, abs=0.02)


def test_words_and_entities_that_are_not_asked():
    _, after, labels = words_of(30, np.ones(30, bool), 0, words=None)
    assert (labels == HIDDEN).all()
    assert (after == np.arange(2000, 2030)).all()
    entities, after, labels = entities_of(5, 0, entities=None)
    assert (labels == HIDDEN).all()
    assert (after == entities).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"words": None, "entities": None}, "both are None"),
        ({"words": 0.0}, "share of words to mask must be above 0"),
        ({"entities": 1.5}, "share of entities to mask must be above 0 and at most 1"),
        ({"random_words": 0.6, "kept_words": 0.6}, "random_words and kept_words must be"),
        ({"kept_entities": -0.1}, "random_entities and kept_entities must be"),
        ({"entity_draw": "poisson"}, "entity_draw must be one of"),
    ],
)
def test_impossible_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        MaskingSettings(**wrong)
