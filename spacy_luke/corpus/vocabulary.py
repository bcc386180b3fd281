"""Entity vocabularies from linked corpora: entities by how often they are linked, after [PAD], [UNK] and [MASK].

As `build_entity_vocab` and `build_multilingual_entity_vocab` of the original (studio-ousia/luke
luke/utils/entity_vocab.py).
What differs: special entities always have the rows 0, 1 and 2, entities that are linked equally often stand by title,
and rows have no gaps where entities are left out.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..entity_vocab import SPECIAL, EntityVocab, entity_name
from ..stores.atomic import write_folder_atomically
from ..stores.opening import open_source
from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from ..wikipedia.interwiki import Groups, Name, read_interwiki
from .linked_corpus import LinkedCorpus, read_linked_part

_FILES = ("entity_vocab.jsonl", "entity_vocab.tsv", "entities.tsv")


class EntityRow(NamedTuple):
    """An entity: how often it is linked, and its names, (language, title), the language "" where there is only one."""

    links: int
    names: list[Name]


class BuiltVocab(NamedTuple):
    """The vocabulary, and how many links and entities were found, kept and left out."""

    vocab: EntityVocab
    rows: list[EntityRow]
    counts: dict[str, int]


def build_entity_vocab(
    corpora: Sequence[LinkedCorpus],
    *,
    size: int = 500_000,
    min_count: int = 0,
    white_list: Iterable[str] = (),
    white_list_only: bool = False,
    pages_only: bool = False,
    interwiki: Sequence[str | Path] = (),
    multilingual: bool | None = None,
    min_languages: int = 1,
    engine: Engine = Engine(),
    progress: bool = False,
    work: WorkFolder | None = None,
) -> BuiltVocab:
    """The entities that are linked most.

    size: rows, those of special entities included. min_count: links that an entity of several languages has in all of
    them together. white_list: titles ("language:title" where multilingual) that come first, in their order, if they are
    linked at all, whatever their count. pages_only: entities that have a page in the corpus (the original's rule).
    interwiki: files that say which pages are one entity, besides those of the corpora: tables (language, title,
    language, title), or a dump of Wikidata.
    multilingual: names have a language, None: where there are several corpora. min_languages: corpora in whose
    languages an entity has names. work: keeps the counts of parts, so that a killed build goes on (see `work_plan`).
    Raises ValueError for two corpora of one language or one of none, and where no
    entity is left.
    """
    multilingual = len(corpora) > 1 or bool(interwiki) if multilingual is None else multilingual
    languages = _check_corpora(corpora, multilingual, min_languages)
    counts: Counter[str] = Counter()
    found: Counter[Name] = Counter()
    pages: set[Name] = set()
    for i, (corpus, language) in enumerate(zip(corpora, languages)):
        counted: Iterator[tuple[dict[str, int], list[str]]]
        if work is None:
            counted = engine.run(count_part, corpus.parts, progress=progress, task=f"links of {corpus.path.name}")
        else:
            counted = work.run(_count_kept, corpus.parts, name=f"corpus-{i}-part", engine=engine, progress=progress)
        for links, titles in counted:
            found.update({(language, title): count for title, count in links.items()})
            pages.update((language, title) for title in titles if pages_only)
    counts.update({"links": found.total(), "titles": len(found)})
    for title in [name for name in found if name[1] in SPECIAL or not name[1].strip()]:
        counts["links to titles of special entities, left out"] += found.pop(title)
    groups = _join(corpora if multilingual else (), interwiki, set(languages), progress)
    rows = _merge(found, groups, pages if pages_only else None, counts)
    first = _white_list(white_list, rows, multilingual, counts)
    kept = [row for row in first if row is not None]
    taken = {row.names[0] for row in kept}
    for row in sorted(rows, key=lambda row: (-row.links, row.names)) if not white_list_only else ():
        if row.names[0] in taken:
            continue
        if row.links < min_count:
            counts["entities below min_count, left out"] += 1
        elif len({language for language, _ in row.names}) < min_languages:
            counts["entities of too few languages, left out"] += 1
        elif len(kept) + 3 >= size:
            counts["entities beyond size, left out"] += 1
        else:
            kept.append(row)
    if not kept:
        raise ValueError(f"Expected entities for the vocabulary, but none is left: {dict(counts)}.")
    counts.update({"entities": len(kept), "links to them": sum(row.links for row in kept)})
    rows = [EntityRow(0, [("", name)]) for name in SPECIAL[:3]] + kept
    names = [(entity_name(title, language or None), i) for i, row in enumerate(rows) for language, title in row.names]
    return BuiltVocab(EntityVocab(names, counts=[row.links for row in rows]), rows, dict(counts))


def count_part(path: Path) -> tuple[dict[str, int], list[str]]:
    """Links to each title in a part of a corpus, and the titles of its pages."""
    links: Counter[str] = Counter()
    pages: dict[str, None] = {}
    for paragraph in read_linked_part(path):
        links.update(title for _, _, title in paragraph.links)
        pages[paragraph.page] = None
    return dict(links), list(pages)


def _count_kept(folder: Path, name: str, path: Path) -> tuple[dict[str, int], list[str]]:
    """A task of a folder of work."""
    return count_part(path)


def work_plan(corpora: Sequence[LinkedCorpus]) -> dict[str, Any]:
    """What the counts of parts follow from: the parts' contents."""
    return {"counts of links": [corpus.digest for corpus in corpora]}


def save_entity_vocab(built: BuiltVocab, folder: Path) -> list[Path]:
    """entity_vocab.jsonl; entity_vocab.tsv (title TAB count), where each row has one name without a language; and
    entities.tsv to be read by people: row, count, share of all links to rows up to it, names.

    An older vocabulary there is replaced. ValueError where the folder holds something else.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - set(_FILES)):
        raise ValueError(f"{folder} would be replaced, but it holds something else than an entity vocabulary.")
    lines: dict[str, list[str]] = {name: [] for name in _FILES}
    lines["entities.tsv"].append("row\tcount\tshare of links\tnames")
    total, sum_so_far = max(1, sum(row.links for row in built.rows)), 0
    for i, (count, names) in enumerate(built.rows):
        entities = [[title, language or None] for language, title in names]
        item: dict[str, Any] = {"id": i, "entities": entities, "count": count}
        sum_so_far += count
        shown = " | ".join(entity_name(title, language or None) for language, title in names)
        lines["entity_vocab.jsonl"].append(json.dumps(item, ensure_ascii=False))
        lines["entity_vocab.tsv"].append(f"{names[0][1]}\t{count}")
        lines["entities.tsv"].append(f"{i}\t{count}\t{sum_so_far / total:.4f}\t{shown}")
    if any(language for row in built.rows for language, _ in row.names):
        del lines["entity_vocab.tsv"]
    with write_folder_atomically(folder) as new:
        for name, texts in lines.items():
            (new / name).write_bytes("".join(f"{text}\n" for text in texts).encode("utf8"))
    return [folder / name for name in lines]


def read_white_list(path: Path) -> list[str]:
    """Titles, one a line."""
    with open_source(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines:
        return [title for line in lines if (title := line.strip())]


def _check_corpora(corpora: Sequence[LinkedCorpus], multilingual: bool, min_languages: int) -> list[str]:
    """The language of each corpus, "" where names have none."""
    if not corpora:
        raise ValueError("Expected at least one linked corpus, but got none.")
    if not multilingual:
        if len(corpora) > 1 or min_languages > 1:
            raise ValueError(f"Names without a language are those of one corpus, but there are {len(corpora)}.")
        return [""]
    languages = [corpus.language or "" for corpus in corpora]
    for i, (corpus, language) in enumerate(zip(corpora, languages)):
        if not language or language in languages[:i]:
            raise ValueError(
                f"Expected corpora of different languages, but that of {corpus.path} is {language!r}"
                f"{' again' if language else ''}; build it with the right --language."
            )
    return languages


def _join(
    corpora: Sequence[LinkedCorpus], interwiki: Sequence[str | Path], languages: set[str], progress: bool
) -> Groups:
    """Pages of the languages that there are; other languages would take much memory."""
    groups = Groups()
    for path in [*(corpus.interwiki for corpus in corpora), *interwiki]:
        for names in read_interwiki(Path(path), progress=progress) if path is not None else ():
            groups.join([name for name in names if name[0] in languages])
    return groups


def _merge(found: Counter[Name], groups: Groups, pages: set[Name] | None, counts: Counter[str]) -> list[EntityRow]:
    """Names of one entity together, the most linked one first. pages: names that may be in the vocabulary."""
    merged: dict[Name, list[Name]] = {}
    for name in sorted(found):
        if pages is not None and name not in pages:
            counts["titles without a page, left out"] += 1
        else:
            merged.setdefault(groups.find(name), []).append(name)
    rows = []
    for names in merged.values():
        names.sort(key=lambda name: (-found[name], name))
        counts["titles joined with others over interwiki links"] += len(names) - 1
        rows.append(EntityRow(sum(found[name] for name in names), names))
    return rows


def _white_list(
    titles: Iterable[str], rows: list[EntityRow], multilingual: bool, counts: Counter[str]
) -> list[EntityRow | None]:
    """The rows of a white list, each once, None where none has the title."""
    wanted = list(dict.fromkeys(titles))
    if not wanted:
        return []
    by_key = {
        entity_name(title, language if multilingual else None): row for row in rows for language, title in row.names
    }
    listed: list[EntityRow | None] = []
    seen: set[Name] = set()
    for title in wanted:
        row = by_key.get(title)
        counts["titles of the white list without a link"] += row is None
        if row is None or row.names[0] not in seen:
            listed.append(row)
        if row is not None:
            seen.add(row.names[0])
    return listed
