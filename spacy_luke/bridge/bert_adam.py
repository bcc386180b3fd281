"""Adam without bias correction, as the original BERT, ERNIE and LUKE have it: torch's AdamW always corrects."""

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn

_FAR = 2.0**30  # a step at which nothing is left of the correction; in float32 one more is the same number
_OLD_NAMES = {"mean": "exp_avg", "square": "exp_avg_sq"}  # of the moments in states of versions before 0.3


class BertAdam(torch.optim.AdamW):
    """Adam with decoupled decay and no bias correction (BertAdam of the original's optimization.py): w -= rate * (m /
    (sqrt(v) + eps) + decay * w). It is torch's fused AdamW whose count of steps begins far away. Of a matrix whose
    gradient is sparse, the rows in it alone are moved, and their moments."""

    found_inf: Tensor  # above 0: no step is made, see torch.amp.GradScaler; it need not be there

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float, betas: tuple[float, float], eps: float):
        super().__init__(groups, lr=lr, betas=betas, eps=eps, weight_decay=0.0, fused=True)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        sparse: list[tuple[nn.Parameter, Tensor]] = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not self.state[p]:
                    far = torch.full((), _FAR, dtype=torch.float32, device=p.device)
                    self.state[p] = {"step": far, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
                if p.grad.is_sparse:
                    if not hasattr(self, "found_inf") or not self.found_inf:
                        self._step_rows(p, p.grad.coalesce(), group)
                    sparse.append((p, p.grad))
                    p.grad = None
        result: float | None = super().step(closure)
        for p, gradient in sparse:
            p.grad = gradient
        return result

    def _step_rows(self, p: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        rows, values = gradient.indices()[0], gradient.values()
        beta1, beta2 = group["betas"]
        mean, square = self.state[p]["exp_avg"], self.state[p]["exp_avg_sq"]
        mean[rows] = means = mean[rows].lerp_(values, 1 - beta1)
        square[rows] = squares = square[rows].mul_(beta2).addcmul_(values, values, value=1 - beta2)
        kept = p[rows] * (1 - group["lr"] * group["weight_decay"])
        p[rows] = kept.addcdiv_(means, squares.sqrt_().add_(group["eps"]), value=-group["lr"])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Those of older versions, too."""
        moments = {
            key: {"step": torch.tensor(_FAR), **{_OLD_NAMES.get(name, name): x for name, x in state.items()}}
            for key, state in state_dict["state"].items()
        }
        groups = [{**self.defaults, **group} for group in state_dict["param_groups"]]
        super().load_state_dict({**state_dict, "state": moments, "param_groups": groups})
