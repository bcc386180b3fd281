"""spaCy's training loop with exact resume: a killed run goes on to the bit-identical result.

`spacy train` cannot resume; this loop reads the same config, updates in the same way and writes the same model-best and
model-last. Besides, it keeps OUTPUT/resume: the pipeline, the optimizer's moments, the place in the data and the random
states, replaced as one folder. The order of the data is a function of the seed and the epoch alone.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import IO, Any, NamedTuple

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.loop import create_before_to_disk_callback, update_meta
from spacy.util import registry, resolve_dot_names
from thinc.api import fix_random_seed
from wasabi.printer import Printer

from ..bridge.identity import Identity
from ..bridge.optimizer import AdamW
from ..distributed.processes import Processes
from ..model.randomness import restore_random
from ..stores.atomic import mend, write_folder_atomically
from ..stores.progress import PAUSE
from .console import Log
from .dev_gold import faults_of_dev, read_examples
from .evaluation import make_evaluation
from .resume import (
    RESUME,
    RUN_FOLDERS,
    check_output,
    folders_of_run,
    identity_of,
    name_parameters,
    read_state,
    save_run_state,
)
from .shares import SeenWindows, check_components, copy_weights, update
from .steps import TrainingPlan, describe_plan, describe_rest, faults_of_schedule, in_order, plan_training, set_steps


class _Job(NamedTuple):
    """What a training needs besides its state. T: the resolved [training]; examples: None where they are streamed."""

    nlp: Language
    T: dict[str, Any]
    seed: int
    identity: Identity
    plan: TrainingPlan
    optimizer: AdamW
    examples: list[Example] | None
    train_corpus: Callable[[Language], Any]
    dev_corpus: Callable[[Language], Any]
    write: Callable[[str], None]
    processes: Processes


def train(
    nlp: Language,
    output: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    stdout: IO[str] | None = None,
    stderr: IO[str] | None = None,
    processes: Processes = Processes(),
) -> Path:
    """Train an initialised pipeline by its config's [training] block.

    output: folder that gets model-best, model-last and resume. resume: go on from OUTPUT/resume, which must come from
    the same config and data; begin where no run is there. overwrite: replace an earlier run there, which is an error
    otherwise. processes: that train together, see `join_processes`; all must have initialised the same pipeline.
    stdout, stderr: get the log, and the bar; None: those of the program.
    RETURNS: the folder of the best pipeline.
    """
    output, stdout, stderr = Path(output), stdout or sys.stdout, stderr or sys.stderr
    if processes.is_main:
        _clean(output)
        check_output(output, resume=resume, overwrite=overwrite)
    processes.wait()
    there = bool(folders_of_run(output))
    job = _prepare(nlp, stdout, processes)
    state: dict[str, Any] = {"step": -1, "results": [], "losses": {}, "words": 0}
    if resume and there:
        state = _load(job, output / RESUME)
    elif resume:
        job.write(Printer(no_print=True).info(f"Begins anew, as {output} has nothing to resume"))
    T = job.T
    seen = SeenWindows(nlp, processes)
    before_to_disk = create_before_to_disk_callback(T["before_to_disk"])
    evaluate = make_evaluation(nlp, job.dev_corpus, T["score_weights"], processes)
    dropouts: Iterator[float] = repeat(T["dropout"]) if isinstance(T["dropout"], float) else T["dropout"]
    for _ in range(state["step"] + 1):  # a schedule is brought to where it was
        next(dropouts)
    log, finish_log = _open_log(job, stdout, stderr)
    last_step = state["step"]
    watch = _Watch(job, is_quiet=stdout.isatty())
    is_over = bool(state["results"]) and _is_over(state["results"], last_step, T["patience"], T["max_steps"])
    try:
        for step, (epoch, batch) in enumerate(_batches(job)):
            if is_over:
                break
            if step == last_step:  # not before, since an augmenter may draw while the corpus is read
                _restore(state["random"], job, step)
            if step <= last_step:
                continue
            if T["before_update"]:
                T["before_update"](nlp, {"step": step, "epoch": epoch})
            update(nlp, batch, job.optimizer, T, drop=next(dropouts), losses=state["losses"], processes=processes)
            state["words"] += sum(len(example) for example in batch)
            state["step"] = step
            is_evaluated = step % T["eval_frequency"] == 0 or step + 1 == job.plan.steps
            if is_evaluated:
                seen.join()
            info = _info(state, epoch, evaluate() if is_evaluated else (None, None))
            if is_evaluated:
                state["results"].append((info["score"], step))
                # spaCy's says 0 of scores that were not computed
                computed = [name for name in T["score_weights"] if name in info["other_scores"]]
                update_meta({"score_weights": computed}, nlp, info)
                is_best = info["score"] == max(state["results"])[0]
                for name in ("model-last", "model-best")[: (1 + is_best) * processes.is_main]:
                    _save(before_to_disk(nlp), output / name)
            log(info if is_evaluated else None)
            if is_evaluated:
                state["losses"] = {}
                save_run_state(nlp, job.optimizer, state, output / RESUME, job.identity, processes)
            watch.saw(step + 1, is_evaluated=is_evaluated)
            if _is_over(state["results"], step, T["patience"], T["max_steps"]):
                break
    finally:
        finish_log()
    seen.join()
    if processes.is_main:
        _save(before_to_disk(nlp), output / "model-last")
    processes.wait()
    return output / "model-best"


class _Watch:
    """Says how far training is, at each evaluation, and between two of them once in a while."""

    def __init__(self, job: _Job, *, is_quiet: bool):
        """is_quiet: whether nothing is said between evaluations, as a terminal has the logger's bar."""
        self.job, self.is_quiet = job, is_quiet
        self.begun: tuple[int, float] | None = None  # steps that were done, and the time
        self.said = time.monotonic()

    def saw(self, done: int, *, is_evaluated: bool) -> None:
        """done: steps. With the first evaluation, of one step, time would be counted that others do not take."""
        now = time.monotonic()
        if is_evaluated and self.begun is None:
            self.begun = done, now
        if is_evaluated or (not self.is_quiet and now - self.said >= PAUSE):
            since, at = self.begun or (done, now)
            self.job.write(describe_rest(self.job.plan, done, since, now - at))
            self.said = now


def _prepare(nlp: Language, stdout: IO[str], processes: Processes) -> _Job:
    """Read the data, count the steps, say what will be done, and make what the config names."""
    config = nlp.config.interpolate()
    seed = config["training"]["seed"] or 0
    fix_random_seed(seed)
    names = [config["training"][name] for name in ("train_corpus", "dev_corpus")]
    train_corpus, dev_corpus = resolve_dot_names(config, names)
    streamed = config["training"]["max_epochs"] < 0
    examples, texts = (None, []) if streamed else read_examples(train_corpus, nlp)
    if examples is not None and not examples:
        raise ValueError("The training corpus is empty: expected at least one example; check [paths] train.")
    plan = plan_training(config, examples or [])
    for part in (config, nlp.config):  # what is saved says how many steps were counted
        set_steps(part, plan)
    T = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    optimizer = T["optimizer"]
    if not isinstance(optimizer, AdamW):
        named = config["training"]["optimizer"].get("@optimizers", type(optimizer).__name__)
        raise ValueError(
            'Exact resume needs @optimizers = "spacy-luke.AdamW.v1" in [training.optimizer], whose state can be saved; '
            f'the config has "{named}". Use `spacy train` for other optimizers.'
        )

    check_components(nlp, T["frozen_components"], processes)

    def write(text: str) -> None:
        if processes.is_main:
            print(text, file=stdout, flush=True)

    printer = Printer(no_print=True)
    write(printer.info(describe_plan(config, plan, len(examples or []), documents=len(texts))))
    for fault in faults_of_schedule(config, plan):
        write(printer.warn(fault))
    if processes.is_main:
        for fault in faults_of_dev(nlp, dev_corpus(nlp), T["frozen_components"], trained=set(texts)):
            write(printer.warn(fault))
    if processes.size > 1:
        write(printer.info(f"{processes.size} processes learn from a share of each batch"))
        copy_weights(nlp, processes)
        _seed(seed, processes)
    return _Job(
        nlp, T, seed, identity_of(config), plan, optimizer, examples, train_corpus, dev_corpus, write, processes
    )


def _open_log(job: _Job, stdout: IO[str], stderr: IO[str]) -> tuple[Log, Callable[[], None]]:
    """The config's logger; of several processes the main one's alone says anything."""
    if not job.processes.is_main:
        return lambda info: None, lambda: None
    with job.nlp.select_pipes(disable=job.T["frozen_components"]):
        opened: tuple[Log, Callable[[], None]] = job.T["logger"](job.nlp, stdout, stderr)
    return opened


def _info(state: dict[str, Any], epoch: int, scores: tuple[float | None, dict[str, Any] | None]) -> dict[str, Any]:
    """What spaCy's loggers get."""
    return {
        "epoch": epoch,
        "step": state["step"],
        "score": scores[0],
        "other_scores": scores[1],
        "losses": state["losses"],
        "checkpoints": state["results"],
        "seconds": 0,
        "words": state["words"],
    }


def _batches(job: _Job) -> Iterator[tuple[int, list[Example]]]:
    """Epochs of batches, each shuffled by its own seed; with max_epochs = -1 the corpus is streamed as it comes."""
    epoch, last = 0, job.T["max_epochs"]
    while last < 1 or epoch != last:
        streamed = job.examples is None
        examples = job.train_corpus(job.nlp) if streamed else in_order(job.examples or [], seed=job.seed, epoch=epoch)
        for batch in job.T["batcher"](examples):
            yield epoch, batch
        epoch += 1


def _is_over(results: list[tuple[float, int]], step: int, patience: int, max_steps: int) -> bool:
    best = -max((score, -at) for score, at in results)[1]
    return bool(patience and step - best >= patience) or bool(max_steps and step >= max_steps)


def _clean(output: Path) -> None:
    """Mend what a kill during `write_folder_atomically` leaves."""
    for name in RUN_FOLDERS:
        mend(output / name)


def _save(nlp: Language, folder: Path) -> None:
    with write_folder_atomically(folder) as temporary:
        nlp.to_disk(temporary)


def _seed(seed: int, processes: Processes) -> None:
    """Each process draws other numbers, for dropout; those of Python, which augmenters draw, are the same in all."""
    state = random.getstate()
    fix_random_seed(seed + processes.rank)
    random.setstate(state)


def _restore(states: Sequence[dict[str, Any]], job: _Job, step: int) -> None:
    """The random states of a saved run, which had a process for each."""
    if job.processes.rank < len(states):
        restore_random(states[job.processes.rank])
    else:  # one more than there were, with numbers of its own
        _seed(job.seed + step + 1, job.processes)


def _load(job: _Job, folder: Path) -> dict[str, Any]:
    """The state of the run in `folder`, whose pipeline and optimizer go into those of the job."""
    state = read_state(folder, job.identity)
    for change in state.pop("changed"):
        job.write(f"Goes on with another {change}")
    job.nlp.from_disk(folder / "pipeline")
    job.optimizer.load_state_dict(state.pop("optimizer"), name_parameters(job.nlp))
    return state
