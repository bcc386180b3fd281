"""A knowledge base from tables, dumps and lists (`kb.change` adds to one that is there)."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..aliases.counts import Limits
from ..aliases.tables import read_table, table_kind
from ..aliases.trie import new_trie
from ..stores.atomic import write_folder_atomically
from ..stores.folder import MANIFEST
from ..stores.opening import is_dump, open_source
from ..stores.parallel import Engine
from ..stores.sorting import MOST
from .files import KB, write_manifest
from .items import Wikidata
from .knowledge_base import EntityKB, hold_kb, tell_busy
from .sources import stage_entities, stage_names, stage_persons, stage_ppr
from .staging import NO_LIMITS, ON_UNKNOWN, Staging
from .wikidata import stage_wikidata
from .wikipedia import stage_dump
from .write import write_segment

_FORMATS = ("dump", "wikidata", "entities", "names", "ppr")
_ON_DAMAGE = ("error", "skip")
_WITHOUT_ENTITIES = ("names", "ppr")  # formats that only mention them


@dataclass(frozen=True)
class KBSettings:
    """How sources are read.

    columns: of tables of names that have no first line with them (.tsv, .csv). unknown: what becomes of an id that a
    name means, but no source of entities has: "error", "add" it, or "drop" the name; None: "error", but "drop" for
    links in dumps, and "add" where no source is one of entities and no knowledge base is added to or changed. persons:
    a file of ids of persons, one a line. templates: further names of templates of disambiguation pages. on_damage: of
    lines of tables and of Wikidata that are not as expected: "error", or "skip", which counts and lists them. engine:
    where pages and items of dumps are parsed, None: in this process, as they come; with one, a build that was killed
    goes on with those that are missing.
    """

    limits: Limits = NO_LIMITS
    columns: Sequence[str] | None = None
    unknown: str | None = None
    wikidata: Wikidata = Wikidata()  # noqa: RUF009
    persons: str | Path | None = None
    templates: Sequence[str] = ()
    on_damage: str = "error"
    engine: Engine | None = None

    def __post_init__(self) -> None:
        if self.unknown is not None and self.unknown not in ON_UNKNOWN:
            raise ValueError(f"unknown must be one of {ON_UNKNOWN} or None, but it is {self.unknown!r}.")
        if self.on_damage not in _ON_DAMAGE:
            raise ValueError(f"on_damage must be one of {_ON_DAMAGE}, but it is {self.on_damage!r}.")
        if self.limits.min_link_probability:
            raise ValueError("A knowledge base has no link probabilities; leave min_link_probability at 0.")


DEFAULTS = KBSettings()


@dataclass(frozen=True)
class BuiltKB:
    """A new knowledge base; what was read from the sources and what was left out, in words."""

    kb: EntityKB
    read: dict[str, int]
    left_out: list[str]


def build_kb(
    sources: Sequence[str | Path],
    folder: str | Path,
    *,
    settings: KBSettings = DEFAULTS,
    progress: bool = False,
    most: int = MOST,
) -> BuiltKB:
    """Build a knowledge base; an older one in `folder` is replaced when all went well. The same sources, in the same
    order, give the same files. The first source that describes an entity gives its description.

    sources: files and folders, as docs/howto/knowledge-base.md lists them; all dumps among them are parts of one.
    most: entities or names in memory, before they go to temporary files beside `folder`. ValueError for bad sources,
    where no entity or no name is left, and where another process makes or changes a knowledge base in `folder`.
    """
    folder = Path(folder)
    KB.check_replaceable(folder)
    new_trie()  # a missing library is told before the work
    with (
        hold_kb(folder) if (folder / MANIFEST).is_file() else nullcontext(),
        write_folder_atomically(folder, busy=tell_busy(folder)) as new,
        staged(new.parent, folder, settings, None, most) as staging,
    ):
        read_sources(sources, staging, settings, progress)
        (new / "0").mkdir()
        info = {"sources": [Path(source).name for source in sources], **staging.read}
        sizes = write_segment(staging, new / "0", info={}, progress=progress)
        if not sizes["names"]:
            left = "; ".join(staging.left_out.lines()) or "the sources have none"
            raise ValueError(f"No name with an entity is left for a knowledge base: {left}.")
        write_manifest(new, {"segments": [sizes], "info": info})
        told = staging.left_out.lines()
    return BuiltKB(EntityKB.open(folder), staging.read, told)


def find_format(path: Path) -> str:
    """What a source is, by its name and its first lines: a dump of Wikipedia (XML), items of Wikidata (.json, or .jsonl
    with labels), a table of entities (with the columns id and names), one of names, or a folder with PPRforNED."""
    if path.is_dir():
        return "ppr"
    if is_dump(path):
        return "dump"
    kind = path.name.lower().removesuffix(".gz").removesuffix(".bz2")
    if kind.endswith(".json"):
        return "wikidata"
    if table_kind(path) == ".jsonl":
        _, row = next(read_table(path, skip=lambda _: None), (0, {}))
        columns = set(row)
        if columns & {"labels", "redirect"}:
            return "wikidata"
        return "entities" if columns & {"id", "names"} else "names"
    with open_source(path) as file:
        first = file.readline().decode("utf-8-sig").strip()
    columns = {column.strip('" ').lower() for separator in "\t," for column in first.split(separator)}
    return "entities" if columns & {"id", "names"} else "names"


def read_sources(sources: Sequence[str | Path], staging: Staging, settings: KBSettings, progress: bool) -> None:
    """All sources in order; ValueError where there is none, or nothing at its path."""
    paths = [Path(source) for source in sources]
    if not paths:
        raise ValueError("Expected one or more sources of entities and names, but got nothing.")
    for path in paths:
        if not path.exists():
            raise ValueError(f"Expected a source of entities or names at {path}, but there is nothing.")
    staging.skips = settings.on_damage == "skip"
    formats = [find_format(path) for path in paths]
    mentions_only = staging.known is None and all(format in _WITHOUT_ENTITIES for format in formats)
    unknown = settings.unknown or ("add" if mentions_only else "error")
    dumps = [path for path, format in zip(paths, formats, strict=True) if format == "dump"]
    for path, format in zip(paths, formats, strict=True):
        if format == "dump" and path == dumps[0]:
            stage_dump(
                dumps,
                staging,
                templates=settings.templates,
                unknown=settings.unknown or "drop",
                engine=settings.engine,
                progress=progress,
            )
        elif format == "wikidata":
            stage_wikidata(
                path,
                staging,
                wikidata=settings.wikidata,
                unknown=unknown,
                engine=settings.engine,
                progress=progress,
            )
        elif format == "entities":
            stage_entities(path, staging, unknown=unknown, progress=progress)
        elif format == "names":
            stage_names(path, staging, columns=settings.columns, unknown=unknown, progress=progress)
        elif format == "ppr":
            stage_ppr(path, staging, unknown=unknown, progress=progress)
    if settings.persons is not None:
        stage_persons(Path(settings.persons), staging)


@contextmanager
def staged(beside: Path, output: Path, settings: KBSettings, existing: EntityKB | None, most: int) -> Iterator[Staging]:
    """What sources have, for a new segment of the knowledge base at `output`. existing: what it is added to. Temporary
    files are in the hidden folder around the new knowledge base, so that a kill leaves none for ever."""
    folder = beside / ".parts"
    folder.mkdir()
    try:
        staging = Staging(folder, output, settings.limits, existing, most)
        with staging.held:
            yield staging
    finally:
        shutil.rmtree(folder, ignore_errors=True)
