"""The number format is asked of the chip."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model import precision
from spacy_luke.model.attention import Attention
from spacy_luke.model.packing import pack
from spacy_luke.model.precision import choose_precision, has_bfloat16

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def pretend_cpu(monkeypatch, *, amx: bool, avx512: bool, faster: bool = True) -> None:
    monkeypatch.setattr("spacy_luke.model.precision._is_faster_on_cpu", lambda: faster)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512, raising=False)


@pytest.mark.parametrize(("amx", "avx512"), [(True, False), (False, True), (True, True), (False, False)])
def test_auto_asks_the_cpu(monkeypatch, amx, avx512):
    pretend_cpu(monkeypatch, amx=amx, avx512=avx512)
    assert has_bfloat16(CPU) == (amx or avx512)
    assert choose_precision("auto", CPU) == (torch.bfloat16 if amx or avx512 else torch.float32)


def test_auto_is_float32_where_its_instructions_are_slow(monkeypatch):
    pretend_cpu(monkeypatch, amx=False, avx512=True, faster=False)
    assert choose_precision("auto", CPU) == torch.float32
    assert choose_precision("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize(("half", "whole", "expected"), [(1.0, 1.4, True), (1.0, 1.2, False), (1.6, 1.0, False)])
def test_what_is_faster_is_measured(monkeypatch, half, whole, expected):
    """By the shortest of several turns; the products are those of both formats."""
    seconds = {torch.bfloat16: half, torch.float32: whole}
    now, plain = [0.0], F.linear

    def multiply(x, weight):
        now[0] += seconds[x.dtype] * (1 if len(asked) else 50)  # a first call makes code
        asked.append(x.dtype)
        return plain(x, weight)

    asked = []
    monkeypatch.setattr("spacy_luke.model.precision.F.linear", multiply)
    monkeypatch.setattr("spacy_luke.model.linear.clock", lambda: now[0])
    assert precision._is_faster_on_cpu.__wrapped__() == expected
    assert set(asked) == {torch.bfloat16, torch.float32}


def test_a_torch_that_cannot_say_means_no(monkeypatch):
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    assert choose_precision("auto", CPU) == torch.float32


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_auto_asks_the_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_bfloat16(GPU) == expected


def test_named_formats_are_not_asked_for(monkeypatch):
    pretend_cpu(monkeypatch, amx=True, avx512=True)
    assert choose_precision("float32", CPU) == torch.float32
    pretend_cpu(monkeypatch, amx=False, avx512=False)
    assert choose_precision("bfloat16", CPU) == torch.bfloat16
    assert not has_bfloat16(torch.device("meta"))


def test_unknown_format():
    with pytest.raises(ValueError, match=r"precision must be one of .* but it is 'float16'"):
        choose_precision("float16", CPU)


def test_queries_keys_and_values_share_a_cast():
    """Without gradients; with them each is cast by itself, so that theirs are summed in float32."""
    torch.manual_seed(0)
    attention = Attention(32, 2, entity_aware=False, dropout=0.0)
    given = []
    for part in (attention.query, attention.key, attention.value):
        part.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    x_ND = torch.randn(5, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        trained = attention.words_only(x_ND, pack([5], device=CPU))[0]
        assert all(x is x_ND for x in given)
        given.clear()
        with torch.no_grad():
            predicted = attention.words_only(x_ND, pack([5], device=CPU))[0]
    assert len(given) == 3
    assert all(x is given[0] and x.dtype == torch.bfloat16 for x in given)
    torch.testing.assert_close(predicted, trained.detach(), atol=2e-2, rtol=2e-2)
