"""The CPU kernel that gives log-sums is used where its results are right, and nowhere else."""

import pytest
import torch

from spacy_luke.model import attention_cpu
from spacy_luke.model.packing import pack_pairs
from tests.model.attentions import CPU, make


@pytest.fixture(autouse=True)
def looked_at_again():
    attention_cpu.is_kernel_right.cache_clear()
    yield
    attention_cpu.is_kernel_right.cache_clear()


def test_this_torch_has_it():
    assert attention_cpu.is_kernel_right()


def _scores(q, k, added):
    return q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5 + (0 if added is None else added.float())


def _in_base_two(q, k, v, added=None):
    scores = _scores(q, k, added)
    return (scores.softmax(-1) @ v.float()).to(q.dtype), scores.logsumexp(-1) / torch.tensor(2.0).log()


def _other_shape(q, k, v, added=None):
    scores = _scores(q, k, added)
    return (scores.softmax(-1) @ v.float()).to(q.dtype), scores.logsumexp(-1)[..., None]


def _ignores_what_is_added(q, k, v, added=None):
    scores = _scores(q, k, None)
    return (scores.softmax(-1) @ v.float()).to(q.dtype), scores.logsumexp(-1)


def _no_number(q, k, v, added=None):
    return torch.full_like(q, torch.nan), q.sum(-1)


def _other_signature(q, k, v, added=None):
    raise RuntimeError("expected 4 arguments")


@pytest.mark.parametrize(
    "kernel", [_in_base_two, _other_shape, _ignores_what_is_added, _no_number, _other_signature, None]
)
def test_another_kernel_is_not_used(monkeypatch, kernel):
    """One with other results, one that is called otherwise, and none: attention is what it was."""
    attention, words, entities, lengths, counts = make("ragged", True)
    packing = pack_pairs(lengths, counts, device=CPU)
    with torch.no_grad():
        wanted = attention(words, entities, packing)
    if kernel is None:
        monkeypatch.setattr(attention_cpu, "KERNEL", "_no_such_operator")
    else:
        monkeypatch.setattr(attention_cpu, "attend_fused", kernel)
    attention_cpu.is_kernel_right.cache_clear()
    with torch.no_grad():
        assert not attention_cpu.has_log_sums(words)
        found = attention(words, entities, packing)
    for x, y in zip(found, wanted, strict=True):
        torch.testing.assert_close(x, y, atol=1e-12, rtol=0)


def test_it_is_looked_at_once_and_draws_nothing():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with torch.autocast("cpu", torch.bfloat16):
        assert attention_cpu.is_kernel_right()
        assert attention_cpu.is_kernel_right()
    assert attention_cpu.is_kernel_right.cache_info().misses == 1
    assert torch.equal(torch.get_rng_state(), state)
