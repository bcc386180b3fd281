"""Words that see the words near them, in blocks, as by a mask over the whole window."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.model.near import BLOCK_PIECES, attend_blocks, plan_blocks

CPU = torch.device("cpu")
HEADS, WIDTH = 2, 4


def heads(size, seed):
    return torch.randn(size, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed))


def by_a_mask(q, k, v, lengths, reach):
    out = []
    for q_L, k_L, v_L in zip(*(x.split(lengths) for x in (q, k, v))):
        scores = torch.einsum("ihk,jhk->hij", q_L, k_L) / WIDTH**0.5
        places = torch.arange(len(q_L))
        far = (places[:, None] - places).abs() > reach
        out.append(torch.einsum("hij,jhk->ihk", scores.masked_fill(far, float("-inf")).softmax(-1), v_L).flatten(1))
    return torch.cat(out)


@given(
    lengths=st.lists(st.one_of(st.integers(1, 12), st.integers(50, 3 * BLOCK_PIECES)), min_size=1, max_size=5),
    reach=st.integers(0, 70),
)
def test_equals_a_mask(lengths, reach):
    q, k, v = (heads(sum(lengths), seed) for seed in range(3))
    blocks = plan_blocks(lengths, reach=reach, device=CPU)
    torch.testing.assert_close(
        attend_blocks(q, k, v, blocks, rate=0.0), by_a_mask(q, k, v, lengths, reach), atol=1e-5, rtol=1e-5
    )


def test_gradients_equal_those_of_a_mask():
    lengths, reach, found = [150, 7, 9, 80], 6, []
    for attend in (lambda *x: attend_blocks(*x, plan_blocks(lengths, reach=reach, device=CPU), rate=0.0), by_a_mask):
        given_ = [heads(sum(lengths), seed).requires_grad_() for seed in range(3)]
        out = attend(*given_) if attend is not by_a_mask else by_a_mask(*given_, lengths, reach)
        out.square().sum().backward()
        found.append([x.grad for x in given_])
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("length", [2 * BLOCK_PIECES, 16 * BLOCK_PIECES, 128 * BLOCK_PIECES])
def test_cost_grows_with_the_window(length):
    """Pairs of pieces that are computed, padding included."""
    blocks = plan_blocks([length], reach=64, device=CPU)
    assert sum(n * s * seen for n, s, seen in (call.shape for call in blocks.calls)) <= length * (BLOCK_PIECES + 2 * 64)


def test_windows_in_which_all_see_all_are_whole():
    blocks = plan_blocks([5, 5, 3, 65], reach=64, device=CPU)
    assert sorted(call.shape for call in blocks.calls) == [(1, 3, 3), (1, 65, 65), (2, 5, 5)]
    assert all(call.seen_nSL is None for call in blocks.calls)
