"""`luke_relation`: which pairs of mentions are asked about."""

import tracemalloc

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components import mentions
from spacy_luke.components.mentions import make_pairs
from tests.components.pairs import GIVEN, MODES, SPANS, make
from tests.components.related import (
    KEY,
    docs_of,
    make_examples,
    noisy,
    place,
    relations_of,
)
from tests.tiny import SENTENCES


def suggest(doc, **settings):
    spans = list(doc.ents)
    return [(spans[a].text, spans[b].text) for a, b in make_pairs(**settings)(doc, spans).tolist()]


def test_suggester():
    nlp = spacy.blank("en")
    doc = nlp.make_doc("Ada saw London . Kofi left")
    doc.set_ents([Span(doc, 0, 1, label="P"), Span(doc, 2, 3, label="L"), Span(doc, 4, 5, label="P")])
    every = [
        ("Ada", "London"),
        ("Ada", "Kofi"),
        ("London", "Ada"),
        ("London", "Kofi"),
        ("Kofi", "Ada"),
        ("Kofi", "London"),
    ]
    assert suggest(doc) == every
    assert suggest(doc, same_sentence=True) == every  # without boundaries a Doc is one sentence
    for word in doc:
        word.is_sent_start = word.i in (0, 4)
    assert suggest(doc, same_sentence=True) == [every[0], every[2]]
    assert suggest(doc, max_words=1) == [every[0], every[2], every[3], every[5]]
    assert suggest(doc, max_words=0) == []
    assert suggest(doc, types=[["P", "L"]]) == [every[0], every[5]]
    assert suggest(doc, types=[["P", "L"], ["P", "P"]], max_words=1) == [every[0], every[5]]
    assert suggest(doc, types=[]) == []
    with pytest.raises(ValueError, match="max_words must be 0 or more"):
        make_pairs(max_words=-1)
    with pytest.raises(ValueError, match="types must be a list of"):
        make_pairs(types=[["P"]])


def plain_pairs(doc, spans, *, same_sentence, max_words, types):
    """As it is defined, pair by pair."""
    sentences = [{i for i, sent in enumerate(doc.sents) if sent.start < x.end and x.start < sent.end} for x in spans]
    found = []
    for h, head in enumerate(spans):
        for t, tail in enumerate(spans):
            gap = max(tail.start - head.end, head.start - tail.end)
            if (
                (head.start, head.end) != (tail.start, tail.end)
                and (not same_sentence or (sentences[h] == sentences[t] and len(sentences[h]) == 1))
                and (max_words is None or gap <= max_words)
                and (types is None or [head.label_, tail.label_] in types)
            ):
                found.append([h, t])
    return found


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
@pytest.mark.parametrize("types", [None, [], [["0", "1"], ["1", "1"]], [["0", "0"], ["x", "1"], ["2", "0"]]])
@pytest.mark.parametrize("max_words", [None, 0, 3, 10**30])
@pytest.mark.parametrize("same_sentence", [False, True])
def test_suggester_against_a_loop(monkeypatch, same_sentence, max_words, types, at_once):
    """Nested, crossing, equal and side-by-side mentions in any order, and sentences that some of them cross."""
    monkeypatch.setattr(mentions, "_AT_ONCE", at_once)
    chosen = np.random.default_rng(0)
    nlp = spacy.blank("en")
    settings = {"same_sentence": same_sentence, "max_words": max_words, "types": types}
    for n in range(12):
        doc = Doc(nlp.vocab, words=["w"] * 20)
        for word in doc:
            word.is_sent_start = word.i == 0 or chosen.random() < 0.2
        edges = [sorted(chosen.choice(21, 2, replace=False).tolist()) for _ in range(n)]
        spans = [Span(doc, a, b, label=str(chosen.integers(3))) for a, b in edges]
        pairs = make_pairs(**settings)(doc, spans)
        assert pairs.tolist() == plain_pairs(doc, spans, **settings)
        assert (pairs.dtype, pairs.shape[1]) == (np.int64, 2)


@pytest.mark.parametrize("settings", [{"same_sentence": True}, {"max_words": 30}])
def test_a_long_text_takes_no_square(settings):
    """20,000 mentions, of which the square has 400 millions."""
    doc = Doc(spacy.blank("en").vocab, words=["w"] * 40_000, sent_starts=[i % 40 == 0 for i in range(40_000)])
    spans = [Span(doc, i, i + 1, label="PER" if i % 4 else "LOC") for i in range(0, 40_000, 2)]
    spans.append(Span(doc, 0, 40_000, label="PER"))  # around all others
    pairs = make_pairs(**settings, types=[["LOC", "PER"]])
    tracemalloc.start()
    try:
        found = pairs(doc, spans)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    assert 90_000 < len(found) < 200_000


def test_equal_mentions_are_one():
    nlp, relation = make("pair", build=noisy, getter=SPANS, none=None)
    doc = nlp.make_doc(SENTENCES[0])
    doc.spans[KEY] = [doc[0:2], doc[4:5], doc[0:2], doc[4:5]]
    assert len(relations_of(relation(doc))) == 2


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [1, 1]], "paired a mention with itself, 'London': head and tail must differ"),
        ([[0, 3]], "must give indices of the Doc's 3 mentions, but it gave 3 and 0"),
        ([[0, -1]], "must give indices of the Doc's 3 mentions"),
    ],
)
def test_wrong_suggestions(pairs, message):
    nlp, relation = make("pair", build=noisy)
    relation.suggester = lambda doc, spans: pairs
    with pytest.raises(ValueError, match=message):
        nlp(docs_of(nlp)[0])
    relation.suggester = lambda doc, spans: []
    assert nlp(docs_of(nlp)[0])._.luke_relations == []


@pytest.mark.parametrize("mode", MODES)
def test_given_pairs(mode):
    """They are asked instead, getter and suggester are not; those with a relation are learned, the others have none."""
    nlp, relation = make(mode, examples=lambda nlp: make_examples(nlp, pairs=GIVEN))
    for i, example in enumerate(make_examples(nlp, pairs=GIVEN)):
        asked, gold, missing = relation.gold(example)
        wanted = [(place(example.predicted, a), place(example.predicted, b)) for a, b in GIVEN[i]]
        asked = [tuple(asked.mentions[m] for m in pair) for pair in asked.units_UK.tolist()]
        assert asked == [((a.start, a.end), (b.start, b.end)) for a, b in wanted]
        labels = {key[:4]: key[4] for key in relations_of(example.reference)}
        assert [relation.classes[k] for k in gold] == [labels.get((a.start, a.end, b.start, b.end)) for a, b in wanted]
        assert not missing
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(60):
        if relation.update(make_examples(nlp, pairs=GIVEN), sgd=optimizer)["luke_relation"] < 0.02:
            break
    scores = nlp.evaluate(make_examples(nlp, pairs=GIVEN))
    assert scores["relations_f"] == scores["relations_accuracy"] == 1.0


def test_a_given_pair_of_one_mention():
    nlp, relation = make("pair", build=noisy, none=None)
    doc = nlp.make_doc(SENTENCES[0])
    doc._.luke_pairs = [(doc[0:2], doc[0:2]), (doc[0:2], doc[4:5])]
    with pytest.warns(UserWarning, match=r"1 of 2 given pairs have no relation, as head and tail are the same.*Ada"):
        assert len(relations_of(relation(doc))) == 1
    doc._.luke_pairs = []
    assert relations_of(relation(doc)) == {}


def test_given_pairs_of_another_text():
    nlp, relation = make("pair")
    doc = nlp.make_doc("Ada")
    doc.user_data["luke_pairs"] = [[0, 3, 900, 905]]
    with pytest.raises(ValueError, match=r"characters \[900, 905\), but the Doc's text has 3"):
        relation(doc)
