"""Pipelines that run: their passes counted, what they learn in some steps, and how often an update may wait."""

from contextlib import contextmanager

from spacy.util import fix_random_seed

from spacy_luke.bridge.optimizer import make_adamw

UPDATE = {("luke_ner", "one_way"): 2}  # 1 of others: a batch of the first waits for what its proposer has chosen


@contextmanager
def counted(component):
    """Counts the passes of a component's model: batches, and of decisions one after another each step."""
    model, passes = component.model, []
    plain = model._func

    def run(model, batch, is_train):
        passes.append(is_train)
        return plain(model, batch, is_train)

    model._func = run
    yield passes
    model._func = plain


def check_counts(gpu, *, waits, transfers):
    """waits: at most; a pretended GPU counts each of them, a real one those that torch tells."""
    assert gpu.waits.total() <= waits, gpu.waits
    assert gpu.counts_less or gpu.waits.total() == waits, gpu.waits
    assert gpu.transfers.total() <= transfers, gpu.transfers


def docs_of(examples):
    return [x.predicted for x in examples]


def learned(nlp, examples, steps=2):
    """Losses of some steps, and the parameters after them, on the host."""
    fix_random_seed(0)  # luke_linker draws which mentions it asks
    # So large an eps that gradients which are nothing but error move nothing.
    optimizer, found = make_adamw(learn_rate=1e-3, grad_clip=1.0, eps=1e-3), []
    for _ in range(steps):
        losses = nlp.update(examples(nlp, 3), sgd=False, drop=0.0)
        for _, component in nlp.pipeline:
            if hasattr(component, "finish_update"):
                component.finish_update(optimizer)
        found.append(losses)
    assert all(type(loss) in (int, float) for losses in found for loss in losses.values())
    return found, parameters_of(nlp)


def parameters_of(nlp):
    return [
        (f"{name} {parameter_name}", p.detach().cpu())
        for name, component in nlp.pipeline
        if hasattr(component, "own_shims")
        for shim in component.own_shims.values()
        for parameter_name, p in shim.module.named_parameters()
    ]
