"""spaCy's training loop with exact resume: a killed run goes on to the bit-identical result.

`spacy train` cannot resume; this loop reads the same config, updates in the same way and writes the same model-best and
model-last. Besides, it keeps OUTPUT/resume: the pipeline, the optimizer's moments, the place in the data and the random
states, replaced as one folder. The order of the data is a function of the seed and the epoch alone.
"""

import random
import sys
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Tuple

import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import create_before_to_disk_callback, create_evaluation_callback, subdivide_batch, update_meta
from spacy.util import fix_random_seed, registry, resolve_dot_names
from thinc.api import constant

from .atomic import mend, write_folder_atomically
from .bridge.optimizer import AdamW
from .bridge.randomness import random_states, restore_random

RESUME = "resume"


def train(
    nlp: Language, output: Path, *, resume: bool = False, stdout: IO = sys.stdout, stderr: IO = sys.stderr
) -> Path:
    """Train an initialised pipeline by its config's [training] block.

    output: folder that gets model-best, model-last and resume. resume: go on from OUTPUT/resume, which must come from
    the same config and data.
    RETURNS: the folder of the best pipeline.
    """
    config = nlp.config.interpolate()
    seed = config["training"]["seed"] or 0
    fix_random_seed(seed)
    T = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    train_corpus, dev_corpus = resolve_dot_names(config, [T["train_corpus"], T["dev_corpus"]])
    optimizer = T["optimizer"]
    if not isinstance(optimizer, AdamW):
        raise ValueError(
            'Exact resume needs @optimizers = "spacy-luke.AdamW.v1" in [training.optimizer], whose state can be saved; '
            f"the config has {type(optimizer).__name__}. Use `spacy train` for other optimizers."
        )
    _clean(output)
    state: Dict[str, Any] = {"step": -1, "results": [], "losses": {}, "words": 0}
    if resume:
        state = _load(nlp, optimizer, output / RESUME)
    evaluate = create_evaluation_callback(nlp, dev_corpus, T["score_weights"])
    before_to_disk = create_before_to_disk_callback(T["before_to_disk"])
    dropouts = T["dropout"] if not isinstance(T["dropout"], float) else constant(T["dropout"])
    for _ in range(state["step"] + 1):  # a schedule is brought to where it was
        next(dropouts)
    with nlp.select_pipes(disable=T["frozen_components"]):
        log, finish_log = T["logger"](nlp, stdout, stderr)
    last_step = state["step"]
    is_over = resume and _is_over(state["results"], last_step, T["patience"], T["max_steps"])
    try:
        for step, (epoch, batch) in enumerate(_batches(nlp, train_corpus, T["batcher"], T["max_epochs"], seed)):
            if is_over:
                break
            if step == last_step:  # not before, since an augmenter may draw while the corpus is read
                restore_random(state["random"])
            if step <= last_step:
                continue
            if T["before_update"]:
                T["before_update"](nlp, {"step": step, "epoch": epoch})
            _update(nlp, batch, optimizer, T, drop=next(dropouts), losses=state["losses"])
            state["words"] += sum(len(example) for example in batch)
            state["step"] = step
            is_evaluated = step % T["eval_frequency"] == 0
            score, other_scores = evaluate() if is_evaluated else (None, None)
            info = {
                "epoch": epoch,
                "step": step,
                "score": score,
                "other_scores": other_scores,
                "losses": state["losses"],
                "checkpoints": state["results"],
                "seconds": 0,
                "words": state["words"],
            }
            if is_evaluated:
                state["results"].append((score, step))
                update_meta(T, nlp, info)
                _save(before_to_disk(nlp), output / "model-last")
                if score == max(state["results"])[0]:
                    _save(before_to_disk(nlp), output / "model-best")
            log(info if is_evaluated else None)
            if is_evaluated:
                state["losses"] = {}
                _save_state(nlp, optimizer, state, output / RESUME)
            if _is_over(state["results"], step, T["patience"], T["max_steps"]):
                break
    finally:
        finish_log()
    _save(before_to_disk(nlp), output / "model-last")
    return output / "model-best"


def _update(
    nlp: Language, batch: List[Any], optimizer: AdamW, T: Dict[str, Any], *, drop: float, losses: Dict[str, float]
) -> None:
    for part in subdivide_batch(batch, T["accumulate_gradient"]):
        nlp.update(
            part,
            drop=drop,
            losses=losses,
            sgd=False,
            exclude=T["frozen_components"],
            annotates=T["annotating_components"],
        )
    for name, proc in nlp.pipeline:
        if name not in T["frozen_components"] and getattr(proc, "is_trainable", False):
            proc.finish_update(optimizer)
    optimizer.step_schedules()


def _batches(nlp: Language, corpus: Any, batcher: Any, max_epochs: int, seed: int) -> Iterator[Tuple[int, List[Any]]]:
    """Epochs of batches, each shuffled by its own seed; with max_epochs = -1 the corpus is streamed as it comes."""
    examples = list(corpus(nlp)) if max_epochs >= 0 else None
    if examples is not None and not examples:
        raise ValueError("The training corpus is empty: expected at least one example; check [paths] train.")
    epoch = 0
    while max_epochs < 1 or epoch != max_epochs:
        if examples is not None:
            order = list(examples)
            random.Random(f"{seed}-{epoch}").shuffle(order)
        for batch in batcher(order if examples is not None else corpus(nlp)):
            yield epoch, batch
        epoch += 1


def _is_over(results: List[Tuple[float, int]], step: int, patience: int, max_steps: int) -> bool:
    best = -max((score, -at) for score, at in results)[1]
    return bool(patience and step - best >= patience) or bool(max_steps and step >= max_steps)


def _clean(output: Path) -> None:
    """Mend what a kill during `write_folder_atomically` leaves."""
    for name in ("model-best", "model-last", RESUME):
        mend(output / name)


def _save(nlp: Language, folder: Path) -> None:
    with write_folder_atomically(folder) as temporary:
        nlp.to_disk(temporary)


def _save_state(nlp: Language, optimizer: AdamW, state: Dict[str, Any], folder: Path) -> None:
    with write_folder_atomically(folder) as temporary:
        nlp.to_disk(temporary / "pipeline")
        torch.save({**state, "optimizer": optimizer.state_dict(), "random": random_states()}, temporary / "state.pt")


def _load(nlp: Language, optimizer: AdamW, folder: Path) -> Dict[str, Any]:
    if not (folder / "state.pt").is_file():
        raise ValueError(
            f"There is nothing to resume in {folder}: expected state.pt, which is written at each evaluation. "
            "Start without --resume."
        )
    nlp.from_disk(folder / "pipeline")
    state = torch.load(folder / "state.pt", weights_only=True)
    optimizer.load_state_dict(state.pop("optimizer"))
    state["results"] = [tuple(result) for result in state["results"]]
    return state
