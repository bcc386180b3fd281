"""The files of a segment of a knowledge base, from what its sources have (see `kb.staging`).

Entities and names stream through once, in order. Memory is that of a part of a trie while it is built (see
`aliases.trie`), and of two numbers for each entity, of some more for each redirect.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from ..aliases.tables import SLACK
from ..aliases.trie import Trie, build_trie
from ..stores.progress import ProgressBar
from ..stores.unicode_forms import UnicodeForms
from .files import NONE
from .knowledge_base import EntityKB
from .names import Name, write_names
from .record import About
from .staging import REST, SourceGroup, Staging

_COUNTS, _ALL_COUNTS = -1, SourceGroup("counts", "count")  # all groups of counts are one
_RUNS = 16  # texts of a trie that is built at once, in those that are sorted at once


def write_segment(staging: Staging, folder: Path, *, info: dict[str, Any], progress: bool = False) -> dict[str, int]:
    """The files of a segment but rows.npy; says how many entities, names and candidates there are."""
    most = _RUNS * staging.most
    redirects = build_trie(_write_redirects(staging), folder / "redirects.trie", most=most)
    records, titles_file = staging.folder / "records", staging.folder / "titles"
    forms = UnicodeForms()
    ids = forms.watch(_write_records(staging, records, redirects, progress))
    titles = build_trie(ids, titles_file, most=most)
    forms.warn(titles.get, what="ids of entities")
    target_R = _follow(staging, redirects, titles)
    np.save(folder / "redirect_numbers.npy", target_R.astype("<u4"))
    _count_clashes(staging, titles, redirects, target_R)
    count_T = _write_entities(staging, records, folder, titles, redirects, target_R)
    links_T = np.zeros(len(titles), np.float64)
    names = _merge_names(staging, titles, redirects, target_R, links_T)
    shown = ProgressBar(names, "names", unit="", show=progress)
    work = staging.folder / "written"
    sizes = write_names(shown, folder, work, titles_file, entities=len(titles), most=most, info=info)
    np.maximum(count_T, links_T, out=count_T)
    np.save(folder / "counts.npy", np.minimum(np.rint(count_T, out=count_T), NONE, out=count_T).astype("<u4"))
    return {"entities": len(titles), **sizes}


def _write_redirects(staging: Staging) -> Iterator[str]:
    """The titles of redirects in order, each once; all go to a file together with where they lead."""
    last = None
    with (staging.folder / "targets").open("w", encoding="utf8", newline="\n") as file:
        for line in staging.redirects:
            title = line[: line.index("\t")]
            file.write(line)
            if title != last:
                yield title
            last = title


def _read_redirects(staging: Staging) -> Iterator[tuple[str, str]]:
    with (staging.folder / "targets").open(encoding="utf8", newline="\n") as file:
        for line in file:
            title, _, target = line[:-1].partition("\t")
            yield title, target


def _write_records(staging: Staging, records: Path, redirects: Trie, progress: bool) -> Iterator[str]:
    """The ids of all entities in order, each once; a record of each goes to a file."""
    mentioned = _missing(staging, redirects)
    stub = next(mentioned, None)
    with records.open("w", encoding="utf8", newline="\n") as file:
        for entity, count, person, about, text in ProgressBar(
            _merge_records(staging), "entities", unit="", show=progress
        ):
            while stub is not None and stub < entity:
                yield stub
                stub = next(mentioned, None)
            if stub == entity:
                stub = next(mentioned, None)
            file.write(f"{entity}\t{count!r}\t{person}\t{about.to_line()}\t{text}\n")
            yield entity
        while stub is not None:
            yield stub
            stub = next(mentioned, None)


def _missing(staging: Staging, redirects: Trie) -> Iterator[str]:
    """In order: ids that names have, where these become entities, and those of the knowledge base that is added to."""
    existing = staging.existing
    new = (id for id, _ in staging.adding if id not in redirects and not staging.is_removed(id))
    if existing is None:
        yield from new
        return
    rows = {row for ids in (staging.adding, staging.mentioned) for id, _ in ids if (row := existing.row(id)) >= 0}
    yield from sorted({*map(existing.name_of, rows), *(id for id in new if existing.row(id) < 0)})


def _merge_records(staging: Staging) -> Iterator[tuple[str, float, int, About, str]]:
    """Each entity once: the greatest count, a person if one source says so, the first description and the first of all
    else that is known."""
    last: tuple[str, float, int, About, str] | None = None
    before = ("", 0, 0)
    for record in staging.entities:
        entity, source, line, once, count, person, *told, text = record[:-1].split("\t", 11)
        about = About.from_line("\t".join(told))
        place = (entity, int(source), int(line))
        if last is None or last[0] != entity:
            if last is not None:
                yield last
            last = (entity, float(count), int(person), about, text)
        else:
            if before[1] == place[1]:
                if once == "1":
                    raise ValueError(
                        f"{staging.sources[place[1]]}: the id {entity!r} is in line {before[2]} and again in line "
                        f"{place[2]}; expected each id once. Give all its names in one line, or further ones in "
                        "another table, with the columns name and entity."
                    )
                staging.left_out.repeated += 1
            last = (
                entity, max(last[1], float(count)), max(last[2], int(person)), last[3].or_of(about), last[4] or text
            )  # fmt: skip
        before = place
    if last is not None:
        yield last


def _follow(staging: Staging, redirects: Trie, titles: Trie) -> np.ndarray:
    """int64 (R,): the numbers of the entities that redirects lead to, NONE where they lead nowhere or in a circle. Of
    several the first counts."""
    row_R = np.full(len(redirects), NONE, np.int64)
    next_R = np.full(len(redirects), -1, np.int64)
    last = None
    for title, target in _read_redirects(staging):
        if title == last:
            continue
        last = title
        if (row := titles.get(target)) is not None:
            row_R[redirects[title]] = row
        elif (hop := redirects.get(target)) is not None:
            next_R[redirects[title]] = hop
    while True:
        open_R = np.flatnonzero((row_R == NONE) & (next_R >= 0))
        known = open_R[row_R[next_R[open_R]] != NONE]
        if not len(known):
            break
        row_R[known] = row_R[next_R[known]]
    staging.left_out.redirects = int((row_R == NONE).sum())
    return row_R


def _count_clashes(staging: Staging, titles: Trie, redirects: Trie, target_R: np.ndarray) -> None:
    """Of redirects that do not lead where they say: what was there already goes first, then own ids."""
    existing = staging.existing
    for title, target in _read_redirects(staging):
        number = _number_of(target, titles, redirects, target_R, existing)
        found = _number_of(title, titles, redirects, target_R, None)
        if number < 0 or found < 0:
            continue
        if existing is not None and (row := existing.row(title)) >= 0:
            found_id, id = existing.name_of(row), titles.restore_key(number)
            if found_id != id:
                staging.left_out.add_clash(title, found_id, id)
        elif found != number:
            staging.left_out.add_clash(title, titles.restore_key(found), titles.restore_key(number))


def _write_entities(
    staging: Staging, records: Path, folder: Path, titles: Trie, redirects: Trie, target_R: np.ndarray
) -> np.ndarray:
    """Descriptions, persons and what else is known; float64 (T,): the counts that sources gave."""
    starts_T = _new_array(folder / "description_starts.npy", "<i8", len(titles), -1)
    persons_T = _new_array(folder / "persons.npy", "|u1", len(titles), 0)
    about_T = _new_array(folder / "about_starts.npy", "<i8", len(titles), -1)
    count_T = np.zeros(len(titles), np.float64)
    end = about_end = 0
    with (
        records.open(encoding="utf8", newline="\n") as file,
        (folder / "descriptions.txt").open("wb") as texts,
        (folder / "about.txt").open("wb") as abouts,
    ):
        for record in file:
            entity, count, person, title, wikidata, url, types, name, text = record[:-1].split("\t", 8)
            number = titles[entity]
            count_T[number], persons_T[number] = float(count), int(person)
            if text:
                starts_T[number] = end
                end += texts.write(text.encode("utf8") + b"\n")
            title = title or name
            if title or wikidata or url or types:
                about_T[number] = about_end
                about_end += abouts.write(f"{title}\t{wikidata}\t{url}\t{types}\n".encode())
    for person in staging.persons:
        number = _number_of(person, titles, redirects, target_R, None)
        if number < 0:
            staging.left_out.persons += 1
        else:
            persons_T[number] = 1
    for array in (starts_T, persons_T, about_T):
        array.flush()
    return count_T


def _new_array(file: Path, descr: str, size: int, value: int) -> np.memmap:
    """An array in a file, which the system writes from time to time, so that it takes no memory for long."""
    array: np.memmap = open_memmap(file, mode="w+", dtype=descr, shape=(size,))
    array[:] = value
    return array


def _number_of(entity: str, titles: Trie, redirects: Trie, target_R: np.ndarray, existing: EntityKB | None) -> int:
    number = titles.get(entity)
    if number is None and (place := redirects.get(entity)) is not None and target_R[place] != NONE:
        number = int(target_R[place])
    if number is None and existing is not None and (row := existing.row(entity)) >= 0:
        number = titles.get(existing.name_of(row))
    return -1 if number is None else number


def _merge_names(
    staging: Staging, titles: Trie, redirects: Trie, target_R: np.ndarray, links_T: np.ndarray
) -> Iterator[Name]:
    """The names in order, each once, with their candidates, the best first. links_T (T,) gets the links."""
    groups, last = staging.groups, ""
    found: list[tuple[int, int, float]] = []
    is_link = [group.links for group in groups]
    existing = staging.existing
    for key, weight in staging.names:
        name, entity, group_text = key.split("\t")
        group = int(group_text)
        number = -1 if entity == REST else titles.get(entity)
        if number is None:
            number = _number_of(entity, titles, redirects, target_R, existing)
            if number < 0:
                _leave_out(name, entity, groups[group], staging)
                continue
        if is_link[group] and number >= 0:
            links_T[number] += weight
        if name != last:
            if found and (merged := _merge_name(last, found, staging, titles)):
                yield merged
            last, found = name, []
        found.append((group, number, weight))
    if found and (merged := _merge_name(last, found, staging, titles)):
        yield merged


def _leave_out(name: str, entity: str, group: SourceGroup, staging: Staging) -> None:
    """Count a name of an id that is not there. ValueError where such ids are errors, and of one that is to be removed
    where they are not dropped."""
    told = f"{group.title}: the name {name!r} means {entity!r}, which"
    if group.unknown != "drop" and staging.is_removed(entity):
        raise ValueError(
            f"{told} is among the ids to remove. Take it out of one of the two, or say that names of ids that are not "
            'there are left out: unknown="drop" (--unknown).'
        )
    if group.unknown == "error":
        raise ValueError(
            f"{told} no source of entities has. Add it to one, or say what becomes of such ids: "
            'unknown="add" or "drop" (--unknown).'
        )
    staging.left_out.unknown += 1


def _merge_name(name: str, found: list[tuple[int, int, float]], staging: Staging, titles: Trie) -> Name | None:
    """found: group, entity and weight, one or more."""
    limits, weight = staging.limits, sum(row[2] for row in found)
    groups = staging.groups
    kinds = {groups[of].kind for of, _, _ in found}
    if len(found) == 1 and kinds <= {"count", "uniform"} and found[0][2] >= limits.min_count and found[0][1] >= 0:
        return Name(name, weight, weight if kinds == {"count"} else 0.0, [found[0][1]], [1.0])
    priors: dict[int, float] = {}
    weights_of: dict[int, dict[int, float]] = {}
    for of, number, one in found:
        weights = weights_of.setdefault(_COUNTS if groups[of].kind == "count" else of, {})
        weights[number] = weights.get(number, 0) + one
    for of in sorted(weights_of):
        _add_shares(priors, name, weights_of[of], _ALL_COUNTS if of == _COUNTS else groups[of], staging)
    if not priors:
        return None
    best = sorted(priors.items(), key=lambda pair: (-pair[1], titles.restore_key(pair[0])))
    if limits.max_candidates is not None and len(best) > limits.max_candidates:
        staging.left_out.extra_candidates += len(best) - limits.max_candidates
        best = best[: limits.max_candidates]
    if len(weights_of) > 1 or "merged" in kinds:
        staging.left_out.check_sum(name, (prior for _, prior in best))
    total = weight if kinds == {"count"} else 0.0
    return Name(name, weight, total, [number for number, _ in best], [prior for _, prior in best])


def _add_shares(
    priors: dict[int, float], name: str, weights: dict[int, float], group: SourceGroup, staging: Staging
) -> None:
    """min(1, what is there + this group's p(entity | name))."""
    total = sum(weights.values())
    if group.kind == "probability" and total > 1 + SLACK:
        raise ValueError(f"{group.title}: the priors of the name {name!r} sum up to {total:g}; expected 1 at most.")
    for number, weight in weights.items():
        if number < 0:
            continue
        if group.kind == "count" and weight < staging.limits.min_count:
            staging.left_out.rare_candidates += 1
            continue
        if group.kind in ("probability", "merged"):
            share = weight
        else:
            share = 1 / len(weights) if group.kind == "uniform" else weight / total
        priors[number] = min(1.0, priors.get(number, 0.0) + share)
