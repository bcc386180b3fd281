"""A layer that is computed again for its gradients gives the same ones, and keeps less."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.model.ernie import ErnieEncoder, Knowledge
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows
from spacy_luke.model.recompute import recomputing
from tests.tiny import make_checkpoint, make_fresh_ernie

WINDOWS = Windows(torch.arange(5, 25), [12, 8])
MENTIONS = Mentions(torch.tensor([1, 2, 1]), torch.tensor([1, 3, 2]), torch.tensor([2, 3, 4]), [2, 1])


def full(encoder):
    return encoder(WINDOWS, MENTIONS)


def last(encoder):
    return (encoder.entity_states(WINDOWS, MENTIONS),)


def one_way(encoder):
    words = encoder.encode_words(WINDOWS)
    return words.states_ND, encoder.encode_entities(words, MENTIONS)


def ernie(encoder):
    vectors = torch.linspace(-1, 1, 3 * encoder.config.entity_size).reshape(3, -1)
    return encoder(WINDOWS, Knowledge(vectors, torch.tensor([1, 3, 2]), [2, 1]))


def run(encoder, passes, *, wanted):
    """RETURNS: gradients, and the numbers that autograd keeps besides parameters."""
    torch.manual_seed(3)
    encoder.train()
    encoder.zero_grad()
    parameters, kept = {p.data_ptr() for p in encoder.parameters()}, {}

    def keep(x):
        if x.data_ptr() not in parameters:
            kept[x.data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x), recomputing(wanted):
        states = passes(encoder)
        held = sum(kept.values())
        sum(x.float().pow(2).sum() for x in states).backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}, held


@pytest.mark.parametrize("passes", [full, last, one_way, ernie])
def test_gradients_and_what_is_kept(passes):
    """With dropout: the same numbers are drawn again."""
    if passes is ernie:
        encoder = ErnieEncoder(replace(make_fresh_ernie(12).config, dropout=0.2))
    else:
        encoder = LukeEncoder(replace(make_checkpoint().config, dropout=0.2))
    (plain, all_kept), (again, kept) = (run(encoder, passes, wanted=wanted) for wanted in (False, True))
    assert plain.keys() == again.keys()
    assert all(torch.equal(x, again[name]) for name, x in plain.items())
    assert kept < 0.5 * all_kept
