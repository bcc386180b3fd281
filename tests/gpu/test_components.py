"""Each component on a GPU: what it finds and learns is what it does on the CPU, and how often it waits."""

from contextlib import contextmanager

import pytest
import torch
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.every import facts
from tests.gpu.components import ERNIE, LUKE, make_known, make_luke, make_shared
from tests.gpu.machine import GPU, to_gpu
from tests.gpu.running import UPDATE, check_counts, counted, docs_of, learned, parameters_of

CASES = [*((name, attention) for name in LUKE for attention in ("one_way", "full")), *((name, "") for name in ERNIE)]
CASES.append(("shared", "one_way"))
PREDICTION = {"luke_encoder": 2, "ernie_encoder": 2}  # waits of a batch, 1 of others: scores that are checked, vectors
SPACYS = ("tagger", "textcat", "soft_textcat", "sentencizer")  # their waits are spaCy's


@pytest.fixture
def make(request, store, vectors):
    def build(name, attention, layers):
        if name == "shared":
            return make_shared(layers=layers)
        if name in ERNIE:
            return make_known(name, vectors, layers=layers + 1)
        return make_luke(name, attention, store, layers=layers)

    return build


@pytest.mark.product
@pytest.mark.parametrize(("name", "attention"), CASES)
def test_results_are_those_of_the_cpu(name, attention, make):
    (here, examples), (there, _) = (make(name, attention, 2) for _ in range(2))
    expected = [facts(doc) for doc in here.pipe(docs_of(examples(here, 7)))]
    assert any(expected)
    with GPU() as gpu:
        to_gpu(there)
        found = [facts(doc) for doc in there.pipe(docs_of(examples(there, 7)))]
        assert gpu.transfers
        losses, parameters = learned(there, examples)
    assert [set(x) for x in found] == [set(x) for x in expected]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    expected_losses, expected_parameters = learned(here, examples)
    for one, other in zip(losses, expected_losses, strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4)
    for (x_name, x), (y_name, y) in zip(parameters, expected_parameters, strict=True):
        assert x_name == y_name
        assert float((x - y).abs().max()) < 2e-5, x_name
    before = parameters_of(make(name, attention, 2)[0])
    assert any(not torch.equal(x, y) for (_, x), (_, y) in zip(parameters, before, strict=True))


@pytest.mark.product
@pytest.mark.parametrize(("layers", "windows"), [(2, 1), (5, 7)])
@pytest.mark.parametrize(("name", "attention"), CASES)
def test_waits_and_transfers(name, attention, layers, windows, make):
    """They are the same however many layers and windows there are."""
    nlp, examples = make(name, attention, layers)
    with GPU() as gpu:
        to_gpu(nlp)
        docs = docs_of(examples(nlp, windows))
        for component_name, component in nlp.pipeline:
            gpu.forget()
            with counted(component) if component_name not in SPACYS else contextmanager(lambda: iter([[]]))() as passes:
                docs = list(component.pipe(docs))
            if component_name in SPACYS:
                continue
            n = 1 if component_name in PREDICTION else len(passes)
            assert n
            check_counts(gpu, waits=n * PREDICTION.get(component_name, 1), transfers=3 * n)
        given = examples(nlp, windows)
        for component_name, component in nlp.pipeline:
            gpu.forget()
            if component_name in SPACYS:
                continue
            with counted(component) as passes:
                component.update(given, drop=0.0)
            n = 1 if component_name in PREDICTION else len(passes)
            assert n
            most = UPDATE.get((component_name, attention), 1)
            check_counts(gpu, waits=most + (n - 1) * (most - 1), transfers=3 * n)  # losses of all batches come at once


@pytest.mark.parametrize("windows", [1, 7])
def test_waits_where_proposals_need_a_chance(windows, make):
    """One more: how many spans are encoded is known when the proposals are. The results are the CPU's. So it is where
    windows of different lengths stand together (a Doc of sentences), also in an update."""
    (here, examples), (nlp, _) = (make("luke_ner", "one_way", 2) for _ in range(2))
    for one in (here, nlp):
        one.get_pipe("luke_ner").proposal_threshold = 0.03
    expected = [facts(doc) for doc in here.pipe(docs_of(examples(here, windows)))]
    with GPU() as gpu:
        to_gpu(nlp)
        docs, ner = list(nlp.get_pipe("sentencizer").pipe(docs_of(examples(nlp, windows)))), nlp.get_pipe("luke_ner")
        gpu.forget()
        with counted(ner) as passes:
            found = [facts(doc) for doc in ner.pipe(docs)]
        assert len(passes)
        check_counts(gpu, waits=2 * len(passes), transfers=3 * len(passes))
        learned(nlp, lambda nlp, _: [Example(doc, x.reference) for doc, x in zip(docs, examples(nlp, windows))])
    assert found == [pytest.approx(one, abs=1e-4) for one in expected]


@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
def test_waits_of_a_step(grad_clip, make):
    """The norm of the gradient, where it is clipped."""
    nlp, examples = make("luke_ner", "one_way", 2)
    with GPU() as gpu:
        to_gpu(nlp)
        nlp.update(examples(nlp, 1), sgd=False)
        gpu.forget()
        nlp.get_pipe("luke_ner").finish_update(make_adamw(learn_rate=1e-3, grad_clip=grad_clip))
        assert (gpu.waits.total(), gpu.transfers.total()) == (int(grad_clip > 0), 0)
