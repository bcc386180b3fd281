"""Two processes learn what one learns, every component, with uneven batches and shares that are empty."""

import pytest
import spacy
from spacy.training import Example
from thinc.api import NumpyOps, fix_random_seed

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.distributed.processes import Processes
from spacy_luke.training.shares import _parameters, check_components, take_share, update
from tests import pipelines
from tests.components import known, listening
from tests.components.linker import linked
from tests.forked import run_together
from tests.tiny import SENTENCES

T = {"frozen_components": [], "annotating_components": [], "accumulate_gradient": 1}
SIZES = (3, 1, 4)  # of the steps' batches
SPACY = (
    "tagger",
    "morphologizer",
    "senter",
    "trainable_lemmatizer",
    "textcat",
    "textcat_multilabel",
    "spancat",
    "soft_textcat",
)


def make_luke(folder):
    nlp = pipelines.make_pipeline()
    gold = [pipelines.make_gold(nlp, text) for text in SENTENCES]
    return nlp, [Example(nlp.make_doc(doc.text), doc) for doc in gold]


def make_listeners(folder):
    nlp, _, examples = listening.make_pipeline(*SPACY, "luke_ner", listener_weight=0.01)
    return nlp, examples


def make_linker(folder):
    nlp, _ = linked.make_linker(linked.make_store(folder), masked_share=1.0)
    return nlp, [linked.make_example(nlp, text) for text in SENTENCES]


def make_ernie(folder):
    nlp, examples = known.make(known.BOTH, known.make_vectors(folder), shared=True, **known.ALWAYS)
    for _, proc in nlp.pipeline:
        for node in proc.model.walk() if hasattr(proc, "model") else ():
            node.attrs.update({"train_precision": "float32"} if "train_precision" in node.attrs else {})
    return nlp, examples


def make_transitions(folder):
    """spaCy's parser and ner have a dropout that no setting changes, and padding whose gradient is no sum over Docs."""
    NumpyOps.get_dropout_mask = lambda self, shape, rate: self.alloc(shape) + 1
    nlp, _, examples = listening.make_pipeline("parser", "ner")
    return nlp, examples


MAKERS = {
    "luke": make_luke,
    "listeners": make_listeners,
    "linker": make_linker,
    "ernie": make_ernie,
    "transitions": make_transitions,
}


def learn(name, folder, settings, processes):
    """RETURNS: all parameters after some steps, the losses, and how many arrays have moved."""
    fix_random_seed(0)
    nlp, examples = MAKERS[name](folder / str(processes.rank))
    optimizer = make_adamw(learn_rate=2e-3, eps=1e-3, grad_clip=1.0)  # see tests/gpu/test_components.py of eps
    losses, at = {}, 0
    before = [p.like.detach().clone() for p in _parameters(nlp.pipeline)]
    for size in SIZES:
        batch = [examples[(at + i) % len(examples)] for i in range(size)]
        batch = [Example(x.predicted.copy(), x.reference) for x in batch]
        at += size
        update(nlp, batch, optimizer, {**T, **settings}, drop=0.0, losses=losses, processes=processes)
    after = [p.like.detach() for p in _parameters(nlp.pipeline)]
    moved = sum(float((x - y).abs().max()) > 1e-4 for x, y in zip(before, after, strict=True))
    return [x.numpy() for x in after], losses, moved


def largest(ones, others):
    return max(float(abs(x - y).max()) for x, y in zip(ones, others, strict=True) if x.size)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["luke", "listeners", "linker", "ernie", "transitions"])
def test_two_processes_learn_as_one(name, tmp_path):
    accumulate = 2 if name == "ernie" else 1
    (tmp_path / "0").mkdir()
    (tmp_path / "1").mkdir()
    together = run_together(learn, name, tmp_path, {"accumulate_gradient": accumulate})
    (tmp_path / "one/0").mkdir(parents=True)
    ((alone, losses, moved),) = run_together(learn, name, tmp_path / "one", {}, size=1)
    assert moved > len(alone) / 3
    for found, found_losses, _ in together:
        assert largest(found, alone) < (2e-3 if name == "transitions" else 1e-5)
        if accumulate == 1:
            assert found_losses == pytest.approx(losses, rel=1e-3, abs=1e-4)
    assert largest(together[0][0], together[1][0]) == 0.0


def test_shares_are_of_about_as_many_words():
    nlp = spacy.blank("en")
    examples = [Example.from_dict(nlp.make_doc("word " * n), {}) for n in (9, 1, 1, 5, 4, 2, 8)]
    shares = [take_share(examples, Processes(rank, 3)) for rank in range(3)]
    assert sorted(id(x) for share in shares for x in share) == sorted(id(x) for x in examples)
    assert [sum(len(x) for x in share) for share in shares] == [10, 10, 10]
    assert all(share == [x for x in examples if x in share] for share in shares)
    assert [len(take_share(examples[:1], Processes(rank, 3))) for rank in range(3)] == [1, 0, 0]
    assert take_share(examples, Processes()) == examples


def test_components_of_others_are_refused():
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    tagger = type("Tagger", (type(nlp.get_pipe("tagger")),), {"__module__": "others.tagging"})
    check_components(nlp, [], Processes(0, 2))
    nlp._components[0] = ("mine", tagger(nlp.vocab, nlp.get_pipe("tagger").model))
    with pytest.raises(ValueError, match=r"'mine' \(others.tagging.Tagger\) cannot learn in 2 processes"):
        check_components(nlp, [], Processes(0, 2))
    check_components(nlp, ["mine"], Processes(0, 2))
    check_components(nlp, [], Processes())


def differ(processes):
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger").add_label("X")
    nlp.initialize()
    doc = nlp.make_doc(f"Document {processes.rank}")
    update(nlp, [Example(doc, doc)], make_adamw(), T, drop=0.0, losses={}, processes=processes)


def test_other_documents_are_refused():
    with pytest.raises(AssertionError, match="2 processes have read different documents for the same step"):
        run_together(differ)
