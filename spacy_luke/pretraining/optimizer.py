"""The optimizer's steps of the pretraining loop, in torch alone: the rate as a function of the step, Adam as the
original BERT's, without bias correction, frozen parameters, and clipping of sparse gradients too.

`spacy_luke.bridge.optimizer` is the optimizer of spaCy's training, with Thinc's schedules.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor, nn

from ..model.parameter_groups import find_rate, group_parameters

SCHEDULES = ("constant", "linear")


@dataclass(frozen=True)
class OptimizerSettings:
    """learn_rate: the highest; schedule: after warmup_steps of linear rise it stays ("constant", ERNIE's fp16 path) or
    falls linearly to nothing at the last step ("linear", as BERT).

    bias_correction: False for Adam as in BERT and ERNIE. group_rates: multiples of the rate by regular expression of
    the parameter's name, the first that is found counts. frozen: regular expressions of names that stay as they are.
    """

    learn_rate: float = 5e-5
    schedule: str = "constant"
    warmup_steps: int = 0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    bias_correction: bool = False
    group_rates: dict[str, float] | None = None
    frozen: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {SCHEDULES}, but it is {self.schedule!r}.")
        if self.learn_rate <= 0 or self.warmup_steps < 0 or self.grad_clip < 0:
            raise ValueError(
                "Expected learn_rate above 0, warmup_steps and grad_clip from 0, but got "
                f"{self.learn_rate}, {self.warmup_steps} and {self.grad_clip}."
            )

    def rate(self, step: int, max_steps: int) -> float:
        """The learning rate of a step, counted from 0; the first is not 0, unlike the original's."""
        if step < self.warmup_steps:
            return self.learn_rate * (step + 1) / self.warmup_steps
        if self.schedule == "constant":
            return self.learn_rate
        return self.learn_rate * (max_steps - step) / max(1, max_steps - self.warmup_steps)


class BertAdam(torch.optim.Optimizer):
    """Adam with decoupled decay and no bias correction (BertAdam of the original's optimization.py): w -= rate * (m /
    (sqrt(v) + eps) + decay * w). Of a matrix whose gradient is sparse, the rows in it alone are moved, and their
    moments."""

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moved = [(p, p.grad) for p in group["params"] if p.grad is not None]
            for p, gradient in moved:
                if not self.state[p]:
                    self.state[p] = {"mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
                if gradient.is_sparse:
                    self._step_rows(p, gradient.coalesce(), group)
            dense = [(p, gradient) for p, gradient in moved if not gradient.is_sparse]
            if not dense:
                continue
            parameters, gradients = (list(x) for x in zip(*dense, strict=True))
            means = [self.state[p]["mean"] for p in parameters]
            squares = [self.state[p]["square"] for p in parameters]
            beta1, beta2 = group["betas"]
            torch._foreach_lerp_(means, gradients, 1 - beta1)
            torch._foreach_mul_(squares, beta2)
            torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, group["eps"])
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_addcdiv_(parameters, means, roots, -group["lr"])
        return loss

    def _step_rows(self, p: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        rows, values = gradient.indices()[0], gradient.values()
        beta1, beta2 = group["betas"]
        mean, square = self.state[p]["mean"], self.state[p]["square"]
        mean[rows] = means = mean[rows].lerp_(values, 1 - beta1)
        square[rows] = squares = square[rows].mul_(beta2).addcmul_(values, values, value=1 - beta2)
        kept = p[rows] * (1 - group["lr"] * group["weight_decay"])
        p[rows] = kept.addcdiv_(means, squares.sqrt_().add_(group["eps"]), value=-group["lr"])


def clip_gradients(model: nn.Module, most: float) -> Tensor:
    """Scale all gradients so that their norm is at most `most`, 0: as they are. RETURNS: the norm before."""
    gradients = {p: p.grad for p in model.parameters() if p.requires_grad and p.grad is not None}
    sparse = [p for p, gradient in gradients.items() if gradient.is_sparse]
    if not sparse:
        norm: Tensor = nn.utils.clip_grad_norm_(gradients, most or torch.inf)
        if hasattr(norm, "full_tensor"):  # of parameters that are divided
            norm = norm.full_tensor()
        return norm
    for p in sparse:
        p.grad = gradients[p] = gradients[p].coalesce()  # each row once
    dense = nn.utils.clip_grad_norm_([p for p, gradient in gradients.items() if not gradient.is_sparse], torch.inf)
    norm = torch.stack([dense, *(gradients[p].values().norm() for p in sparse)]).norm()
    if most:
        for gradient in gradients.values():
            gradient.mul_((most / (norm + 1e-6)).clamp(max=1.0))
    return norm


def freeze(model: nn.Module, settings: OptimizerSettings) -> None:
    """Parameters that are frozen take no gradient any more, the others do."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(re.search(pattern, name) for pattern in settings.frozen))


def make_stepper(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """Groups of one multiple of the rate and one decay: none of biases and LayerNorms (the project's rule). Parameters
    that are frozen are not in it."""
    freeze(model, settings)
    rates = settings.group_rates or {}
    names = [name for name, _ in model.named_parameters()]
    unused = [x for x in {*rates, *settings.frozen} if not any(re.search(x, name) for name in names)]
    if unused:
        raise ValueError(f"No parameter has a name that {sorted(unused)} finds; names are like {names[0]}.")
    groups = group_parameters(
        ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad),
        multiple=lambda name: find_rate(rates.items(), name),
        weight_decay=settings.weight_decay,
    )
    betas = (settings.beta1, settings.beta2)
    if settings.bias_correction:
        return torch.optim.AdamW(groups, lr=settings.learn_rate, betas=betas, eps=settings.eps, fused=True)
    return BertAdam(groups, lr=settings.learn_rate, betas=betas, eps=settings.eps)
