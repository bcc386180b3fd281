"""Gold that leaves labels open, what another pipeline teaches, and NIL on a GPU: an update learns from them
what it does on the CPU, and waits no more often."""

import pytest
from spacy.util import fix_random_seed

from spacy_luke.annotations import ENTITIES, RELATIONS_TASK, TYPES_TASK, Scope, set_scopes
from spacy_luke.pipelines.teaching import teach
from tests.components import related
from tests.components.linker import linked
from tests.gpu.components import AT_ONCE, link_examples, luke_examples, make_luke
from tests.gpu.machine import GPU, to_gpu
from tests.gpu.running import check_counts

TASKS = {"luke_ner": ENTITIES, "luke_typer": TYPES_TASK, "luke_relation": RELATIONS_TASK}
WAITS = {"luke_ner": 2}  # 1 of others, as of gold that is whole


def update(component, examples):
    fix_random_seed(0)  # luke_linker draws which mentions it asks
    return component.update(examples, drop=0.0)


def gradients_of(component):
    return [p.grad.detach().cpu() for _, p in component.named_parameters() if p.grad is not None]


def check_update(make, examples, name, waits):
    """make: gives the same pipeline twice; examples: of a pipeline."""
    here, there = make(), make()
    expected, given = update(here.get_pipe(name), examples(here)), examples(there)
    with GPU() as gpu:
        to_gpu(there)
        gpu.forget()
        found = update(there.get_pipe(name), given)
        check_counts(gpu, waits=waits, transfers=3)
        on_gpu = gradients_of(there.get_pipe(name))
    assert found == pytest.approx(expected, rel=1e-4, abs=gpu.rounding)
    assert found[name] > 0
    gradients = gradients_of(here.get_pipe(name))
    assert len(on_gpu) == len(gradients) > 10
    for one, other in zip(on_gpu, gradients):
        assert float((one - other).abs().max()) < 1e-5 * max(10.0, float(other.abs().max()))


CASES = [("luke_ner", {}), ("luke_typer", {}), *(("luke_relation", {"multi_label": x}) for x in (True, False))]


def maker(name, config):
    """What makes a pipeline, and what makes its examples."""
    if name == "luke_ner":
        return lambda: make_luke(name, "one_way", None)[0], lambda nlp: luke_examples(nlp, 7)
    return lambda: related.make_pipeline(name, batch_size=AT_ONCE, **config)[0], related.make_examples


@pytest.mark.parametrize(("name", "config"), CASES)
def test_gold_that_leaves_labels_open(name, config):
    make, build = maker(name, config)

    def examples(nlp):
        first, second, *_ = nlp.get_pipe(name).labels
        scope = Scope(frozenset({first}), {second: frozenset({first, second})})
        made = build(nlp)
        for example in made:
            set_scopes(example.reference, {TASKS[name]: scope})
        return made

    check_update(make, examples, name, WAITS.get(name, 1))


@pytest.mark.parametrize(("name", "config"), CASES)
def test_what_is_taught(name, config):
    make, build = maker(name, config)

    def examples(nlp):
        made, teacher = build(nlp), make()
        for p in teacher.get_pipe(name).head.module.parameters():
            p.data += 0.3
        given = [example.predicted.copy() for example in made]
        for example, (gold, _) in zip(made, teach(teacher, given, [name]), strict=True):
            example.reference = gold
        return made

    check_update(make, examples, name, WAITS.get(name, 1))


@pytest.mark.parametrize("attention", ["one_way", "full"])
def test_nil(store, attention):
    """With NIL among the candidates; in predictions too."""

    def make():
        return linked.make_linker(store, attention=attention, prior=True, nil=True, batch_size=AT_ONCE)[0]

    check_update(make, lambda nlp: link_examples(nlp, 7), "luke_linker", 1)
    nlp = make()
    with GPU() as gpu:
        to_gpu(nlp)
        docs = [example.predicted for example in link_examples(nlp, 7)]
        passes, plain = [], nlp.get_pipe("luke_linker").model._func
        nlp.get_pipe("luke_linker").model._func = lambda *given, **more: passes.append(1) or plain(*given, **more)
        gpu.forget()
        list(nlp.get_pipe("luke_linker").pipe(docs))
        assert len(passes)
        check_counts(gpu, waits=len(passes), transfers=3 * len(passes))
