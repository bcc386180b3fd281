"""What a teacher says of a text reaches the loss of its student, and a student learns from it alone."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.annotations import Taught, set_taught
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import shims_of
from spacy_luke.pipelines.teaching import teach
from tests.components.recognised import LABELS, make_examples, make_ner, make_noisy_ner, trained
from tests.components.related import docs_of, noisy, relations_of, types_of
from tests.components.related import make_pipeline as make_unit_pipeline
from tests.tiny import SENTENCES

CLASSES = ["", *LABELS]
ADA, LONDON = (0, 12), (22, 28)  # characters of the first sentence


def taught_example(nlp, *, places=((*ADA, 0.25), (*LONDON, 0.75)), classes=CLASSES, name="luke_ner"):
    """Characters of spans of the first sentence, and how probable each is LOC; the rest is "none"."""
    gold = nlp.make_doc(SENTENCES[0])
    rows = np.zeros((len(places), len(classes)), dtype=np.float32)
    for row, (_, _, p) in zip(rows, places):
        row[classes.index("")], row[classes.index("LOC")] = 1 - p, p
    set_taught(gold, [Taught(name, tuple(classes), np.array([x[:2] for x in places]), rows)])
    return Example(nlp.make_doc(gold.text), gold)


@pytest.mark.parametrize("classes", [CLASSES, ["PER", "ORG", "", "LOC"]])
def test_rows_of_candidates(classes):
    nlp, ner = make_ner()
    example = taught_example(nlp, classes=classes)
    (item,) = ner.items(0, example.predicted, ner.gold(example))
    assert (item.gold_E == -1).all()
    spans = [example.predicted.char_span(*place) for place in (ADA, LONDON)]
    expected = {(span.start, span.end): p for span, p in zip(spans, (0.25, 0.75), strict=True)}
    places = zip(item.spans.start_E.tolist(), item.spans.end_E.tolist(), strict=True)
    for place, row in zip(places, item.taught_EL.tolist(), strict=True):
        p = expected.pop(place, 0.0)
        assert row == pytest.approx([1 - p, p, 0, 0])
    assert not expected


def test_other_labels():
    nlp, ner = make_ner()
    message = r"it has the classes \['', 'LOC', 'ORG', 'PER'\], the teacher \['', 'LOC'\]"
    with pytest.raises(ValueError, match=message):
        ner.gold(taught_example(nlp, classes=["", "LOC"]))


def test_what_is_no_word_of_the_students_is_left_out():
    nlp, ner = make_ner()
    assert len(ner.gold(taught_example(nlp, places=((*ADA, 0.25), (1, 12, 0.5)))).taught.places) == 1


def test_gold_and_taught_docs_in_one_batch():
    """Each span of a taught Doc is known, and what is more probable than not is encoded, whatever is proposed."""
    nlp, ner = make_ner()
    taught = taught_example(nlp)
    examples = [make_examples(nlp)[1], taught]
    (batch,) = ner.batches(examples)
    own = batch.owner_E() == 1
    assert (batch.taught_EL[~own] == -1).all()
    assert (batch.gold_E[own] == -1).all()
    assert batch.known_E().all()
    span = taught.predicted.char_span(*LONDON)
    chosen = np.flatnonzero(batch.gold_mentions_E() & own)
    assert [(batch.start_E[i], batch.end_E[i]) for i in chosen] == [(span.start, span.end)]
    assert ner.loss_weight(batch) == len(np.unique(np.stack([batch.owner_E(), batch.start_E]), axis=1).T)


def gradients(ner):
    found = [p.grad.clone() for _, p in ner.named_parameters() if p.grad is not None]
    for _, p in ner.named_parameters():
        p.grad = None
    return found


def test_gradients_are_those_of_the_sum():
    """Beside autograd through the model, of the gold spans' cross-entropy and the distance from what is taught."""
    nlp, ner = make_ner(model={"spans_per_word": None})
    for shim in shims_of(ner.model).values():
        shim.set_dropout(0.0)
    (batch,) = ner.batches([make_examples(nlp)[1], taught_example(nlp)])
    scores, backprop = ner.model.begin_update(batch)
    loss, by_logits = ner.get_loss(batch, scores)
    backprop(*by_logits)
    found = gradients(ner)
    scores, _ = ner.model.begin_update(batch)
    log_EL, own_E = scores.logits_KL.log_softmax(-1), torch.from_numpy(batch.owner_E() == 1)
    gold_E, target_EL = torch.from_numpy(batch.gold_E), torch.from_numpy(batch.taught_EL)
    plain = F.nll_loss(log_EL[~own_E], gold_E[~own_E], reduction="sum")
    plain = plain + F.kl_div(log_EL[own_E], target_EL[own_E], reduction="sum")
    torch.testing.assert_close(loss, plain.detach(), rtol=1e-5, atol=1e-5)
    plain.backward()
    expected = gradients(ner)
    assert len(found) == len(expected) > 10
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def entities(nlp):
    return [[(x.start, x.end, x.label_) for x in nlp(text).ents] for text in SENTENCES]


def test_a_student_learns_from_a_teacher_alone():
    teacher = trained()
    expected = entities(teacher)
    assert sum(map(len, expected)) > 5
    docs = [doc for doc, _ in teach(teacher, [teacher.make_doc(x) for x in SENTENCES], ["luke_ner"])]
    student, ner = make_ner()
    assert entities(student) != expected
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(300):
        examples = [Example(student.make_doc(doc.text), doc) for doc in docs]
        if ner.update(examples, sgd=optimizer)["luke_ner"] < 0.05 and entities(student) == expected:
            break
    assert entities(student) == expected


def probabilities(nlp, name):
    """Of all units, in the order of the texts."""
    return np.concatenate([taught.probability_PL for _, (taught,) in teach(nlp, docs_of(nlp), [name])])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config"),
    [("luke_typer", {}), ("luke_relation", {"multi_label": True}), ("luke_relation", {"multi_label": False})],
)
def test_types_and_relations(name, config):
    """The student's probabilities become the teacher's."""
    teacher, _ = noisy(name, **config)
    expected = probabilities(teacher, name)
    golds = [doc for doc, _ in teach(teacher, docs_of(teacher), [name])]
    student, small = make_unit_pipeline(name, **config)
    before = abs(probabilities(student, name) - expected).mean()
    optimizer = make_adamw(learn_rate=4e-3)
    examples = [Example(given, doc) for given, doc in zip(docs_of(student), golds)]
    for _ in range(100):
        small.update(examples, sgd=optimizer)
    assert abs(probabilities(student, name) - expected).mean() < 0.2 * before


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("luke_typer", {}),
        ("luke_relation", {"multi_label": True}),
        ("luke_relation", {"multi_label": True, "between": {"lives_in": [["X"], ["X"]]}}),
        ("luke_relation", {}),
    ],
)
def test_units_are_scored_once(name, config, monkeypatch):
    """What is found is that of the pipeline; what is taught is the head's, whatever labels may stand between."""
    teacher, proc = noisy(name, **config)
    read = types_of if name == "luke_typer" else relations_of
    expected = list(map(read, teacher.pipe(docs_of(teacher))))
    assert any(expected)
    scored, passes = proc.scored_batches, []
    monkeypatch.setattr(proc, "scored_batches", lambda *given, **more: passes.append(1) or scored(*given, **more))
    docs, said = zip(*teach(teacher, docs_of(teacher), [name]), strict=True)
    assert len(passes) == 1
    assert list(map(read, docs)) == expected
    free, _ = noisy(name, **{key: x for key, x in config.items() if key != "between"})
    for (one,), (_, (other,)) in zip(said, teach(free, docs_of(free), [name]), strict=True):
        assert one.probability_PL.tolist() == other.probability_PL.tolist()


def test_what_is_said_and_what_is_found():
    teacher, ner = make_noisy_ner()
    texts = [teacher.make_doc(text) for text in SENTENCES]
    for (doc, (taught,)), text in zip(teach(teacher, texts, ["luke_ner"]), SENTENCES, strict=True):
        plain = teacher(text)
        assert [(x.start, x.end, x.label_) for x in doc.ents] == [(x.start, x.end, x.label_) for x in plain.ents]
        assert taught.labels == ("", *ner.labels)
        assert taught.probability_PL.sum(1) == pytest.approx(1, abs=1e-4)
        said = dict(zip(map(tuple, taught.places_PK.tolist()), taught.probability_PL.tolist(), strict=True))
        for entity in plain.ents:
            row = said[entity.start_char, entity.end_char]
            assert row[taught.labels.index(entity.label_)] == pytest.approx(entity._.luke_score, abs=1e-4)


def test_no_candidates():
    nlp, ner = make_ner()
    doc = Doc(nlp.vocab, words=[" "])
    set_taught(doc, [Taught("luke_ner", tuple(CLASSES), np.zeros((0, 2), np.int64), np.zeros((0, 4), np.float32))])
    assert list(ner.batches([Example(Doc(nlp.vocab, words=[" "]), doc)])) == []
