"""int8: exact products, on any chip; encoders near those in float; rows that do not depend on their batch."""

import copy
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from spacy_luke.model import int8
from spacy_luke.model.ernie import ErnieConfig, ErnieEncoder, Knowledge
from spacy_luke.model.int8 import (
    QuantizedEmbedding,
    QuantizedLinear,
    Rows,
    build_quantized,
    in_float,
    multiply_with,
    products_in_float,
    products_with,
    quantize_encoder,
    quantize_once,
    quantize_rows,
)
from spacy_luke.model.luke import LukeEncoder
from tests.model.noise import COUNTS, LENGTHS, add_noise, integers, make_encoder, make_mentions, make_windows, pick

ROOT = Path(__file__).parents[2]
SHAPES = [
    (1, 1, 1),
    (0, 24, 40),
    (7, 3, 5),
    (64, 384, 96),
    (300, 1536, 17),
    (2, 2500, 3),
    (70, 4100, 40),
]  # rows, inputs, outputs


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make_linear(n_in: int, n_out: int, *, bias: bool = True) -> nn.Linear:
    linear = nn.Linear(n_in, n_out, bias=bias)
    with torch.no_grad():
        for i, p in enumerate(linear.parameters()):
            p.copy_(random(*p.shape, seed=i))
    return linear


@pytest.fixture(params=["operator", "fallback"])
def way(request, monkeypatch):
    if request.param == "operator" and not int8.has_exact_operator():
        pytest.skip("this chip's operator is not exact")
    monkeypatch.setattr(int8, "is_operator_best", lambda: request.param == "operator")
    return request.param


# ---- the arithmetic


def numpy_rows(x: np.ndarray) -> tuple:
    top = np.maximum(np.abs(x).max(1, keepdims=True), np.float32(1e-30))
    return np.rint(x * (np.float32(127) / top)).astype(np.int64), top / np.float32(127)


@pytest.mark.parametrize(("n", "k", "m"), [x for x in SHAPES if x[0]])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_a_plain_twin(way, n, k, m, bias):
    """The same numbers from a few lines of NumPy; the sums are exact integers."""
    linear, x = make_linear(k, m, bias=bias), random(n, k, seed=5) * 10 ** random(n, 1, seed=6)
    weight, scale = numpy_rows(linear.weight.numpy())
    values, scales = numpy_rows(x.numpy())
    expected = (values @ weight.T).astype(np.float32) * scale.T * scales
    quantized = QuantizedLinear(linear)
    assert np.array_equal(quantized.weight.numpy(), weight)
    assert np.array_equal(quantize_rows(x).values_NK.numpy(), values)
    assert np.array_equal(quantize_rows(x).scales_N1.numpy(), scales)
    found = quantized(x).numpy()
    assert found.dtype == np.float32
    # one rounding more or less of the scaled sum, by a fused multiplication and addition
    expected = expected + linear.bias.numpy() if bias else expected
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_products_are_exact(way, n, k, m):
    x_NK, weight_MK = integers(n, k), integers(m, k, seed=1)
    product = products_with(weight_MK)(x_NK)
    assert product.dtype == torch.float32
    assert torch.equal(product, (x_NK.long() @ weight_MK.long().t()).float())


@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_the_fallback_equals_the_operator(monkeypatch, n, k, m):
    quantized, x = QuantizedLinear(make_linear(k, m)), random(n, k, seed=3)
    monkeypatch.setattr(int8, "is_operator_best", int8.has_exact_operator)
    expected = quantized(x)
    monkeypatch.setattr(int8, "is_operator_best", lambda: False)
    assert torch.equal(quantized(x), expected)
    x_NK, weight_MK = integers(n, k), integers(m, k)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(products_in_float(in_float(weight_MK))(x_NK), products_with(weight_MK)(x_NK))


def test_rows_of_zeros_and_what_is_not_finite():
    linear = make_linear(8, 4)
    x = random(4, 8)
    x[0], x[1, 3], x[2, 5] = 0, float("nan"), float("inf")
    found = QuantizedLinear(linear)(x)
    assert torch.equal(found[0], linear.bias)
    assert not found[1].isfinite().any()
    assert not found[2].isfinite().any()
    assert torch.equal(found[3:], QuantizedLinear(linear)(x[3:]))


def test_outliers_of_one_row_harm_no_other():
    """A base encoder's activations have single numbers that are hundreds of times larger than the rest."""
    linear, x = make_linear(64, 32), random(10, 64, seed=2)
    x[0, 7] = 1e4
    error = (QuantizedLinear(linear)(x) - linear(x))[1:].abs().max()
    assert error < 0.02 * linear(x)[1:].abs().max()


def test_rows_do_not_depend_on_the_batch(way):
    quantized, x = QuantizedLinear(make_linear(48, 40)), random(700, 48)
    found = quantized(x)
    for some in (slice(0, 1), slice(3, 300), slice(255, 257), slice(699, 700)):
        assert torch.equal(quantized(x[some]), found[some])


def test_what_several_layers_read_is_quantised_once(monkeypatch):
    """Of an encoder's layer: queries, keys and values; the output; up; down."""
    encoder = quantize_encoder(make_encoder(entity_aware=False, num_layers=2))
    count = []
    monkeypatch.setattr(int8, "quantize_rows", lambda x, f=quantize_rows: count.append(len(x)) or f(x))
    with torch.inference_mode():
        encoder.encode_words(make_windows())
    assert count == [sum(LENGTHS)] * 4 * 2


def test_reading_once():
    linear, x = make_linear(8, 4), random(3, 8)
    quantized = QuantizedLinear(linear)
    assert quantize_once(linear, x) is x
    assert isinstance(rows := quantize_once(quantized, x), Rows)
    assert torch.equal(quantized(rows), quantized(x))
    other = random(4, seed=9)
    for one in (linear, quantized):
        assert torch.allclose(multiply_with(one, x, other), one(x) - one.bias + other, atol=1e-5)
        assert torch.allclose(multiply_with(one, x, None), one(x) - one.bias, atol=1e-5)


@pytest.mark.parametrize("steps", [127, 20, 1])
def test_a_table(steps):
    table = nn.Embedding(20, 8)
    quantized, rows = QuantizedEmbedding(table, steps), torch.tensor([3, 0, 19, 3])
    assert quantized.weight.abs().amax(1).eq(steps).all()
    step = table.weight.detach()[rows].abs().amax(1, keepdim=True) / steps
    assert ((quantized(rows) - table(rows)).abs() <= step / 2 * 1.001).all()
    assert quantized(rows[:0]).shape == (0, 8)


# ---- encoders


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def luke_states(encoder: LukeEncoder, mode: str, windows=None, mentions=None) -> torch.Tensor:
    windows, mentions = windows or make_windows(), mentions or make_mentions()
    with torch.inference_mode():
        if mode == "full":
            return torch.cat(encoder(windows, mentions))
        if mode == "full, entities alone":
            return encoder.entity_states(windows, mentions)
        words = encoder.encode_words(windows)
        together = None if mode == "one_way, together" else 1
        return torch.cat([words.states_ND, encoder.encode_entities(words, mentions, group_size=together)])


MODES = ("full", "full, entities alone", "one_way", "one_way, together")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity_aware", [True, False])
def test_luke_encoders_are_near_those_in_float(way, mode, entity_aware):
    encoder = make_encoder(entity_aware=entity_aware, hidden_size=64, intermediate_size=128)
    expected = luke_states(encoder, mode)
    found = luke_states(quantize_encoder(copy.deepcopy(encoder)), mode)
    assert 0 < relative(found, expected) < 0.05


def test_ernie_encoders_are_near_those_in_float(way):
    for fusion in ("code", "paper"):
        sizes = {"hidden_size": 24, "num_layers": 3, "num_heads": 4, "intermediate_size": 40, "max_positions": 40}
        entities = {"entity_size": 12, "entity_heads": 3, "layer_kinds": ("sim", "mix", "norm"), "fusion": fusion}
        encoder = add_noise(ErnieEncoder(ErnieConfig(vocab_size=50, **sizes, **entities)))
        counts = [min(n - 1, 3) for n in LENGTHS]
        places = torch.cat([torch.arange(1, count + 1) for count in counts])
        windows, knowledge = make_windows(), Knowledge(random(sum(counts), 12), places, counts)
        with torch.inference_mode():
            expected = encoder(windows, knowledge)
            found = quantize_encoder(copy.deepcopy(encoder))(windows, knowledge)
        for one, other in zip(found, expected, strict=True):
            assert 0 < relative(one, other) < 0.1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entity_aware", [True, False])
def test_windows_do_not_depend_on_the_batch(mode, entity_aware):
    """Each window alone, and with others beside it, also where these have many entities (in float, few are attended to
    in another way)."""
    encoder = quantize_encoder(make_encoder(entity_aware=entity_aware, hidden_size=64, intermediate_size=128))
    windows, mentions = make_windows(), make_mentions()
    whole = luke_states(encoder, mode, windows, mentions)
    float_noise = 5e-3  # where a number lies between two integers, float32's last bit decides
    n_words = 0 if mode.endswith("alone") else sum(LENGTHS)
    words = whole[:n_words].split(list(LENGTHS)) if n_words else [whole[:0]] * len(LENGTHS)
    entities = whole[n_words:].split(list(COUNTS))
    for i in range(len(LENGTHS)):
        alone = luke_states(encoder, mode, *pick(windows, mentions, [i]))
        expected = torch.cat([words[i], entities[i]])
        assert torch.allclose(alone, expected, atol=float_noise * float(whole.abs().max())), i


def test_what_is_quantised():
    encoder = quantize_encoder(make_encoder())
    kinds = {name: str(x.dtype).removeprefix("torch.") for name, x in encoder.state_dict().items()}
    small = {name for name, kind in kinds.items() if kind == "int8"}
    parts = ("query", "w2e_query", "e2w_query", "e2e_query", "key", "value", "output")
    layer = {f"attention.{part}.weight" for part in parts} | {"up.weight", "down.weight"}
    assert small == {f"layers.{i}.{name}" for i in range(3) for name in layer} | {"words.piece.weight"}
    assert set(kinds.values()) == {"int8", "float32"}
    assert not any(p.requires_grad for p in encoder.parameters())


def test_built_without_float(monkeypatch):
    encoder = quantize_encoder(make_encoder())
    monkeypatch.setattr(int8, "ROWS", 16)
    empty = build_quantized(lambda: LukeEncoder(encoder.config))
    empty.load_state_dict(encoder.state_dict(), strict=True)
    assert torch.equal(luke_states(empty.eval(), "full"), luke_states(encoder, "full"))
    assert torch.equal(luke_states(copy.deepcopy(empty), "one_way"), luke_states(encoder, "one_way"))


@pytest.mark.slow
def test_building_is_quick():
    """Shapes without numbers need nothing of torch's compiler, whose import takes longer than all else."""
    code = """
        import sys
        from spacy_luke.model.int8 import build_quantized
        from spacy_luke.model.luke import LukeEncoder
        from tests.model.noise import make_encoder
        config = make_encoder().config
        build_quantized(lambda: LukeEncoder(config))
        print("sympy" in sys.modules, "torch._dynamo" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == ["False", "False"]


def test_threads():
    encoder = quantize_encoder(make_encoder())
    expected, found = luke_states(encoder, "one_way"), []

    def work() -> None:
        found.extend(luke_states(encoder, "one_way") for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(torch.equal(x, expected) for x in found)


def test_threads_of_torch():
    quantized, x, before = QuantizedLinear(make_linear(384, 384)), random(600, 384), torch.get_num_threads()
    results = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            results.append(quantized(x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
