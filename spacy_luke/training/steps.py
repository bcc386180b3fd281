"""How many updates a training will make, and whether its learning rate fits: counted from the data, not by hand."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry, resolve_dot_names

from ..bridge.schedules import NAME, NAMES

_NEGLIGIBLE = 0.02  # share of training that may pass at rate 0
_HIGH = 0.1  # share of its greatest value that a falling rate should reach by the end


class TrainingPlan(NamedTuple):
    """steps: updates, None where only patience ends the training; epochs: passes over the data, None where unknown."""

    steps: int | None
    epochs: float | None


def in_order(examples: Sequence[Example], *, seed: int, epoch: int) -> list[Example]:
    """The examples as an epoch has them: a function of seed and epoch alone."""
    order = list(examples)
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order


_LEAST = {"eval_frequency": 1, "accumulate_gradient": 1, "max_steps": 0, "max_epochs": -1, "patience": 0}


def plan_training(config: dict[str, Any], examples: Sequence[Example] = ()) -> TrainingPlan:
    """Count the updates of a training until max_epochs or max_steps ends it, whichever comes first.

    config: interpolated. examples: the training data; none where they are streamed. spaCy's loops make one update more
    than max_steps says, and so does this package's. accumulate_gradient divides batches, and makes no more or fewer of
    them. Raises ValueError for a number of [training] that is too small.
    """
    T = config["training"]
    for name, least in _LEAST.items():
        if T.get(name) is not None and T[name] < least:
            raise ValueError(f"[training] {name} must be {least} or more, but it is {T[name]}.")
    most = T["max_steps"] + 1 if T["max_steps"] else None
    epochs = max(T["max_epochs"], 0)
    if not examples or (most is None and not epochs):
        return TrainingPlan(most, None)
    batcher = registry.resolve({"batcher": T["batcher"]})["batcher"]  # one of its own: sizes may follow a schedule
    steps, epoch = 0, 0
    while epoch < epochs or (not epochs and epoch < 1):
        order = in_order(examples, seed=T["seed"] or 0, epoch=epoch)
        made = sum(1 for _ in batcher(order))
        if made == 0:
            raise ValueError(
                "The batcher makes no batch of the training data: look at [training.batcher], such as its size."
            )
        if most is not None and steps + made >= most:
            return TrainingPlan(most, epoch + (most - steps) / made)
        steps, epoch = steps + made, epoch + 1
    if epochs:
        return TrainingPlan(steps, float(epochs))
    assert most is not None
    return TrainingPlan(most, most / steps)  # by the batches of the first epoch


def uncounted(node: Any) -> Iterator[dict[str, Any]]:
    """Schedules in a part of a config whose number of steps follows from the data."""
    if isinstance(node, dict):
        if node.get("@schedules") in NAMES and node.get("total_steps") is None:
            yield node
        for part in node.values():
            yield from uncounted(part)


def set_steps(config: dict[str, Any], plan: TrainingPlan) -> None:
    """Give the schedules of [training] whose number of steps follows from the data the counted one, in place."""
    for schedule in uncounted(config["training"]):
        if plan.steps is None:
            raise ValueError(
                "total_steps = null in [training.optimizer.learn_rate] follows from max_epochs or max_steps of "
                "[training], but both are without a limit (0, or -1 for a stream), so that only patience ends the "
                "training: set one of them, or total_steps."
            )
        schedule["counted"] = plan.steps


def make_step_counter() -> Callable[[Language], Language]:
    """`spacy-luke.count_steps.v1`, for [initialize] after_init: gives schedules with total_steps = null their number,
    also under `spacy train`. Reads the training data once more, where max_epochs counts."""

    def count(nlp: Language) -> Language:
        config = nlp.config.interpolate()
        if any(uncounted(config["training"])):
            examples: list[Example] = []
            if config["training"]["max_epochs"] > 0:
                examples = list(resolve_dot_names(config, [config["training"]["train_corpus"]])[0](nlp))
            set_steps(nlp.config, plan_training(config, examples))
        return nlp

    return count


def faults_of_schedule(config: dict[str, Any], plan: TrainingPlan) -> Iterator[str]:
    """What does not fit together: a rate that ends long before training or long after it, also one that still rises at
    its end, evaluations that never come.

    config: interpolated, with all numbers of steps.
    """
    if plan.steps is None:
        return
    T, steps = config["training"], plan.steps
    advice = (
        f'set @schedules = "{NAME}" and total_steps = null in [training.optimizer.learn_rate], or total_steps = {steps}'
    )
    rate = registry.resolve({"rate": T["optimizer"].get("learn_rate", 0.0)})["rate"]
    if not isinstance(rate, float | int | list):
        rates = list(islice(rate, steps))
        top, working = max(rates), max((i + 1 for i, x in enumerate(rates) if x > 0), default=0)
        fall = rates[-2] - rates[-1] if steps > 1 else 0.0
        if working < (1 - _NEGLIGIBLE) * steps:
            yield (
                f"The learning rate is 0 from step {working + 1:,} on, but training has {steps:,} steps: the rest "
                f"learns nothing. To mend it, {advice}."
            )
        elif fall > 0 and rates[-1] - fall > _HIGH * top:
            yield (
                f"The learning rate still is {rates[-1] / top:.0%} of its greatest value at the end, since its "
                f"schedule is longer than the {steps:,} steps of training. To mend it, {advice}."
            )
        elif fall < 0:
            yield (
                f"The learning rate still rises at the end, to {rates[-1]:.2g}, since its warm-up is longer than the "
                f"{steps:,} steps of training: all of them have a lower rate than was meant. To mend it, {advice}."
            )
    if T["eval_frequency"] >= steps:
        yield (
            f"eval_frequency is {T['eval_frequency']:,}, but training has {steps:,} steps: only the first and the "
            "last are evaluated. Lower it, so that the best of several is kept."
        )


def describe_plan(config: dict[str, Any], plan: TrainingPlan, examples: int, *, documents: int) -> str:
    """What training will do, in a line. examples: of the training data, 0 where they are streamed; documents: that they
    are made of."""
    T = config["training"]
    parts = ["no limit of steps" if plan.steps is None else f"{plan.steps:,} steps"]
    if plan.epochs is not None:
        parts.append(f"{plan.epochs:.3g} epochs")
    if examples:
        made = f"{examples:,} texts made of " if examples != documents else ""
        parts.append(f"{made}{documents:,} documents")
    parts.append(f"evaluation every {T['eval_frequency']:,} steps")
    if T["patience"]:
        parts.append(f"an end {T['patience']:,} steps after the best")
    return f"Training: {', '.join(parts)}"


def describe_rest(plan: TrainingPlan, done: int, since: int, seconds: float) -> str:
    """How far training is: `done` steps, of which the last `done - since` took `seconds`, evaluations included."""
    if plan.steps is None:
        return f"{done:,} steps done"
    if done == since:  # nothing is known of how long they take
        return f"{done:,} of {plan.steps:,} steps done"
    minutes = seconds / (done - since) * (plan.steps - done) / 60
    left = (
        f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min" if minutes >= 2 else f"{60 * minutes:.0f} s"
    )
    return f"{done:,} of {plan.steps:,} steps done, about {left} left"
