"""Documents with linked entities become ERNIE's pretraining instances: pairs of sentences, masked pieces, aligned
entities.

As code/create_instances.py of the original makes them, draw by draw: given its documents and its seed, `pair_documents`
makes the very records of its published sample. N pieces of an instance.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...text.tokenizer import PieceTokenizer
from ...vectors.store import EntityVectors

# A sentence as corpora give it: its text, or its piece ids; and the names of its entities at [start, end), counted in
# characters or in pieces.
SourceSentence = tuple[str | Sequence[int], Sequence[tuple[int, int, str]]]
_TRIES = 10  # to draw a document other than the first sentence's


class SourceDocument(NamedTuple):
    """name: for messages; sentences: see `SourceSentence`."""

    name: str
    sentences: Sequence[SourceSentence]


class LinkedSentence(NamedTuple):
    """Piece ids, and the entity at each piece as a row of the entity vectors, -1 where there is none."""

    pieces: list[int]
    entities: list[int]


@dataclass(frozen=True)
class Instance:
    """[CLS] first sentences [SEP] second sentences [SEP], after masking; int64 arrays without padding.

    types_N: 0 up to the first [SEP], 1 after it; labels_N: pieces that were masked, -1 elsewhere; entities_N: rows of
    the entity vectors (or the numbers in a record), -1 elsewhere; is_random: whether the second part is from another
    document.
    """

    pieces_N: np.ndarray
    types_N: np.ndarray
    labels_N: np.ndarray
    entities_N: np.ndarray
    is_random: bool
    name: str


@dataclass(frozen=True)
class InstanceSettings:
    """Special piece ids, and the rates of create_instances.py.

    random_pieces: ids below it may replace a masked piece (the original leaves the vocabulary's last one out);
    max_pieces: of an instance; short_share: documents cut into shorter instances; masked_share, max_masked: pieces to
    predict; min_entities: an instance with fewer is dropped (code: 5; paper, section 4.1: 3).
    """

    cls_id: int
    sep_id: int
    mask_id: int
    random_pieces: int
    max_pieces: int = 256
    short_share: float = 0.1
    masked_share: float = 0.15
    max_masked: int = 40
    min_entities: int = 5

    def __post_init__(self) -> None:
        if self.max_pieces < 5 or self.max_masked < 1 or self.min_entities < 0:
            raise ValueError(
                "Expected max_pieces from 5, max_masked from 1 and min_entities from 0, but got "
                f"{self.max_pieces}, {self.max_masked} and {self.min_entities}."
            )
        for name in ("short_share", "masked_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be a share from 0 to 1, but it is {getattr(self, name)}.")


def encode_document(
    document: SourceDocument, *, tokenizer: PieceTokenizer, vectors: EntityVectors, counts: Counter[str]
) -> list[LinkedSentence]:
    """Sentences of a document as pieces and rows; those without pieces fall out.

    An entity stands at the first piece of its mention; of two at one piece the last stays. counts: gets the number of
    "mentions", and of them those "without a vector", "without a piece" and "at the piece of another".
    """
    names = [name for _, mentions in document.sentences for _, _, name in mentions]
    rows = iter(vectors.rows(names).tolist())
    sentences = []
    for i, (text, mentions) in enumerate(document.sentences):
        if isinstance(text, str):
            pieces_N, _, ends_N = tokenizer.encode(text)
            pieces, ends_N = pieces_N.tolist(), np.maximum.accumulate(ends_N)
        else:
            pieces, ends_N = list(text), np.arange(1, len(text) + 1)
        entities = [-1] * len(pieces)
        for start, end, name in mentions:
            row = next(rows)
            counts["mentions"] += 1
            if not 0 <= start < end <= len(text):
                raise ValueError(
                    f"{document.name}, sentence {i}: the entity {name!r} has the place [{start}, {end}), but the "
                    f"sentence has {len(text)} {'characters' if isinstance(text, str) else 'pieces'}."
                )
            place = int(np.searchsorted(ends_N, start, side="right"))
            if row < 0:
                counts["without a vector"] += 1
            elif place >= len(pieces):
                counts["without a piece"] += 1
            else:
                counts["at the piece of another"] += entities[place] >= 0
                entities[place] = row
        if pieces:
            sentences.append(LinkedSentence(pieces, entities))
    return sentences


def pair_documents(
    documents: Sequence[tuple[str, list[LinkedSentence]]],
    *,
    settings: InstanceSettings,
    rng: random.Random,
    counts: Counter[str] | None = None,
) -> Iterator[Instance]:
    """Instances of documents (name, sentences), none without sentences; which are shuffled first.

    A second part is what follows the first, or with probability 1/2 sentences of another document from a random one on.
    counts: gets "instances" and those "with too few entities", which are dropped.
    """
    documents = list(documents)
    rng.shuffle(documents)
    counts = Counter() if counts is None else counts
    most = settings.max_pieces - 3  # [CLS], [SEP], [SEP]
    for number, (name, sentences) in enumerate(documents):
        wanted = rng.randint(2, most) if rng.random() < settings.short_share else most
        chunk: list[LinkedSentence] = []
        length, i, made = 0, 0, 0
        while i < len(sentences):
            chunk.append(sentences[i])
            length += len(sentences[i].pieces)
            if i == len(sentences) - 1 or length >= wanted:
                n_first = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
                first, second = _joined(chunk[:n_first]), _joined(chunk[n_first:])
                is_random = len(chunk) == 1 or rng.random() < 0.5
                if is_random:
                    second = _random_second(documents, number, wanted - len(first.pieces), rng)
                    i -= len(chunk) - n_first  # what was not used comes again
                first, second = _truncate(first, second, most, rng)
                counts["instances"] += 1
                instance = _mask(first, second, is_random, f"{name}, instance {made}", settings, rng)
                made += 1
                if (instance.entities_N >= 0).sum() >= settings.min_entities:
                    yield instance
                else:
                    counts["with too few entities"] += 1
                chunk, length = [], 0
            i += 1


def _joined(sentences: Sequence[LinkedSentence]) -> LinkedSentence:
    return LinkedSentence([p for s in sentences for p in s.pieces], [e for s in sentences for e in s.entities])


def _random_second(
    documents: Sequence[tuple[str, list[LinkedSentence]]], number: int, length: int, rng: random.Random
) -> LinkedSentence:
    """Sentences of a document other than `number`, as long as there is one, from a random one until `length` pieces."""
    for _ in range(_TRIES):
        other = rng.randint(0, len(documents) - 1)
        if other != number:
            break
    sentences = documents[other][1]
    start = end = rng.randint(0, len(sentences) - 1)
    total = 0
    while end < len(sentences) and (end == start or total < length):
        total += len(sentences[end].pieces)
        end += 1
    return _joined(sentences[start:end])


def _truncate(
    first: LinkedSentence, second: LinkedSentence, most: int, rng: random.Random
) -> tuple[LinkedSentence, LinkedSentence]:
    """While both have more than `most` pieces, the longer one (the second, if equal) loses its first or last."""
    bounds = [[0, len(first.pieces)], [0, len(second.pieces)]]
    sizes = [len(first.pieces), len(second.pieces)]
    while sum(sizes) > most:
        longer = 0 if sizes[0] > sizes[1] else 1
        if rng.random() < 0.5:
            bounds[longer][0] += 1
        else:
            bounds[longer][1] -= 1
        sizes[longer] -= 1
    (a, b), (c, d) = bounds
    return LinkedSentence(first.pieces[a:b], first.entities[a:b]), LinkedSentence(
        second.pieces[c:d], second.entities[c:d]
    )


def _mask(
    first: LinkedSentence,
    second: LinkedSentence,
    is_random: bool,
    name: str,
    settings: InstanceSettings,
    rng: random.Random,
) -> Instance:
    """Of the pieces to predict 80 % become [MASK], 10 % stay, and 10 % become a random piece."""
    special = (settings.cls_id, settings.sep_id)
    pieces = [settings.cls_id, *first.pieces, settings.sep_id, *second.pieces, settings.sep_id]
    places = [i for i, piece in enumerate(pieces) if piece not in special]
    rng.shuffle(places)
    n_masked = min(settings.max_masked, max(1, round(len(pieces) * settings.masked_share)))
    labels_N = np.full(len(pieces), -1, dtype=np.int64)
    masked = list(pieces)
    for i in places[:n_masked]:
        labels_N[i] = pieces[i]
        if rng.random() < 0.8:
            masked[i] = settings.mask_id
        elif rng.random() >= 0.5:
            masked[i] = rng.randint(0, settings.random_pieces - 1)
    return Instance(
        pieces_N=np.array(masked, dtype=np.int64),
        types_N=np.repeat([0, 1], [len(first.pieces) + 2, len(second.pieces) + 1]),
        labels_N=labels_N,
        entities_N=np.array([-1, *first.entities, -1, *second.entities, -1], dtype=np.int64),
        is_random=is_random,
        name=name,
    )


def report_counts(counts: Counter[str]) -> list[str]:
    """What was not used, in words: lines for the console."""
    lines = []
    if counts["mentions"]:
        total = counts["mentions"]
        lost = ("without a vector", "without a piece", "at the piece of another")
        parts = [f"{counts[key]:,} ({counts[key] / total:.1%}) {key}" for key in lost]
        lines.append(f"{total:,} entity mentions read, of them {', '.join(parts)}; these are no entities of the input.")
    if counts["instances"]:
        lines.append(
            f"{counts['instances']:,} instances made, {counts['with too few entities']:,} dropped with too few "
            f"entities."
        )
    return lines
