"""A table of the papers: what configs/papers.toml says of it is trained, scored and written beside the paper's figures.

    python scripts/reproduce.py luke3 --seeds 5 [--size small] [--gpu-id -1]

OUTPUT/SIZE/TABLE.md and .json are written anew after each run. A run whose scores are there, for this table or another
one, is not made again, and one that was killed goes on where it was. Of another run are scores where the experiment,
a setting of its config or the version of spacy_luke was another; see `depends_on`.
"""

import argparse
import hashlib
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from confection import Config

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "configs" / "papers.toml"
SIZES = ("full", "small")
Execute = Callable[[list[str]], None]


@dataclass(frozen=True)
class Experiment:
    """What is trained by a config, or converted, and how it is scored; see configs/papers.toml."""

    metrics: dict[str, str]
    config: str | None = None
    convert: str | None = None
    convert_options: Sequence[str] = ()
    needs: Sequence[str] = ()
    data: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    model: str = "model-last"
    overrides: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A line of a table. figures: the paper's, in percent, by metric; experiment: None where it is only cited."""

    name: str
    figures: dict[str, float]
    metrics: dict[str, str]
    experiment: Experiment | None = None


@dataclass(frozen=True)
class Table:
    title: str
    rows: Sequence[Row]
    needs: Sequence[str] = ()


def read_table(name: str, size: str, *, path: Path = PAPERS) -> Table:
    """Raises ValueError for a table that is none, or that has no such size."""
    papers = tomllib.loads(path.read_text(encoding="utf8"))
    if name not in papers["tables"]:
        raise ValueError(f"There is no table {name!r}; there are {', '.join(papers['tables'])}.")
    told = papers["tables"][name]
    if "of" in told:
        raise ValueError(f"{name} stands for {', '.join(told['of'])}: ask for one of them.")
    if size not in (told.get("size") or size, *(() if told.get("size") else SIZES)):
        raise ValueError(f"The table {name} can only be made in the size {told['size']!r}, not {size!r}.")
    rows = [_row(row, papers, size) for row in told["rows"] if row.get("size", size) == size]
    cited = [
        Row(x["name"], x["paper"], papers["experiments"][x["experiment"]]["metrics"]) for x in told.get("cited", ())
    ]
    return Table(told["title"], [*cited, *rows], told.get("needs" if size == "full" else "small_needs", ()))


def _row(row: dict[str, Any], papers: dict[str, Any], size: str) -> Row:
    told = dict(papers["experiments"][row["experiment"]])
    small = told.pop("small", None)
    overrides = told.pop("overrides", {})
    if size == "full":
        overrides = {**overrides, **row.get("overrides", {})}
    elif small is None:
        raise ValueError(f"The experiment {row['experiment']} has no small size.")
    else:
        told |= {key: x for key, x in small.items() if key != "overrides"}
        trained = papers["small"] if told.get("convert") is None else {}
        own = [small.get("overrides", {}), row.get("overrides", {}), trained, row.get("small", {})]
        overrides = {name: x for some in (overrides, *own) for name, x in some.items()}
    figures = {name: x for name, x in row["paper"].items() if name in told["metrics"]}
    return Row(row["name"], figures, told["metrics"], Experiment(**told, overrides=overrides))


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
    scores.parent.mkdir(parents=True, exist_ok=True)
    about = {"row": row.name, "seed": seed, "settings": depends_on(experiment), "commit": commit()}
    scores.write_text(json.dumps({**about, "scores": found}, indent=1), encoding="utf8")
    if not keep:
        shutil.rmtree(folder)


def depends_on(experiment: Experiment) -> dict[str, Any]:
    """What makes two runs equal but for their seed: all that configs/papers.toml says but how scores are called, the
    settings of the config, without its comments, and the version of spacy_luke. What the files of data and weights hold
    is not looked at, nor is the commit."""
    told = {key: x for key, x in asdict(experiment).items() if key != "metrics"}
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
    own = [json.loads(path.read_text(encoding="utf8"))["scores"] for path in files if path.exists()]
    return {name: Figure([100 * one[name] for one in own], row.figures.get(name)) for name in row.metrics}


def write_results(name: str, table: Table, size: str, seeds: int, folder: Path) -> str:
    """TABLE.md and TABLE.json. RETURNS: the table in Markdown."""
    files = [[scores_of(folder, row, seed) for seed in range(seeds)] for row in table.rows]
    rows = [(row, read_figures(row, own)) for row, own in zip(table.rows, files)]
    told = {row.name: {key: x.to_dict() for key, x in figures.items()} for row, figures in rows}
    made = {json.loads(x.read_text(encoding="utf8"))["commit"] for own in files for x in own if x.exists()}
    commits = sorted(made - {None})
    header = {"table": name, "title": table.title, "size": size, "seeds": seeds, "commits": commits, "rows": told}
    (folder / f"{name}.json").write_text(json.dumps(header, indent=1), encoding="utf8")
    lines = [f"# {table.title}", "", SAID[size], ""]
    lines += ["| | metric | here | seeds | the paper | difference |", "| --- | --- | --- | --- | --- | --- |"]
    for row, figures in rows:
        shown = [(key, one) for key, one in figures.items() if one.values or one.paper is not None]
        lines += [_line(row, key, one, compared=size == "full") for key, one in shown]
    lines += ["", f"Runs were made at {', '.join(commits)}."] if commits else []
    text = "\n".join(lines) + "\n"
    (folder / f"{name}.md").write_text(text, encoding="utf8")
    return text


def _line(row: Row, metric: str, one: Figure, *, compared: bool) -> str:
    deviation = "" if one.deviation is None else f" ± {one.deviation:.2f}"
    here = "cited" if row.experiment is None else "" if one.mean is None else f"{one.mean:.2f}{deviation}"
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


def tables_of(name: str, *, path: Path = PAPERS) -> list[str]:
    """The table itself, or those that it stands for."""
    return tomllib.loads(path.read_text(encoding="utf8"))["tables"].get(name, {}).get("of", [name])


def reproduce(
    name: str, *, size: str, seeds: int, gpu_id: int, output: Path, models: Path, keep: bool, execute: Execute
) -> str:
    """RETURNS: the table in Markdown."""
    table = read_table(name, size)
    folder = output / size
    folder.mkdir(parents=True, exist_ok=True)
    experiments = [row.experiment for row in table.rows if row.experiment is not None]
    for need in dict.fromkeys([*table.needs, *(need for one in experiments for need in one.needs)]):
        execute([sys.executable, "-m", "spacy", "project", "run", *_project_words(need)])
    for seed in range(seeds):
        for row in table.rows:
            if row.experiment is None or (row.experiment.convert is not None and seed):
                continue
            scores = scores_of(folder, row, seed)
            run_row(row, models / size / scores.stem, scores, seed=seed, gpu_id=gpu_id, keep=keep, execute=execute)
            write_results(name, table, size, seeds, folder)
    return write_results(name, table, size, seeds, folder)


def _project_words(need: str) -> list[str]:
    command, *rest = shlex.split(need)
    return [command, ".", *rest]


def execute(command: list[str]) -> None:
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}; what is done is kept, so run it again.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="of configs/papers.toml, such as luke3")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--gpu-id", type=int, default=-1)
    parser.add_argument("--output", type=Path, default=ROOT / "metrics" / "reproduce")
    parser.add_argument("--models", type=Path, default=ROOT / "training" / "reproduce")
    parser.add_argument("--keep", action="store_true", help="keep the models, which are large")
    told = parser.parse_args()
    try:
        for name in tables_of(told.table):
            text = reproduce(
                name,
                **{"size": told.size, "seeds": told.seeds, "gpu_id": told.gpu_id, "output": told.output},
                **{"models": told.models, "keep": told.keep, "execute": execute},
            )
            print(text)
    except ValueError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
