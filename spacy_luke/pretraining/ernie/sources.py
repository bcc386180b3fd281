"""Where ERNIE's pretraining instances come from: documents with linked entities, or the original's finished records."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...text.tokenizer import PieceTokenizer
from ...vectors.store import EntityVectors
from ..stream import InstanceSource, InstanceT, Position
from .instances import Instance, InstanceSettings, SourceDocument, encode_document, pair_documents, report_counts
from .records import Records, from_record


class ErnieSource(InstanceSource[InstanceT], Protocol[InstanceT]):
    """What is drawn of it is read by the process that learns from it, once: `read` may count in `counts`. pieces_of:
    of what `read` gives."""

    def pieces_of(self, drawn: InstanceT) -> int: ...

    def read(self, drawn: InstanceT) -> Instance: ...


# Documents of a corpus from a number on; made anew for each pass.
Documents = Callable[[int], Iterator[SourceDocument]]
# Takes what the model brings: tokenizer, vectors, max_window (pieces that the encoder reads at once), and the seed.
Bind = Callable[..., ErnieSource[Any]]
_PLACINGS = ("first", "code")
_NO_ENTITY = "#UNK#"


def make_record_source(path: str, entities: str | None = None) -> Bind:
    """`spacy-luke.ErnieRecords.v1`: the original's NAME.bin and NAME.idx, in an order that changes with each epoch.

    path: of the files, without .bin and .idx.
    entities: its entity2id.txt, by which the numbers in the records find the names of the vectors; null: the numbers
    are rows of the vectors, as in stores built from the original's own files.
    """

    def bind(*, tokenizer: PieceTokenizer, vectors: EntityVectors, max_window: int, seed: int) -> ErnieSource[Any]:
        names = None if entities is None else read_entity_numbers(Path(entities))
        return RecordSource(
            Records(Path(path)),
            vectors=vectors,
            names=names,
            seed=seed,
            pieces=len(tokenizer),
            max_window=max_window,
        )

    return bind


def make_document_source(
    documents: Documents,
    max_pieces: int = 256,
    min_entities: int = 5,
    short_share: float = 0.1,
    masked_share: float = 0.15,
    max_masked: int = 40,
    block: int = 500,
) -> Bind:
    """`spacy-luke.ErnieInstances.v1`: instances made while training, masked differently in each epoch.

    documents: where they come from.
    max_pieces: of an instance.
    min_entities: an instance with fewer is dropped (the original's code: 5; the paper, section 4.1: 3).
    short_share: documents cut into shorter instances.
    masked_share: share of the pieces that are to be predicted.
    max_masked: pieces of an instance to predict at most.
    block: documents in memory at a time, among which random second sentences are drawn and instances shuffled.
    """

    def bind(*, tokenizer: PieceTokenizer, vectors: EntityVectors, max_window: int, seed: int) -> ErnieSource[Any]:
        if max_pieces > max_window:
            raise ValueError(
                f"The corpus makes windows of {max_pieces} pieces, but the encoder reads {max_window}: lower "
                f"max_pieces."
            )
        settings = InstanceSettings(
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
            mask_id=tokenizer.mask_id,
            random_pieces=len(tokenizer) - 1,
            max_pieces=max_pieces,
            min_entities=min_entities,
            short_share=short_share,
            masked_share=masked_share,
            max_masked=max_masked,
        )
        return DocumentSource(
            documents, tokenizer=tokenizer, vectors=vectors, settings=settings, block=block, seed=seed
        )

    return bind


def make_piece_documents(path: str, placing: str = "first", skip: int = 0, limit: int | None = None) -> Documents:
    """`spacy-luke.ErniePieces.v1`: the original's NAME_token and NAME_entity (pretrain_data/create_ids.py), a document
    a line: number of sentences, then for each its number of pieces and these, or their Wikidata ids or #UNK#. The piece
    ids are of BERT's uncased vocabulary.

    path: of the files, without _token and _entity.
    placing: where the entity of a mention of several pieces stands: "first": at its first piece; "code": at every other
    one, which is what create_instances.py does.
    skip: documents left out at the beginning.
    limit: documents read at most; null: all.
    """
    if placing not in _PLACINGS:
        raise ValueError(f"placing must be one of {_PLACINGS}, but it is {placing!r}.")
    files = [Path(f"{path}_token"), Path(f"{path}_entity")]
    for file in files:
        if not file.is_file():
            raise ValueError(f"Expected the two files {files[0].name} and {files[1].name}, but {file} is missing.")

    def read(start: int) -> Iterator[SourceDocument]:
        with files[0].open(encoding="utf8") as tokens, files[1].open(encoding="utf8") as entities:
            pairs = enumerate(zip(tokens, entities, strict=True), 1)
            parsed = (_parse_pieces(path, number, *pair, placing) for number, pair in pairs)
            documents = (document for document in parsed if document.sentences)
            stop = None if limit is None else skip + limit
            yield from islice(documents, skip + start, stop)

    return read


def _parse_pieces(path: str, number: int, tokens: str, entities: str, placing: str) -> SourceDocument:
    numbers, marks = tokens.split(), entities.split()
    name = f"{path}, line {number}"
    if len(numbers) != len(marks) or not numbers:
        raise ValueError(f"{name}: expected as many entities as pieces, but got {len(marks)} and {len(numbers)}.")
    sentences, at = [], 1
    try:
        for _ in range(int(numbers[0])):
            size = int(numbers[at])
            pieces = [int(piece) for piece in numbers[at + 1 : at + 1 + size]]
            if len(pieces) != size or marks[at] != numbers[at]:
                raise IndexError
            sentences.append((pieces, _mentions(marks[at + 1 : at + 1 + size], placing)))
            at += 1 + size
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{name}: sentence {len(sentences)} is not as its length says; the line is damaged."
        ) from error
    if at != len(numbers) and numbers != ["0"]:
        raise ValueError(f"{name}: {len(numbers) - at} pieces follow the last sentence; the line is damaged.")
    return SourceDocument(name, sentences)


def _mentions(marks: list[str], placing: str) -> list[tuple[int, int, str]]:
    mentions: list[tuple[int, int, str]] = []
    last = _NO_ENTITY
    for i, mark in enumerate(marks):
        if mark != _NO_ENTITY and mark != last:
            mentions.append((i, i + 1, mark))
            last = mark
        elif placing == "code" or mark == _NO_ENTITY:  # the original compares with what it has just made "no entity"
            last = _NO_ENTITY
    return mentions


def read_entity_numbers(path: Path) -> dict[int, str]:
    """Names by number of the original's entity2id.txt: how many there are, then a name and its number a line."""
    names = {}
    with path.open(encoding="utf8") as file:
        first = file.readline().split()
        for number, line in enumerate(file, 2):
            parts = line.split()
            if len(parts) != 2 or not parts[1].isdigit():
                raise ValueError(f"{path}, line {number}: expected a name and a number, but it is {line[:80]!r}.")
            names[int(parts[1])] = parts[0]
    if first != [str(len(names))]:
        raise ValueError(f"{path} speaks of {' '.join(first)!r} entities in its first line, but has {len(names)}.")
    return names


class DocumentSource:
    """Blocks of documents, paired, masked and shuffled; each block by a seed of its own."""

    def __init__(
        self,
        documents: Documents,
        *,
        tokenizer: PieceTokenizer,
        vectors: EntityVectors,
        settings: InstanceSettings,
        block: int,
        seed: int,
    ):
        if block < 2:
            raise ValueError(
                f"A block needs 2 documents or more, to draw random sentences from another, but has {block}."
            )
        self.documents, self.tokenizer, self.vectors = documents, tokenizer, vectors
        self.settings, self.block, self.seed = settings, block, seed
        self.counts: Counter[str] = Counter()

    def instances(self, position: Position) -> Iterator[tuple[Instance, Position]]:
        while True:
            whole, made = position.start == 0, 0
            documents = self.documents(position.start)
            while block := list(islice(documents, self.block)):
                ready = self._make(block, position)
                for i in range(position.used, len(ready)):
                    yield ready[i], replace(position, used=i + 1)
                made += len(ready)
                position = replace(position, start=position.start + len(block), used=0)
            if whole and not made:
                raise ValueError(
                    f"The corpus gives no instance: {position.start:,} documents were read. "
                    f"{' '.join(report_counts(self.counts))} Check that it has entities whose ids are in the vectors, "
                    "or lower min_entities."
                )
            position = replace(position, epoch=position.epoch + 1, start=0, used=0)

    def pieces_of(self, drawn: Instance) -> int:
        return len(drawn.pieces_N)

    def read(self, drawn: Instance) -> Instance:
        return drawn

    def _make(self, block: list[SourceDocument], position: Position) -> list[Instance]:
        encoded = [
            (
                document.name,
                encode_document(document, tokenizer=self.tokenizer, vectors=self.vectors, counts=self.counts),
            )
            for document in block
        ]
        rng = random.Random(f"{self.seed}-{position.epoch}-{position.start}")
        with_pieces = [(name, sentences) for name, sentences in encoded if sentences]
        instances = list(pair_documents(with_pieces, settings=self.settings, rng=rng, counts=self.counts))
        rng.shuffle(instances)
        return instances


class RecordSource:
    """Finished records, each epoch in another order. names: of the numbers in them; None: they are rows of the vectors.

    pieces: of the vocabulary; max_window: pieces that the encoder reads at once."""

    def __init__(
        self,
        records: Records,
        *,
        vectors: EntityVectors,
        names: dict[int, str] | None,
        seed: int,
        pieces: int,
        max_window: int,
    ):
        if not len(records):
            raise ValueError(f"{records.path} has no records: expected at least one.")
        self.records, self.vectors, self.names, self.seed = records, vectors, names, seed
        self.pieces, self.max_window = pieces, max_window
        self.counts: Counter[str] = Counter()

    def instances(self, position: Position) -> Iterator[tuple[int, Position]]:
        """Numbers of records, see `read`."""
        while True:
            order = np.random.default_rng([self.seed, position.epoch]).permutation(len(self.records))
            for i in range(position.used, len(order)):
                yield int(order[i]), replace(position, used=i + 1)
            position = replace(position, epoch=position.epoch + 1, used=0)

    def pieces_of(self, drawn: int) -> int:
        return self.records.pieces_of(drawn, name=self._name(drawn))

    def read(self, drawn: int) -> Instance:
        name = self._name(drawn)
        instance = from_record(self.records[drawn], name=name)
        if (highest := max(instance.pieces_N.max(), instance.labels_N.max())) >= self.pieces:
            raise ValueError(
                f"{name} has piece {highest}, but the tokenizer has {self.pieces:,}: the records were made for another "
                f"one."
            )
        if len(instance.pieces_N) > self.max_window:
            raise ValueError(f"{name} has {len(instance.pieces_N)} pieces, but the encoder reads {self.max_window}.")
        at = np.flatnonzero(instance.entities_N >= 0)
        numbers = instance.entities_N[at]
        if self.names is not None:
            rows = self.vectors.rows([self.names.get(entity, "") for entity in numbers.tolist()])
        elif len(numbers) and numbers.max() >= len(self.vectors):
            raise ValueError(
                f"{name} has entity {numbers.max()}, but the vectors have {len(self.vectors):,} rows: give the "
                "entity2id.txt that the records were made with as `entities`, or the vectors that they were made for."
            )
        else:
            rows = numbers
        self.counts["mentions"] += len(rows)
        self.counts["without a vector"] += int((rows < 0).sum())
        entities_N = instance.entities_N.copy()
        entities_N[at] = rows
        return replace(instance, entities_N=entities_N)

    def _name(self, drawn: int) -> str:
        return f"{self.records.path.name}, record {drawn}"
