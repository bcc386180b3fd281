"""`paragraph_sentencizer`: sentences end at blank lines, headings and lists."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.annotations import set_sentence_starts
from tests.tiny import make_checkpoint

TEXT = "Early life\nAda was born in London. She wrote.\n\n- milk\n- bread\r\n\r\nThe end"
SENTENCES = ["Early life\n", "Ada was born in London.", "She wrote.\n\n", "- milk\n", "- bread\r\n\r\n", "The end"]


def make(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("paragraph_sentencizer", config=config)
    return nlp


def sentences(doc):
    return [sentence.text for sentence in doc.sents]


def test_sentences():
    nlp = make()
    assert sentences(nlp(TEXT)) == SENTENCES
    assert [sentences(doc) for doc in nlp.pipe([TEXT, "", "\n\n", "Ada"])] == [SENTENCES, [], ["\n\n"], ["Ada"]]
    assert sentences(make(full_stops=False)(TEXT))[1] == "Ada was born in London. She wrote.\n\n"
    assert sentences(make(punct_chars=[","])("One, two. Three")) == ["One,", "two. Three"]


def test_boundaries_that_are_there_stay():
    """None is taken away, those of lines are added; words that are known to begin none get none for a full stop."""
    given = make().make_doc(TEXT)
    for word in given:
        word.is_sent_start = word.text in ("Early", "was")
    added = sentences(make().get_pipe("paragraph_sentencizer")(given.copy()))
    assert added == [
        "Early life\n",
        "Ada",
        "was born in London. She wrote.\n\n",
        "- milk\n",
        "- bread\r\n\r\n",
        "The end",
    ]
    assert sentences(make(overwrite=True).get_pipe("paragraph_sentencizer")(given.copy())) == SENTENCES
    partly = make().make_doc(TEXT)
    partly[4].is_sent_start = True
    assert sentences(make().get_pipe("paragraph_sentencizer")(partly))[:3] == [
        "Early life\n",
        "Ada",
        "was born in London.",
    ]


def test_after_a_parser():
    """A word whose head is in another sentence is a root; the rest of the tree stays as it is."""
    nlp = make()
    doc = Doc(
        nlp.vocab,
        words=["Early", "life", "\n\n", "Ada", "left"],
        spaces=[True, False, False, True, False],
        heads=[1, 4, 1, 4, 4],
        deps=["amod", "dep", "dep", "nsubj", "ROOT"],
    )
    assert len(list(doc.sents)) == 1
    nlp.get_pipe("paragraph_sentencizer")(doc)
    assert sentences(doc) == ["Early life\n\n", "Ada left"]
    assert [word.head.i for word in doc] == [1, 1, 1, 4, 4]
    assert [word.dep_ for word in doc] == ["amod", "ROOT", "dep", "nsubj", "ROOT"]


def kept(doc, nlp):
    """The Doc as it comes from files, other processes and other programs."""
    (packed,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    read = [Doc(nlp.vocab).from_bytes(doc.to_bytes()), Doc(nlp.vocab).from_json(doc.to_json()), packed]
    return [*read, doc.copy(), pickle.loads(pickle.dumps(doc))]


def test_a_boundary_through_the_tree_is_kept():
    nlp = make()
    words = ["Tim", "lives", "in", "Paris", "\n\n", "and", "Bob", "knows", "Ann", "."]
    heads, spaces = [1, 1, 1, 2, 3, 1, 7, 1, 7, 7], [True] * 3 + [False, False, True, True, True, False, False]
    deps = ["nsubj", "ROOT", "prep", "pobj", "dep", "cc", "nsubj", "conj", "dobj", "punct"]
    doc = nlp.get_pipe("paragraph_sentencizer")(Doc(nlp.vocab, words=words, spaces=spaces, heads=heads, deps=deps))
    assert [word.head.i for word in doc] == [1, 1, 1, 2, 3, 7, 7, 7, 7, 7]
    assert [word.dep_ for word in doc] == [*deps[:7], "ROOT", *deps[8:]]
    for one in [doc, *kept(doc, nlp)]:
        assert sentences(one) == ["Tim lives in Paris\n\n", "and Bob knows Ann."]
        assert [sentence.root.text for sentence in one.sents] == ["lives", "knows"]


def test_a_boundary_that_gives_way_joins_two_trees():
    nlp = make(overwrite=True)
    doc = Doc(nlp.vocab, words=["Go", "now", "please"], heads=[0, 2, 2], deps=["ROOT", "advmod", "ROOT"])
    nlp.get_pipe("paragraph_sentencizer")(doc)
    assert [(word.head.i, word.dep_) for word in doc] == [(2, "dep"), (2, "advmod"), (2, "ROOT")]
    assert [sentences(one) for one in [doc, *kept(doc, nlp)]] == [["Go now please"]] * 6


def test_sentences_of_any_tree_are_kept():
    """Also of trees whose arcs cross."""
    nlp, chosen = make(), np.random.default_rng(0)
    for _ in range(60):
        n = int(chosen.integers(1, 12))
        order, heads = chosen.permutation(n), np.arange(n)
        for i in range(1, n):
            heads[order[i]] = order[i if chosen.random() < 0.2 else chosen.integers(i)]
        deps = ["ROOT" if head == i else "dep" for i, head in enumerate(heads)]
        doc = Doc(nlp.vocab, words=["w"] * n, heads=heads.tolist(), deps=deps)
        starts = np.where(chosen.random(n) < 0.3, 1, -1)
        starts[0] = 1
        set_sentence_starts(doc, starts)
        for one in [doc, *kept(doc, nlp)]:
            assert [x.start for x in one.sents] == np.flatnonzero(starts == 1).tolist()


def test_gold_that_a_boundary_cuts_is_named():
    """The sentences of training are found after the gold was counted."""
    nlp = make()
    ner = nlp.add_pipe("luke_ner", config={"max_span_words": 6})

    def example(text, start, end):
        gold = nlp.make_doc(text)
        gold.set_ents([Span(gold, start, end, "PER")])
        return Example(nlp.make_doc(text), gold)

    whole, cut = example("Ada left.", 0, 1), example("Ada\n\nLovelace left.", 0, 3)
    ner.initialize(lambda: [whole, cut], nlp=nlp, weights=make_checkpoint)
    nlp.update([whole], sgd=nlp.create_optimizer(), annotates=["paragraph_sentencizer"])
    with pytest.warns(UserWarning, match="1 of 1 gold spans of a Doc lie in two sentences and are not learned"):
        nlp.update([cut], sgd=nlp.create_optimizer(), annotates=["paragraph_sentencizer"])


@pytest.mark.parametrize("way", ["bytes", "disk", "pickle"])
def test_it_is_kept(way, tmp_path):
    nlp = make(punct_chars=[";"], overwrite=True)
    if way == "disk":
        nlp.to_disk(tmp_path)
        other = spacy.load(tmp_path)
    else:
        made = make(punct_chars=[";"], overwrite=True)
        other = made.from_bytes(nlp.to_bytes()) if way == "bytes" else pickle.loads(pickle.dumps(nlp))
    assert sentences(other("One; two. Three")) == ["One;", "two. Three"]
    assert other.get_pipe("paragraph_sentencizer").overwrite


def test_settings_are_those_of_the_config(tmp_path):
    """What is loaded with another config, or with an edited one, has its settings; changes on the component itself are
    kept, and give way to another config."""
    make(punct_chars=[";"]).to_disk(tmp_path / "saved")
    over = {"components": {"paragraph_sentencizer": {"punct_chars": ["!"], "overwrite": True}}}
    pipe = spacy.load(tmp_path / "saved", config=over).get_pipe("paragraph_sentencizer")
    assert (pipe.punct_chars, pipe.overwrite, pipe.full_stops) == ({"!"}, True, True)
    pipe.full_stops, pipe.punct_chars = False, {"?"}
    other = spacy.load(tmp_path / "saved", config=over)
    other.get_pipe("paragraph_sentencizer").full_stops = False
    other.get_pipe("paragraph_sentencizer").punct_chars = {"?"}
    other.to_disk(tmp_path / "changed")
    for nlp in (
        spacy.load(tmp_path / "changed"),
        spacy.blank("en").from_config(other.config).from_bytes(other.to_bytes()),
    ):
        pipe = nlp.get_pipe("paragraph_sentencizer")
        assert (pipe.punct_chars, pipe.overwrite, pipe.full_stops) == ({"?"}, True, False)
    asked = {"components": {"paragraph_sentencizer": {"punct_chars": ["."]}}}
    pipe = spacy.load(tmp_path / "changed", config=asked).get_pipe("paragraph_sentencizer")
    assert (pipe.punct_chars, pipe.overwrite, pipe.full_stops) == ({"."}, True, False)
