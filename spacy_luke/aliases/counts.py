"""From counts of names and entities to a store."""

from array import array
from dataclasses import dataclass, field
from math import isinf
from typing import Any

import numpy as np

from ..text.forms import check_case, key_of, units
from .store import AliasStore, pack_store


@dataclass(frozen=True)
class Limits:
    """What a store leaves out; None: nothing.

    min_count: entities of a name with fewer links. min_link_probability: names below. max_candidates: all but so many
    entities of a name, the best. max_words: names of more words (as `text.forms.units` counts them, so that
    punctuation counts too).
    """

    min_count: float = 0.0
    min_link_probability: float = 0.0
    max_candidates: int | None = None
    max_words: int | None = 20

    def __post_init__(self) -> None:
        if not 0 <= self.min_link_probability <= 1:
            raise ValueError(f"min_link_probability must be between 0 and 1, but it is {self.min_link_probability}.")
        for name in ("max_candidates", "max_words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, or None for no limit, but it is {value}.")


@dataclass
class LeftOut:
    """Names and candidates that a store does not have, by the limit."""

    too_long: int = 0
    blank: int = 0
    rare_candidates: int = 0
    rarely_linked: int = 0
    extra_candidates: int = 0

    def lines(self) -> list[str]:
        told = [
            (self.too_long, "links of names with more words than max_words"),
            (self.blank, "links without a text"),
            (self.rarely_linked, "names with a lower link probability"),
            (self.rare_candidates, "candidates with fewer links"),
            (self.extra_candidates, "candidates beyond max_candidates"),
        ]
        return [f"{count:,} {what}" for count, what in told if count]


@dataclass
class AliasCounts:
    """Counts of names, of the entities that they mean and of their occurrences, from which `build` makes a store.

    Names that have the same key (see `text.forms`) are one. Weights are numbers of links, or shares.
    """

    case: str
    limits: Limits = Limits()
    left_out: LeftOut = field(default_factory=LeftOut)

    def __post_init__(self) -> None:
        check_case(self.case)
        self.names: dict[str, int] = {}
        self.titles: dict[str, int] = {}
        self._links: dict[int, float] = {}  # name * 2 ** 32 + title: a third of the memory of nested dicts
        self.total_N = array("d")  # what the priors of a name are shares of
        self.linked_N = array("d")
        self.occurring_N = array("d")

    def add_name(self, name: str) -> int | None:
        """The number of a name, None where it is too long or has no text (which is counted)."""
        key = key_of(name, case=self.case)
        number = self.names.get(key)
        if number is not None:
            return number
        if not key:
            self.left_out.blank += 1
            return None
        longest = self.limits.max_words
        if longest is not None and len(key) > longest and sum(1 for _ in units(key)) > longest:
            self.left_out.too_long += 1
            return None
        number = self.names[key] = len(self.names)
        for counts in (self.total_N, self.linked_N, self.occurring_N):
            counts.append(0.0)
        return number

    def add_link(self, number: int, entity: str, weight: float = 1) -> None:
        """Note that a name means an entity, `weight` times. The totals are not touched: see `add_total`."""
        title = self.titles.setdefault(entity, len(self.titles))
        pair = number << 32 | title
        self._links[pair] = self._links.get(pair, 0) + weight

    def add_total(self, number: int, *, total: float, linked: float, occurring: float) -> None:
        """total: what the priors are shares of; linked and occurring: what link probability is the ratio of."""
        self.total_N[number] += total
        self.linked_N[number] += linked
        self.occurring_N[number] += occurring

    def rename(self, redirects: dict[str, str]) -> None:
        """Follow redirects from title to title; a circle of them leads nowhere, and its titles stay."""
        target_T = [resolve(title, redirects) for title in self.titles]
        titles: dict[str, int] = {}
        new_T = [titles.setdefault(title, len(titles)) for title in target_T]
        links: dict[int, float] = {}
        for pair, weight in self._links.items():
            pair = pair >> 32 << 32 | new_T[pair & 0xFFFFFFFF]
            links[pair] = links.get(pair, 0) + weight
        self.titles, self._links = titles, links

    def build(self, *, info: dict[str, Any] | None = None) -> AliasStore:
        """The store, in memory. Candidates are ordered by their share, then by their title."""
        names, titles = list(self.names), list(self.titles)
        link_N = np.array([_share(a, b) for a, b in zip(self.linked_N, self.occurring_N, strict=True)], np.float64)
        name_C, title_C, weight_C = self._pairs()
        rank_N, rank_T = _ranks(names), _ranks(titles)
        enough_C = weight_C >= self.limits.min_count
        self.left_out.rare_candidates = int((~enough_C).sum())
        linked_C = link_N[name_C].astype(np.float32) >= np.float32(self.limits.min_link_probability)
        self.left_out.rarely_linked = len(np.unique(name_C[enough_C & ~linked_C]))
        kept = np.flatnonzero(enough_C & linked_C)
        kept = kept[np.lexsort((rank_T[title_C[kept]], -weight_C[kept], rank_N[name_C[kept]]))]
        if self.limits.max_candidates is not None:
            few = _places(name_C[kept]) < self.limits.max_candidates
            self.left_out.extra_candidates = int((~few).sum())
            kept = kept[few]
        name_C, title_C, weight_C = name_C[kept], title_C[kept], weight_C[kept]
        used_N, count_N = np.unique(rank_N[name_C], return_counts=True)
        used_T, entity_C = np.unique(rank_T[title_C], return_inverse=True)
        by_rank_N, by_rank_T = np.argsort(rank_N)[used_N], np.argsort(rank_T)[used_T]
        total_N = np.maximum(np.asarray(self.total_N)[name_C], np.finfo(np.float64).tiny)
        data = pack_store(
            [names[i] for i in by_rank_N],
            [titles[i] for i in by_rank_T],
            link_N=link_N[by_rank_N],
            count_N=count_N,
            entity_C=entity_C,
            prior_C=np.minimum(weight_C / total_N, 1.0),
            case=self.case,
            info=info or {},
        )
        return AliasStore(data)

    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        pair_C = np.fromiter(self._links.keys(), np.int64, len(self._links))
        weight_C = np.fromiter(self._links.values(), np.float64, len(self._links))
        return pair_C >> 32, pair_C & 0xFFFFFFFF, weight_C


def resolve(title: str, redirects: dict[str, str]) -> str:
    """Where redirects lead from a title; the title itself where they lead in a circle."""
    seen = {title}
    target = title
    while target in redirects:
        target = redirects[target]
        if target in seen:
            return title
        seen.add(target)
    return target


def _share(linked: float, occurring: float) -> float:
    """Links beyond the occurrences are those inside of words; a name that only might occur has none."""
    return 0.0 if not linked or isinf(occurring) else linked / max(linked, occurring)


def _ranks(texts: list[str]) -> np.ndarray:
    """The place of each text among them in order."""
    ranks = np.empty(len(texts), np.int64)
    ranks[np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)] = np.arange(len(texts))
    return ranks


def _places(name_C: np.ndarray) -> np.ndarray:
    """0, 1, ... within each run of one name."""
    new = np.concatenate([[True], name_C[1:] != name_C[:-1]]) if len(name_C) else np.zeros(0, bool)
    places_C: np.ndarray = np.arange(len(name_C)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    return places_C
