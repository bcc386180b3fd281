"""A table of the papers: what configs/papers.toml says of it is trained, scored and written beside the paper's figures.

    python scripts/reproduce.py luke3 --seeds 5 [--size small] [--gpu-id -1] [--gpus 1]

OUTPUT/SIZE/TABLE.md and .json are written anew after each run. A run whose scores are there, for this table or another
one, is not made again, and one that was killed goes on where it was. Of another run are scores where the experiment,
a setting of its config or the version of spacy_luke was another; see `depends_on`. A row whose data or checkpoint are
missing is not run: below the table stands what is missing and how it is to be had. One whose commands fail stands there
too, and the others are run. It ends with 1 where a row failed, and where no row has scores.
"""

import argparse
import hashlib
import json
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from confection import Config
from papers import SIZES, Experiment, Row, Table, read_table, tables_of
from project_steps import Plan, Project

from spacy_luke.bridge.machine import read_chip
from spacy_luke.checkpoint.sources import find_source, is_on_hub
from spacy_luke.stores.atomic import write_atomically

ROOT = Path(__file__).parents[1]
Execute = Callable[[list[str]], None]
Missing = dict[str, dict[str, str]]  # by row: files, and how each is to be had
Failed = dict[str, str]  # by row: which command, and how it ended


class CommandFailed(Exception):
    """Which command, and how it ended."""


def train_command(experiment: Experiment, folder: Path, *, seed: int, gpu_id: int) -> list[str]:
    """Goes on where an earlier run was killed."""
    if experiment.convert is not None:
        return _luke("convert", experiment.convert, folder / experiment.model, *experiment.convert_options)
    begun = "--resume" if (folder / "resume").exists() else "--overwrite"
    settings = {"system.seed": str(seed), **experiment.overrides}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    assert experiment.config is not None
    return _luke("train", experiment.config, "--output", folder, "--gpu-id", gpu_id, begun, *options)


def evaluate_command(experiment: Experiment, folder: Path, data: str, scores: Path, *, gpu_id: int) -> list[str]:
    settings = {} if experiment.convert is None else experiment.overrides
    options = [*experiment.options, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    return _luke(*("evaluate", folder / experiment.model, data, "--output", scores, "--gpu-id", gpu_id, *options))


def answer_command(row: Row, folder: Path, output: Path, *, seed: int, gpu_id: int) -> list[str]:
    """Answers for the leaderboard, those of one system together: of "MRPC, BERT" in OUTPUT/glue_submission/BERT."""
    experiment = row.experiment
    assert experiment is not None
    assert experiment.answers is not None
    answers = output / "glue_submission" / f"{row.name.rsplit(', ', 1)[-1]}.seed{seed}"
    words = [ROOT / "scripts" / "glue_submission.py", folder / experiment.model, ROOT / "assets" / "glue", answers]
    return [sys.executable, *map(str, words), "--task", experiment.answers, "--gpu-id", str(gpu_id)]


def _luke(*words: Any) -> list[str]:
    return [sys.executable, "-m", "spacy", "luke", *map(str, words)]


def run_row(row: Row, folder: Path, scores: Path, *, seed: int, gpu_id: int, keep: bool, execute: Execute) -> None:
    """Scores of one seed in the file `scores`, unless they are there."""
    experiment = row.experiment
    if experiment is None or scores.exists():
        return
    execute(train_command(experiment, folder, seed=seed, gpu_id=gpu_id))
    found: dict[str, Any] = {}
    for prefix, data in experiment.data.items():
        part = folder / f"scores_{prefix}.json"
        execute(evaluate_command(experiment, folder, data, part, gpu_id=gpu_id))
        own = json.loads(part.read_text(encoding="utf8"))
        found |= {f"{prefix}/{name}" if prefix else name: x for name, x in own.items() if isinstance(x, int | float)}
    if missing := sorted(set(row.metrics) - set(found)):
        raise ValueError(f"{row.name}: the evaluation gave no {missing}; it gave {sorted(found)}.")
    if experiment.answers is not None:
        execute(answer_command(row, folder, scores.parents[1], seed=seed, gpu_id=gpu_id))
    scores.parent.mkdir(parents=True, exist_ok=True)
    made = {"settings": depends_on(experiment), "commit": commit(), "chip": chip(gpu_id)}
    about = {"row": row.name, "seed": seed, **made}
    _write(scores, json.dumps({**about, "scores": found}, indent=1))
    if not keep:
        shutil.rmtree(folder)


def depends_on(experiment: Experiment) -> dict[str, Any]:
    """What makes two runs equal but for their seed: all that configs/papers.toml says but how scores are called in the
    table, the settings of the config, without its comments, and the version of spacy_luke. What the files of data and
    weights hold is not looked at, nor is the commit."""
    told = {**asdict(experiment), "metrics": sorted(experiment.metrics)}
    path = experiment.config
    settings = None if path is None else Config().from_disk(ROOT / path, interpolate=False)
    return {**told, "config_settings": settings, "spacy_luke": version("spacy-luke")}


def _digest(experiment: Experiment) -> str:
    told = json.dumps(depends_on(experiment), sort_keys=True)
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def commit() -> str | None:
    """Of the code, "-dirty" with changes; None where it lies in no repository."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def chip(gpu_id: int) -> str:
    """Name of the GPU, or with -1 of the CPU."""
    return read_chip()[0] if gpu_id < 0 else torch.cuda.get_device_name(gpu_id)


@dataclass(frozen=True)
class Figure:
    """A metric of a row in percent. values: of the seeds that are there; paper: None where the paper has none."""

    values: list[float]
    paper: float | None

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Of the seeds (n - 1)."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    def to_dict(self) -> dict[str, Any]:
        return {
            **{"values": self.values, "mean": self.mean, "deviation": self.deviation},
            **{"paper": self.paper, "difference": self.difference},
        }


def read_figures(row: Row, files: Sequence[Path]) -> dict[str, Figure]:
    """Of all metrics. files: of the seeds; some may not be there yet."""
    own = [read_run(path)["scores"] for path in files if path.exists()]
    return {name: Figure([100 * one[name] for one in own], row.figures.get(name)) for name in row.metrics}


def read_run(path: Path) -> dict[str, Any]:
    """The file of one run."""
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected the scores of a run, but {error}. Delete it: it is made again.") from None


def _write(path: Path, text: str) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf8")


def write_results(
    name: str, table: Table, size: str, seeds: int, folder: Path, missing: Missing, failed: Failed
) -> str:
    """TABLE.md and TABLE.json. RETURNS: the table in Markdown."""
    files = [[scores_of(folder, row, seed) for seed in range(seeds)] for row in table.rows]
    rows = [(row, read_figures(row, own)) for row, own in zip(table.rows, files)]
    told = {row.name: {key: x.to_dict() for key, x in figures.items()} for row, figures in rows}
    runs = [read_run(x) for own in files for x in own if x.exists()]
    made = sorted({(x["commit"] or "no commit", f"spacy_luke {x['settings']['spacy_luke']}", x["chip"]) for x in runs})
    cited = [row.name for row in table.rows if row.experiment is None]
    header = {"table": name, "title": table.title, "size": size, "seeds": seeds, "made": made, "cited": cited}
    header |= {"not_run": missing, "failed": failed}
    _write(folder / f"{name}.json", json.dumps({**header, "rows": told}, indent=1))
    lines = [f"# {table.title}", "", SAID[size], ""]
    lines += ["| | metric | here | seeds | the paper | difference |", "| --- | --- | --- | --- | --- | --- |"]
    states = {**dict.fromkeys(cited, "cited"), **dict.fromkeys(missing, "not run"), **dict.fromkeys(failed, "failed")}
    for row, figures in rows:
        shown = [(key, one) for key, one in figures.items() if one.values or one.paper is not None]
        lines += [_line(row, x, one, without=states.get(row.name, ""), compared=size == "full") for x, one in shown]
    lines += _what_is_missing(missing) if missing else []
    lines += ["", "Failed:", "", *(f"- {row}: {how}" for row, how in failed.items())] if failed else []
    lines += ["", f"Runs were made at {'; '.join(', '.join(one) for one in made)}."] if made else []
    text = "\n".join(lines) + "\n"
    _write(folder / f"{name}.md", text)
    return text


def write_joined(name: str, tables: Sequence[str], folder: Path) -> None:
    """NAME.md and NAME.json of tables that are made together."""
    texts = [(folder / f"{table}.md").read_text(encoding="utf8") for table in tables]
    _write(folder / f"{name}.md", "\n".join(texts))
    told = {table: json.loads((folder / f"{table}.json").read_text(encoding="utf8")) for table in tables}
    _write(folder / f"{name}.json", json.dumps(told, indent=1))


def _what_is_missing(missing: Missing) -> list[str]:
    """Lines of Markdown; what is said of the first file of a folder stands for the others."""
    folders: dict[str, str] = {}
    for path, how in (pair for files in missing.values() for pair in files.items()):
        parts = Path(path).parts
        folders.setdefault(path if len(parts) < 3 else "/".join(parts[:-1]), how)
    rows = [f"- {row}: {', '.join(f'`{path}`' for path in files)}" for row, files in missing.items()]
    hows = [f"- `{folder}`: {how}" for folder, how in folders.items() if how]
    return ["", "Not run, as there is no:", "", *rows, "", "How it is to be had:", "", *hows]


def _line(row: Row, metric: str, one: Figure, *, without: str, compared: bool) -> str:
    deviation = "" if one.deviation is None else f" ± {one.deviation:.2f}"
    here = without if one.mean is None else f"{one.mean:.2f}{deviation}"
    paper = "" if one.paper is None else f"{one.paper:g}"
    difference = "" if one.difference is None or not compared else f"{one.difference:+.2f}"
    cells = [row.name, row.metrics[metric], here, str(len(one.values) or ""), paper, difference]
    return f"| {' | '.join(cells)} |"


SAID = {
    "full": "Mean and standard deviation of seeds, in percent, by `scripts/reproduce.py`.",
    "small": "Mean and standard deviation of seeds, in percent, by `scripts/reproduce.py` in the size small: MiniLM on "
    "small data of other kinds. That the table can be made is all that they say: they have neither the paper's data "
    "nor its encoder.",
}


def scores_of(folder: Path, row: Row, seed: int) -> Path:
    """The file of one run; equal runs of several tables have one."""
    return folder / "runs" / f"{'cited' if row.experiment is None else _digest(row.experiment)}.seed{seed}.json"


def missing_of(experiment: Experiment, plan: Plan, project: Project) -> dict[str, str]:
    """Data, and the checkpoint that is converted or fine-tuned, as `Plan.missing`. One of the hub is downloaded, unless
    it is there or data are missing."""
    path = experiment.convert or experiment.overrides.get("paths.weights")
    if path is None:
        path = Config().from_disk(ROOT / str(experiment.config), interpolate=False)["paths"]["weights"]
    if path in plan.made or (ROOT / path).exists():
        return plan.missing
    if Path(path).parts[0] in project.directories:
        return {**plan.missing, path: project.how(path)}
    if plan.missing:
        return plan.missing
    try:
        find_source(path)
    except (ImportError, ValueError) as error:
        print(error, flush=True)
        return {path: f"Of the Hugging Face hub: `hf download {path}`." if is_on_hub(path) else str(error)}
    return {}


def reproduce(
    name: str,
    *,
    size: str,
    seeds: int,
    gpu_id: int,
    gpus: int,
    output: Path,
    models: Path,
    keep: bool,
    execute: Execute,
) -> tuple[str, bool, Failed]:
    """gpus: of the pretrainings that a table needs. RETURNS: the table in Markdown, whether any of its rows has scores,
    and rows that failed, for which what is done is kept."""
    table, project = read_table(name, size), Project(ROOT)
    folder = output / size
    folder.mkdir(parents=True, exist_ok=True)
    runs = [
        (row, seed, scores_of(folder, row, seed))
        for seed in range(seeds)
        for row in table.rows
        if row.experiment is not None and (row.experiment.convert is None or seed == 0)
    ]
    plans = {row.name: (row.experiment, project.plan(row.experiment.needs)) for row, _, x in runs if not x.exists()}
    looked = {row: missing_of(one, plan, project) for row, (one, plan) in plans.items()}
    missing = {row: files for row, files in looked.items() if files}
    for row, files in missing.items():
        print(f"{row}: not run, without {', '.join(files)}", flush=True)
    ready = [plan.steps for row, (_, plan) in plans.items() if row not in missing]
    broken: dict[str, str] = {}
    for step in dict.fromkeys(step for steps in ready for step in steps):
        try:
            execute([*_project_command(step), "--vars.gpu", str(gpu_id), "--vars.gpus", str(gpus)])
        except CommandFailed as error:
            broken[step] = str(error)
    needed = [(row, step) for row, (_, plan) in plans.items() if row not in missing for step in reversed(plan.steps)]
    failed = {row: broken[step] for row, step in needed if step in broken}  # the first step of a row
    for row, seed, scores in runs:
        if row.name not in missing and row.name not in failed:
            try:
                run_row(row, models / size / scores.stem, scores, seed=seed, gpu_id=gpu_id, keep=keep, execute=execute)
            except CommandFailed as error:
                failed[row.name] = str(error)
            write_results(name, table, size, seeds, folder, missing, failed)
    text = write_results(name, table, size, seeds, folder, missing, failed)
    return text, any(scores.exists() for _, _, scores in runs), failed


def _project_command(step: str) -> list[str]:
    command, *rest = shlex.split(step)
    return [sys.executable, "-m", "spacy", "project", "run", command, ".", *rest]


def execute(command: list[str]) -> None:
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        raise CommandFailed(f"`{shlex.join(command)}` ended with {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="of configs/papers.toml, such as luke3")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--gpu-id", type=int, default=-1)
    parser.add_argument("--gpus", type=int, default=1, help="of the pretrainings that a table needs")
    parser.add_argument("--output", type=Path, default=ROOT / "metrics" / "reproduce")
    parser.add_argument("--models", type=Path, default=ROOT / "training" / "reproduce")
    parser.add_argument("--keep", action="store_true", help="keep the models, which are large")
    told = parser.parse_args()
    given = {key: x for key, x in vars(told).items() if key != "table"}
    try:
        scored, failed, names = False, [], tables_of(told.table, told.size)
        for name in names:
            text, some, own = reproduce(name, execute=execute, **given)
            print(text)
            scored, failed = scored or some, failed + [f"{name}: {row}" for row in own]
        if names != [told.table]:
            write_joined(told.table, names, told.output / told.size)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if failed:
        raise SystemExit("\n".join(["Rows that failed; what is done is kept, so run it again:", *failed]))
    if not scored:
        raise SystemExit("No row could be run; what is missing stands below the table.")


if __name__ == "__main__":
    main()
