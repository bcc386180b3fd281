"""Docs in spaCy's own format, which the stock reader `spacy.Corpus.v1` reads: read and written."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..stores.atomic import write_atomically, write_folder_atomically
from ..stores.opening import find_files

_LISTS = ("tokens", "spaces", "cats", "flags", "span_groups", "user_data")  # of a DocBin, an item a Doc


def read_docbins(path: Path, vocab: Vocab, *, skip: int = 0) -> Iterator[Doc]:
    """The Docs of a .spacy file, or of a folder of them: the files that `spacy.Corpus.v1` reads, by their names. skip:
    so many are left out at the beginning, and not made. Raises ValueError, naming the file, for one that is damaged,
    and for a folder that has none."""
    look_up_codecs_once()
    files = find_files(path, ".spacy")
    if not files:
        raise ValueError(f"Expected .spacy files in {path}, but there are none.")
    for file in files:
        try:
            docs = DocBin().from_disk(file)
            skipped = min(skip, len(docs))
            skip -= skipped
            for name in _LISTS:
                setattr(docs, name, getattr(docs, name)[skipped:])
            yield from docs.get_docs(vocab)
        except OSError:  # which names the file
            raise
        except Exception as error:  # whatever msgpack, zlib and spaCy say of a damaged file
            raise ValueError(
                f"Expected Docs in {file}, as DocBin.to_disk writes them, but reading it fails by {error!r}. It may be "
                "truncated: copy or make it again."
            ) from error


def read_gold_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """As `read_docbins`, those that have words: what `spacy.Corpus.v1` gives."""
    return (doc for doc in read_docbins(path, vocab) if len(doc))


def write_docbin(docs: Iterable[Doc], path: str | Path, *, shard_words: int = 1_000_000) -> list[Path]:
    """Write `path`, and return the files that now hold the docs, in order.

    Up to `shard_words` words, `path` is one file. Above, it is a folder of files part-00001.spacy, part-00002.spacy
    and so on, each with whole docs: a DocBin keeps 13 numbers of 8 bytes a word in one message, which msgpack limits
    to 4 GiB, and it is read at once. `spacy.Corpus.v1` takes the file and the folder alike. About two shards are in
    memory at a time. The bytes depend on the docs alone; on any error what was there before stays whole.

    Raises ValueError where there are no docs, where the name does not end in ".spacy" (the reader would not find it),
    and where a folder would have to replace a file or the other way round.
    """
    path = Path(path)
    if path.suffix != ".spacy":
        raise ValueError(f"The name of a DocBin must end in '.spacy', or spacy.Corpus does not find it: {path}.")
    if shard_words < 1:
        raise ValueError(f"shard_words must be a number of words from 1, but it is {shard_words}.")
    shards = _fill_shards(docs, shard_words)
    first, second = next(shards, None), next(shards, None)
    if first is None:
        raise ValueError(f"Expected docs to write to {path}, but there are none.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if second is None:
        if path.is_dir():
            raise ValueError(f"The docs fit one file, but {path} is a folder: remove it first, or choose another name.")
        with write_atomically(path) as temporary:
            temporary.write_bytes(first.to_bytes())
        return [path]
    _check_replaceable(path)
    names = []
    with write_folder_atomically(path) as folder:
        for i, shard in enumerate(chain([first, second], shards), 1):
            names.append(f"part-{i:05}.spacy")
            (folder / names[-1]).write_bytes(shard.to_bytes())
    return [path / name for name in names]


def _fill_shards(docs: Iterable[Doc], shard_words: int) -> Iterator[DocBin]:
    shard, words = DocBin(store_user_data=True), 0
    for doc in docs:
        if len(shard) and words + len(doc) > shard_words:
            yield shard
            shard, words = DocBin(store_user_data=True), 0
        shard.add(doc)
        words += len(doc)
    if len(shard):
        yield shard


def _check_replaceable(path: Path) -> None:
    if path.is_file():
        raise ValueError(f"The docs need a folder of several files, but {path} is a file: remove it first.")
    if path.is_dir():
        others = sorted(p.name for p in path.iterdir() if not (p.name.startswith("part-") and p.suffix == ".spacy"))
        if others:
            raise ValueError(
                f"{path} would be replaced, but it holds other files too: {others[:5]}. Remove them first."
            )


def look_up_codecs_once() -> None:
    """For each Doc that is read, srsly asks all installed packages whether they have a codec for msgpack, which is half
    of the time of reading a DocBin. From here on it knows those that there are now."""
    for codecs in (srsly.msgpack_encoders, srsly.msgpack_decoders):
        if codecs.entry_points:
            for name, codec in codecs.get_entry_points().items():
                codecs.register(name, func=codec)
            codecs.entry_points = False
