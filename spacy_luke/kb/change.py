"""Knowledge bases that live: entities are added, replaced and removed, and what was added is joined."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..aliases.store import AliasStore
from ..stores.atomic import write_folder_atomically
from ..stores.sorting import MOST
from .build import DEFAULTS, BuiltKB, KBSettings, read_sources, staged
from .copying import Copier
from .files import KB, VECTORS, write_manifest
from .knowledge_base import EntityKB, hold_kb, tell_busy
from .staging import Staging
from .write import write_segment


def add_to_kb(
    kb: EntityKB,
    sources: Sequence[str | Path],
    folder: str | Path | None = None,
    *,
    settings: KBSettings = DEFAULTS,
    progress: bool = False,
    most: int = MOST,
) -> BuiltKB:
    """Add entities, and names of entities that are there. What is there stays as it is and is not read: its files are
    linked, rows and vectors stay, and the vectors of new entities are to be made. Earlier additions that are not larger
    than this one are joined with it, so that of many there are few segments.

    folder: of the larger knowledge base; None: it takes the place of `kb`. An entity that is there already is an error.
    Counts of a name that is there are added to those that it has, whose priors become smaller; priors that are given
    (`prior`, `probability`) are added to those that it has. Raises ValueError where another process changes the
    knowledge base at the same time.
    """
    folder = kb.path if folder is None else Path(folder)
    KB.check_replaceable(folder)
    with hold_kb(kb.path):
        return _add_to(EntityKB.open(kb.path), sources, folder, settings, progress, most)  # others may have added to it


def change_kb(
    kb: EntityKB,
    sources: Sequence[str | Path] = (),
    folder: str | Path | None = None,
    *,
    remove: Sequence[str] = (),
    settings: KBSettings = DEFAULTS,
    progress: bool = False,
    most: int = MOST,
) -> BuiltKB:
    """Replace entities by those of the sources that have their own ids, add others, and remove entities by ids. An
    entity goes with its names and its priors: what is replaced has the names that the sources say. All is written as
    one segment, so rows change; the vectors of what stays stay, those of what was replaced are to be made again.

    folder, ValueError: as `add_to_kb`; ValueError also for ids to remove that are not there, and where nothing is left.
    """
    folder = kb.path if folder is None else Path(folder)
    KB.check_replaceable(folder)
    with hold_kb(kb.path):
        return _change(EntityKB.open(kb.path), sources, folder, remove, settings, progress, most)


def compact_kb(kb: EntityKB, folder: str | Path | None = None, *, progress: bool = False, most: int = MOST) -> BuiltKB:
    """Write all segments as one, which opens and is searched faster. Nothing that the knowledge base knows changes but
    the rows; vectors stay."""
    return change_kb(kb, folder=folder, progress=progress, most=most)


def _add_to(
    kb: EntityKB, sources: Sequence[str | Path], folder: Path, settings: KBSettings, progress: bool, most: int
) -> BuiltKB:
    manifest = kb.manifest
    busy = tell_busy(folder)
    with write_folder_atomically(folder, busy=busy) as new, staged(new.parent, folder, settings, kb, most) as staging:
        copier = Copier(staging)
        staging.known = kb
        read_sources(sources, staging, settings, progress)
        first = _first_to_join(kb, staging)
        base = kb if first == len(kb.segments) else kb.first_segments(first)
        copier.copy(kb, first=first)
        staging.existing = base
        base.link_to(new)
        if base is not kb and kb.vectors is not None:
            (new / VECTORS).mkdir()
            kb.vectors.link_to(new / VECTORS)
        segment = new / str(first)
        segment.mkdir()
        sizes = write_segment(staging, segment, info={}, progress=progress)
        if not sizes["entities"]:
            raise ValueError("Expected sources with entities or names to add, but there are none.")
        rows = _write_rows(segment, kb)
        sizes["entities"] = int((rows >= len(base)).sum())
        added = {"sources": [Path(source).name for source in sources], **staging.read}
        info = {**manifest["info"], "added": [*manifest["info"].get("added", []), added]}
        segments = [*manifest["segments"][:first], sizes]
        write_manifest(new, {**base.manifest, "segments": segments, "info": info})
        _check_unchanged(kb)
    larger = EntityKB.open(folder)
    _check_sums(larger, staging, first)
    return BuiltKB(larger, staging.read, staging.left_out.lines())


def _change(
    kb: EntityKB,
    sources: Sequence[str | Path],
    folder: Path,
    remove: Sequence[str],
    settings: KBSettings,
    progress: bool,
    most: int,
) -> BuiltKB:
    rows = {entity: kb.row(entity) for entity in remove}
    manifest = kb.manifest
    busy = tell_busy(folder)
    with write_folder_atomically(folder, busy=busy) as new, staged(new.parent, folder, settings, None, most) as staging:
        # Only now, when what an earlier run has left behind is swept.
        if missing := [entity for entity, row in rows.items() if row < 0]:
            raise ValueError(
                f"Expected ids of entities to remove, but {len(missing)} are not in {kb.path}, the first "
                f"{missing[0]!r}."
            )
        copier = Copier(staging)
        staging.known, staging.given, staging.removed = kb, set(), set(rows.values())
        if sources:
            read_sources(sources, staging, settings, progress)
        replaced = {row for x in staging.given if (row := kb.row(x)) >= 0 and kb.name_of(row) == x}
        copier.copy(kb, without=replaced | staging.removed)
        (new / "0").mkdir()
        sizes = write_segment(staging, new / "0", info={}, progress=progress)
        if not sizes["names"]:
            raise ValueError(f"No name with an entity of {kb.path} would be left.")
        _keep_vectors(kb, new, replaced | set(rows.values()))
        changed = {
            "sources": [Path(source).name for source in sources],
            "replaced": len(replaced),
            "removed": len(set(rows.values())),
            **staging.read,
        }
        info = manifest["info"]
        if sources or remove:
            info = {**info, "changed": [*info.get("changed", []), changed]}
        write_manifest(new, {"segments": [sizes], "info": info})
        told = staging.left_out.lines()
        _check_unchanged(kb)
    return BuiltKB(EntityKB.open(folder), staging.read, told)


def _keep_vectors(kb: EntityKB, folder: Path, gone: set[int]) -> None:
    """gone: rows of entities whose vectors do not go along."""
    if kb.vectors is None:
        return
    if not gone:
        (folder / VECTORS).mkdir()
        kb.vectors.link_to(folder / VECTORS)
        return
    names = [name for row, name in enumerate(kb.entities()) if row not in gone]
    kept = [name for name, row in zip(names, kb.vectors.rows(names).tolist(), strict=True) if row >= 0]
    if kept:
        kb.vectors.subset(kept, folder / VECTORS)


def _first_to_join(kb: EntityKB, staging: Staging) -> int:
    """The first of the additions at the end that are joined with what is staged: they are not larger, and their priors
    are of the same kind, all shares of counts or none. The first segment never is one."""
    kinds = {group.kind == "count" for group in staging.groups[2:]}  # after those of the copier
    size, first = staging.read_names, len(kb.segments)
    while first > 1 and len(kinds) == 1:
        entry = kb.manifest["segments"][first - 1]
        shares = entry.get("shares", -1)
        if entry["candidates"] > size or shares != (entry["names"] if True in kinds else 0):
            break
        size += entry["candidates"]
        first -= 1
    return first


def _write_rows(segment: Path, kb: EntityKB) -> np.ndarray:
    """rows.npy: uint32 (E,), by the numbers of the segment's store. Entities that are there keep their rows."""
    store = AliasStore.open(segment / "names")
    rows, new = np.zeros(store.header.entities, "<u4"), len(kb)
    for number in range(len(rows)):
        row = kb.row(store.entity_of(number))
        rows[number] = new if row < 0 else row
        new += row < 0
    np.save(segment / "rows.npy", rows)
    return rows


def _check_unchanged(kb: EntityKB) -> None:
    if not kb.is_current():  # where the disk knows no locks
        raise ValueError(f"{kb.path} was changed by another process meanwhile. Run this again.")


def _check_sums(kb: EntityKB, staging: Staging, number: int) -> None:
    """Of the names of the new segment, with their candidates in all."""
    staging.left_out.above, staging.left_out.first_above = 0, ""
    if all(entry.get("shares") == entry["names"] for entry in kb.manifest["segments"]):
        return
    for name in kb.segments[number].store:
        staging.left_out.check_sum(name, (prior for _, prior in kb.candidate_rows(name)))
