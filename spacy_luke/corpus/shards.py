"""Examples for pretraining in a folder: arrays that are mapped into memory, with what they were made of and digests.

manifest.json        {"tokenizer", "pieces", "entity_vocab", "entities", "max_pieces", "max_entities",
                     "max_mention_pieces", "examples", "pages", "counts", "info"}, and what all manifests have (see
                     `stores.folder`)
pieces.npy           uint16, or int32 where there are more kinds: pieces of all examples, one after the other
word_starts.npy      bool, beside the pieces: the first piece of a word, which is what stands between blanks
piece_starts.npy     int64 (N + 1,): where the pieces of each example begin
entities.npy         int32: rows of the entity vocabulary, mentions of all examples one after the other
starts.npy ends.npy  int32, beside the entities: pieces [start, end) of the mention, counted in its example
mention_starts.npy   int64 (N + 1,): where the mentions of each example begin
example_pages.npy    int32 (N,): number of the page that an example is of
page_ids.npy         int32 (pages,): the page's own row of the entity vocabulary, or that of [UNK]
pages.txt            titles of the pages, one a line; page_starts.npy: int64 (pages + 1,), where each line begins
tokenizer.json       the tokenizer (`PieceTokenizer.to_json`)
entity_vocab.json    the entity vocabulary (`EntityVocab.to_json`)

The tokenizer is told by its pieces and how it makes them, the entity vocabulary by its names: see
`tokenizer_fingerprint` and `entity_vocab_sha256`. `corpus.shard_writer` writes shards. Shapes: N examples.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..entity_vocab import EntityVocab
from ..stores.arrays import AGAIN, map_array, map_bytes
from ..stores.folder import StoreFolder, StoreKind, is_count
from ..text.tokenizer import PieceTokenizer

_NUMBERS = ("pieces", "entities", "max_pieces", "max_entities", "max_mention_pieces", "examples", "pages")
_BUILD = "Build it with `python -m spacy luke build-shards`."
_FEW_PIECES = 1 << 16  # kinds of pieces that uint16 holds


class Example(NamedTuple):
    """One example. n pieces and m mentions; no special pieces.

    pieces: int32 (n,), n <= max_pieces - 2; word_starts: bool (n,), the first piece of each word between blanks;
    entities: int32 (m,), rows of the entity vocabulary, m <= max_entities; starts, ends: int32 (m,), the pieces of each
    mention, from 0, the end not included; page: number of the page; page_id: its row of the entity vocabulary, or
    [UNK]'s.
    """

    pieces: np.ndarray
    word_starts: np.ndarray
    entities: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    page: int
    page_id: int


class PageExamples(NamedTuple):
    """A page and its examples, whose `page` and `page_id` are those of this page."""

    title: str
    page_id: int
    examples: list[Example]


def tokenizer_fingerprint(tokenizer: PieceTokenizer) -> str:
    """SHA-256 of what makes the pieces: kind, vocabulary, merges, normalisation. Special pieces that were added, such
    as <ent>, and settings without influence on the pieces of a text make no difference."""
    backend = json.loads(tokenizer.backend.to_str())
    base = tokenizer.backend.get_vocab(with_added_tokens=False)
    charsmap = None if tokenizer.charsmap is None else sha256(tokenizer.charsmap.data).hexdigest()
    data = {
        "kind": tokenizer.kind,
        "special": tokenizer.special,
        "vocab": sorted(base.items()),
        "merges": backend["model"].get("merges"),
        "normalizer": backend["normalizer"],
        "pre_tokenizer": backend["pre_tokenizer"],
        "charsmap": charsmap,
    }
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def entity_vocab_sha256(vocab: EntityVocab) -> str:
    """SHA-256 of the names of all rows, in order. Counts make no difference."""
    return sha256(json.dumps(vocab.names()).encode()).hexdigest()


def piece_dtype(pieces: int) -> str:
    """In the file: the smallest that holds so many kinds of pieces."""
    return "<u2" if pieces <= _FEW_PIECES else "<i4"


def _is_whole(manifest: dict[str, Any]) -> bool:
    numbers = all(is_count(manifest.get(key)) for key in _NUMBERS)
    named = all(isinstance(manifest.get(key), str) for key in ("tokenizer", "entity_vocab"))
    return numbers and named


SHARDS = StoreKind(
    what="folder of shards", many="shards", form="spacy_luke pretraining shards", build=_BUILD, is_whole=_is_whole
)


class Shards(StoreFolder):
    """Examples by number. Opening checks the files (see `stores.digests`); the arrays are mapped into memory."""

    kind = SHARDS

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        super().__init__(path, manifest)
        size, self._n_entities, self._n_pieces = manifest["examples"], manifest["entities"], manifest["pieces"]
        self._piece_starts = map_array(path / "piece_starts.npy", "<i8", (size + 1,))
        self._mention_starts = map_array(path / "mention_starts.npy", "<i8", (size + 1,))
        n, m = int(self._piece_starts[-1]), int(self._mention_starts[-1])
        self._pieces = map_array(path / "pieces.npy", piece_dtype(self._n_pieces), (n,))
        self._word_starts = map_array(path / "word_starts.npy", "|b1", (n,))
        self._mentions = [map_array(path / f"{name}.npy", "<i4", (m,)) for name in ("entities", "starts", "ends")]
        self._pages = map_array(path / "example_pages.npy", "<i4", (size,))
        self._page_ids = map_array(path / "page_ids.npy", "<i4", (manifest["pages"],))
        self._title_starts = map_array(path / "page_starts.npy", "<i8", (manifest["pages"] + 1,))
        self._titles = map_bytes(path / "pages.txt")

    def __len__(self) -> int:
        return len(self._piece_starts) - 1

    def __getitem__(self, i: int) -> Example:
        """Example i, from 0, copied. ValueError where a number in it is out of its range, so that the shards are
        damaged."""
        if not 0 <= i < len(self):
            raise IndexError(f"Expected the number of one of {len(self):,} examples, but got {i}.")
        a, b = (int(x) for x in self._piece_starts[i : i + 2])
        c, d = (int(x) for x in self._mention_starts[i : i + 2])
        page = int(self._pages[i])
        if not (0 <= a <= b <= len(self._pieces) and 0 <= c <= d <= len(self._mentions[0])):
            raise self._damaged(i, f"its pieces are [{a}, {b}) and its mentions [{c}, {d})")
        if not 0 <= page < len(self._page_ids):
            raise self._damaged(i, f"its page is {page} of {len(self._page_ids)}")
        pieces = np.array(self._pieces[a:b], np.int32)
        entities, starts, ends = (np.array(mentions[c:d]) for mentions in self._mentions)
        for name, ids, size in (("piece", pieces, self._n_pieces), ("entity", entities, self._n_entities)):
            if len(ids) and not 0 <= ids.min() <= ids.max() < size:
                raise self._damaged(i, f"it has {name} {max(ids.max(), -ids.min())} of a vocabulary of {size:,}")
        if len(starts) and not (starts.min() >= 0 and (starts < ends).all() and ends.max() <= len(pieces)):
            raise self._damaged(i, f"it has a mention outside of its {len(pieces)} pieces, or an empty one")
        words = np.array(self._word_starts[a:b])
        return Example(pieces, words, entities, starts, ends, page, int(self._page_ids[page]))

    def __iter__(self) -> Iterator[Example]:
        return (self[i] for i in range(len(self)))

    def pieces_of(self, i: int) -> int:
        """How many pieces an example has, without special ones."""
        return int(self._piece_starts[i + 1] - self._piece_starts[i])

    def example_pages(self) -> np.ndarray:
        """The page of each example: int32 (N,), mapped into memory."""
        return self._pages

    def example_languages(self) -> list[tuple[str, int]]:
        """The language of each corpus and how many examples it has, in their order. ValueError where the shards do not
        say so, as those of versions before 0.3.0."""
        info = self.manifest.get("info", {})
        languages, sizes = [x for x, _ in info.get("corpora", [])], info.get("examples_of_corpora")
        known = isinstance(sizes, list) and len(sizes) == len(languages) and all(map(is_count, sizes))
        if not known or sum(sizes) != len(self):
            raise ValueError(f"The shards in {self.path} do not say which examples are of which language. {_BUILD}")
        return list(zip(languages, sizes, strict=True))

    def title(self, page: int) -> str:
        """The title of a page, by the number in its examples."""
        start, end = (int(x) for x in self._title_starts[page : page + 2])
        return self._titles[start : end - 1].decode("utf8")

    def tokenizer(self) -> PieceTokenizer:
        """The tokenizer that the examples were made with."""
        return PieceTokenizer.from_json((self.path / "tokenizer.json").read_text(encoding="utf8"))

    def entity_vocab(self) -> EntityVocab:
        """The entity vocabulary whose rows the examples have."""
        return EntityVocab.from_json((self.path / "entity_vocab.json").read_text(encoding="utf8"))

    def check(self, *, tokenizer_fingerprint: str, entity_vocab_sha256: str) -> None:
        """ValueError where the examples were made with another tokenizer or entity vocabulary (see the functions of
        these names)."""
        pairs = (("tokenizer", tokenizer_fingerprint), ("entity_vocab", entity_vocab_sha256))
        for key, expected in pairs:
            if self.manifest[key] != expected:
                raise ValueError(
                    f"The shards in {self.path} were made with another {key.replace('_vocab', ' vocabulary')}: "
                    f"expected {expected[:12]}..., but theirs is {self.manifest[key][:12]}.... {_BUILD}"
                )

    def _damaged(self, i: int, what: str) -> ValueError:
        return ValueError(f"Example {i} of the shards in {self.path} is damaged: {what}. {AGAIN}")
