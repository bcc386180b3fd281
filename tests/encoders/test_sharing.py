"""The verbs of a shared encoder, without any component: who teaches it, what waits for what, what a step is made of."""

import copy
import pickle

import pytest
import torch
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.encoders.kind import EncoderShim
from spacy_luke.encoders.luke_kind import Luke
from spacy_luke.encoders.sharing import SharedEncoder
from spacy_luke.model.config import LukeConfig

CONFIG = LukeConfig(30, 3, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=20, entity_size=4)


class Pass:
    """A pass over words that gives back a gradient of ones when it is closed."""

    then = None
    begun = False

    def __init__(self, sharing):
        self.sharing, self.closed = sharing, False

    def close(self):
        self.closed = True
        self.sharing.end()
        self.sharing.add((name, torch.ones_like(p)) for name, p in self.sharing.shim.named_parameters())
        if self.then is not None:
            self.then()


@pytest.fixture
def sharing():
    torch.manual_seed(0)
    shim = EncoderShim(Luke())
    shim.create({"config": CONFIG.to_dict()})
    shim.sharing = SharedEncoder(shim, "luke_encoder", {"shared_pieces": 100})
    return shim.sharing


def teach(sharing, name, weight, losses, factor, forget=None):
    with sharing.teaching(name, weight, forget=forget or (lambda: sharing.forget(name))) as share:
        (factor * sum(p.sum() for _, p in sharing.shim.named_parameters())).backward()
        share.losses += losses


def values(sharing):
    return {name: p.detach().clone() for name, p in sharing.shim.named_parameters()}


def test_only_those_that_are_updated_with_the_owners_examples_join(sharing):
    mine, others = [1], [1]
    assert not sharing.join(mine)
    sharing.begin(mine)
    assert sharing.join(mine)
    assert sharing.shim.learning
    assert not sharing.join(others)
    assert not sharing.shim.learning
    sharing.shim.trainable = False
    assert not sharing.join(mine)


def test_a_step_has_the_sum_of_means_and_of_what_listeners_add(sharing):
    teach(sharing, "ner", 1.0, losses=2, factor=6.0)
    teach(sharing, "typer", 0.5, losses=4, factor=16.0)
    teach(sharing, "ner", 1.0, losses=1, factor=3.0)
    teach(sharing, "nothing", 1.0, losses=0, factor=7.0)
    sharing.add((name, torch.full_like(p, 10.0)) for name, p in sharing.shim.named_parameters())
    assert all(p.grad is None for _, p in sharing.shim.named_parameters())
    sharing.gather()
    for name, p in sharing.shim.named_parameters():
        torch.testing.assert_close(p.grad, torch.full_like(p, 9.0 / 3 + 0.5 * 16.0 / 4 + 10.0), msg=name)
    assert not sharing.has_gradients


@pytest.mark.parametrize("optimizer", [make_adamw, Adam])
def test_a_step_waits_for_a_pass(sharing, optimizer):
    before, words = values(sharing), Pass(sharing)
    sharing.wait(words)
    sharing.finish(optimizer(learn_rate=1e-2))  # nothing was learned yet
    assert not words.closed
    assert all(torch.equal(x, before[name]) for name, x in values(sharing).items())
    words.close()
    assert not any(torch.equal(x, before[name]) for name, x in values(sharing).items())
    assert sharing.pending is None


@pytest.mark.parametrize("how", ["a gradient has come", "another component has taught it", "the next update begins"])
def test_what_ends_a_pass_that_not_all_listeners_answer(sharing, how):
    words = Pass(sharing)
    sharing.wait(words)
    if how == "the next update begins":
        sharing.begin([])
    else:
        words.begun = how == "a gradient has come"
        if not words.begun:
            teach(sharing, "ner", 1.0, losses=1, factor=1.0)
        sharing.finish(make_adamw(learn_rate=1e-2))
        assert not sharing.has_gradients
    assert words.closed
    assert sharing.pending is None


def test_a_copy_has_no_part_of_an_update(sharing):
    sharing.begin(examples := [1])
    sharing.wait(Pass(sharing))
    teach(sharing, "ner", 1.0, losses=1, factor=1.0)
    for shim in (copy.deepcopy(sharing.shim), pickle.loads(pickle.dumps(sharing.shim))):
        other = shim.sharing
        assert other.shim is shim
        assert (other.owner, other.cache.capacity, other.pending) == ("luke_encoder", 100, None)
        assert not other.has_gradients
        assert not other.join(examples)


def test_the_first_replaces_parameters_for_all(sharing):
    before = values(sharing)
    params = {(sharing.shim.id, name): torch.zeros_like(p).numpy() for name, p in sharing.shim.named_parameters()}
    first, second = sharing.shim.use_params(params), sharing.shim.use_params(params)
    first.__enter__()
    second.__enter__()
    assert not any(x.any() for x in values(sharing).values())
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert all(torch.equal(x, before[name]) for name, x in values(sharing).items())
    assert not sharing.replaced
