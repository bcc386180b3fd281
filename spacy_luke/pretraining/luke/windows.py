"""Windows of LUKE's pretraining: examples of shards in an order that changes with each epoch, masked and packed.

N packed pieces of B windows; K pieces that are asked, E entity tokens, A of them asked, C sampled entities.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...corpus.shards import Example, Shards
from ...model.luke import Mentions, Windows
from ...text.tokenizer import PieceTokenizer
from ..stream import BatchSize, Position, Stream, batch_instances
from .masking import MaskingSettings, Vocabularies, mask_entities, mask_words
from .negatives import EntitySampler

_PARTS = ("all", "train", "dev")


class Examples(Protocol):
    """What is asked of `corpus.shards.Shards`."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int) -> Example: ...

    def pieces_of(self, i: int) -> int: ...


class Drawn(NamedTuple):
    """An example of an epoch: its number, the epoch, and its place in the epoch's order, which is what masking draws
    by."""

    number: int
    epoch: int
    place: int


class LanguageQuota(NamedTuple):
    """The numbers of a language's examples, and how many of them an epoch has."""

    numbers: NDArray[np.int64]
    wanted: int


class ShardSource:
    """All examples once an epoch, each time in another order; or, of examples in several languages, as many with rarer
    languages more often. seed: of the orders; quotas: see `ShardPart`."""

    def __init__(self, examples: Examples, *, seed: int, quotas: Sequence[LanguageQuota] = ()):
        if not len(examples):
            raise ValueError("The shards have no examples: expected at least one.")
        self.examples, self.seed, self.quotas = examples, seed, quotas
        self.counts: Counter[str] = Counter()

    def instances(self, position: Position) -> Iterator[tuple[Drawn, Position]]:
        while True:
            order = self._order(np.random.default_rng([self.seed, position.epoch]))
            for place in range(position.used, len(order)):
                drawn = Drawn(int(order[place]), position.epoch, place)
                yield drawn, replace(position, used=place + 1)
            position = replace(position, epoch=position.epoch + 1, used=0)

    def _order(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Of an epoch. Of a language all examples as often as its quota holds them, and as many others as are left."""
        if not self.quotas:
            return rng.permutation(len(self.examples))
        drawn = []
        for numbers, wanted in self.quotas:
            times, rest = divmod(wanted, len(numbers))
            drawn += [*[numbers] * times, rng.permutation(numbers)[:rest]]
        return rng.permutation(np.concatenate(drawn))


@dataclass(frozen=True)
class SampledEntities:
    """rows_C: of the entity table; log_weight_C: minus the log of the probability that each is among them."""

    rows_C: Tensor
    log_weight_C: Tensor


@dataclass(frozen=True)
class LukeBatch:
    """Windows after masking, and what is asked of them.

    masked_K: rows of the packed pieces that are asked, pieces_K: their pieces; asked_A: rows of the packed entity
        tokens,
    gold_A: their entities; pages_B: entities of the pages; sampled: the entities that the softmax is over, None: all;
    name: for messages.
    """

    windows: Windows
    mentions: Mentions
    masked_K: Tensor
    pieces_K: Tensor
    asked_A: Tensor
    gold_A: Tensor
    pages_B: Tensor
    sampled: SampledEntities | None
    name: str

    @property
    def counts(self) -> dict[str, int]:
        return {"words": len(self.pieces_K), "entities": len(self.gold_A), "pages": len(self.pages_B)}


class MaskedWindow(NamedTuple):
    """One example after masking, int64: its N pieces, [CLS] and [SEP] among them, and M mentions.

    labels_N, asked_M: the piece and the entity that are asked, -1 elsewhere; first_M, last_M: first and last piece of
    each mention, both inclusive; page: the row of the page's entity.
    """

    pieces_N: np.ndarray
    labels_N: np.ndarray
    entities_M: np.ndarray
    asked_M: np.ndarray
    first_M: np.ndarray
    last_M: np.ndarray
    page: int


class LukeWindows:
    """Makes batches of drawn examples.

    sampler: None: the softmax is over all entities. max_window: pieces that the encoder reads at once.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        tokenizer: PieceTokenizer,
        mask_entity: int,
        first_entity: int,
        entities: int,
        settings: MaskingSettings,
        seed: int,
        max_window: int,
        sampler: EntitySampler | None = None,
    ):
        special = {*tokenizer.backend.get_added_tokens_decoder(), tokenizer.cls_id, tokenizer.sep_id}
        special |= {tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id}
        pieces_P = np.setdiff1d(np.arange(len(tokenizer)), sorted(special))
        self.vocabularies = Vocabularies(tokenizer.mask_id, mask_entity, pieces_P, first_entity, entities)
        self.examples, self.tokenizer, self.settings = examples, tokenizer, settings
        self.seed, self.max_window, self.sampler = seed, max_window, sampler

    def collate(self, drawn: Sequence[Drawn], *, name: str = "") -> LukeBatch:
        """Read and mask these examples; the masks are a function of seed, epoch and place alone."""
        masked = [self._mask(x) for x in drawn]
        labels_N = np.concatenate([x.labels_N for x in masked])
        entity_labels_E = np.concatenate([x.asked_M for x in masked])
        masked_K, asked_A = np.flatnonzero(labels_N >= 0), np.flatnonzero(entity_labels_E >= 0)
        gold_A = entity_labels_E[asked_A]
        sampled = None
        if self.sampler is not None:
            rng = np.random.default_rng([self.seed, drawn[0].epoch, drawn[0].place, 1])
            rows_C, weights_C = self.sampler.sample(gold_A, rng)
            sampled = SampledEntities(torch.from_numpy(rows_C), torch.from_numpy(weights_C))
        return LukeBatch(
            windows=Windows(_joined([x.pieces_N for x in masked]), [len(x.pieces_N) for x in masked]),
            mentions=Mentions(
                _joined([x.entities_M for x in masked]),
                _joined([x.first_M for x in masked]),
                _joined([x.last_M for x in masked]),
                [len(x.entities_M) for x in masked],
            ),
            masked_K=torch.from_numpy(masked_K),
            pieces_K=torch.from_numpy(labels_N[masked_K]),
            asked_A=torch.from_numpy(asked_A),
            gold_A=torch.from_numpy(gold_A),
            pages_B=torch.tensor([x.page for x in masked]),
            sampled=sampled,
            name=name or f"examples {', '.join(str(x.number) for x in drawn)}",
        )

    def pieces_of(self, drawn: Drawn) -> int:
        """How many a window has, [CLS] and [SEP] among them."""
        return self.examples.pieces_of(drawn.number) + 2

    def _mask(self, drawn: Drawn) -> MaskedWindow:
        example = self.examples[drawn.number]
        if len(example.pieces) + 2 > self.max_window:
            raise ValueError(
                f"Example {drawn.number} has {len(example.pieces) + 2} pieces with [CLS] and [SEP], but the encoder "
                f"reads {self.max_window}. Build shards with a smaller max_pieces."
            )
        rng = np.random.default_rng([self.seed, drawn.epoch, drawn.place])
        shared: dict[str, Any] = {"settings": self.settings, "vocabularies": self.vocabularies, "rng": rng}
        entities_M = example.entities if self.settings.entities is not None else example.entities[:0]
        entities_M, asked_M = mask_entities(entities_M, **shared)
        pieces, labels = mask_words(example.pieces, example.word_starts, **shared)
        n = len(entities_M)
        return MaskedWindow(
            pieces_N=self.tokenizer.window(pieces),
            labels_N=np.concatenate([[-1], labels, [-1]]),
            entities_M=entities_M,
            asked_M=asked_M,
            first_M=example.starts[:n].astype(np.int64) + 1,
            last_M=example.ends[:n].astype(np.int64),  # the last piece of the mention, counted with [CLS]
            page=example.page_id,
        )


def _joined(arrays: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(arrays))


def luke_stream(
    source: ShardSource, windows: LukeWindows, size: BatchSize, *, rank: int = 0, world_size: int = 1
) -> Stream:
    """Batches of windows for one of `world_size` processes, from a position on."""

    def stream(position: Position) -> Iterator[tuple[LukeBatch, Position]]:
        batches = batch_instances(
            source, position, size=size, pieces_of=windows.pieces_of, rank=rank, world_size=world_size
        )
        for drawn, after in batches:
            numbers = ", ".join(str(x.number) for x in drawn[:8]) + (", ..." if len(drawn) > 8 else "")
            yield windows.collate(drawn, name=f"{after.batches} (epoch {after.epoch}, examples {numbers})"), after

    return stream


def held_out_windows(examples: Examples, windows: LukeWindows, size: int, limit: int) -> list[LukeBatch]:
    """The first `limit` batches of held-out examples in their order, with masks that stay the same."""
    numbers = range(min(len(examples), size * limit))
    return [windows.collate([Drawn(i, 0, i) for i in numbers[a : a + size]]) for a in range(0, len(numbers), size)]


class Pages:
    """The examples of some pages of shards."""

    def __init__(self, shards: Shards, chosen_N: np.ndarray):
        self.shards, self.numbers = shards, np.flatnonzero(chosen_N)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, i: int) -> Example:
        return self.shards[int(self.numbers[i])]

    def pieces_of(self, i: int) -> int:
        """How many an example has."""
        return self.shards.pieces_of(int(self.numbers[i]))


@dataclass(frozen=True)
class ShardPart:
    """shards: as they are; examples: those of them that belong to the part; quotas: of each language, none: all
    examples once an epoch."""

    shards: Shards
    examples: Examples
    quotas: Sequence[LanguageQuota] = ()


def smooth_languages(languages_N: NDArray[np.int64], smoothing: float) -> list[LanguageQuota]:
    """As many examples as there are, of each language n ** smoothing of the sum of these, n being its own; the largest
    remainders are rounded up. languages_N: number of each example's language."""
    numbers = [np.flatnonzero(languages_N == x) for x in np.unique(languages_N)]
    shares = np.array([len(x) for x in numbers], np.float64) ** smoothing
    exact = shares / shares.sum() * len(languages_N)
    wanted = np.floor(exact).astype(np.int64)
    wanted[np.argsort(wanted - exact, kind="stable")[: len(languages_N) - wanted.sum()]] += 1
    return [LanguageQuota(x, int(n)) for x, n in zip(numbers, wanted, strict=True)]


def make_shard_reader(
    path: str, part: str = "all", held_out: int | None = None, verify: bool = True, smoothing: float | None = None
) -> Callable[[], ShardPart]:
    """`spacy-luke.Shards.v1`: examples that `spacy luke build-shards` has made.

    path: the folder of the shards.
    part: "all", or "train" and "dev", where each page whose number is a multiple of `held_out` is of the second.
    held_out: one page of so many is held out, from 2; None where all are read.
    verify: compare the digests of all files, also of those that are remembered to be right.
    smoothing: of shards of several languages, how often each is drawn: with n of all examples, as n ** smoothing (0.7
        in mLUKE and XLM-R), 0 being all alike; None: each example once an epoch.
    """
    if smoothing is not None and not 0 <= smoothing <= 1:
        raise ValueError(f"Expected smoothing from 0 to 1, or null, but got {smoothing}.")
    if part not in _PARTS or (part == "all") != (held_out is None) or (held_out is not None and held_out < 2):
        raise ValueError(
            f'Expected part = "all" and held_out = null, or one of {_PARTS[1:]} and held_out from 2, but got {part!r} '
            f"and {held_out}."
        )

    def read() -> ShardPart:
        shards = Shards.open(path, verify=verify, progress=True)
        if held_out is None:
            return ShardPart(shards, shards, quotas(shards, np.arange(len(shards))))
        examples = Pages(shards, (shards.example_pages() % held_out == 0) == (part == "dev"))
        if not len(examples):
            raise ValueError(
                f"The shards in {path} have {shards.manifest['pages']} pages, of which none is in the part {part!r}: "
                "change held_out, or take all."
            )
        return ShardPart(shards, examples, quotas(shards, examples.numbers))

    def quotas(shards: Shards, numbers: NDArray[np.int64]) -> Sequence[LanguageQuota]:
        if smoothing is None:
            return ()
        known = shards.example_languages()
        names = sorted({language for language, _ in known})
        languages_N = np.repeat([names.index(language) for language, _ in known], [n for _, n in known])
        return smooth_languages(languages_N[numbers], smoothing)

    return read
