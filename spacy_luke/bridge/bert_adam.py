"""Adam without bias correction, as the original BERT, ERNIE and LUKE have it: torch's AdamW always corrects."""

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn


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
