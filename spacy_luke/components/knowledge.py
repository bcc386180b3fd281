"""Which entities of a knowledge graph a Doc names, and the words that carry them: functions that configs name (ERNIE).

Zhang et al., ACL 2019, section 3.1, aligns an entity with the first piece of its mention; the rules are those of the
authors' code (code/knowledge_bert/tokenization.py).
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

from spacy.tokens import Doc
from spacy.util import registry

from ..annotations import LINKS, UNLINKED, KnownEntity, get_knowledge
from ..text.align import is_punctuation

ALIGNMENTS = ("characters", "whitespace")
NO_WORD = "no word begins there"
DISPLACED = "another entity at the same word"


@runtime_checkable
class KnownGetter(Protocol):
    """Gives the entities of a Doc that a knowledge graph has."""

    def __call__(self, doc: Doc, /) -> list[KnownEntity]: ...


class Aligned(NamedTuple):
    """placed: (word, entity), ascending, each word once. lost: (entity, reason) of all others, in the list's order;
    the reason is NO_WORD or DISPLACED."""

    placed: list[tuple[int, KnownEntity]]
    lost: list[tuple[KnownEntity, str]]


def align_known(
    doc: Doc,
    known: Sequence[KnownEntity],
    *,
    alignment: str = "characters",
    marked: Sequence[tuple[int, int]] = (),
    strip_accents: bool = True,
) -> Aligned:
    """The words whose first piece carries an entity. Of several at one word, the last wins.

    alignment: "characters": the word that holds the mention's first visible character. "whitespace": the original's
    rule: a mention must begin where a run of characters between blanks does, so that "(Obama" is lost, and nobody asks
    where it ends.
    marked: characters [start, end) of the mentions that the input marks. The original puts blanks beside its marks
    before it aligns, so that a marked mention after a bracket is not lost. Only "whitespace" depends on it.
    strip_accents: whether the tokenizer takes accents away, as it does where it makes letters small. A run that is
    nothing but accents then vanishes, and in the original the entities after it move on by one. Only "whitespace".

    Places of words without pieces are given too, and are for the caller to find.
    """
    if alignment not in ALIGNMENTS:
        raise ValueError(f"alignment must be one of {ALIGNMENTS}, but it is {alignment!r}.")
    text = doc.text
    if alignment == "characters":
        places = [(number, _first_visible(text, one)) for number, one in enumerate(known)]
        displaced: list[int] = []
    else:
        places, displaced = _by_whitespace(text, known, marked=marked, strip_accents=strip_accents)
    starts_W = [word.idx for word in doc]
    carried: dict[int, int] = {}
    lost = dict.fromkeys(displaced, DISPLACED)
    for number, place in places:
        word = -1 if place is None else bisect_right(starts_W, place) - 1
        if place is None or word < 0 or place >= starts_W[word] + len(doc[word]):
            lost[number] = NO_WORD
            continue
        if word in carried:
            lost[carried[word]] = DISPLACED
        carried[word] = number
    return Aligned(
        [(word, known[number]) for word, number in sorted(carried.items())],
        [(known[number], reason) for number, reason in sorted(lost.items())],
    )


def _first_visible(text: str, one: KnownEntity) -> int | None:
    if not 0 <= one.start < one.end:
        return None
    inside = range(one.start, min(one.end, len(text)))
    return next((i for i in inside if not _is_blank(text[i]) and not _is_dropped(text[i])), None)


def _by_whitespace(
    text: str, known: Sequence[KnownEntity], *, marked: Sequence[tuple[int, int]], strip_accents: bool
) -> tuple[list[tuple[int, int | None]], list[int]]:
    """(number of each entity, the character whose piece gets it), in the text's order, and the numbers that another one
    with the same beginning displaces."""
    origin = _with_marks(len(text), marked)
    marked_text = "".join("#" if i == -1 else " " if i == -2 else text[i] for i in origin)
    kept = [i for i, char in enumerate(marked_text) if not _is_dropped(char)]
    at: dict[int, int] = {}
    displaced = []
    for number, one in enumerate(known):
        if one.start < 0:
            continue
        place = bisect_left(kept, one.start + _shift(one.start, marked))
        if place in at:
            displaced.append(at[place])
        at[place] = number
    carriers, entities = _runs([marked_text[i] for i in kept], at, strip_accents=strip_accents)
    found: dict[int, int | None] = dict.fromkeys(set(range(len(known))) - set(displaced))
    for place, entity in zip(carriers, entities):  # as in the original, what has no partner is lost
        if entity is not None and origin[kept[place]] >= 0:
            found[entity] = origin[kept[place]]
    ordered = sorted(found.items(), key=lambda item: (item[1] is None, item[1] or 0, item[0]))
    return ordered, displaced


def _runs(chars: Sequence[str], at: dict[int, int], *, strip_accents: bool) -> tuple[list[int], list[int | None]]:
    """Where each token (punctuation apart) begins, and the entity of each; a run that vanishes has an entity or None
    all the same."""
    carriers: list[int] = []
    entities: list[int | None] = []
    i = 0
    while i < len(chars):
        if _is_blank(chars[i]):
            i += 1
            continue
        begin, before, anew = i, len(carriers), True
        while i < len(chars) and not _is_blank(chars[i]):
            for char in _letters(chars[i], strip_accents):
                alone = is_punctuation(char)
                if anew or alone:
                    carriers.append(i)
                anew = alone
            i += 1
        entities += [at.get(begin), *[None] * (len(carriers) - before - 1)]
    return carriers, entities


def _with_marks(size: int, marked: Sequence[tuple[int, int]]) -> list[int]:
    """The characters of the text with its marks: numbers of the text's own, -1 for a mark, -2 for the blank beside
    it."""
    inserted: list[tuple[int, int, list[int]]] = []
    for start, end in marked:
        inserted += [(start, 1, [-1, -2]), (end, 0, [-2, -1])]
    origin: list[int] = []
    done = 0
    for place, _, extra in sorted(inserted):
        origin += [*range(done, place), *extra]
        done = place
    return [*origin, *range(done, size)]


def _shift(start: int, marked: Sequence[tuple[int, int]]) -> int:
    """How far marks move an entity that begins here. One that begins where a marked mention ends stays behind the mark
    and is lost, as in the original, unless it is marked itself."""
    begins = any(start == a for a, _ in marked)
    return sum(2 * (start >= a) + 2 * (start > b or (begins and start == b)) for a, b in marked)


@lru_cache(maxsize=10_000)
def _letters(char: str, strip_accents: bool) -> str:
    """A character as the tokenizer splits it at punctuation."""
    if not strip_accents or char.isascii():
        return char
    return "".join(c for c in unicodedata.normalize("NFD", char.lower()) if unicodedata.category(c) != "Mn")


@lru_cache(maxsize=10_000)
def _is_blank(char: str) -> bool:
    return char in "\t\n\r" or unicodedata.category(char) == "Zs"


@lru_cache(maxsize=10_000)
def _is_dropped(char: str) -> bool:
    """What BERT's tokenizers take out of any text."""
    return char not in "\t\n\r" and (char == "\ufffd" or unicodedata.category(char).startswith("C"))


@dataclass(frozen=True)
class LinkedEnts:
    """doc.ents with a kb_id_."""

    def __call__(self, doc: Doc) -> list[KnownEntity]:
        return [KnownEntity(e.start_char, e.end_char, e.kb_id_) for e in doc.ents if e.kb_id_ not in UNLINKED]


@dataclass(frozen=True)
class LinkedSpans:
    """Spans of a group with a kb_id_, and their scores."""

    key: str
    threshold: float

    def __call__(self, doc: Doc) -> list[KnownEntity]:
        if self.key not in doc.spans:
            return []
        group = doc.spans[self.key]
        scores = group.attrs.get("scores")
        scores = [1.0] * len(group) if scores is None else [float(score) for score in scores]
        if len(scores) != len(group):
            raise ValueError(
                f"doc.spans[{self.key!r}] has {len(group)} spans, but attrs['scores'] has {len(scores)}: expected one "
                "each. Was the group changed without its scores?"
            )
        return [
            KnownEntity(span.start_char, span.end_char, span.kb_id_, score)
            for span, score in zip(group, scores, strict=True)
            if span.kb_id_ not in UNLINKED and score >= self.threshold
        ]


@dataclass(frozen=True)
class GivenEntities:
    """doc._.luke_knowledge."""

    threshold: float

    def __call__(self, doc: Doc) -> list[KnownEntity]:
        return [one for one in get_knowledge(doc) if one.score > self.threshold]


@registry.misc("spacy-luke.linked_ents.v1")
def make_linked_ents() -> KnownGetter:
    """The entities of doc.ents that any linker has given a `kb_id_`, score 1. "NIL" is none."""
    return LinkedEnts()


@registry.misc("spacy-luke.linked_spans.v1")
def make_linked_spans(key: str = LINKS, threshold: float = 0.0) -> KnownGetter:
    """The spans of doc.spans[key] that have a `kb_id_`, such as those of `entity_annotator`.

    key: name of the span group.
    threshold: least score; scores are those of attrs["scores"], 1 where the group has none.
    """
    return LinkedSpans(key, threshold)


@registry.misc("spacy-luke.given_entities.v1")
def make_given_entities(threshold: float = 0.3) -> KnownGetter:
    """The entities of doc._.luke_knowledge, as data sets give them.

    threshold: only scores above it; in the original .3 for typing, .4 for TACRED.
    """
    return GivenEntities(threshold)
