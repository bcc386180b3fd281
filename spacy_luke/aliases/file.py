"""The file of a store of names: two lines, and sections that are mapped into memory.

    spacy_luke mentions 2                                  first line: what it is, and the version
    {"case": "exact", "names": 3, ..., "sections": {...}}  second line: sizes; [first byte, bytes, BLAKE2b] of each
                                                           section; and a digest of the line itself
    names, titles       two tries (see `aliases.trie`), which number the names and the entities
    link                float32, for each name: times linked / times occurring
    first               uint32, for each name and one more: where its candidates begin
    entities, priors    uint32 and float32, for each candidate, the best first

Version 1 had no digests. A trie with a wrong byte can end the process, so such a file is read only where something else
vouches for its bytes, as the manifest of a knowledge base does.
"""

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..stores.digests import FilePart, digest_bytes, find_changed
from ..stores.folder import is_sealed, seal
from ..text.forms import check_case

STORE_MAGIC = b"spacy_luke mentions 2\n"
UNCHECKED = b"spacy_luke mentions 1\n"
ALIGNMENT = 64
SECTIONS = ("names", "titles", "link", "first", "entities", "priors")
_AGAIN = "Copy it again, or build it again."


class Header(NamedTuple):
    """What the second line says beside the places of the sections. longest: characters of the longest name."""

    candidates: int
    case: str
    entities: int
    info: dict[str, Any]
    longest: int
    names: int


class Section(NamedTuple):
    """Bytes [start, start + size) of the file; digest: "" in a file of version 1."""

    start: int
    size: int
    digest: str

    @property
    def end(self) -> int:
        return self.start + self.size


def write_sections(file: BinaryIO, header: Header, sections: dict[str, memoryview]) -> None:
    """The two lines and the sections of a store."""
    values = {"byteorder": sys.byteorder, **header._asdict()}
    room = len(json.dumps(values, ensure_ascii=False).encode("utf8")) + 150 * (len(sections) + 1)
    start = _aligned(len(STORE_MAGIC) + room)
    places, end = {}, start
    for name, data in sections.items():
        begin = _aligned(end)
        places[name], end = Section(begin, data.nbytes, digest_bytes(data)), begin + data.nbytes
    line = json.dumps(seal({**values, "sections": places}), ensure_ascii=False).encode("utf8")
    file.write(STORE_MAGIC + line.ljust(start - len(STORE_MAGIC) - 1) + b"\n")
    end = start
    for name, place in places.items():
        file.write(bytes(place.start - end))
        file.write(sections[name])
        end = place.end


def read_header(data: memoryview, source: str, *, vouched: bool) -> tuple[Header, dict[str, Section]]:
    """What the second line says, and the places of the sections, all of them inside of the file. Raises ValueError for
    what is no store, one of another version, not a whole one, and one without digests that nobody vouches for."""
    begin = bytes(data[:100]).split(b"\n")[0]
    _check_version(begin, source, vouched=vouched)
    size = 1 << 12
    while b"\n" not in (line := bytes(data[len(begin) + 1 : size])) and size < len(data):
        size *= 2
    try:
        values = json.loads(line.split(b"\n")[0])
        if values["byteorder"] != sys.byteorder:
            raise ValueError(f"it was built on a {values['byteorder']}-endian machine")
        header = Header(*(values[key] for key in Header._fields))
        if any(type(x) is not int for x in (header.candidates, header.entities, header.longest, header.names)):
            raise ValueError("its sizes are no whole numbers")
        if not isinstance(header.info, dict):
            raise ValueError("its notes are none")
        check_case(header.case)
        if set(values["sections"]) != set(SECTIONS):
            raise ValueError(f"it has the parts {sorted(values['sections'])}")
        if begin + b"\n" == STORE_MAGIC and not is_sealed(values):
            raise ValueError("its second line is not as it was written")
        places = {
            name: Section(*(place if len(place) == 3 else (*place, ""))) for name, place in values["sections"].items()
        }
        if any(type(x) is not int or x < 0 for place in places.values() for x in place[:2]):
            raise ValueError("the places of its parts are no whole numbers")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(source, str(error)) from error
    start, end = len(begin) + 2 + line.find(b"\n"), max(place.end for place in places.values())
    if end != len(data) or start > min(place.start for place in places.values()):
        raise ValueError(
            f"{source} is not a whole store of names: expected {end:,} bytes, but it has {len(data):,}. {_AGAIN}"
        )
    return header, places


def check_digests(data: memoryview, places: dict[str, Section], *, source: str, file: Path | None) -> None:
    """Compare the digests: of a file as `stores.digests` does, and of bytes in memory always. ValueError names the
    part."""
    if file is not None:
        parts = {name: FilePart(file, place.digest, place.size, place.start) for name, place in places.items()}
        changed = find_changed(parts.values())
        wrong = [name for name, part in parts.items() if part is changed]
    else:
        wrong = [name for name, place in places.items() if digest_bytes(data[place.start : place.end]) != place.digest]
    if wrong:
        raise damaged(source, f"the digest of its part {wrong[0]!r} is not the one that was written")


def damaged(source: str, what: str) -> ValueError:
    return ValueError(f"{source} is a damaged store of names ({what}). {_AGAIN}")


def _check_version(begin: bytes, source: str, *, vouched: bool) -> None:
    magic, version = STORE_MAGIC.rsplit(b" ", 1)
    if not begin.startswith(magic + b" "):
        raise ValueError(
            f"{source} is no store of names: it begins with {begin[:40]!r}. Build one with "
            "`python -m spacy luke build-mentions`."
        )
    if begin + b"\n" == UNCHECKED and not vouched:
        raise ValueError(
            f"{source} is a store of names of version 1, which has no digests: one wrong byte in it could end the "
            "process. Build it again, or check it and add them with `python -m spacy luke add-digests "
            "FILE_OR_PIPELINE`."
        )
    if begin + b"\n" not in (STORE_MAGIC, UNCHECKED):
        raise ValueError(
            f"{source} is a store of names of version {begin[len(magic) + 1 :].decode(errors='replace')}, but this "
            f"spacy_luke reads version {version.decode().strip()}. Build it again."
        )


def _aligned(place: int) -> int:
    return -(-place // ALIGNMENT) * ALIGNMENT


def check_store_output(output: Path) -> None:
    """Raises ValueError where something else would be replaced by a store."""
    if output.is_dir():
        raise ValueError(f"{output} is a folder; expected the name of a file.")
    if output.is_file():
        with output.open("rb") as file:
            if file.read(len(STORE_MAGIC)).split(b" ")[0] != STORE_MAGIC.split(b" ")[0]:
                raise ValueError(f"{output} would be replaced, but it is no store of names. Choose another name.")
