"""What a step or an update that fails leaves of what was learned for it: nothing, so that the next one is as ever."""

import math

import pytest
import torch
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.listening import make_pipeline
from tests.components.recognised import make_examples, make_ner
from tests.components.related import make_examples as related_examples
from tests.components.sharing import make_shared


def own(**settings):
    nlp, _ = make_ner(**settings)
    return nlp, make_examples(nlp)


def shared(**settings):
    nlp = make_shared()
    for name in nlp.pipe_names[1:]:
        nlp.get_pipe(name).cfg.update(settings)
    return nlp, related_examples(nlp)


def listening(**settings):
    nlp, _, examples = make_pipeline("luke_ner", "parser")
    nlp.get_pipe("luke_ner").cfg.update(settings)
    return nlp, examples


def luke(nlp):
    return [component for _, component in nlp.pipeline if hasattr(component, "own_shims")]


def weights(nlp):
    return {
        (component.name, node, name): p.detach().clone()
        for component in luke(nlp)
        for node, shim in component.own_shims.items()
        for name, p in shim.module.named_parameters()
    }


def learn(nlp, examples, optimizer):
    """As a training does."""
    nlp.update(examples, sgd=False, drop=0.0)
    for component in luke(nlp):
        component.finish_update(optimizer)


def assert_same(one, other):
    assert all(torch.equal(x, other[key]) for key, x in one.items())


def nothing_left(nlp):
    sharings = [component.encoder.sharing for component in luke(nlp) if component.encoder.sharing is not None]
    return not (
        any(component.divisor for component in luke(nlp))
        or any(p.grad is not None for component in luke(nlp) for _, p in component.named_parameters())
        or any(sharing.has_gradients for sharing in sharings)
    )


def spoil(component):
    """A gradient that overflows once, of weights that are whole."""
    sharing = component.encoder.sharing
    if sharing is not None:
        (next(iter(sharing.sums.values())) if sharing.sums else first_share(sharing)).fill_(math.inf)
    else:
        component.named_parameters()[0][1].grad.fill_(math.nan)


def first_share(sharing):
    return next(iter(next(iter(sharing.shares.values())).gradients.values()))


@pytest.mark.parametrize("make", [own, shared])
def test_a_gradient_that_is_no_number(make):
    found = []
    for is_spoilt in (False, True):
        nlp, examples = make()
        optimizer = make_adamw(learn_rate=1e-3, grad_clip=1.0)
        learn(nlp, examples, optimizer)
        if is_spoilt:
            before = weights(nlp)
            nlp.update(examples[:1], sgd=False, drop=0.0)
            component = luke(nlp)[0]
            spoil(component)
            with pytest.raises(ValueError, match=rf"^'{component.name}': .* norm of the gradient, .* after 1 step"):
                component.finish_update(optimizer)
            assert nothing_left(nlp)
            assert_same(before, weights(nlp))
        learn(nlp, examples, optimizer)
        found.append(weights(nlp))
    assert_same(*found)


def test_a_head_whose_gradient_is_no_number():
    nlp, examples = shared()
    optimizer = make_adamw(learn_rate=1e-3, grad_clip=1.0)
    nlp.update(examples, sgd=False)
    owner, _, typer, _ = luke(nlp)
    owner.finish_update(optimizer)
    typer.named_parameters()[0][1].grad.fill_(math.nan)
    with pytest.raises(ValueError, match=r"^'luke_typer': .* norm of the gradient, but it is nan after 0 step"):
        typer.finish_update(optimizer)
    learn(nlp, examples, optimizer)
    assert nothing_left(nlp)


def test_what_listeners_add_that_is_no_number():
    nlp, examples = make_pipeline("luke_ner", "parser")[::2]
    optimizer = make_adamw(learn_rate=1e-3, grad_clip=1.0)
    nlp.update(examples, sgd=False)
    owner = nlp.get_pipe("luke_encoder")
    spoil(owner)
    with pytest.raises(ValueError, match=r"^'luke_encoder': .* norm of the gradient"):
        owner.finish_update(optimizer)
    assert nothing_left(nlp)
    learn(nlp, examples, optimizer)


@pytest.mark.parametrize("make_optimizer", [make_adamw, Adam])
@pytest.mark.parametrize("make", [own, shared])
def test_a_step_that_is_interrupted(make, make_optimizer, monkeypatch):
    nlp, examples = make()
    optimizer = make_optimizer(learn_rate=1e-3)

    def interrupt(*args, **settings):
        raise KeyboardInterrupt

    nlp.update(examples, sgd=False)
    with monkeypatch.context() as patch:
        patch.setattr(type(optimizer), "step" if make_optimizer is make_adamw else "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            luke(nlp)[0].finish_update(optimizer)
    assert nothing_left(nlp)


def interrupt(nlp, examples, error, patch):
    """An update that ends between two batches of one component."""
    component = nlp.get_pipe("luke_ner")
    seen, get_loss = [], component.get_loss

    def fail(batch, outputs):
        seen.append(batch)
        if len(seen) == 2:
            raise error
        return get_loss(batch, outputs)

    patch.setattr(component, "get_loss", fail)
    with pytest.raises(error):
        nlp.update(examples, sgd=False, drop=0.0)
    assert len(seen) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, torch.OutOfMemoryError])
@pytest.mark.parametrize("make", [own, shared, listening])
def test_an_update_that_is_interrupted(make, error, monkeypatch):
    """What its first batch taught is not learned with the next update."""
    found = []
    for is_interrupted in (False, True):
        nlp, examples = make(batch_size=40)
        if is_interrupted:
            with monkeypatch.context() as patch:
                interrupt(nlp, examples, error, patch)
            assert nothing_left(nlp)
        learn(nlp, examples, make_adamw(learn_rate=1e-3))
        found.append(weights(nlp))
    assert_same(*found)
