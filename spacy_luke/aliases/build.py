"""A store from tables or dumps."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..stores.opening import is_dump
from .counts import AliasCounts, LeftOut, Limits
from .store import AliasStore
from .tables import count_table
from .trie import new_trie
from .wikipedia import count_dumps


@dataclass(frozen=True)
class BuiltAliases:
    """A new store, in memory; what it leaves out."""

    store: AliasStore
    left_out: LeftOut


def build_store(
    sources: Sequence[str | Path],
    *,
    case: str = "exact",
    limits: Limits = Limits(),
    titles: bool = False,
    progress: bool = False,
) -> BuiltAliases:
    """Build a dictionary of names from tables (docs/tasks/names.md has their columns) or all parts of a Wikipedia dump;
    the same sources give the same store. Raises ValueError for a mixture of both, for bad sources, and where no name is
    left.
    """
    paths = [Path(source) for source in sources]
    if not paths:
        raise ValueError("Expected one or more tables of names, or the parts of a Wikipedia dump, but got nothing.")
    new_trie()  # a missing library is told before the work
    counts = AliasCounts(case, limits)
    dumps = [is_dump(path) for path in paths]
    info: dict[str, Any] = {"sources": [path.name for path in paths]}
    if all(dumps):
        info.update(count_dumps(paths, counts, titles=titles, progress=progress))
    elif any(dumps) or titles:
        what = "tables and dumps together" if any(dumps) else "titles, which tables do not have"
        raise ValueError(f"Expected tables of names alone, or the parts of one Wikipedia dump, but got {what}.")
    else:
        info["rows"] = sum(count_table(path, counts, progress=progress)["rows"] for path in paths)
    store = counts.build(info=info)
    if not len(store):
        left = "; ".join(counts.left_out.lines()) or "the sources have none"
        raise ValueError(f"No name is left to store: {left}.")
    return BuiltAliases(store, counts.left_out)
