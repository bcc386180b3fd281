"""punctuation_apart: words that have punctuation attached give what they give where it stands beside them."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.documents import read_document
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.pipelines import make_pipeline
from tests.tiny import make_checkpoint, make_wordpiece, tokenizer_json

APART = "Ada Lovelace , of Ghana Inc. ( Accra ) , left Berlin .".split()
ATTACHED = "Ada Lovelace, of Ghana Inc. (Accra), left Berlin.".split()
PLACES = {(0, 2): (0, 2), (4, 6): (3, 5), (7, 8): (5, 6), (11, 12): (7, 8)}  # mentions in words, of both
SPACES = [True, False, True, True, True, True, False, False, False, True, True, False, False]


def make_doc(nlp, words, *, known):
    spaces = (SPACES if words is APART else [True] * (len(words) - 1) + [False]) if known else None
    doc = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=[i == 0 for i in range(len(words))])
    places = PLACES.keys() if words is APART else PLACES.values()
    doc.set_ents([Span(doc, start, end, "X") for start, end in places])
    return doc


@pytest.mark.parametrize(
    "tokenizer", [PieceTokenizer.from_json(tokenizer_json()), make_wordpiece()], ids=["bpe", "wordpiece"]
)
@pytest.mark.parametrize("known", [True, False], ids=["text", "words"])
def test_pieces_of_mentions(tokenizer, known):
    nlp = spacy.blank("en")
    found = []
    for words, places in ((APART, PLACES.keys()), (ATTACHED, PLACES.values())):
        pieces = read_document(make_doc(nlp, words, known=known), tokenizer, punctuation_apart=True).pieces
        edges = zip(*pieces.of_mentions(*np.array(list(places)).T))
        found.append([pieces.ids_N[first:last].tolist() for first, last in edges])
    if known or tokenizer.kind == "wordpiece":
        assert found[0] == found[1]
    else:  # BPE reads words without a text with a blank before each: before the bracket, where one is attached
        assert found[0][:2] + found[0][3:] == found[1][:2] + found[1][3:]
    assert read_document(make_doc(nlp, ATTACHED, known=known), tokenizer).pieces.cores is None


def annotate(nlp, words):
    doc = make_doc(nlp, words, known=True)
    places = list(PLACES) if words is APART else list(PLACES.values())
    for name in nlp.pipe_names[1:]:
        doc = nlp.get_pipe(name)(doc)
    number = {place: i for i, place in enumerate(places)}
    types = [span._.luke_types for span in doc.ents]
    pairs = {
        (x.label, number[x.head.start, x.head.end], number[x.tail.start, x.tail.end]): x.score
        for x in doc._.luke_relations
    }
    group = doc.spans["found"]
    scores = dict(zip(((span.start, span.end) for span in group), group.attrs["scores"], strict=True))
    return types, pairs, [scores.get(place) for place in places]


def flat(values):
    types, pairs, scores = values
    return [p for x in types for p in x.values()], list(pairs.values()), scores


@pytest.mark.parametrize("attention", ["one_way", "full"])
def test_components_give_the_same(attention):
    shared = {"encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}, "attention": attention}
    nlp = make_pipeline(
        "luke_ner",
        "luke_typer",
        "luke_relation",
        luke_ner={
            "model": {**shared, "spans_per_word": None, "spans_per_pass": 1},
            "spans_key": "found",
            "punctuation_apart": True,
        },
        luke_typer={"model": shared, "threshold": 0.0, "punctuation_apart": True},
        luke_relation={"model": shared, "threshold": 0.0, "multi_label": True, "punctuation_apart": True},
    )
    nlp.get_pipe("luke_ner").none_bias = -1000.0  # each span is one
    apart, attached = annotate(nlp, APART), annotate(nlp, ATTACHED)
    assert apart[0] != [{}] * len(PLACES)
    assert apart[1].keys() == attached[1].keys() != set()
    assert None not in apart[2]
    for one, two in zip(flat(apart), flat(attached), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    for name in nlp.pipe_names[2:]:
        nlp.get_pipe(name).punctuation_apart = False
    whole = annotate(nlp, ATTACHED)
    for one, two in zip(flat(attached), flat(whole), strict=True):
        assert not np.allclose(one, two, atol=1e-4)


def initialize(docs, **settings):
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("luke_ner", config={"overlap": 32, **settings})
    examples = [Example(Doc(nlp.vocab, words=[x.text for x in doc]), doc) for doc in docs]
    ner.initialize(lambda: examples, nlp=nlp, weights=lambda: make_checkpoint(max_positions=130))


def test_training_says_that_punctuation_is_attached(recwarn):
    nlp = spacy.blank("en")
    apart, attached = make_doc(nlp, APART, known=False), make_doc(nlp, ATTACHED, known=False)
    initialize([apart])
    initialize([attached] * 2, punctuation_apart=True)
    one = Doc(nlp.vocab, words=["Boise."], ents=["B-X"])
    initialize([one, apart, one])  # single ones
    assert not [x for x in recwarn if "attached" in str(x.message)]
    with pytest.warns(UserWarning, match=r"'luke_ner': 6 of 8 gold spans .* attached, such as 'Ada Lovelace,'"):
        initialize([attached] * 2)
