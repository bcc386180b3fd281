"""What stores of vectors are built from: which files there are, and the names in them.

| format | vectors | names |
|---|---|---|
| ernie | `entity2vec.vec`: a line a row, numbers and tabs | `entity2id.txt`; more of them in `entity_map.txt` |
| openke | `.json` with `ent_embeddings.weight`, `.npy`, `.safetensors`, `.bin` (float32 rows) | `entity2id.txt` |
| pykeen | `.npy` or `.safetensors` | `entity_to_id.tsv.gz`, `entity_to_id.tsv`, also in `training_triples/` |
| word2vec | text: a line a row, its name first; the first line may be `rows size` | in the same file |
| numpy | `.npy` or `.safetensors` | `names.txt`: a name a line, in the order of the rows |

`entity2id.txt`: the number of entities, then `name id` lines in any order. `entity_to_id.tsv`: with a line of headings.
`entity_map.txt`: `title TAB id`. Text files are UTF-8 and may be packed with gzip.
"""

import csv
import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..stores.names import NameList
from ..stores.opening import open_source
from ..stores.plain_text import not_utf8

_FORMATS = ("ernie", "openke", "pykeen", "word2vec", "numpy")
_ARRAYS = (".npy", ".safetensors")
_NAMES = {
    "ernie": ("entity2id.txt",),
    "openke": ("entity2id.txt",),
    "pykeen": tuple(f"{folder}entity_to_id.tsv{end}" for folder in ("", "training_triples/") for end in (".gz", "")),
    "numpy": ("names.txt",),
}
_VECTORS = {"ernie": (".vec",), "openke": (".json", *_ARRAYS, ".bin"), "pykeen": _ARRAYS, "numpy": _ARRAYS}
_BOM = b"\xef\xbb\xbf"
_LARGEST = 2**62  # number of an entity in a file


@dataclass(frozen=True)
class VectorFiles:
    """The files of a source. names: None where they are in the file of the vectors; titles: further names."""

    format: str
    vectors: Path
    names: Path | None
    titles: Path | None


def find_vector_files(
    path: str | Path,
    *,
    format: str = "auto",
    names: str | Path | None = None,
    titles: str | Path | None = None,
) -> VectorFiles:
    """The files in a folder, or those that belong to a file. What is given is taken, and what is not is looked for.

    Raises ValueError where the format cannot be told or a file is missing.
    """
    path, named = Path(path), None if names is None else Path(names)
    if not path.exists():
        raise ValueError(f"Expected entity vectors at {path}, but there is no such file or folder.")
    folder = path if path.is_dir() else path.parent
    if format == "auto":
        format = _guess_format(path, named)
    elif format not in _FORMATS:
        raise ValueError(f"format must be one of {('auto', *_FORMATS)}, but it is {format!r}.")
    vectors = _only_file(path, format) if path.is_dir() else path
    if format == "word2vec":
        if named is not None:
            raise ValueError(f"word2vec files hold the names themselves; names={str(named)!r} would not be used.")
    elif named is None:
        named = next((folder / x for x in _NAMES[format] if (folder / x).is_file()), None)
        if named is None:
            raise ValueError(
                f"Expected the names of the rows in {folder}: {' or '.join(_NAMES[format])}; or give names."
            )
    if titles is None and format == "ernie" and (folder / "entity_map.txt").is_file():
        titles = folder / "entity_map.txt"
    return VectorFiles(format, vectors, named, None if titles is None else Path(titles))


def find_names_file(folder: Path) -> Path:
    """The file of names in a folder, of whichever format."""
    for files in _NAMES.values():
        for file in files:
            if (folder / file).is_file():
                return folder / file
    raise ValueError(
        f"Expected a file with the names of the rows in {folder}, or names that are given; there are none."
    )


def _guess_format(path: Path, names: Path | None) -> str:
    folder = path if path.is_dir() else path.parent
    kind = path.suffix.lower() if path.is_file() else ""
    if kind == ".pkl":
        raise ValueError(
            f"{path} is a pickle, which can run code when it is opened. Save the model's state instead, "
            'torch.save(model.state_dict(), "model.pt"), or its vectors as .npy.'
        )
    for format in ("ernie", "openke", "pykeen", "numpy"):
        has_names = names is not None or any((folder / x).is_file() for x in _NAMES[format])
        if has_names and (kind in _VECTORS[format] if path.is_file() else _candidates(path, format)):
            return format
    if path.is_file() and kind not in (".json", ".bin", *_ARRAYS):
        return "word2vec"
    pickled = " trained_model.pkl is a pickle and is not opened." if (folder / "trained_model.pkl").exists() else ""
    raise ValueError(
        f"{path} is no source of vectors that can be told: expected the files of one of {_FORMATS}, "
        f"among them the names of the rows (docs/tasks/graphs.md lists them).{pickled} Give format or names."
    )


def _candidates(folder: Path, format: str) -> list[Path]:
    files = sorted(x for x in folder.iterdir() if x.suffix.lower() in _VECTORS.get(format, ()))
    return [x for x in files if not x.name.lower().startswith("rel")]


def _only_file(folder: Path, format: str) -> Path:
    found = _candidates(folder, format)
    if len(found) != 1:
        what = ", ".join(x.name for x in found) or "none"
        kinds = " or ".join(_VECTORS.get(format, ("a text file",)))
        raise ValueError(f"Expected one file of vectors in {folder} ({kinds}), but found {what}. Give the file itself.")
    return found[0]


# ---- reading


def read_numbered_lines(path: Path, *, task: str = "reading", progress: bool = False) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and text of each line, without blank ends; blank lines at the end of the file do not count."""
    blank: list[int] = []
    with open_source(path, task=task, progress=progress) as file:
        for number, line in enumerate(file, 1):
            line = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if not line:
                blank.append(number)
                continue
            for before in blank:
                yield before, b""
            blank.clear()
            yield number, line


def read_row_names(path: Path, *, progress: bool = False) -> NameList:
    """The name of each row; an empty one where a number was left out. Raises ValueError with the line that is
    damaged."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".tsv"):
        pairs = _read_headed(path)
        return _in_order(path, pairs, None)
    if name.startswith("entity2id"):
        lines = read_numbered_lines(path, progress=progress)
        _, first = next(lines, (0, b""))
        if not first.isdigit():
            raise ValueError(f"{path}, line 1: expected the number of entities, but got {first[:60]!r}.")
        return _in_order(path, _read_pairs(path, lines), int(first))
    names = NameList()
    for number, line in read_numbered_lines(path, progress=progress):
        names.append(check_text(path, number, line))
    return names


def read_titles(path: Path, *, progress: bool = False) -> Iterator[tuple[int, bytes, bytes]]:
    """Line, title and id of each line of an `entity_map.txt`."""
    for number, line in read_numbered_lines(path, progress=progress):
        title, _, name = line.partition(b"\t")
        if not title.strip() or not name.strip() or b"\t" in name:
            raise ValueError(f"{path}, line {number}: expected a title, a tab and an id, but got {_shown(line)}.")
        yield number, check_text(path, number, title.strip()), check_text(path, number, name.strip())


def check_text(path: Path, number: int, text: bytes) -> bytes:
    """A name as it is. ValueError where it is not UTF-8."""
    try:
        if not text.isascii():
            text.decode("utf8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: {not_utf8(error, path)}") from error
    return text


def _read_pairs(path: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, int]]:
    for number, line in lines:
        name, _, row = line.rpartition(b"\t") if b"\t" in line else line.rpartition(b" ")
        if not name.strip() or not row.strip().isdigit():
            raise ValueError(
                f"{path}, line {number}: expected an entity, a tab and its number, but got {_shown(line)}."
            )
        yield number, check_text(path, number, name.strip()), int(row)


def _read_headed(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """A table with a line of headings, as pandas writes it: the columns label and id, in any order."""
    with open_source(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter="\t")
        try:
            heading = next(rows, [])
            if sorted(heading) != ["id", "label"]:
                raise ValueError(f"{path}, line 1: expected the columns id and label, but got {heading}.")
            label, number = heading.index("label"), heading.index("id")
            for row in rows:
                line = rows.line_num
                if len(row) != 2 or not row[label].strip() or "\n" in row[label] or not row[number].isdecimal():
                    raise ValueError(f"{path}, line {line}: expected an entity and its number, but got {row}.")
                yield line, row[label].strip().encode("utf8"), int(row[number])
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: {not_utf8(error, path)}") from error


def _in_order(path: Path, pairs: Iterator[tuple[int, bytes, int]], expected: int | None) -> NameList:
    """Names by their number, from numbers in any order, each at most once."""
    found, rows, lines = NameList(), array("q"), array("q")
    for line, name, row in pairs:
        if row > _LARGEST:
            raise ValueError(f"{path}, line {line}: {row} is too large a number for an entity.")
        found.append(name)
        rows.append(row)
        lines.append(line)
    if expected is not None and len(found) != expected:
        raise ValueError(
            f"{path}: the first line says {expected:,} entities, but {len(found):,} follow. The file may be truncated: "
            "copy it again, or correct its first line."
        )
    row_N = np.array(rows, np.int64)
    if np.array_equal(row_N, np.arange(len(row_N))):
        return found
    order_N = np.argsort(row_N, kind="stable")
    same = np.flatnonzero(np.diff(row_N[order_N]) == 0)
    if same.size:
        a, b = order_N[same[0]], order_N[same[0] + 1]
        raise ValueError(
            f"{path}, line {lines[b]}: {found[b].decode()!r} has the number {row_N[b]}, which {found[a].decode()!r} in "
            f"line {lines[a]} has too ({same.size:,} such numbers). Expected each number once."
        )
    most = 2 * len(row_N) + 1000
    if row_N.max() > most:
        i = int(row_N.argmax())
        raise ValueError(f"{path}, line {lines[i]}: {row_N[i]:,} is too large a number for {len(row_N):,} entities.")
    ordered, next_row = NameList(), 0
    for i in order_N.tolist():
        for _ in range(next_row, rows[i]):
            ordered.append(b"")
        ordered.append(found[i])
        next_row = rows[i] + 1
    return ordered


def _shown(line: bytes) -> str:
    return repr(line[:60].decode("utf8", "replace"))
