"""What configs/papers.toml says of the papers' tables."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PAPERS = Path(__file__).parents[1] / "configs" / "papers.toml"
SIZES = ("full", "small")


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
    answers: str | None = None
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


def read_table(name: str, size: str, *, path: Path = PAPERS) -> Table:
    """Raises ValueError for a table that is none, or that has no such size."""
    papers = _read(path)
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
    return Table(told["title"], [*cited, *rows])


@cache
def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf8"))


def _row(row: dict[str, Any], papers: dict[str, Any], size: str) -> Row:
    told = dict(papers["experiments"][row["experiment"]])
    small = told.pop("small", None)
    overrides = told.pop("overrides", {})
    component = told.pop("component", None)
    changes = [papers["changes"][name] for name in row.get("changes", ())]
    of_changes = [(name, x) for change in changes for name, x in change.get("overrides", {}).items()]
    of_row = {name.replace("COMPONENT", component): x for name, x in of_changes} | row.get("overrides", {})
    if size == "full":
        overrides = {**overrides, **of_row}
    elif small is None:
        raise ValueError(f"The experiment {row['experiment']} has no small size.")
    else:
        told |= {key: x for key, x in small.items() if key != "overrides"}
        trained = papers["small"] if told.get("convert") is None else {}
        layers = (overrides, small.get("overrides", {}), of_row, trained, row.get("small", {}))
        overrides = {name: x for some in layers for name, x in some.items()}
    without = {need for part in (*changes, row) for need in part.get("without", ())}
    own = row.get("needs" if size == "full" else "small_needs", ())
    told["needs"] = [*(need for need in told["needs"] if need not in without), *own]
    figures = {name: x for name, x in row["paper"].items() if name in told["metrics"]}
    return Row(row["name"], figures, told["metrics"], Experiment(**told, overrides=overrides))


def tables_of(name: str, size: str, *, path: Path = PAPERS) -> list[str]:
    """The table itself, or those that it stands for, as far as they are made in this size."""
    tables = _read(path)["tables"]
    if "of" not in tables.get(name, {}):
        return [name]
    return [own for own in tables[name]["of"] if tables[own].get("size", size) == size]
