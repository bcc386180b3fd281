"""Reading knowledge graphs: triples by name or OpenKE's numbers, plain or .gz; facts that must not be learnt are
removed.

train.tsv      head TAB relation TAB tail, names, a triple a line, no line that names columns (FB15k-237, CoDEx);
               quotes as in other .tsv (see `stores.tabs`), but a line is a triple
train2id.txt   OpenKE and ERNIE: the number of triples, then `head tail relation` as numbers from 0; names from
               entity2id.txt and relation2id.txt beside it (their number, then name TAB number), where they are there
"""

import codecs
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..stores.opening import open_source
from ..stores.plain_text import check_line_end, not_utf8, read_lines
from ..stores.tabs import split_tabs

TRIPLE_SPLITS = ("train", "valid", "test")
_TRIPLE = "`head TAB relation TAB tail`"
_PAIR = "`entity TAB entity` or `head TAB tail TAB relation`"
_HEADERS = (  # first lines that name columns, in small letters
    {"head", "subject", "subj", "source", "from", "h", "s"},
    {"relation", "predicate", "pred", "property", "rel", "edge", "label", "r", "p"},
    {"tail", "object", "obj", "target", "to", "t", "o"},
)


@dataclass(frozen=True)
class Graph:
    """A knowledge graph whose entities and relations are numbered from 0.

    triples: "train", "valid" and "test", int32 (T, 3) of head, relation, tail; `excluded` counts what was removed.
    """

    entities: list[str]
    relations: list[str]
    triples: dict[str, np.ndarray]
    excluded: dict[str, int] = field(default_factory=dict)

    def known(self) -> np.ndarray:
        """All triples that are true, int32 (T, 3)."""
        return np.concatenate([self.triples[split] for split in TRIPLE_SPLITS])

    def trained_entities(self) -> np.ndarray:
        """int64, ascending: the entities of one or more training triples; others have no vector worth the name."""
        return np.unique(self.triples["train"][:, [0, 2]]).astype(np.int64)

    def untrained(self, split: str) -> int:
        """How many triples of a split have an entity or a relation that no training triple has: their ranks are those
        of vectors that nothing was learnt for."""
        trained, triples = self.triples["train"], self.triples[split]
        known_E, known_R = np.zeros(len(self.entities), bool), np.zeros(len(self.relations), bool)
        known_E[trained[:, [0, 2]]], known_R[trained[:, 1]] = True, True
        return int((~(known_E[triples[:, [0, 2]]].all(1) & known_R[triples[:, 1]])).sum())


def read_graph(
    train: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    exclude: str | Path | None = None,
    progress: bool = False,
) -> Graph:
    """Files of triples. exclude: `entity TAB entity` a line, or `head TAB tail TAB relation`, as `spacy luke corpus
    --pair-ids` writes it; triples of these two, in both directions, are removed from all files. ValueError for lines
    that are no triples, with file and line, and where nothing is left of what is given."""
    files = {"train": list(train), "valid": [valid] if valid else [], "test": [test] if test else []}
    names = _Names()
    triples = {}
    for split in TRIPLE_SPLITS:
        parts = [_read_triples(Path(path), names, progress=progress) for path in files[split]]
        triples[split] = np.concatenate([np.empty((0, 3), np.int32), *parts])
    excluded: dict[str, int] = {}
    if exclude is not None:
        pairs_P2, excluded = _read_pairs(Path(exclude), names)
        for split in TRIPLE_SPLITS:
            kept_T = ~_has_pair(triples[split], pairs_P2, len(names.entities))
            excluded[split] = int((~kept_T).sum())
            triples[split] = triples[split][kept_T]
    for split, what in zip(TRIPLE_SPLITS, ("learn from", "choose an epoch by", "report on"), strict=True):
        if (files[split] or split == "train") and not len(triples[split]):
            removed = f"; {excluded[split]:,} were excluded" if excluded else ""
            raise ValueError(
                f"Expected triples to {what} in {', '.join(map(str, files[split]))}, but there are none{removed}. Give "
                f"others{'' if split == 'train' else f', or leave --{split} out'}."
            )
    return Graph(list(names.entities), list(names.relations), triples, excluded)


class _Names:
    """Numbers of names, in the order in which they come."""

    def __init__(self) -> None:
        self.entities: dict[str, int] = {}
        self.relations: dict[str, int] = {}
        self.folder: Path | None = None  # of OpenKE's tables, once they are read

    def read_openke(self, folder: Path, *, entities: int, relations: int) -> None:
        """Tables of a folder, once; without tables the numbers are the names."""
        if self.folder == folder:
            if entities > len(self.entities) or relations > len(self.relations):
                self._number(entities, relations, folder)
            return
        if self.entities:
            raise ValueError(
                f"Triples of numbers in {folder} cannot be read with others: their numbers mean other entities. "
                "Give all files in one format and from one folder."
            )
        self.folder = folder
        self._number(entities, relations, folder)

    def _number(self, entities: int, relations: int, folder: Path) -> None:
        for kind, count, numbers in (("entity", entities, self.entities), ("relation", relations, self.relations)):
            path = folder / f"{kind}2id.txt"
            if not path.exists():
                numbers.update({str(i): i for i in range(len(numbers), count)})
            elif not numbers:
                numbers.update(_read_table(path))
            if count > len(numbers):
                raise ValueError(f"{path} has {len(numbers):,} names, but a triple has number {count - 1:,}.")


def _read_table(path: Path) -> dict[str, int]:
    """OpenKE's entity2id.txt: its number of lines, then name TAB number; numbers in any order, each once."""
    lines = read_lines(path) or [""]
    found: dict[int, str] = {}
    for i, line in enumerate(lines[1:], start=2):
        name, _, number = line.rpartition("\t") if "\t" in line else line.rpartition(" ")
        if not name or not number.strip().isdigit() or int(number) in found:
            raise ValueError(f"{path}, line {i}: expected `name TAB number`, each number once, but got {line!r}.")
        found[int(number)] = name
    if lines[0].strip() != str(len(found)) or sorted(found) != list(range(len(found))):
        raise ValueError(
            f"{path}: expected as many names as its first line says, numbered from 0, but it says "
            f"{lines[0].strip()!r} and has {len(found):,}, up to number {max(found, default=-1):,}. Is the file whole?"
        )
    table = {found[i]: i for i in range(len(found))}
    if len(table) < len(found):
        raise ValueError(f"{path}: expected each name once, but {len(found) - len(table):,} come again.")
    return table


def _read_triples(path: Path, names: _Names, *, progress: bool) -> np.ndarray:
    if not path.is_file():
        raise ValueError(f"There is no file of triples {path}.")
    with open_source(path, progress=progress) as file:
        first = file.readline().removeprefix(codecs.BOM_UTF8)
        if first.strip().isdigit():
            return _read_openke(file, path, int(first), names)
        return _read_named(_rows(first, file, path, _TRIPLE, sizes=(3,)), path, names)


def _rows(
    first: bytes, file: BinaryIO, path: Path, expected: str, *, sizes: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    """The names of each line of a file whose first line is read, and the line's number; of lines with blanks alone
    none. sizes: how many names a line may have, of which the fewest are no empty ones."""
    for i, raw in enumerate(_lines(first, file), start=1):
        try:
            line = raw.decode("utf8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {i}: {not_utf8(error, path)}") from error
        check_line_end(path, i, line)
        parts = split_tabs(line)
        if not parts:
            continue
        if len(parts) not in sizes or not all(parts[: sizes[0]]) or parts != [part.strip() for part in parts]:
            raise ValueError(
                f"{path}, line {i}: expected {expected}, but got {line!r}. Names have no blanks at their ends."
            )
        yield i, parts


def _lines(first: bytes, file: BinaryIO) -> Iterator[bytes]:
    """Lines of a file whose first line is read: `wrapattr` and gzip see reads of a megabyte."""
    rest = first
    while block := file.read(1 << 20):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest.removesuffix(b"\n")


def _read_named(rows: Iterator[tuple[int, list[str]]], path: Path, names: _Names) -> np.ndarray:
    if names.folder is not None:
        raise ValueError(f"{path} has triples of names, but other files have OpenKE's numbers. Give one format.")
    found = array("i")
    entities, relations = names.entities, names.relations
    for i, (head, relation, tail) in rows:
        if i == 1 and all(x.lower() in known for x, known in zip((head, relation, tail), _HEADERS, strict=True)):
            raise ValueError(
                f"{path}, line 1: expected a triple, but {[head, relation, tail]} names columns. Remove this line."
            )
        found.append(entities.setdefault(head, len(entities)))
        found.append(relations.setdefault(relation, len(relations)))
        found.append(entities.setdefault(tail, len(entities)))
    return np.array(found, np.int32).reshape(-1, 3)


def _read_openke(file: BinaryIO, path: Path, count: int, names: _Names) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # so numpy says that it met something else than numbers
            numbers = np.fromstring(file.read(), np.int64, sep=" ")
    except (DeprecationWarning, ValueError) as error:
        raise ValueError(f"{path}: expected three numbers a line after the first, but something else came.") from error
    if len(numbers) != 3 * count:
        raise ValueError(
            f"{path}: its first line says {count:,} triples, which are {3 * count:,} numbers, but there are "
            f"{len(numbers):,}. Is the file whole?"
        )
    triples = numbers.reshape(-1, 3)[:, [0, 2, 1]]
    if count:
        if triples.min() < 0:
            line = int(np.flatnonzero(triples.min(1) < 0)[0]) + 2
            raise ValueError(f"{path}, line {line}: expected numbers from 0, but got {triples[line - 2].min()}.")
        highest = triples.max(0)
        names.read_openke(path.parent, entities=int(max(highest[0], highest[2])) + 1, relations=int(highest[1]) + 1)
    return triples.astype(np.int32)


def _read_pairs(path: Path, names: _Names) -> tuple[np.ndarray, dict[str, int]]:
    """Pairs of the graph's entities, int64 (P, 2), and how many lines there are, and of entities in the graph."""
    pairs: set[tuple[str, str]] = set()
    found = []
    with open_source(path) as file:
        first = file.readline().removeprefix(codecs.BOM_UTF8)
        for i, (head, tail, *more) in _rows(first, file, path, _PAIR, sizes=(2, 3)):
            if more and tail in names.relations:
                raise ValueError(
                    f"{path}, line {i}: expected {_PAIR}, but got {[head, tail, *more]}, whose second name is that of "
                    "a relation."
                )
            pairs.add((head, tail))
            numbers = [names.entities.get(name) for name in (head, tail)]
            if None not in numbers:
                found.append(numbers)
    counts = {"pairs": len(pairs), "pairs_of_entities_in_graph": len({tuple(pair) for pair in found})}
    return np.array(found, np.int64).reshape(-1, 2), counts


def _has_pair(triples_T3: np.ndarray, pairs_P2: np.ndarray, num_entities: int) -> np.ndarray:
    """bool (T,): head and tail are one of the pairs, in one of the two directions."""
    low_P, high_P = pairs_P2.min(1, initial=num_entities), pairs_P2.max(1, initial=0)
    ends_T2 = triples_T3[:, [0, 2]].astype(np.int64)
    return np.isin(ends_T2.min(1) * num_entities + ends_T2.max(1), low_P * num_entities + high_P)
