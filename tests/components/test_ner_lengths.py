"""With `context = "sentence"` the length of a document changes nothing: `luke_ner` finds in each sentence what it finds
in the sentence alone."""

import pytest
from spacy.tokens import Doc

from tests.tiny import SENTENCES

from .recognised import make_noisy_ner


def lines(count):
    names = ["Ada", "Nadia", "Kofi", "Bank"] * count
    return [SENTENCES[i % 4].replace("Ada", name) for i, name in enumerate(names[:count])]


def scored(doc, start=0):
    """Entities of [start, ...) by their own place, with scores."""
    return {(x.start - start, x.end - start, x.label_): x._.luke_score for x in doc.ents}


def parts(doc):
    """What is found in each sentence of a Doc."""
    return [
        {
            (a - s.start, b - s.start, label): score
            for (a, b, label), score in scored(doc).items()
            if s.start <= a < s.end
        }
        for s in doc.sents
    ]


def same(found, expected):
    assert [set(x) for x in found] == [set(x) for x in expected]
    assert all(x == pytest.approx(y, abs=2e-5) for x, y in zip(found, expected, strict=True))


SIZES = [("full", 3, (3,)), ("one_way", 20, (5, 20))]
SLOW = [("full", 200, (200,)), ("one_way", 200, (2, 40, 200))]


@pytest.mark.parametrize(
    ("attention", "count", "sizes"), [*SIZES, *(pytest.param(*x, marks=pytest.mark.slow) for x in SLOW)]
)
def test_sentences_that_are_given(attention, count, sizes):
    nlp, _ = make_noisy_ner(attention=attention, context="sentence")
    words = [line.split() for line in lines(count)]
    alone = [scored(doc) for doc in nlp.pipe(Doc(nlp.vocab, words=some) for some in words)]
    assert len({frozenset(x) for x in alone}) > 2  # there is something to find
    for size in sizes:
        docs = [
            Doc(
                nlp.vocab,
                words=[word for some in words[i : i + size] for word in some],
                sent_starts=[k == 0 for some in words[i : i + size] for k in range(len(some))],
            )
            for i in range(0, len(words), size)
        ]
        assert sum(len(list(doc.sents)) for doc in docs) == len(words)
        same([x for doc in nlp.pipe(docs) for x in parts(doc)], alone)


def test_sentences_that_are_found():
    """Of words, whose pieces are those of the word alone: in a text, the first word of all has no blank before it."""
    nlp, _ = make_noisy_ner(context="sentence")
    nlp.add_pipe("paragraph_sentencizer", first=True)
    words = [line.split() for line in lines(20)]
    alone = [x for doc in nlp.pipe(Doc(nlp.vocab, words=some) for some in words) for x in parts(doc)]
    for size in (2, 20):
        joined = [[word for some in words[i : i + size] for word in some] for i in range(0, len(words), size)]
        same([x for doc in nlp.pipe(Doc(nlp.vocab, words=some) for some in joined) for x in parts(doc)], alone)


def test_other_sentences_are_seen_by_default():
    """What the comparison would show if there were a difference."""
    nlp, _ = make_noisy_ner()
    words = [line.split() for line in lines(4)]
    starts = [k == 0 for some in words for k in range(len(some))]
    joined = nlp(Doc(nlp.vocab, words=[word for some in words for word in some], sent_starts=starts))
    alone = [scored(doc) for doc in nlp.pipe(Doc(nlp.vocab, words=some) for some in words)]
    assert parts(joined) != [pytest.approx(x, abs=1e-3) for x in alone]
