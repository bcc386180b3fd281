"""The optimizer's steps of the pretraining loop, in torch alone: the rate as a function of the step, Adam as the
original BERT's, without bias correction, frozen parameters, and clipping of sparse gradients too.

`spacy_luke.bridge.optimizer` is the optimizer of spaCy's training, with Thinc's schedules.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..bridge.bert_adam import BertAdam
from ..model.parameter_groups import find_rate, group_parameters

_SCHEDULES = ("constant", "linear")


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
        if self.schedule not in _SCHEDULES:
            raise ValueError(f"schedule must be one of {_SCHEDULES}, but it is {self.schedule!r}.")
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
    learned = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    if not learned:
        raise ValueError(
            f"Expected a stage that learns something, but its patterns frozen = {list(settings.frozen)} find every "
            "parameter that the task uses. Leave the stage out of training.stages, such as the first one where words "
            "alone are masked (see configs/pretrain_words_large.cfg), or freeze less."
        )
    groups = group_parameters(
        learned,
        multiple=lambda name: find_rate(rates.items(), name),
        weight_decay=settings.weight_decay,
    )
    betas = (settings.beta1, settings.beta2)
    if settings.bias_correction:
        return torch.optim.AdamW(groups, lr=settings.learn_rate, betas=betas, eps=settings.eps, fused=True)
    return BertAdam(groups, lr=settings.learn_rate, betas=betas, eps=settings.eps)
