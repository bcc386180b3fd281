"""Two texts in one Doc (`doc._.luke_second`): an ERNIE encoder reads them as BERT reads pairs."""

import warnings

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example

from spacy_luke.model.ernie import Knowledge
from spacy_luke.model.luke import Windows
from tests.components.known import annotate
from tests.tiny import make_checkpoint, make_ernie

FIRST, SECOND = "ada m b i london .", "b f ada h london ."  # each word is a piece
WIDTH = 32
TEXTCAT = {
    "@architectures": "spacy.TextCatReduce.v1",
    "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "*"},
    "exclusive_classes": True,
    "use_reduce_first": True,
    "use_reduce_last": False,
    "use_reduce_max": False,
    "use_reduce_mean": True,
}


def pair(nlp, first=FIRST, second=SECOND):
    doc = annotate(nlp.make_doc(f"{first} {second}" if first and second else first or second))
    doc.user_data["luke_second"] = len(first) + bool(first and second)
    return doc


def make_pipeline(vectors):
    nlp = spacy.blank("en")
    owner = nlp.add_pipe("ernie_encoder", config={"overlap": 8})
    nlp.add_pipe("textcat", config={"model": TEXTCAT})
    golds = [pair(nlp), annotate(nlp.make_doc(FIRST)), pair(nlp, SECOND, FIRST)]
    for i, gold in enumerate(golds):
        gold.cats = {"same": float(i == 0), "other": float(i != 0)}
    examples = [Example(x.copy(), x) for x in golds]
    owner.initialize(lambda: examples, nlp=nlp, weights=lambda: make_ernie(vectors))
    nlp.get_pipe("textcat").initialize(lambda: examples, nlp=nlp)
    return nlp, owner, examples


def word_states(owner, first, second):
    """The plain way: pieces and places written down by hand; a word is a piece."""
    vocab = owner.tokenizer.backend.token_to_id
    row = {"ada": 0, "london": 2}
    words = ["[CLS]", *first.split(), "[SEP]", *second.split(), "[SEP]"]
    length = len(first.split()) + 2
    at = [i for i, word in enumerate(words) if word in row]
    vectors = owner.encoder.vectors.gather(np.array([row[words[i]] for i in at]))
    types = torch.tensor([int(i >= length) for i in range(len(words))])
    with torch.inference_mode():
        states, _ = owner.encoder.module.eval()(
            Windows(torch.tensor([vocab(word) for word in words]), [len(words)], types),
            Knowledge(torch.from_numpy(vectors), torch.tensor(at), [len(at)]),
        )
    return np.delete(states.numpy(), [0, length - 1, len(words) - 1], axis=0)


def test_states_are_those_of_a_pair(vectors):
    nlp, owner, _ = make_pipeline(vectors)
    single = annotate(nlp.make_doc(f"{FIRST} {SECOND}"))
    docs = list(nlp.pipe([pair(nlp), single, pair(nlp, SECOND, FIRST)]))
    assert np.allclose(docs[0].tensor, word_states(owner, FIRST, SECOND), atol=1e-5)
    assert np.allclose(docs[2].tensor, word_states(owner, SECOND, FIRST), atol=1e-5)
    assert not np.allclose(docs[0].tensor, docs[1].tensor, atol=1e-2)
    assert np.allclose(nlp(pair(nlp)).tensor, docs[0].tensor, atol=1e-5)


def test_one_text_is_empty(vectors):
    nlp, owner, _ = make_pipeline(vectors)
    assert np.allclose(nlp(pair(nlp, FIRST, "")).tensor, word_states(owner, FIRST, ""), atol=1e-5)
    assert np.allclose(nlp(pair(nlp, "", SECOND)).tensor, word_states(owner, "", SECOND), atol=1e-5)
    assert nlp(pair(nlp, "", "")).tensor.shape[0] == 0


def test_the_encoder_learns_from_pairs(vectors):
    nlp, owner, examples = make_pipeline(vectors)
    optimizer = nlp.resume_training()
    before = owner.encoder.module.words.token_type.weight.detach().clone()
    nlp.update(examples, sgd=optimizer)
    after = owner.encoder.module.words.token_type.weight.detach()
    assert not torch.equal(before[1], after[1])
    doc = nlp(pair(nlp))
    assert sum(doc.cats.values()) == pytest.approx(1.0)


def test_too_long_for_a_window(vectors):
    """Then it is one text, as without `luke_second`, and a warning says so."""
    nlp, owner, _ = make_pipeline(vectors)
    room = owner.encoder.module.config.max_window - 2
    first = " ".join(["ada"] * 20)
    fits, exact = (" ".join(["b"] * (room - 20 - less)) for less in (1, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = nlp(pair(nlp, first, fits)).tensor
    assert np.allclose(found, word_states(owner, first, fits), atol=1e-5)
    with pytest.warns(UserWarning, match=f"has {room} pieces, but a window holds {room - 1}"):
        found = nlp(pair(nlp, first, exact)).tensor
    assert np.allclose(found, nlp(annotate(nlp.make_doc(f"{first} {exact}"))).tensor)


def test_a_second_text_begins_with_a_word(vectors):
    nlp, owner, _ = make_pipeline(vectors)
    doc = pair(nlp)
    doc.user_data["luke_second"] -= 1  # the blank before it
    assert np.allclose(nlp(doc).tensor, word_states(owner, FIRST, SECOND), atol=1e-5)
    doc = pair(nlp)
    doc.user_data["luke_second"] = 1
    with pytest.raises(ValueError, match="but 1 lies inside 'ada', which begins at 0"):
        nlp(doc)


def test_luke_has_one_token_type():
    """There the second text is nothing special."""
    nlp = spacy.blank("en")
    owner = nlp.add_pipe("luke_encoder", config={"overlap": 32})
    nlp.add_pipe("textcat", config={"model": TEXTCAT})
    doc = nlp.make_doc("Ghana Lagos")
    doc.cats = {"A": 1.0, "B": 0.0}
    examples = [Example(doc.copy(), doc)]
    owner.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint)
    nlp.get_pipe("textcat").initialize(lambda: examples, nlp=nlp)
    plain = nlp(nlp.make_doc("Ghana Lagos")).tensor
    paired = nlp.make_doc("Ghana Lagos")
    paired.user_data["luke_second"] = 6
    assert np.array_equal(nlp(paired).tensor, plain)
