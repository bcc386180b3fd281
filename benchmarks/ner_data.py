"""The data sets of quality.py: fixed subsets, one sentence a document for every system.

Subsets are whole documents from the start of a file, until they hold at least the given number of sentences.
"""

from dataclasses import dataclass
from pathlib import Path

from spacy_luke.readers.conll import read_columns

WIKIGOLD = "wikigold/CONLL-format/data/wikigold.conll.txt"
Mention = tuple[int, int, str]


@dataclass(frozen=True)
class Sentence:
    """Words and gold mentions (start, end, label), words counted from 0, the end exclusive, each once."""

    words: list[str]
    mentions: list[Mention]


@dataclass(frozen=True)
class Part:
    """Which sentences of a file: of its documents, those after the first `skip` sentences, until `sentences` are
    held."""

    file: str
    sentences: int | None = None
    skip: int = 0


@dataclass(frozen=True)
class DataSet:
    """train and test never share sentences; dev is for choosing settings alone, None where none was chosen on it."""

    format: str
    train: Part
    dev: Part
    test: Part
    nested: bool = False


DATA_SETS: dict[str, DataSet] = {
    "conll2003": DataSet(
        "conll2003",
        train=Part("conll2003/eng.train", 800),
        dev=Part("conll2003/eng.testa", 800),
        test=Part("conll2003/eng.testb"),
    ),
    "wnut17": DataSet(
        "wnut",
        train=Part("wnut17/wnut17train.conll", 800),
        dev=Part("wnut17/emerging.dev.conll"),
        test=Part("wnut17/emerging.test.annotated"),
    ),
    "wikigold": DataSet(
        "conll2003",
        train=Part(WIKIGOLD, 700),
        dev=Part(WIKIGOLD, 150, skip=800),
        test=Part(WIKIGOLD, skip=1000),
    ),
    # The training file is not public, so the dev file is trained on, but for its last sentences.
    "genia": DataSet(
        "genia",
        train=Part("genia_nested_devtest/genia.dev.iob2", 600),
        dev=Part("genia_nested_devtest/genia.dev.iob2", skip=1369),
        test=Part("genia_nested_devtest/genia.test.iob2"),
        nested=True,
    ),
}


def read_part(folder: Path, data_set: DataSet, part: Part) -> list[Sentence]:
    """The sentences of a part, in the order of the file. folder: what holds the data sets' folders."""
    path = folder / part.file
    if not path.exists():
        raise SystemExit(f"Expected the data at {path}, but it is not there. Set --data or SPACY_LUKE_SHARED.")
    sentences: list[Sentence] = []
    seen = 0
    for document in read_columns(path, format=data_set.format):
        if part.sentences is not None and len(sentences) >= part.sentences:
            break
        seen += len(document.sentence_starts)
        if seen <= part.skip:
            continue
        ends = [*document.sentence_starts[1:], len(document.words)]
        mentions = sorted({mention for layer in document.layers for mention in layer})
        for start, end in zip(document.sentence_starts, ends):
            own = [(a - start, b - start, label) for a, b, label in mentions if start <= a < end]
            sentences.append(Sentence(document.words[start:end], own))
    return sentences


def outermost(mentions: list[Mention]) -> list[Mention]:
    """The mentions without those that overlap a longer one: what a system that cannot nest is trained on."""
    kept: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m[0] - m[1], m)):
        if all(mention[1] <= a or b <= mention[0] for a, b, _ in kept):
            kept.append(mention)
    return sorted(kept)


def score(gold: list[list[Mention]], found: list[list[Mention]]) -> dict[str, float]:
    """Precision, recall and F1 in percent: a mention is right where words and label are; each counts once."""
    pairs = [(set(a), set(b)) for a, b in zip(gold, found, strict=True)]
    right = sum(len(a & b) for a, b in pairs)
    n_gold, n_found = sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs)
    precision, recall = 100 * right / max(n_found, 1), 100 * right / max(n_gold, 1)
    return {"p": precision, "r": recall, "f": 2 * precision * recall / max(precision + recall, 1e-9)}
