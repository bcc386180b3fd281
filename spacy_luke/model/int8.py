"""An encoder in int8, for predictions on CPUs: products of integers, and everything around them in float32. A GPU,
whose products of floats are fast, multiplies with the numbers that the weights of int8 stand for.

N rows, K inputs, M outputs of a linear layer; V rows of a table, D their width.
Weights have one scale for each output, activations one for each row, found anew in every pass (LLM.int8(), Dettmers et
al., NeurIPS 2022, section 2.1: "vector-wise"); both are symmetric, from -127 to 127. LayerNorms, softmaxes,
activations, residuals and sums of embeddings stay in float32. So a row's result does not depend on its batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .linear import is_clearly_faster
from .linear import multiply as linear_of

LARGEST = 127
ROWS = 256  # at once, of each thread
_EXACT_TERMS = 1024  # products of two int8 whose sum float32 holds exactly: 1024 * 127 * 127 < 2 ** 24
# A plain loop is 25 to 30 times slower than float32. Of few rows, which are measured, oneDNN's product may be slower
# too, and is the faster one of many.
_FAR_FASTER = 4.0
NUMBERS = "numbers"  # setting of an encoder: the format of its weights, float32 where it is not there
INT8 = "int8"
NOT_TRAINED = (
    "This pipeline's encoder is int8 (`spacy luke quantize`): it predicts, but cannot be trained or exported. Use the "
    "pipeline that it was quantised from, or what `spacy luke dequantize` makes of it, and quantise the result again; "
    'or let new components learn on it as it is: frozen_components = ["luke_encoder"] in [training].'
)


AnyEncoder = TypeVar("AnyEncoder", bound=nn.Module)


class Rows(NamedTuple):
    """Activations as the products read them: integers (N, K) and the scale of each row (N, 1)."""

    values_NK: Tensor
    scales_N1: Tensor


Inputs = Tensor | Rows  # of a linear layer


def quantize_rows(x_NK: Tensor, largest: int = LARGEST) -> Rows:
    """Each row by its own scale: x is about values * scales, and values from -largest to largest. What is not
    finite stays so in the products."""
    values_NK = torch.empty(x_NK.shape, dtype=torch.int8, device=x_NK.device)
    scales_N1 = torch.empty(len(x_NK), 1, dtype=torch.float32, device=x_NK.device)
    if x_NK.is_meta:  # no numbers, only shapes
        return Rows(values_NK, scales_N1)
    for x, values, scales in _in_parts(x_NK, values_NK, scales_N1):
        x = x.float()
        # Two reductions are faster than one of absolute values; rows of zeros get a scale that divides.
        top = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True)).clamp(min=1e-30)
        values.copy_((x * (largest / top)).round_())
        torch.div(top, largest, out=scales)
    return Rows(values_NK, scales_N1)


def _in_parts(*matrices: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """So few rows of each at once that what is made of them stays in the caches, and so many that threads seldom wait
    for one another: each operator does, which costs most where other programs have some of the cores."""
    return zip(*(x.split(rows_at_once()) for x in matrices), strict=True)


def rows_at_once() -> int:
    return ROWS * torch.get_num_threads()


def quantize_once(linear: nn.Module, x_NK: Tensor) -> Inputs:
    """x as `linear` and those beside it, which read the same, take it: quantised once for all where they are int8."""
    return quantize_rows(x_NK) if isinstance(linear, QuantizedLinear) and linear.takes_integers else x_NK


def products_with(weight_MK: Tensor, floats: Callable[[], list[Tensor]] | None = None) -> Callable[[Tensor], Tensor]:
    """The function that multiplies int8 rows (N, K) with a weight: (N, M), the exact sums of integers, rounded once to
    float32. floats: gives `in_float` of the weight, where it may have been made before."""
    if weight_MK.device.type == "cpu" and is_operator_best():
        weight_KM = weight_MK.t()
        return lambda x_NK: torch._int_mm(x_NK, weight_KM).to(torch.float32)
    return products_in_float(in_float(weight_MK) if floats is None else floats())


def in_float(weight_MK: Tensor) -> list[Tensor]:
    """A weight of int8 in float32, in parts (M, K') of so many terms that float32 holds their sums exactly."""
    return [weight.float() for weight in weight_MK.split(_EXACT_TERMS, 1)]


def products_in_float(weights: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
    """As `products_with`, everywhere: the sum of two exact sums is rounded once; more are added up as integers.
    weights: of `in_float`."""

    def multiply(x_NK: Tensor) -> Tensor:
        with torch.autocast(x_NK.device.type, enabled=False):
            parts = zip(x_NK.split(_EXACT_TERMS, 1), weights, strict=True)
            sums = [linear_of(x.float(), weight, None) for x, weight in parts]
        if len(sums) > 2:
            return torch.stack([x.to(torch.int32) for x in sums]).sum(0, dtype=torch.int32).to(torch.float32)
        return sums[0] if len(sums) == 1 else sums[0].add_(sums[1])

    return multiply


@cache
def is_operator_best() -> bool:
    """Whether torch's operator gives the exact product on this chip, and float32 is not far faster. Where oneDNN
    has no kernels for the chip, for want of AVX512-VNNI, the operator is a plain loop: 30 times slower than float32 on
    an AMD EPYC with AVX2."""
    return has_exact_operator() and not _is_float_faster()


@torch.no_grad()
def _is_float_faster() -> bool:
    x_NK, weight_MK = (torch.ones(shape, dtype=torch.int8, device="cpu") for shape in ((32, 384), (384, 384)))
    by_float, weight_KM = products_in_float(in_float(weight_MK)), weight_MK.t()
    return is_clearly_faster(lambda: by_float(x_NK), lambda: torch._int_mm(x_NK, weight_KM), gain=_FAR_FASTER)


@cache
def has_exact_operator() -> bool:
    """Whether torch's operator gives the exact product on this chip: without VNNI instructions oneDNN's kernels add
    pairs of products in 16 bits, which saturate. See `is_operator_best`."""
    operator = getattr(torch, "_int_mm", None)
    if operator is None or not torch.backends.mkldnn.is_available():
        return False
    generator = torch.Generator().manual_seed(0)
    for n, k, m in ((1, 3, 5), (17, 100, 33), (64, 384, 64)):
        x_NK, weight_MK = (torch.randint(0, 2, (rows, k), generator=generator) * 254 - 127 for rows in (n, m))
        x_NK[0], weight_MK[0], weight_MK[-1] = LARGEST, LARGEST, -LARGEST  # the largest sums that there are
        try:
            found = operator(x_NK.to(torch.int8), weight_MK.to(torch.int8).t())
        except RuntimeError:
            return False
        if not torch.equal(found.long(), x_NK @ weight_MK.t()):
            return False
    return True


class _Floats(NamedTuple):
    """A weight in float, and of which weight: where its numbers are, how often they were changed, and the numbers asked
    for. weights: the integers in parts, as `in_float` makes them, or, on a GPU, what they stand for."""

    of: tuple[int, int, torch.dtype]
    weights: list[Tensor]


class QuantizedLinear(nn.Module):
    """A linear layer whose weight is int8, with one scale for each output.

    Where torch's operator is not the best one, and on a GPU, the weight is also held in float32: making that anew takes
    longer than the products of a sentence.
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight_MK, scale_M1 = quantize_rows(linear.weight.detach())
        self.weight = _fixed(weight_MK)
        self.scale = _fixed(scale_M1.squeeze(1))
        self.bias = None if linear.bias is None else _fixed(linear.bias.detach().float())
        self._floats: _Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_floats": None}  # copies make their own

    @property
    def takes_integers(self) -> bool:
        """Whether activations are quantised too."""
        return self.weight.device.type in ("cpu", "meta")

    def _in_float(self) -> list[Tensor]:
        """The weight in float, held where changes of the weight can be seen."""
        kind, dtype = self.weight.device.type, torch.float32
        if not self.takes_integers and torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
        if self.weight.is_inference():
            return self._as_floats(dtype)
        of = self.weight.data_ptr(), self.weight._version, dtype
        floats = self._floats  # read once: threads may replace it
        if floats is None or floats.of != of:
            self._floats = floats = _Floats(of, self._as_floats(dtype))
        return floats.weights

    def _as_floats(self, dtype: torch.dtype) -> list[Tensor]:
        weight_MK = self.weight.detach()
        return in_float(weight_MK) if self.takes_integers else [_in_float(weight_MK, self.scale.detach()).to(dtype)]

    def forward(self, x: Inputs) -> Tensor:
        """x: (N, K), or its rows quantised already. RETURNS: (N, M), float32; on a GPU as autocast says."""
        return self.multiply(x, self.bias)

    def multiply(self, x: Inputs, bias_M: Tensor | None) -> Tensor:
        """`forward` with another bias."""
        if isinstance(x, Tensor) and not self.takes_integers:
            return linear_of(x, self._in_float()[0], bias_M)
        values_NK, scales_N1 = x if isinstance(x, Rows) else quantize_rows(x)
        out_NM = scales_N1.new_empty(len(values_NK), len(self.weight))
        multiply = products_with(self.weight, self._in_float)
        for values, scales, out in _in_parts(values_NK, scales_N1, out_NM):
            product = multiply(values).mul_(self.scale)
            if bias_M is None:
                torch.mul(product, scales, out=out)
            else:
                torch.addcmul(bias_M, product, scales, out=out)
        return out_NM


class QuantizedEmbedding(nn.Module):
    """A table whose rows are int8, with one scale for each row. steps: from 0 to the largest number of a row; with
    fewer than a byte holds a zip, such as a wheel, is smaller."""

    def __init__(self, embedding: nn.Embedding, steps: int = LARGEST):
        super().__init__()
        weight_VD, scale_V1 = quantize_rows(embedding.weight.detach(), steps)
        self.weight = _fixed(weight_VD)
        self.scale = _fixed(scale_V1)

    def forward(self, rows_N: Tensor) -> Tensor:
        """RETURNS: (N, D), float32."""
        return self.weight.index_select(0, rows_N).to(torch.float32).mul_(self.scale.index_select(0, rows_N))


def multiply_with(linear: nn.Module, x_NK: Tensor, bias_M: Tensor | None) -> Tensor:
    """What a linear layer, of either kind, gives with another bias: (N, M)."""
    if isinstance(linear, QuantizedLinear):
        return linear.multiply(x_NK, bias_M)
    assert isinstance(linear, nn.Linear)
    return linear_of(x_NK, linear.weight, bias_M)


def _fixed(x: Tensor) -> nn.Parameter:
    return nn.Parameter(x, requires_grad=False)


def quantize_encoder(encoder: AnyEncoder, piece_steps: int = LARGEST) -> AnyEncoder:
    """Put int8 in the place of the linear layers of a LUKE or ERNIE encoder's layers, and of its table of pieces, which
    has `piece_steps`, see `QuantizedEmbedding`. Its other parameters stay as they are, and are not trained any more.
    RETURNS: the encoder itself."""
    for part in [encoder.get_submodule("words"), *encoder.get_submodule("layers").modules()]:
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear):
                setattr(part, name, QuantizedLinear(child))
            elif name == "piece" and isinstance(child, nn.Embedding):
                setattr(part, name, QuantizedEmbedding(child, piece_steps))
    return encoder.requires_grad_(False).eval()


def float_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parameters of an encoder in float, of those of `quantize_encoder`, by their names: the numbers that int8 stands
    for, which differ from those before it by its rounding."""
    scales = {f"{name.removesuffix('.weight')}.scale" for name, x in tensors.items() if x.dtype == torch.int8}
    return {
        name: _in_float(x, tensors[f"{name.removesuffix('.weight')}.scale"]) if x.dtype == torch.int8 else x
        for name, x in tensors.items()
        if name not in scales
    }


def _in_float(values_NK: Tensor, scale: Tensor) -> Tensor:
    """scale: of each row, (N,) or (N, 1)."""
    return values_NK.float() * scale.reshape(-1, 1)


class _Unfilled(TorchFunctionMode):
    """Parameters of new modules get no numbers. On the meta device these would cost seconds: torch's own random numbers
    for it import its compiler."""

    fills = frozenset(
        getattr(owner, name)
        for owner, names in (
            (Tensor, ("normal_", "uniform_", "fill_", "zero_")),
            (nn.init, ("normal_", "uniform_", "kaiming_uniform_")),
        )
        for name in names
    )

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self.fills:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def build_quantized(build: Callable[[], AnyEncoder]) -> AnyEncoder:
    """An encoder whose parameters are still to be filled, and which never was in float."""
    with torch.device("meta"), _Unfilled():
        encoder = build()
    assert not list(encoder.buffers())
    for module in quantize_encoder(encoder).modules():  # module.to_empty imports torch's compiler too
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, _fixed(torch.empty(parameter.shape, dtype=parameter.dtype)))
    return encoder
