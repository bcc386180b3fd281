"""Inputs of a run: files, folders of them, and standard input, as one stream of texts in an order that stays."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..stores.opening import find_files, open_source
from ..stores.plain_text import printable_name
from .given_texts import GivenText, InputItem
from .input_formats import BY_LINES, BY_PLACES, InputFields
from .run_folder import ERRORS, PLAN

_STANDARD = "-"  # the name of standard input
SUFFIXES = {
    ".txt": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".spacy": "spacy",
}
_PACKED = (".gz", ".bz2")
INPUT_FORMATS = (*BY_LINES, *BY_PLACES)


@dataclass(frozen=True)
class InputFile:
    """path: None: standard input; name: as it is called in places and ids; size: bytes, None: nobody knows."""

    path: Path | None
    name: str
    format: str
    size: int | None


class Inputs:
    """All files of a run, in the order in which they are read. fields: where records have their texts and ids; read:
    bytes that were read so far; size: of all, None: nobody knows; left_out: of folders, files of other kinds; unseen:
    names of fields that are to go along, of which no record was read so far."""

    def __init__(
        self,
        files: Sequence[InputFile],
        fields: InputFields,
        folders: Sequence[Path] = (),
        left_out: Sequence[Path] = (),
    ) -> None:
        self.files, self.fields, self._folders, self.left_out = files, fields, folders, left_out
        self.read = 0
        self.unseen = set(fields.others or ())
        sizes = [x.size for x in files]
        self.size = None if None in sizes else sum(x for x in sizes if x is not None)

    def __iter__(self) -> Iterator[InputItem]:
        before = 0
        for file in self.files:
            for item in self._read_file(file):
                if self.unseen and isinstance(item, GivenText) and item.fields:
                    self.unseen -= json.loads(item.fields).keys()
                yield item
            before += file.size or 0
            self.read = max(before, self.read) if file.size is None else before

    def check_outside(self, output: Path) -> None:
        """ValueError where what is written would be read, too."""
        for folder in self._folders:
            if output.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"{output} lies in {folder}, which is read. Choose a folder elsewhere.")

    def _read_file(self, file: InputFile) -> Iterator[InputItem]:
        if file.format in BY_PLACES:
            assert file.path is not None
            yield from BY_PLACES[file.format](file.path, file.name, self.fields)
        elif file.path is None:
            yield from BY_LINES[file.format](sys.stdin.buffer, file.name, self.fields)
        else:
            with open_source(file.path, count=self._count) as bytes_:
                yield from BY_LINES[file.format](bytes_, file.name, self.fields)

    def _count(self, size: int) -> None:
        self.read += size


def find_inputs(
    sources: Sequence[str | Path], *, format: str | None = None, fields: InputFields = InputFields()
) -> Inputs:
    """Files and folders, or "-" for standard input. format: one of INPUT_FORMATS; None: as the suffix of a file says,
    JSON lines of standard input.

    Folders are read in the order of the paths in them, all files of the formats, hidden ones left out. ValueError where
    a source is not there, its format is not known, or a folder has no such file.
    """
    files: list[InputFile] = []
    folders: list[Path] = []
    left_out: list[Path] = []
    for source in sources:
        path = Path(source)
        if str(source) == _STANDARD:
            files.append(_standard_input(format))
        elif path.is_dir():
            found, others = _files_of(path, format)
            files += found
            left_out += others
            folders.append(path)
        elif path.is_file():
            files.append(_file(path, format))
        else:
            is_other = path.exists()
            advice = " Pipe texts to standard input, and name it -: COMMAND | spacy luke apply PIPELINE - OUTPUT."
            raise ValueError(
                "Expected a file or a folder of texts, or - for standard input, but "
                f"{printable_name(path)} is {'neither' if is_other else 'not there'}.{advice if is_other else ''}"
            )
    if sum(x.path is None for x in files) > 1:
        raise ValueError("Standard input (-) can be read once, but it is named several times.")
    _check_once(files)
    return Inputs(files, fields, folders, left_out)


def _check_once(files: Sequence[InputFile]) -> None:
    """ValueError where a file would be read twice, such as by its name and in its folder."""
    seen: set[Path] = set()
    for path in (x.path.resolve() for x in files if x.path is not None):
        if path in seen:
            raise ValueError(
                f"{printable_name(path)} would be read twice: it is named twice, or named and in a folder. Name it "
                "once."
            )
        seen.add(path)


def _standard_input(format: str | None) -> InputFile:
    if format in BY_PLACES:
        raise ValueError(f"Standard input cannot be {format}, which is read from places in a file: write it to a file.")
    return InputFile(None, _STANDARD, format or "jsonl", None)


def _files_of(folder: Path, format: str | None) -> tuple[list[InputFile], list[Path]]:
    """Those that are read, and those of other kinds."""
    paths = find_files(folder)
    failed = {x.parent / ERRORS for x in paths if x.name == PLAN}  # of folders that were written by this command
    texts = [x for x in paths if x not in failed]
    wanted = [x for x in texts if (known := _format_of(x)) and (format is None or _reads(format, known))]
    if not wanted:
        raise ValueError(
            f"{printable_name(folder)} has no file of texts: expected {', '.join(SUFFIXES)}, the first six also with "
            f"{' or '.join(_PACKED)}, but it has {[printable_name(Path(x.name)) for x in paths[:5]] or 'no files'}."
        )
    return [_file(x, format) for x in wanted], [x for x in paths if x not in set(wanted)]


def _reads(format: str, known: str) -> bool:
    """Whether files of a suffix are of a format that was asked for; a text a line is of the same files as a text."""
    return known == format or (format == "lines" and known == "text")


def _file(path: Path, format: str | None) -> InputFile:
    known = format or _format_of(path)
    if known is None:
        raise ValueError(
            f"Expected texts in {', '.join(SUFFIXES)}, but this is {printable_name(path)}. Say what it is, such as by "
            f"--input-format lines, one of {', '.join(INPUT_FORMATS)}."
        )
    return InputFile(path, printable_name(path), known, path.stat().st_size)


def _format_of(path: Path) -> str | None:
    inner = path.with_suffix("") if path.suffix in _PACKED else path
    known = SUFFIXES.get(inner.suffix.lower())
    return None if inner is not path and known in BY_PLACES else known
