"""How candidates agree with their mention and its text, without the encoder: names, descriptions and types.

The numbers of a candidate, M = `model.linking.MATCH`, each 0 where nothing is known:

    name       1 where the mention is the entity's name: its title without what distinguishes it, as "(film)"
    long_name  log of the mention's words where it is: a long name is seldom that of another
    part       the share of the name's words that the mention has, where it is not the whole name ("Lovelace")
    only       1 where the mention has no other candidate
    context    log of 1 + the number of words of its description that the text has beside the mention
    related    1 where its description, or what distinguishes its title, names another mention of the text
    type       how much more often the mention's label goes with the types of right candidates than with those of wrong
               ones: log-odds, learned at initialisation (`learn_types`)

K candidates of a mention.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.lang.en.stop_words import STOP_WORDS
from spacy.tokens import Doc

from ...kb.knowledge_base import EntityKB
from ...model.linking import MATCH
from ..mentions import WordRange

Agreement = dict[str, dict[str, float]]  # log-odds of a type, by a mention's label
SMOOTHING = 2.0  # pseudo-counts of a type beside each label
LEAST_LETTERS = 3  # of a word that counts as context
CACHE = 100_000  # entities whose words are kept
_WORDS = re.compile(r"\w+")


class Described(NamedTuple):
    """What is known of an entity: the words of its name, those of its description and of what distinguishes its title,
    and its types."""

    name: tuple[str, ...]
    context: frozenset[str]
    told: str  # description and what distinguishes the title, in small letters, " word word "
    types: tuple[str, ...]


class Matcher:
    """Compares candidates with mentions. agreement: see `learn_types`."""

    def __init__(self, kb: EntityKB | None, agreement: Agreement):
        self.kb, self.agreement = kb, agreement
        self._known: dict[str, Described] = {}

    def __call__(
        self,
        doc: Doc,
        mentions: Sequence[WordRange],
        labels: Sequence[str],
        named: Sequence[Sequence[tuple[str, float]]],
    ) -> list[NDArray[np.float32]]:
        """Of each mention (K, M). labels: of the mentions, "" where there is none."""
        counts = Counter(word.lower_ for word in doc if _counts(word.lower_))
        texts = [_words(doc[start:end].text) for start, end in mentions]
        told = {f" {' '.join(words)} " for words in texts if sum(map(len, words)) >= LEAST_LETTERS}
        found = []
        for words, label, candidates in zip(texts, labels, named, strict=True):
            beside = {word for word, n in counts.items() if n > words.count(word)}
            others = told - {f" {' '.join(words)} "}
            rows = [self._compare(entity, words, label, beside, others, len(candidates)) for entity, _ in candidates]
            found.append(np.array(rows, dtype=np.float32).reshape(-1, len(MATCH)))
        return found

    def _compare(
        self, entity: str, words: tuple[str, ...], label: str, beside: set[str], others: set[str], candidates: int
    ) -> list[float]:
        one = self.describe(entity)
        same = bool(words) and words == one.name
        part = len(set(words) & set(one.name)) / len(set(one.name)) if one.name and not same else 0.0
        return [
            float(same),
            math.log(len(words)) if same else 0.0,
            part,
            float(candidates == 1),
            math.log1p(len(one.context & beside)),
            float(any(other in one.told for other in others)),
            type_score(self.agreement.get(label, {}), one.types),
        ]

    def describe(self, entity: str) -> Described:
        if entity not in self._known:
            if len(self._known) >= CACHE:
                self._known.clear()
            self._known[entity] = self._describe(entity)
        return self._known[entity]

    def _describe(self, entity: str) -> Described:
        row = -1 if self.kb is None else self.kb.row(entity)
        title, description, types = entity, "", ()
        if self.kb is not None and row >= 0:
            record = self.kb.record(row)
            title, description, types = record.title, record.description, record.types
        name, apart = split_title(title)
        words = _words(f"{apart} {description}")
        own = set(_words(name))
        context = frozenset(word for word in words if _counts(word) and word not in own)
        return Described(_words(name), context, f" {' '.join(words)} ", types)


def split_title(title: str) -> tuple[str, str]:
    """A title as its name and what distinguishes it from others of that name: "Paris, Texas", "Apple (company)"."""
    before, bracket, after = title.partition(" (")
    if bracket and after.endswith(")"):
        return before, after[:-1]
    before, _, after = title.partition(", ")
    return before, after


def type_score(odds: dict[str, float], types: Sequence[str]) -> float:
    """The mean of the log-odds of types; 0 where none is known."""
    known = [odds[x] for x in types if x in odds]
    return sum(known) / len(known) if known else 0.0


def learn_types(seen: Iterable[tuple[str, Sequence[str], bool]]) -> Agreement:
    """Log-odds of types, by label. seen: of candidates the label of their mention, their types, and whether they are
    right."""
    right: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: dict[str, Counter[str]] = defaultdict(Counter)
    for label, types, is_right in seen:
        if label:
            (right if is_right else wrong)[label].update(types)
    found: Agreement = {}
    for label in sorted({*right, *wrong}):
        all_right, all_wrong = right[label].total() + SMOOTHING, wrong[label].total() + SMOOTHING
        found[label] = {
            x: round(
                math.log((right[label][x] + SMOOTHING) / (all_right + SMOOTHING))
                - math.log((wrong[label][x] + SMOOTHING) / (all_wrong + SMOOTHING)),
                4,
            )
            for x in sorted({*right[label], *wrong[label]})
        }
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text.casefold()))


def _counts(word: str) -> bool:
    return len(word) >= LEAST_LETTERS and word not in STOP_WORDS
