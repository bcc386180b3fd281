"""`max_window`: how long windows are, by the setting, by the checkpoint, and by what training has shown."""

import json
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.batch.windows import enumerate_spans, plan_windows
from spacy_luke.bridge.documents import read_document
from spacy_luke.checkpoint.files import read_declared
from spacy_luke.components.window_limits import fit_overlap, known_window, learned_window
from spacy_luke.encoders.seen import SEEN, STEP, record_windows
from tests.pipelines import make_gold
from tests.tiny import SENTENCES, make_checkpoint, make_ernie

POSITIONS = 514  # windows of 512 pieces
LONG = " ".join(SENTENCES * 20)


def make(name="luke_ner", *, checkpoint=None, **config):
    """A pipeline of one component, and its examples."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    component = nlp.add_pipe(name, config=config)
    examples = examples_of(nlp)
    component.initialize(
        lambda: examples, nlp=nlp, weights=checkpoint or (lambda: make_checkpoint(max_positions=POSITIONS))
    )
    return nlp, component


def examples_of(nlp, texts=SENTENCES[:3]):
    golds = [make_gold(nlp, text) for text in texts]
    return [Example(nlp.get_pipe("sentencizer")(nlp.make_doc(gold.text)), gold) for gold in golds]


def entities(nlp, text):
    doc = nlp.get_pipe("sentencizer")(nlp.make_doc(text))
    doc.set_ents([Span(doc, 0, 2, "PER"), Span(doc, len(doc) - 9, len(doc) - 7, "LOC")])
    return doc


def lengths(component, doc):
    """Pieces of the windows of a prediction."""
    return [len(item.pieces) for item in component.items(0, doc)]


@pytest.mark.parametrize(("window", "overlap", "span", "expected"), [
    (512, 128, 16, 128),  # as asked for
    (256, 128, 16, 64),
    (64, 128, 16, 32),
    (64, 8, 4, 8),
    (64, 128, 25, 50),  # twice the span
    (20, 128, 0, 10),  # half
])  # fmt: skip
def test_overlap_follows_the_window(window, overlap, span, expected):
    assert fit_overlap(overlap, window, longest_span=span) == expected


def test_small_windows_lose_no_span():
    """Of each window that may be set: every word in one core, and the same candidates whatever the window."""
    nlp, ner = make(max_span_pieces=6)
    document = read_document(nlp.get_pipe("sentencizer")(nlp.make_doc(LONG.replace(" .", " ,", 7))), ner.tokenizer)
    spans = {}
    for window in (15, 16, 20, 33, 64, 100, 512):
        ner.cfg["max_window"] = window
        windows = plan_windows(document, context="document", share=True, **ner.limits(learning=True, longest_span=6))
        assert (windows.end_B - windows.start_B).max() <= window - 2
        assert windows.core_start_B[0] == 0
        assert windows.core_end_B[-1] == len(document.pieces.ids_N)
        assert np.array_equal(windows.core_end_B[:-1], windows.core_start_B[1:])
        found = enumerate_spans(document, windows, max_pieces=6)
        spans[window] = list(zip(found.start_E.tolist(), found.end_E.tolist()))
    assert len(spans[512]) > 400
    assert all(found == spans[512] for found in spans.values())


def test_predictions_read_what_training_has_shown(tmp_path):
    nlp, ner = make()
    doc = nlp.get_pipe("sentencizer")(nlp.make_doc(LONG))
    assert ner.window_size(learning=False) == ner.window_size(learning=True) == 512
    assert max(lengths(ner, doc)) > 400
    for _ in range(3):
        nlp.update(examples_of(nlp), sgd=nlp.create_optimizer())
    assert sum(ner.encoder.settings[SEEN]) == 3 * sum(sum(lengths(ner, x.predicted)) for x in examples_of(nlp))
    assert ner.window_size(learning=False) == 64
    assert ner.window_size(learning=True) == 512  # or longer texts would never be learned
    assert 40 < max(lengths(ner, doc)) <= 64
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())):
        assert lengths(other.get_pipe("luke_ner"), doc) == lengths(ner, doc)
    nlp.update(examples_of(nlp, [" ".join(SENTENCES * 4)]), sgd=nlp.create_optimizer())
    assert 256 < ner.window_size(learning=False) <= 512


def test_rare_lengths_are_not_learned():
    _, ner = make()
    record_windows(ner.encoder, [30] * 1000 + [200] * 7)
    assert learned_window(ner.encoder) == 2 * STEP
    record_windows(ner.encoder, [200])
    assert learned_window(ner.encoder) == 13 * STEP  # 200 pieces, in whole steps: now a twentieth of all


def test_checkpoints_say_what_they_were_made_for(tmp_path):
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 100, "do_lower_case": False}))
    declared = read_declared(tmp_path)
    checkpoint = make_checkpoint(max_positions=POSITIONS)
    checkpoint.source.update(declared)
    _, ner = make(checkpoint=lambda: checkpoint)
    assert ner.window_size(learning=True) == ner.window_size(learning=False) == 100
    assert read_declared(tmp_path / "elsewhere") == {}
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": "many"}))
    with pytest.raises(ValueError, match="'max_seq_length', but it is 'many'"):
        read_declared(tmp_path)


def test_fine_tuned_checkpoints_are_used_as_they_were_made():
    """What other code has trained it on is not known: outputs are the same as there, also after more training."""
    labels = ["NIL", "LOC", "PER"]
    nlp, ner = make(
        model={"attention": "full", "features": "all", "proposer_size": 0, "spans_per_word": None},
        checkpoint=lambda: make_checkpoint(max_positions=POSITIONS, labels=labels),
    )
    nlp.update(examples_of(nlp), sgd=nlp.create_optimizer())
    assert ner.labels == ("LOC", "PER")
    assert ner.window_size(learning=False) == 512


def test_beyond_what_is_known():
    nlp, ner = make(max_window=300)
    doc = nlp.get_pipe("sentencizer")(nlp.make_doc(LONG))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ner.predict([doc])  # nothing is trained: the checkpoint may read 512
    nlp.update(examples_of(nlp), sgd=nlp.create_optimizer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ner.predict([doc])  # training is under way
    ner = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()).get_pipe("luke_ner")
    with pytest.warns(UserWarning, match="max_window = 300, but its encoder is known to read windows of 64 pieces"):
        ner.predict([doc])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ner.predict([doc])  # said once
    assert 250 < max(lengths(ner, doc)) <= 300


@pytest.mark.parametrize("name", ["luke_ner", "luke_typer", "luke_relation", "luke_encoder", "ernie_typer"])
def test_bad_settings(name):
    with pytest.raises(ValueError, match="max_window must be a number of pieces"):
        spacy.blank("en").add_pipe(name, config={"max_window": 4})


def test_windows_that_cannot_be():
    with pytest.raises(ValueError, match="max_window = 600, but its encoder reads 512 pieces"):
        make(max_window=600)
    nlp, ner = make()
    ner.cfg["max_window"] = 34
    with pytest.raises(ValueError, match="max_span_pieces = 16 they must have at least 35"):
        nlp("Ada left .")


def test_components_that_share_an_encoder():
    """Its `max_window` is that of all, but for those that have their own; and training with one shows the others."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("luke_encoder", config={"max_window": 100})
    names = ["luke_ner", "luke_typer", "luke_relation"]
    for name in names:
        model = {"encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}
        nlp.add_pipe(name, config={"model": model, **({"none": None} if name == "luke_relation" else {})})
    examples = examples_of(nlp)
    for name in ["luke_encoder", *names]:
        weights = {"weights": lambda: make_checkpoint(max_positions=POSITIONS)} if name == "luke_encoder" else {}
        nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp, **weights)
    parts = [nlp.get_pipe(name) for name in ["luke_encoder", *names]]
    assert [part.window_size(learning=False) for part in parts] == [100] * 4
    nlp.get_pipe("luke_typer").cfg["max_window"] = 50
    assert [part.window_size(learning=False) for part in parts] == [100, 100, 50, 100]
    nlp.get_pipe("luke_typer").cfg["max_window"] = None
    nlp.get_pipe("luke_encoder").cfg["max_window"] = 80
    assert [part.window_size(learning=False) for part in parts] == [80] * 4
    nlp.get_pipe("luke_encoder").cfg["max_window"] = None
    optimizer = nlp.create_optimizer()
    nlp.update(examples, sgd=optimizer, exclude=["luke_encoder", "luke_typer", "luke_relation"])
    assert SEEN not in parts[0].encoder.settings  # frozen, it learns nothing
    nlp.update(examples, sgd=optimizer, exclude=["luke_typer", "luke_relation"])
    limits = [part.limits(learning=False, longest_span=16 if part.name == "luke_ner" else None) for part in parts]
    assert limits == [{"room": 62, "overlap": 32}] * 4


@pytest.mark.parametrize(("name", "checkpoint"), [("luke_typer", make_checkpoint), ("ernie_typer", make_ernie)])
def test_mentions_longer_than_a_window(name, checkpoint):
    """They get a longer window, where the setting does not forbid it."""
    positions = POSITIONS if name == "luke_typer" else 512
    config = {"knowledge": None} if name == "ernie_typer" else {}
    nlp, typer = make(name, checkpoint=lambda: checkpoint(max_positions=positions), always_best=True, **config)
    record_windows(typer.encoder, [30])
    doc = entities(nlp, LONG)
    doc.set_ents([Span(doc, 0, 100, "PER")])
    assert known_window(typer.encoder) == 64
    typer.set_annotations([doc], typer.predict([doc]))
    assert doc.ents[0]._.luke_types
    typer.cfg["max_window"] = 64
    with pytest.warns(UserWarning, match="1 of 1 mentions get no types"):
        typer.predict([doc])
