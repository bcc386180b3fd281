"""Entity vocabularies from linked corpora: entities by how often they are linked, after [PAD], [UNK] and [MASK].

As `build_entity_vocab` and `build_multilingual_entity_vocab` of the original (studio-ousia/luke
luke/utils/entity_vocab.py).
What differs: special entities always have the rows 0, 1 and 2, entities that are linked equally often stand by title,
and rows have no gaps where entities are left out.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..entity_vocab import SPECIAL, EntityVocab, entity_name
from ..stores.atomic import write_folder_atomically
from ..stores.parallel import Engine
from ..stores.sorting import SortedSums
from ..stores.unicode_forms import warn_of_forms
from ..stores.work_folder import WorkFolder
from ..wikipedia.interwiki import Name, read_interwiki
from .linked_corpus import LinkedCorpus, read_linked_part
from .numbered_names import NumberedNames, group_names, line_to_name, name_to_line
from .white_list import find_redirects, name_redirects

_BREAKS = re.compile(r"[\n\r\t]")
_FILES = ("entity_vocab.jsonl", "entity_vocab.tsv", "entities.tsv")
_SPECIAL_TITLES = "titles of special entities"


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
    linked at all, whatever their count; a redirect among them becomes a further name of the entity where it leads, so
    that lists of an older dump are found. pages_only: entities that have a page in the corpus (the original's rule).
    interwiki: files that say which pages are one entity, besides those of the corpora: tables (language, title,
    language, title), or a dump of Wikidata.
    multilingual: names have a language, None: where there are several corpora. min_languages: corpora in whose
    languages an entity has names. work: keeps the counts of parts, so that a killed build goes on (see `work_plan`).
    Raises ValueError for two corpora of one language or one of none, and where no
    entity is left.
    """
    multilingual = len(corpora) > 1 or bool(interwiki) if multilingual is None else multilingual
    languages = _check_corpora(corpora, multilingual, min_languages)
    with ExitStack() as stack:
        if work is None:
            folder = Path(stack.enter_context(TemporaryDirectory()))
        else:
            folder = work.path / "names"
            shutil.rmtree(folder, ignore_errors=True)  # of a build that was killed
            folder.mkdir()
        found, pages = SortedSums(folder / "links"), SortedSums(folder / "pages")
        counts: Counter[str] = Counter()
        for i, (corpus, language) in enumerate(zip(corpora, languages)):
            counted: Iterator[tuple[dict[str, int], list[str]]]
            if work is None:
                counted = engine.run(count_part, corpus.parts, progress=progress, task=f"links of {corpus.path.name}")
            else:
                counted = work.run(_count_kept, corpus.parts, name=f"corpus-{i}-part", engine=engine, progress=progress)
            _add_counted(counted, language, found, pages if pages_only else None, counts)
        names = NumberedNames(found, folder / "names")
        counts["titles"] = len(names) + counts.pop(_SPECIAL_TITLES, 0)
        has_page_N = names.among(pages) if pages_only else np.ones(len(names), bool)
        groups = _groups(corpora if multilingual else (), interwiki, set(languages), progress)
        entity_N = group_names(names, groups, folder / "interwiki")
        entities = _Entities(names, entity_N, has_page_N, counts)
        listed = list(white_list)
        leads = find_redirects(listed, corpora, languages)
        first = entities.listed([leads.get(name, name) for name in listed], multilingual)
        rest = entities.best(size - 3 - len(first), first, min_count, min_languages) if not white_list_only else []
        kept = entities.rows([*first, *rest])
    if not kept:
        raise ValueError(f"Expected entities for the vocabulary, but none is left: {dict(counts)}.")
    counts.update({"entities": len(kept), "links to them": sum(row.links for row in kept)})
    if leads:
        followed = name_redirects([row.names for row in kept], leads)
        counts["titles of the white list that are redirects, followed"] = followed
    rows = [EntityRow(0, [("", name)]) for name in SPECIAL[:3]] + kept
    labelled = [
        (entity_name(title, language or None), i) for i, row in enumerate(rows) for language, title in row.names
    ]
    row_of = dict(labelled)
    warn_of_forms(row_of, row_of.get, what="titles")
    return BuiltVocab(EntityVocab(labelled, counts=[row.links for row in rows]), rows, dict(counts))


def _add_counted(
    counted: Iterable[tuple[dict[str, int], list[str]]],
    language: str,
    found: SortedSums,
    pages: SortedSums | None,
    counts: Counter[str],
) -> None:
    """What parts of a corpus have, and links to titles of special entities, which are left out."""
    specials: set[str] = set()
    for links, titles in counted:
        for title, count in links.items():
            counts["links"] += count
            if title in SPECIAL or not title.strip():
                counts["links to titles of special entities, left out"] += count
                specials.add(title)
            else:
                found.add(name_to_line((language, title)), count)
        for title in titles if pages is not None else ():
            pages.add(name_to_line((language, title)), 1)  # type: ignore[union-attr]
    counts[_SPECIAL_TITLES] += len(specials)


class _Entities:
    """Entities by the lowest number of their names, of which the most linked one stands for them.

    entity_N: of each name; kept_N: names that may be in the vocabulary.
    """

    def __init__(
        self,
        names: NumberedNames,
        entity_N: NDArray[np.int64],
        kept_N: NDArray[np.bool_],
        counts: Counter[str],
    ) -> None:
        self.names, self.entity_N, self.kept_N, self.counts = names, entity_N, kept_N, counts
        size = len(names)
        self.links_N, self.names_N = np.zeros(size, np.int64), np.zeros(size, np.int32)
        np.add.at(self.links_N, entity_N, names.links_N)
        np.add.at(self.names_N, entity_N, kept_N)
        if not kept_N.all():
            np.subtract.at(self.links_N, entity_N[~kept_N], names.links_N[~kept_N])
        if left_out := size - int(kept_N.sum()):
            counts["titles without a page, left out"] = left_out
        if self.names_N.any():
            counts["titles joined with others over interwiki links"] += int((self.names_N[self.names_N > 0] - 1).sum())

    def listed(self, titles: Iterable[str], multilingual: bool) -> list[int]:
        """Entities of a white list, each once."""
        wanted = dict.fromkeys(titles)
        if not wanted:
            return []
        numbers: dict[str, int] = {}
        for i, key in enumerate(self.names):
            language, title = line_to_name(key)
            name = entity_name(title, language if multilingual else None)
            if name in wanted and self.kept_N[i]:
                numbers[name] = i
        self.counts["titles of the white list without a link"] += len(wanted) - len(numbers)
        return list(dict.fromkeys(int(self.entity_N[numbers[title]]) for title in wanted if title in numbers))

    def best(self, most: int, taken: list[int], min_count: int, min_languages: int) -> list[int]:
        """The most linked entities, at most so many, without those that are taken."""
        able = self.names_N > 0
        able[taken] = False
        often = self.links_N >= min_count
        self._count("entities below min_count, left out", able & ~often)
        able &= often
        if min_languages > 1:
            in_languages = self._languages() >= min_languages
            self._count("entities of too few languages, left out", able & ~in_languages)
            able &= in_languages
        most, beyond = max(0, most), int(able.sum()) - max(0, most)
        if beyond > 0:
            self.counts["entities beyond size, left out"] = beyond
            links = self.links_N[able]
            links.partition(min(beyond, len(links) - 1))
            able &= self.links_N >= links[min(beyond, len(links) - 1)]
        able_A = np.flatnonzero(able)
        order = np.lexsort((self._heads(able_A), -self.links_N[able_A]))
        return [int(x) for x in able_A[order[:most]]]

    def _count(self, what: str, left_out: NDArray[np.bool_]) -> None:
        if left_out.any():
            self.counts[what] = int(left_out.sum())

    def _languages(self) -> NDArray[np.int64]:
        """In how many languages each has names."""
        n = max(1, len(self.names.languages))
        pairs = np.unique(self.entity_N[self.kept_N] * n + self.names.language_N[self.kept_N])
        return np.bincount(pairs // n, minlength=len(self.names))

    def _names_of(self, entities: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the names of entities, one entity after the other, their most linked names first."""
        wanted = np.zeros(len(self.names), bool)
        wanted[entities] = True
        own = np.flatnonzero(wanted[self.entity_N] & self.kept_N)
        return own[np.lexsort((own, -self.names.links_N[own], self.entity_N[own]))]

    def _heads(self, entities: NDArray[np.int64]) -> NDArray[np.int64]:
        """The most linked name of each; entities: ascending."""
        own = self._names_of(entities)
        return own[np.unique(self.entity_N[own], return_index=True)[1]]

    def rows(self, entities: list[int]) -> list[EntityRow]:
        own = self._names_of(np.array(entities, np.int64))
        names: dict[int, list[Name]] = {}
        texts = self.names.take(own)
        for number in own:
            names.setdefault(int(self.entity_N[number]), []).append(texts[int(number)])
        return [EntityRow(int(self.links_N[x]), names[x]) for x in entities]


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


def save_entity_vocab(built: BuiltVocab, folder: str | Path) -> list[Path]:
    """entity_vocab.jsonl; entity_vocab.tsv (title TAB count), where it can hold all names (see `no_tsv`); and
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
        shown = " | ".join(entity_name(_in_one_line(title), language or None) for language, title in names)
        lines["entity_vocab.jsonl"].append(json.dumps(item, ensure_ascii=False))
        lines["entity_vocab.tsv"].append(f"{names[0][1]}\t{count}")
        lines["entities.tsv"].append(f"{i}\t{count}\t{sum_so_far / total:.4f}\t{shown}")
    if no_tsv(built) is not None:
        del lines["entity_vocab.tsv"]
    with write_folder_atomically(folder) as new:
        for name, texts in lines.items():
            (new / name).write_bytes("".join(f"{text}\n" for text in texts).encode("utf8"))
    return [folder / name for name in lines]


def no_tsv(built: BuiltVocab) -> str | None:
    """Why no entity_vocab.tsv can hold the vocabulary, whose lines are a title, a tab and a count; None where one
    can."""
    names = [name for row in built.rows for name in row.names]
    if any(language for language, _ in names):
        return "it has no room for languages"
    if len(names) > len(built.rows):
        return "it has room for one name an entity, and some of the white list are redirects of others"
    odd = [title for _, title in names if _in_one_line(title) != title]
    if not odd:
        return None
    return (
        f"a line break or a tab is in {len(odd)} titles, the first of which is {odd[0][:80]!r}. entity_vocab.jsonl has "
        "all of them and is read; for code that wants the .tsv, mend the ids (kb_id_) of the documents"
    )


def _in_one_line(title: str) -> str:
    """A title without what ends the fields and lines of a table."""
    return _BREAKS.sub(lambda sign: repr(sign[0])[1:-1], title)


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


def _groups(
    corpora: Sequence[LinkedCorpus], interwiki: Sequence[str | Path], languages: set[str], progress: bool
) -> Iterator[list[Name]]:
    """Pages of the languages that there are, which are one entity."""
    for path in [*(corpus.interwiki for corpus in corpora), *interwiki]:
        for names in read_interwiki(Path(path), progress=progress) if path is not None else ():
            yield [name for name in names if name[0] in languages]
