"""AdamW as the papers use it, inside a spaCy config: `[training.optimizer] @optimizers = "spacy-luke.AdamW.v1"`.

Thinc's Adam has one rate for all, clips each matrix by itself and decays biases and LayerNorms; torch's AdamW does the
work here, and Thinc's schedules set its rate.
"""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from spacy.util import registry
from thinc.api import Ops, Optimizer, get_current_ops
from thinc.types import FloatsXd, Generator
from torch import nn

from ..model.parameter_groups import find_rate, group_parameters
from .arrays import from_xp
from .bert_adam import BertAdam
from .finite import check_gradient

ThincKey = tuple[int, str]  # of a node and its parameter, as Thinc knows it in this process


class AdamW(Optimizer):
    """A Thinc optimizer that steps torch parameters with torch.optim.AdamW, and other components' with Thinc's Adam.

    bias_correction: False for BertAdam in the place of AdamW; Thinc's Adam then corrects nothing either.
    group_rates: multiples of the learning rate by regular expression of the parameter's name, the first that is found
    counts; names of spaCy's components are W, b and the like. layer_decay: each encoder layer learns at this share of
    the rate of the layer above it.
    """

    def __init__(
        self,
        learn_rate: float | list[float] | Generator,
        *,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        grad_clip: float,
        group_rates: dict[str, float],
        layer_decay: float,
        bias_correction: bool = True,
    ):
        super().__init__(
            learn_rate, beta1=beta1, beta2=beta2, eps=eps, L2=weight_decay, grad_clip=grad_clip, use_averages=False
        )
        if quoted := [pattern for pattern in group_rates if '"' in pattern]:
            raise ValueError(
                f"group_rates has the patterns {quoted} with quotation marks, which no parameter's name holds. In a "
                "config keys stand without quotation marks: ^head = 5.0"
            )
        self.group_rates = {re.compile(pattern): rate for pattern, rate in group_rates.items()}
        self.layer_decay = layer_decay
        self.bias_correction = bias_correction
        self.steppers: dict[str, torch.optim.AdamW | BertAdam] = {}
        self.loaded: dict[str, Any] = {}
        self.taken: dict[str, int] = {}  # steps of each owner
        self.schedule_steps = 0
        self.step_warned = False

    def step_schedules(self) -> None:
        self.schedule_steps += 1
        super().step_schedules()  # type: ignore[no-untyped-call]

    def __call__(
        self, key: ThincKey, weights: FloatsXd, gradient: FloatsXd, *, lr_scale: float = 1.0
    ) -> tuple[FloatsXd, FloatsXd]:
        self._check_schedule(self.nr_update[key])
        scale = lr_scale * self.group_rate(str(key[1]))
        stepped: tuple[FloatsXd, FloatsXd] = super().__call__(key, weights, gradient, lr_scale=scale)
        return stepped

    def _adam(
        self, ops: Ops, weights: FloatsXd, gradient: FloatsXd, lr_scale: float, key: ThincKey, nr_upd: int
    ) -> tuple[FloatsXd, FloatsXd]:
        """Thinc's step, whose rate has the correction of biases in it; here it may be taken out again."""
        if not self.bias_correction:
            lr_scale *= (1 - self.b1**nr_upd) / (1 - self.b2**nr_upd) ** 0.5
        moved: tuple[FloatsXd, FloatsXd]
        moved = super()._adam(ops, weights, gradient, lr_scale, key, nr_upd)  # type: ignore[no-untyped-call]
        return moved

    def step(self, key: str, parameters: list[tuple[str, nn.Parameter]], *, again: bool = False) -> None:
        """One step of the parameters that have gradients, which are then dropped, also where it ends in an error.

        key: names the owner of the parameters (a component), also when the state is saved. again: it may make several
        steps in one update. Raises ValueError, before the step, where the norm that is clipped is no number.
        """
        parameters = [(name, p) for name, p in parameters if p.requires_grad]
        if not any(p.grad is not None for _, p in parameters):
            return
        if not again:
            self._check_schedule(self.taken.get(key, 0))
        stepper = self._stepper(key, parameters)
        try:
            if self.grad_clip:
                norm = float(nn.utils.clip_grad_norm_([p for _, p in parameters], self.grad_clip))
                check_gradient(norm, name=key, steps=lambda: self.taken.get(key, 0))
            for group in stepper.param_groups:
                group["lr"] = self.learn_rate * group["multiple"]
            stepper.step()
        finally:
            stepper.zero_grad(set_to_none=True)
        self.taken[key] = self.taken.get(key, 0) + 1
        for _, p in parameters:
            torch.autograd.graph.increment_version(p)  # the fused step hides the change from who looks (see WordCache)

    def _check_schedule(self, taken: int) -> None:
        """Warn, once, of updates by a program that leaves the rate at the 0 with which its schedule begins. taken:
        steps of an owner before this one."""
        if taken == 1 and self.schedule_steps == 0 and self.learn_rate == 0 and not self.step_warned:
            self.step_warned = True
            warnings.warn(
                "The learning rate is still 0 at the second update, so that nothing is learned: its schedule begins "
                "with 0 and was not stepped. Call optimizer.step_schedules() after each nlp.update, or give nlp.update "
                "an optimizer with a rate of its own, such as sgd=thinc.api.Adam(1e-4).",
                stacklevel=3,
            )

    def _stepper(self, key: str, parameters: list[tuple[str, nn.Parameter]]) -> torch.optim.AdamW | BertAdam:
        stepper = self.steppers.get(key)
        known = [] if stepper is None else [p for group in stepper.param_groups for p in group["params"]]
        if stepper is None or {id(p) for p in known} != {id(p) for _, p in parameters}:
            depth = max((_layer(name) for name, _ in parameters), default=-1) + 1
            groups = group_parameters(
                parameters, multiple=lambda name: self.multiple(name, depth), weight_decay=self.L2
            )
            old = stepper
            rate, betas = self.learn_rate, (self.b1, self.b2)
            if self.bias_correction:
                stepper = torch.optim.AdamW(groups, lr=rate, betas=betas, eps=self.eps, fused=True)
            else:
                stepper = BertAdam(groups, lr=rate, betas=betas, eps=self.eps)
            if old is not None:  # parameters that stayed keep their moments (a new label replaces only the head's)
                stepper.state.update({p: old.state[p] for _, p in parameters if p in old.state})
            if key in self.loaded:
                stepper.load_state_dict(self.loaded.pop(key))
            self.steppers[key] = stepper
        return stepper

    def group_rate(self, name: str) -> float:
        return find_rate(self.group_rates.items(), name)

    def multiple(self, name: str, depth: int) -> float:
        """The share of the learning rate for a parameter; depth: layers of the encoder."""
        rate = self.group_rate(name)
        layer = _layer(name)
        if layer >= 0:
            rate *= self.layer_decay ** (depth - 1 - layer)
        elif re.search(r"(^|\.)(words|entities)\.", name):
            rate *= self.layer_decay**depth
        return rate

    def state_dict(self, named: Mapping[str, ThincKey] = {}) -> dict[str, Any]:
        """All that resuming needs: moments of each owner and the place in the schedules. named: Thinc's own parameters,
        such as those of spaCy's components, whose moments are saved by these names."""
        return {
            "steppers": {**self.loaded, **{k: s.state_dict() for k, s in self.steppers.items()}},
            "thinc": {name: self._moments(key) for name, key in named.items() if key in self.mom1},
            "taken": dict(self.taken),
            "schedule_steps": self.schedule_steps,
        }

    def _moments(self, key: ThincKey) -> tuple[int, torch.Tensor, torch.Tensor]:
        """Updates, and both means."""
        mean, square = (from_xp(x[key]).cpu().clone() for x in (self.mom1, self.mom2))
        return self.nr_update[key], mean, square

    def load_state_dict(self, state: dict[str, Any], named: Mapping[str, ThincKey] = {}) -> None:
        """Into a fresh optimizer of the same settings; an owner's moments are taken up at its first step."""
        self.loaded = dict(state["steppers"])
        self.taken = dict(state.get("taken", {}))
        ops = get_current_ops()
        for name, (updates, mean, square) in state.get("thinc", {}).items():
            if name in named:
                key = named[name]
                self.nr_update[key] = updates
                self.mom1[key], self.mom2[key] = ops.asarray1f(mean.numpy()), ops.asarray1f(square.numpy())
        while self.schedule_steps < state["schedule_steps"]:
            self.step_schedules()


def _layer(name: str) -> int:
    found = re.search(r"(^|\.)layers\.(\d+)\.", name)
    return int(found.group(2)) if found else -1


@registry.optimizers("spacy-luke.AdamW.v1")
def make_adamw(
    learn_rate: float | list[float] | Generator = 1e-5,
    beta1: float = 0.9,
    beta2: float = 0.98,
    eps: float = 1e-6,
    weight_decay: float = 0.01,
    grad_clip: float = 0.0,
    group_rates: dict[str, float] = {},  # noqa: B006  (never changed; spaCy fills configs from it)
    layer_decay: float = 1.0,
    bias_correction: bool = True,
) -> AdamW:
    """AdamW with the papers' defaults (LUKE, appendix A): no decay of biases and LayerNorms, no clipping.

    learn_rate: a number or a Thinc schedule such as warmup_linear.v1.
    beta1, beta2: decay of the means of gradients, and of their squares.
    eps: added to the root of these.
    weight_decay: share of a weight, times the rate, that each step takes away.
    grad_clip: greatest global norm of a component's gradient, 0 for none.
    group_rates: multiples of the rate by pattern of the parameter's name, such as {"^head": 5.0}; "^.$" are the
        parameters of spaCy's components.
    layer_decay: rate of a layer as a share of the rate of the layer above it, 1 for equal rates.
    bias_correction: false for Adam as in BERT, whose first steps are larger: with beta2 = 0.999, 6.6 times as large at
        the twelfth. So the codes of ERNIE, of LUKE and of its entity disambiguation.
    """
    return AdamW(
        learn_rate,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        weight_decay=weight_decay,
        grad_clip=grad_clip,
        group_rates=group_rates,
        layer_decay=layer_decay,
        bias_correction=bias_correction,
    )
