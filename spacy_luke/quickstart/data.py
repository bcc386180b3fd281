"""Gold data of any known format as .spacy files for training: converted, and divided where there is no dev part."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import spacy

from ..readers.conversion import FORMAT_NAMES, convert_files
from ..readers.docbin import read_docbins, write_docbin
from ..stores.opening import find_files

_SUFFIX = ".spacy"
_NESTED = "sc"  # the span group of entities that lie inside or across others
_NOTES = "notes: "  # what counts of a reader begin with that are for the user
_FEWEST = 5  # documents that can be divided


class Parts(NamedTuple):
    """train, dev: .spacy files, or folders of them; made: what was written, for the user to know."""

    train: Path
    dev: Path
    made: tuple[str, ...] = ()


def prepare_parts(
    train: Sequence[Path],
    dev: Sequence[Path],
    folder: Path,
    *,
    format: str | None = None,
    lang: str = "en",
    spans_key: str | None = None,
    settings: Mapping[str, Any] | None = None,
    share: float = 0.2,
    seed: int = 0,
) -> Parts:
    """Files for training. What is .spacy stays where it is; all else is converted into `folder`.

    train: files of one format, or folders of those that have a file a document, or one .spacy file or folder. dev: as
    well; none: this `share` of the training documents, drawn by `seed`, and train is then what remains. format: of
    FORMAT_NAMES, for files that are not .spacy. spans_key: the group that entities of converted files go to; None:
    doc.ents, or "sc" where they overlap. settings: of the format's reader, such as what becomes of mentions that do not
    begin and end with a word.
    Raises ValueError for a missing format, for data of which no part can be taken, and where the parts would lie in the
    folder that they are taken of.
    """
    if not 0 < share < 1:
        raise ValueError(f"The share of the documents that become the dev part must be between 0 and 1, not {share}.")
    used = {name: x for name, x in (settings or {}).items() if x is not None}
    if used and all(_is_docbin(inputs, format) for inputs in (train, dev) if inputs):
        raise ValueError(f"Data in {_SUFFIX} files stay as they are: there is no use for {', '.join(used)}.")
    files, made = [], []
    for name, inputs in (("train", train), ("dev", dev)):
        if not inputs:
            continue
        if _is_docbin(inputs, format):
            files.append(inputs[0])
            continue
        path = folder / f"{name if dev else 'all'}{_SUFFIX}"
        counts = _convert(inputs, path, format=format, lang=lang, spans_key=spans_key, settings=used)
        told = [f"{n:,} {name.removeprefix(_NOTES)}" for name, n in sorted(counts.items()) if name.startswith(_NOTES)]
        made.append("; ".join([f"{path}: {counts['documents']:,} documents of {', '.join(map(str, inputs))}", *told]))
        files.append(path)
    if dev:
        return Parts(files[0], files[1], tuple(made))
    paths = [folder / f"{name}{_SUFFIX}" for name in ("train", "dev")]
    if files[0].is_dir() and folder.resolve().is_relative_to(files[0].resolve()):
        raise ValueError(
            f"The parts of {files[0]} would be written into it, to {folder}, and read again with it: give the config "
            "another name, or the parts by --train and --dev."
        )
    if files[0].resolve() in [path.resolve() for path in paths]:  # what is given stays
        paths = [folder / f"train-part{_SUFFIX}", folder / f"dev-part{_SUFFIX}"]
    sizes = _divide(files[0], paths, share=share, seed=seed)
    drawn = "drawn at random, equal texts together"
    made.append(f"{paths[0]} and {paths[1]}: {sizes[0]:,} and {sizes[1]:,} documents of {files[0]}, {drawn}")
    return Parts(paths[0], paths[1], tuple(made))


def _is_docbin(inputs: Sequence[Path], format: str | None) -> bool:
    found = [path.suffix == _SUFFIX or (path.is_dir() and _has_docbins(path, format)) for path in inputs]
    if any(found) and len(inputs) > 1:
        raise ValueError(f"Expected one {_SUFFIX} file or folder, but there are {len(inputs)}: put them into a folder.")
    return any(found)


def _has_docbins(folder: Path, format: str | None) -> bool:
    return format is None or bool(find_files(folder, _SUFFIX))


def _convert(
    inputs: Sequence[Path],
    path: Path,
    *,
    format: str | None,
    lang: str,
    spans_key: str | None,
    settings: Mapping[str, Any],
) -> Counter[str]:
    """RETURNS: "documents", and "notes: ..." of the reader. Entities that overlap go to the group NESTED."""
    if format is None:
        raise ValueError(f"{inputs[0]} is no {_SUFFIX} file, so say by --format what it is: {', '.join(FORMAT_NAMES)}.")

    def convert(key: str | None) -> Counter[str]:
        return convert_files(inputs, path, format=format or "", lang=lang, spans_key=key, settings=settings).counts

    try:
        return convert(spans_key)
    except ValueError as error:
        if spans_key is not None:
            raise
        return _nested_instead(convert, error)


def _nested_instead(convert: Callable[[str | None], Counter[str]], first: ValueError) -> Counter[str]:
    """Whether the entities overlap is seen by that a span group can hold them; other errors are as before."""
    try:
        return convert(_NESTED)
    except ValueError:
        raise first from None


def _divide(source: Path, paths: Sequence[Path], *, share: float, seed: int) -> tuple[int, int]:
    """Write the documents to train and dev, each in the order of the file, those of one text to the same part. RETURNS:
    how many of each."""
    vocab = spacy.blank("xx").vocab
    numbers: dict[str, int] = {}  # of the texts
    text_D = [numbers.setdefault(doc.text, len(numbers)) for doc in read_docbins(source, vocab)]
    total, texts = len(text_D), len(numbers)
    if texts < _FEWEST:
        told = f"{total} documents" + (f" of {texts} different texts" if texts < total else "")
        raise ValueError(f"{source} has {told}, too few to take a dev part from: give one by --dev.")
    chosen = set(random.Random(seed).sample(range(texts), min(max(round(texts * share), 1), texts - 1)))
    for path, wanted in zip(paths, (False, True), strict=True):
        docs = zip(text_D, read_docbins(source, vocab), strict=True)
        write_docbin((doc for number, doc in docs if (number in chosen) == wanted), path)
    dev = sum(number in chosen for number in text_D)
    return total - dev, dev
