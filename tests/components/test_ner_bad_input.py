"""What no corpus should hold, and every one does: a clear error, or an answer that loses nothing."""

import json
import warnings
from contextlib import nullcontext

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Ragged

from spacy_luke.bridge.documents import read_document
from spacy_luke.readers.jsonl import make_jsonl_corpus
from tests.components.recognised import found_in, make_examples, make_ner, make_noisy_ner
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

ROOM = 62  # pieces of a window, [CLS] and [SEP] not counted


def spans_by_hand(doc, document, *, max_pieces, max_words=None):
    """All spans of words that may be entities and fit into a window wherever they stand: a plain twin."""
    pieces, spans = document.pieces, set()
    for a in range(len(doc)):
        for b in range(a + 1, len(doc) + 1):
            size = pieces.last_W[b - 1] - pieces.first_W[a]
            if (
                document.bounds_W[a]
                and document.bounds_W[b - 1]
                and document.sentence_W[a] == document.sentence_W[b - 1]
                and size <= max_pieces
                and (max_words is None or b - a <= max_words)
            ):
                spans.add((a, b))
    return spans


def candidates(ner, doc):
    found = [
        (start, end)
        for item in ner.items(0, doc)
        for start, end in zip(
            item.spans.start_E[item.first : item.last].tolist(), item.spans.end_E[item.first : item.last].tolist()
        )
    ]
    assert len(found) == len(set(found))
    return set(found)


def read(ner, doc):
    return read_document(doc, ner.tokenizer)


# ---- Docs


@pytest.mark.product
@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "\u00a0\u2003"])
@pytest.mark.parametrize("spans_key", [None, "sc"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_nothing_to_find(attention, spans_key, text):
    nlp, ner = make_noisy_ner(attention=attention, spans_key=spans_key)
    doc = nlp(text)
    assert doc.text == text
    assert not doc.ents
    assert not doc.spans.get("sc", [])
    assert not len(doc) or spans_key or doc.has_annotation("ENT_IOB")
    ner.update([Example(nlp.make_doc(text), doc)])


@pytest.mark.product
@pytest.mark.parametrize("context", ["document", "sentence"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_long_word(attention, context):
    """50,000 characters: the words around it are still found, the word itself is longer than any window."""
    nlp, ner = make_noisy_ner(attention=attention, context=context, spans_key="sc")
    text = f"Ada Lovelace saw {'Xylophon' * 6250} in London ."
    doc = nlp(text)
    assert max(map(len, doc)) == 50_000
    expected = spans_by_hand(doc, read(ner, doc), max_pieces=16, max_words=3)
    assert candidates(ner, doc) == expected
    assert (0, 2) in expected
    assert (5, 6) in expected
    assert {(start, end) for start, end, _ in found_in(doc, "sc")} <= expected


@pytest.mark.product
@pytest.mark.parametrize("context", ["document", "sentence"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_sentences_longer_than_a_window(attention, context):
    nlp, ner = make_noisy_ner(attention=attention, context=context)
    doc = nlp.make_doc(" ".join(SENTENCES) * 4)
    assert not doc.has_annotation("SENT_START")
    assert len(read(ner, doc).pieces.ids_N) > 3 * ROOM
    expected = spans_by_hand(doc, read(ner, doc), max_pieces=16, max_words=3)
    assert candidates(ner, doc) == expected
    for i, word in enumerate(doc):
        word.is_sent_start = i % 70 == 0
    bounded = spans_by_hand(doc, read(ner, doc), max_pieces=16, max_words=3)
    assert bounded < expected
    assert candidates(ner, doc) == bounded
    assert all(start < end for start, end in ((span.start, span.end) for span in ner(doc).ents))


def test_one_sentence_is_the_same_with_and_without_a_mark():
    nlp, ner = make_noisy_ner(attention="full")
    plain, marked = nlp.make_doc(SENTENCES[0]), nlp.make_doc(SENTENCES[0])
    for i, word in enumerate(marked):
        word.is_sent_start = i == 0
    assert found_in(ner(plain)) == found_in(ner(marked))


@pytest.mark.filterwarnings("ignore:.*begins with a fresh head")
def test_words_without_pieces():
    """WordPiece drops control and zero-width characters; such a word begins and ends no entity, but lies inside one."""
    checkpoint = make_checkpoint(labels=["NIL", "A"], tokenizer=make_wordpiece(), position_offset=0)
    checkpoint.tensors["head.classifier.bias"][0] -= 3
    nlp, ner = make_noisy_ner(weights=lambda: checkpoint, spans_key="sc")
    ner.add_label("LOC")
    for unknown_spaces in (False, True):
        words = ["\u200b", "ada", "\x01", "london", "\u200b"]
        doc = Doc(nlp.vocab, words=words, spaces=None if unknown_spaces else [True, True, True, True, False])
        assert candidates(ner, doc) == {(1, 2), (1, 4), (3, 4)}
        assert {key[:2] for key in found_in(ner(doc), "sc")} <= {(1, 2), (1, 4), (3, 4)}
    only = Doc(nlp.vocab, words=["\u200b", "\x01"])
    assert not ner(only).spans["sc"]


@pytest.mark.parametrize("spaces_apart", [True, False])
def test_words_that_share_pieces_are_one_candidate(spaces_apart):
    """A sign that the vocabulary lacks, and words that a splitter made: of spans of the same pieces one is asked about,
    without the signs at its ends, so that no name becomes several."""
    checkpoint = make_checkpoint(tokenizer=make_wordpiece(), position_offset=0)
    nlp, ner = make_noisy_ner(weights=lambda: checkpoint, spans_key="sc")
    words, spaces = ["ada", "\u2713", "lon", "don", "ada"], [False, True, spaces_apart, True, False]
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    document = read(ner, doc)
    assert document.pieces.first_W[1] < document.pieces.last_W[0]
    assert document.signs_W.tolist() == [0, 1, 0, 0, 0]
    assert (document.pieces.first_W[3] < document.pieces.last_W[2]) != spaces_apart
    ends = {(0, 1), (4, 5), (0, 4), (0, 5), (2, 4), (2, 5)}
    apart = {(2, 3), (3, 4), (0, 3), (3, 5)} if spaces_apart else set()
    assert candidates(ner, doc) == {(a, b) for a, b in ends | apart if b - a <= 3}
    ner.suggester = spacy.registry.misc.get("spacy.ngram_range_suggester.v1")(1, 5)
    assert candidates(ner, doc) == ends | apart
    ner.suggester = lambda docs, ops: Ragged(ops.asarray2i([[1, 2], [3, 4], [3, 5]]), ops.asarray1i([3]))
    assert candidates(ner, doc) == {(1, 2), (3, 4), (3, 5)}, "where no better one is given"
    ner.suggester = None
    gold = Doc(nlp.vocab, words=words, spaces=spaces)
    gold.spans["sc"] = [Span(gold, 0, 2, "A"), Span(gold, 2, 4, "A")]
    with pytest.warns(
        UserWarning, match="1 of 2 gold spans .*inside a piece of the encoder.*whose pieces are smaller"
    ) as said:
        nlp.initialize(lambda: [Example(doc, gold)])
    assert "max_span" not in str(said[-1].message)  # of other reasons


def test_words_alone():
    """A Doc of which only the words are known."""
    nlp, ner = make_noisy_ner()
    doc = Doc(nlp.vocab, words=[*SENTENCES[0].split(), " ", "'s", "50\u00a0%"])
    assert doc.has_unknown_spaces
    assert candidates(ner, doc) == spans_by_hand(doc, read(ner, doc), max_pieces=16, max_words=3)
    assert ner(doc).has_annotation("ENT_IOB")


# ---- gold


def gold_example(nlp, text, *spans, spans_key=None):
    doc = nlp.make_doc(text)
    found = [Span(doc, start, end, label=label) for start, end, label in spans]
    if spans_key is None:
        doc.set_ents(found)
    else:
        doc.spans[spans_key] = found
    return Example(nlp.make_doc(text), doc)


@pytest.mark.product
@pytest.mark.parametrize(
    ("settings", "spans", "reason", "advice"),
    [
        ({"max_span_words": 2}, [(0, 3, "A"), (4, 5, "A")], "more than max_span_words = 2 words", "max_span_words"),
        ({"max_span_pieces": 5}, [(0, 1, "A"), (2, 9, "A")], "more than max_span_pieces = 5 pieces", "max_span_pieces"),
        ({"max_span_pieces": None}, [(0, 1, "A"), (1, 60, "A")], "do not fit into a window", "max_window"),
        ({}, [(0, 1, "A"), (4, 6, "A")], "cross a sentence boundary", "what finds the sentences"),
    ],
)
@pytest.mark.parametrize("spans_key", [None, "sc"])
def test_gold_that_cannot_be_predicted_is_counted(settings, spans, reason, advice, spans_key):
    nlp, ner = make_ner(initialize=False, spans_key=spans_key, **{"max_span_words": None, **settings})
    example = gold_example(nlp, " ".join(["Ada Lovelace saw London today"] * 12), *spans, spans_key=spans_key)
    for word in example.predicted:
        word.is_sent_start = word.i % 5 == 0 if "boundary" in reason else word.i == 0
    message = rf"1 of 2 gold spans of the training data can never be predicted \(1 (have )?{reason}\)\. .*{advice}"
    with pytest.warns(UserWarning, match=message):
        ner.initialize(lambda: [example], nlp=nlp, weights=make_checkpoint)
    assert ner.labels == ("A",)
    cut = pytest.warns(UserWarning, match="1 of 2 gold spans of a Doc lie in two sentences and are not learned")
    with cut if "boundary" in reason else nullcontext():
        assert ner.update([example])["luke_ner"] > 0


def test_gold_of_blanks_and_of_other_words():
    nlp, ner = make_ner(initialize=False, spans_key="sc")
    blank = gold_example(nlp, "Ada  London", (1, 2, "A"), spans_key="sc")
    gold = Doc(nlp.vocab, words=["Ada", "Love", "lace"], spaces=[True, False, False])
    gold.spans["sc"] = [Span(gold, 0, 2, label="A"), Span(gold, 0, 3, label="B")]
    other = Example(nlp.make_doc("Ada Lovelace"), gold)
    expected = r"2 of 3 gold spans.*1 begin or end with a blank, 1 do not fall on word boundaries"
    with pytest.warns(UserWarning, match=expected):
        ner.initialize(lambda: [blank, other], nlp=nlp, weights=make_checkpoint)


def test_overlapping_gold_for_flat_output(tmp_path):
    nlp, ner = make_ner(initialize=False)
    line = {"text": "Bank of Ghana", "spans": [[0, 13, "ORG"], [8, 13, "LOC"]]}
    (tmp_path / "data.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match=r"line 1: mentions .*'Bank of Ghana' and .*'Ghana' overlap.*set spans_key"):
        ner.initialize(lambda: make_jsonl_corpus(tmp_path / "data.jsonl")(nlp), nlp=nlp, weights=make_checkpoint)


def test_two_labels_of_one_span():
    """A span has one class; a second label of the very same words is counted and reported."""
    nlp, ner = make_ner(initialize=False, spans_key="sc")
    example = gold_example(nlp, "Ada saw London", (2, 3, "LOC"), (2, 3, "ORG"), (0, 1, "PER"), spans_key="sc")
    with pytest.warns(UserWarning, match=r"1 of 3 gold spans.*1 have the words of another one with another label"):
        ner.initialize(lambda: [example], nlp=nlp, weights=make_checkpoint)
    assert ner.labels == ("LOC", "ORG", "PER")


def test_labels_unseen_in_initialisation():
    nlp, ner = make_ner()
    example = gold_example(nlp, "Ada saw London", (0, 1, "ANIMAL"))
    with pytest.raises(ValueError, match=r"does not know the label 'ANIMAL' of 'Ada'.*\['LOC', 'ORG', 'PER'\]"):
        ner.update([example])
    ner.add_label("ANIMAL")
    assert ner.update([example])["luke_ner"] > 0


def test_no_labels_at_all():
    nlp, ner = make_ner(initialize=False)
    with pytest.raises(ValueError, match=r"found no labels: expected entities in doc\.ents in the examples"):
        ner.initialize(lambda: [gold_example(nlp, "Ada saw London")], nlp=nlp, weights=make_checkpoint)


# ---- no weights, no files


def test_without_weights():
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("luke_ner")
    with pytest.raises(ValueError, match=r"'luke_ner' has no weights yet.*initialize.*load a saved pipeline"):
        nlp("Ada saw London")
    example = gold_example(nlp, "Ada saw London", (0, 1, "PER"))
    with pytest.raises(ValueError, match="no weights yet"):
        ner.update([example])
    with pytest.raises(ValueError, match="no weights yet"):
        ner.to_checkpoint()
    with pytest.raises(ValueError, match=r"needs a checkpoint(.*\n)+\[initialize\.components\.luke_ner\.weights\]"):
        nlp.initialize(lambda: [example])


@pytest.mark.parametrize("part", ["tokenizer", "entities"])
def test_checkpoint_that_lacks_a_part(part):
    checkpoint = make_checkpoint()
    setattr(checkpoint, part, None)
    with pytest.raises(ValueError, match=rf"has no {'tokenizer' if part == 'tokenizer' else 'entity vocabulary'}"):
        make_ner(weights=lambda: checkpoint)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"attention": "both"}, r"attention must be one of .*'full', 'one_way'.*but it is 'both'"),
        ({"model": {"features": "some"}}, r"features must be one of .*but it is 'some'"),
        ({"model": {"spans_per_word": 0}}, "spans_per_word must be above 0"),
        ({"model": {"spans_per_pass": 0}}, "spans_per_pass must be at least 1"),
        ({"encoder": {"train_precision": "float16"}}, r"precision must be one of .*but it is 'float16'"),
        ({"encoder": {"predict_precision": "half"}}, r"precision must be one of .*but it is 'half'"),
        ({"context": "paragraph"}, r"context must be one of .*'document', 'sentence'.*but it is 'paragraph'"),
        ({"max_span_words": 0}, "max_span_words must be at least 1, but it is 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, but it is 0"),
        ({"max_span_pieces": "many"}, "max_span_pieces"),
        ({"contxt": "document"}, "contxt"),
    ],
)
def test_wrong_settings(config, message):
    with pytest.raises(ValueError, match=message):
        make_ner(initialize=False, **config)


def test_overlap_that_no_window_holds():
    """It is at most a quarter of the window, or what the longest span needs."""
    ner = make_ner(overlap=62)[0].get_pipe("luke_ner")
    assert ner.limits(learning=False, longest_span=ner.cfg["max_span_pieces"])["overlap"] == 32


def test_no_warnings_for_good_input():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp, ner = make_ner()
        nlp.evaluate(make_examples(nlp))
        ner.update(make_examples(nlp))
