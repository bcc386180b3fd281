"""`features = "marks"`: ERNIE's components by the states of the marks around mentions, in place of the pooled [CLS]."""

import pytest
import spacy
import torch

from spacy_luke.batch.entities import make_entity_batch
from spacy_luke.model.ernie import Knowledge
from spacy_luke.model.luke import Windows
from tests.components.known import ALWAYS, BOTH, TEXTS, annotated, make, make_vectors, results

MARKS = {name: {**ALWAYS[name], "model": {"features": "marks"}} for name in BOTH}


@pytest.fixture
def vectors(tmp_path):
    return make_vectors(tmp_path)


def test_batches_and_saving(vectors, tmp_path):
    nlp, _ = make(BOTH, vectors, **MARKS)
    expected = results(annotated(nlp))
    assert all(types for found in expected for _, types in found[0])
    assert expected[0][1]
    assert results(annotated(nlp, batch_size=1)) == expected
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert results(annotated(again)) == expected
    assert again.get_pipe("ernie_relation").model.attrs["features"] == "marks"
    pooled, _ = make(BOTH, vectors, **ALWAYS)
    assert results(annotated(pooled)) != expected


@pytest.mark.parametrize("name", BOTH)
def test_the_marks_before_the_mentions_are_read(vectors, name):
    """As one window by one, with marks found by their pieces."""
    nlp, examples = make((name,), vectors, **MARKS)
    pipe = nlp.get_pipe(name)
    marks = [pipe.marker(x) for x in pipe.marks()]
    doc = annotated(nlp, TEXTS[:1])[0]
    gold = pipe.read_gold(examples[0])
    items = list(pipe.items(doc, gold.units))
    assert len(items) >= len(marks)
    logits_UL, _ = pipe.model(make_entity_batch(items), is_train=False)
    classifier, encoder = pipe.model.shims[0].module.classifier, pipe.encoder.module
    assert classifier.in_features == len(marks) * encoder.config.hidden_size
    for item, logits_L in zip(items, logits_UL, strict=True):
        first = [item.pieces.tolist().index(mark) for mark in marks]
        vectors_EH = torch.from_numpy(pipe.encoder.vectors.gather(item.rows_E))
        knowledge = Knowledge(vectors_EH, torch.from_numpy(item.first_E), [len(item.rows_E)])
        with torch.no_grad():
            states_ND, _ = encoder(Windows(torch.from_numpy(item.pieces), [len(item.pieces)]), knowledge)
            wanted_L = classifier(torch.cat([states_ND[i] for i in first]))
        torch.testing.assert_close(logits_L, wanted_L, atol=1e-5, rtol=1e-5)


def test_it_learns(vectors):
    nlp, examples = make(("ernie_typer",), vectors, **MARKS)
    pipe = nlp.get_pipe("ernie_typer")
    optimizer = pipe.create_optimizer()
    optimizer.learn_rate = 0.01
    losses = [pipe.update(examples, sgd=optimizer)["ernie_typer"] for _ in range(12)]
    assert losses[-1] < 0.3 * losses[0]


def test_errors(vectors):
    with pytest.raises(ValueError, match=r"features must be one of .*, but it is 'entity'"):
        make(("ernie_typer",), vectors, ernie_typer={"model": {"features": "entity"}})
    nlp, _ = make(("ernie_typer",), vectors, **MARKS)
    with pytest.raises(ValueError, match="reads features = 'marks', but that of other ERNIE code reads 'pooled'"):
        nlp.get_pipe("ernie_typer").to_checkpoint()
