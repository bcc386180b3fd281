"""PPRforNED (Pershina et al., 2015): candidates of AIDA's mentions, a file a document, in a folder or its archive."""

import lzma
import tarfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from .linking import title_of

_WIKIPEDIA = "/wiki/"


class ListedMention(NamedTuple):
    """A mention of a file with its candidates [(title, prior), ...] by title. text: as it stands in the document
    ("origText"; the files' own "text" is a longer mention of the same entity); entity: its gold title, or NIL."""

    text: str
    entity: str
    candidates: list[tuple[str, float]]


def read_pprforned(path: str | Path) -> dict[int, list[ListedMention]]:
    """Mentions by number of the document in AIDA: 1-946 train, 947-1162 testa, 1163-1393 testb.

    path: the folder that has the numbered files at any depth, or the .tar.xz. The files write the right candidate
    first: here they are sorted by title, so that their order tells nothing. The files have no priors; they have the
    number of Wikipedia's links to each candidate ("inCount"), and the prior is its share of those to all candidates of
    the mention, or an equal share where there are none.

    Raises ValueError, naming file and line, for anything that is not of the format, and where there are no such files.
    """
    path = Path(path)
    found: dict[int, list[ListedMention]] = {}
    if path.is_dir():
        for one in path.rglob("*"):
            if one.is_file() and one.name.isdecimal():
                found[int(one.name)] = _read_file(str(one), one.read_bytes())
    else:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    name = Path(member.name).name
                    file = archive.extractfile(member) if member.isfile() and name.isdecimal() else None
                    if file is not None:
                        found[int(name)] = _read_file(f"{path}, {member.name}", file.read())
        except (tarfile.TarError, EOFError, lzma.LZMAError) as error:
            raise ValueError(f"{path}: expected the archive of PPRforNED, but {error}.") from None
    if not found:
        raise ValueError(f"{path}: expected files named by numbers, as PPRforNED has, but there are none.")
    return found


def _read_file(where: str, raw: bytes) -> list[ListedMention]:
    mentions: list[tuple[str, str, dict[str, int]]] = []
    try:
        lines = raw.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: expected UTF-8, but byte {error.start} is {error.object[error.start]:#04x}."
        ) from None
    for number, line in enumerate(lines, 1):
        kind, *cells = line.rstrip("\r").split("\t")
        fields = {name: value for name, mark, value in (cell.partition(":") for cell in cells) if mark}
        at = f"{where}, line {number}"
        if kind == "ENTITY":
            mentions.append((_field(at, fields, "origText"), _title(_field(at, fields, "url")), {}))
        elif kind == "CANDIDATE" and mentions:
            count = _field(at, fields, "inCount")
            if not count.isdecimal():
                raise ValueError(f"{at}: expected a number under inCount, but it is {count!r}.")
            counts = mentions[-1][2]
            title = _title(_field(at, fields, "url"))
            counts[title] = max(int(count), counts.get(title, 0))
        elif line.strip():
            raise ValueError(f"{at}: expected ENTITY, and CANDIDATE after it, but got {line[:60]!r}.")
    return [ListedMention(text, entity, _priors(counts)) for text, entity, counts in mentions]


def _field(where: str, fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise ValueError(f"{where}: expected a field {name!r}, but it has {sorted(fields)}.")
    return fields[name]


def _title(url: str) -> str:
    return title_of("" if url == "NIL" else unquote(url.partition(_WIKIPEDIA)[2] or url))


def _priors(counts: dict[str, int]) -> list[tuple[str, float]]:
    total = sum(counts.values())
    return [(title, counts[title] / total if total else 1 / len(counts)) for title in sorted(counts)]
