"""How candidates agree with their mention and its text, without the encoder: names, descriptions and types.

The numbers of a candidate, M = `model.linking.MATCH`, each 0 where nothing is known:

    name       1 where the mention is the entity's name: its title without what distinguishes it, as "(film)", and both
               without "The"
    long_name  log of the mention's words where it is: a long name is seldom that of another
    part       the share of the name's words that the mention has, where it is not the whole name ("Lovelace")
    surname    1 where the mention is one word and the entity is a person
    told       1 where it is not, and the text has the whole name elsewhere
    short      1 where the mention has capitals alone, five at most, is not the name ("UN"), and is not labelled as a
               place: the initials of a country are seldom another's ("U.S.")
    derived    1 where the mention begins as the name does and ends otherwise ("Iraqi")
    beside     1 where a word beside the mention has a capital too: it may be a part of a longer name
    of         1 where it follows "of" and a word with a capital ("King of Hungary", "City of London")
    only       1 where the mention has no other candidate
    described  the share of the words of its description that the text has beside the mention
    related    1 where its description, or what distinguishes its title, names another mention of the text
    type       how much more often the mention's label goes with the types of right candidates than with those of wrong
               ones: log-odds, learned at initialisation (`learn_types`)
    sure       the logarithm of the probability of the mention's label, where it has one
    sports     of a place, whose name may stand for its team: log(1 + words of sports in a hundred words of the text)
    shared     1 where a person's one word is part of another person's name in the text ("Kate" of "Kate Hudson")
    group      of a place: 1 where the same name is an organization elsewhere in the text
    titled     the share of the words of its title, those of the mention apart, that the text has beside the mention
    coherent   log(1 + other names of the text with candidates whose titles have one of these words, too), each name by
               the priors of these, of the word for which it is most
    initials   1 where the mention has capitals alone, five at most, which begin the words of its title ("FBI")

K candidates of a mention.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.lang.en.stop_words import STOP_WORDS
from spacy.tokens import Doc

from ...kb.knowledge_base import EntityKB
from ...model.linking import MATCH
from ...text.forms import key_of, words_of

Agreement = dict[str, dict[str, float]]  # log-odds of a type, by a mention's label
_SMOOTHING = 2.0  # pseudo-counts of a type beside each label
_LEAST_LETTERS = 3  # of a word that counts as context
_MOST_CAPITALS = 5
_PERSONS = frozenset({"person", "human", "Q5"})  # types of persons
_PLACES = frozenset({"place", "country", "city", "Q515", "Q6256", "Q3624078", "Q486972"})  # types of places
_PERSON_LABELS = frozenset({"PER", "PERSON"})
_PLACE_LABELS = frozenset({"LOC", "GPE"})
_GROUPS = frozenset({"ORG", "organization", "NORP"})  # labels of organizations
# Words of English that tell of sports.
_SPORTS = frozenset(
    """
    athletics baseball basketball batsman batted bowler champions championship championships club clubs coach
    coached coaches cricket cup defender defenseman derby doubles fifa fixture football game games goal
    goalkeeper goalless goals golf halftime handball hockey homer homered inning innings kickoff league leagues
    match matches midfielder mlb nba nfl nhl olympic olympics outfielder pitcher player players playoff playoffs
    qualifier qualifiers quarterback quarterfinal quarterfinals referee rugby runs scorer scorers season
    semifinal semifinals singles soccer squad stadium striker substitute super-g team teams tennis touchdown
    touchdowns tournament uefa volleyball vs wicket wickets winger
    """.split()
)
_LEAST_SCORE = 1e-3
_CACHE = 10_000  # entities whose words are kept, some 3 kB each
_SMALL = frozenset("and for of on the to".split())  # words that have no letter among initials


class Described(NamedTuple):
    """What is known of an entity: the words of its name, those of its description and of what distinguishes its title,
    those of its title, its types, and the initials of its name and title."""

    name: tuple[str, ...]
    context: frozenset[str]
    title: frozenset[str]
    told: str  # description and what distinguishes the title, in small letters, " word word "
    told_words: frozenset[str]
    types: tuple[str, ...]
    initials: frozenset[str]


class Labelled(NamedTuple):
    """A mention, words [start, end), with its label, "" where it has none, and the probability of that."""

    start: int
    end: int
    label: str
    score: float | None = None


class _Asked(NamedTuple):
    """A mention and its text, see the numbers above. others: names of other mentions, " word word "."""

    words: tuple[str, ...]
    label: str
    capitals: bool
    beside: bool
    of: bool
    only: bool
    sure: float
    sports: float
    group: bool
    fuller: frozenset[tuple[str, ...]]  # names of persons that have its one word
    context: frozenset[str]
    own: str  # its name, " word word "
    others: Mapping[str, Sequence[str]]  # names of the text's mentions, " word word ", by their first words
    whole: str
    coherent: Mapping[str, float]  # of words of titles, see `_coherence`


class Matcher:
    """Compares candidates with mentions. agreement: see `learn_types`."""

    def __init__(self, kb: EntityKB | None, agreement: Agreement):
        self.kb, self.agreement = kb, agreement
        self._known: dict[str, Described] = {}

    def __call__(
        self, doc: Doc, mentions: Sequence[Labelled], named: Sequence[Sequence[tuple[str, float]]]
    ) -> list[NDArray[np.float32]]:
        """Of each mention (K, M)."""
        counts = Counter(word for x in doc if _counts(word := key_of(x.text, case="casefold")))
        whole = f" {' '.join(words_of(doc.text))} "
        names = [_without_article(words_of(doc[x.start : x.end].text)) for x in mentions]
        sports = math.log1p(100 * sum(word.lower_ in _SPORTS for word in doc) / max(len(doc), 1))
        groups = {name for name, x in zip(names, mentions, strict=True) if x.label in _GROUPS}
        persons = {name for name, x in zip(names, mentions, strict=True) if x.label in _PERSON_LABELS and len(name) > 1}
        others: dict[str, list[str]] = {}
        for words in dict.fromkeys(names):
            if sum(map(len, words)) >= _LEAST_LETTERS:
                others.setdefault(words[0], []).append(f" {' '.join(words)} ")
        context = frozenset(counts)
        coherence = self._coherence(names, named)
        found = []
        for mention, words, candidates in zip(mentions, names, named, strict=True):
            text = doc[mention.start : mention.end].text
            asked = _Asked(
                words,
                mention.label,
                capitals=_is_short(text),
                beside=_is_name(doc, mention.start - 1) or _is_name(doc, mention.end, first=True),
                of=mention.start > 1 and doc[mention.start - 1].lower_ == "of" and _is_name(doc, mention.start - 2),
                only=len(candidates) == 1,
                sure=math.log(max(mention.score, _LEAST_SCORE)) if mention.score is not None else 0.0,
                sports=sports,
                fuller=_fuller(words, persons) if mention.label in _PERSON_LABELS else frozenset(),
                group=words in groups,
                context=context.difference(word for word in words if counts[word] <= words.count(word)),
                own=f" {' '.join(words)} ",
                others=others,
                whole=whole,
                coherent=coherence[words],
            )
            rows = [self._compare(self.describe(entity), asked) for entity, _ in candidates]
            found.append(np.array(rows, dtype=np.float32).reshape(-1, len(MATCH)))
        return found

    def _coherence(
        self, names: Sequence[tuple[str, ...]], named: Sequence[Sequence[tuple[str, float]]]
    ) -> dict[tuple[str, ...], dict[str, float]]:
        """Of each name and word the priors of the candidates of all other names whose titles have the word."""
        shares: dict[tuple[str, ...], Counter[str]] = {}
        for words, candidates in zip(names, named, strict=True):
            if words not in shares:
                shares[words] = Counter()
                for entity, prior in candidates:
                    shares[words].update(dict.fromkeys(self.describe(entity).title, prior))
        total: Counter[str] = Counter()
        for share in shares.values():
            total.update(share)
        return {
            words: {word: max(total[word] - n, 0.0) for word, n in share.items()} for words, share in shares.items()
        }

    def _compare(self, one: Described, asked: "_Asked") -> list[float]:
        words, name = asked.words, one.name
        same = bool(words) and words == name
        letters, own = "".join(words), "".join(name)
        stem = next((i for i, (a, b) in enumerate(zip(letters, own)) if a != b), min(len(letters), len(own)))
        further = one.title.difference(words)
        place = not _PLACES.isdisjoint(one.types)
        numbers = {
            "name": same,
            "long_name": math.log(len(words)) if same else 0.0,
            "part": 0.0 if same or not name else len(set(words) & set(name)) / len(set(name)),
            "surname": len(words) == 1 and not _PERSONS.isdisjoint(one.types),
            "told": not same and bool(name) and f" {' '.join(name)} " in asked.whole,
            "short": asked.capitals and not same and asked.label not in _PLACE_LABELS,
            "derived": not same and not set(words) & set(name) and stem >= _LEAST_LETTERS,
            "beside": asked.beside,
            "of": asked.of,
            "only": asked.only,
            "described": len(one.context & asked.context) / (len(one.context) or 1),
            "related": any(
                other in one.told and other != asked.own
                for word in one.told_words & asked.others.keys()
                for other in asked.others[word]
            ),
            "type": type_score(self.agreement.get(asked.label, {}), one.types),
            "sure": asked.sure,
            "sports": asked.sports if place else 0.0,
            "shared": not asked.fuller <= {name},
            "group": asked.group and place,
            "titled": len(further & asked.context) / (len(further) or 1),
            "coherent": math.log1p(max((asked.coherent.get(word, 0.0) for word in further), default=0.0)),
            "initials": asked.capitals and not same and letters in one.initials,
        }
        return [float(numbers[name]) for name in MATCH]

    def describe(self, entity: str) -> Described:
        found = self._known.get(entity)
        if found is None:
            found = self._describe(entity)
            if len(self._known) >= _CACHE:
                self._known.clear()
            self._known[entity] = found
        return found  # not what is kept: another thread may have cleared it

    def _describe(self, entity: str) -> Described:
        row = -1 if self.kb is None else self.kb.row(entity)
        title, description = entity, ""
        types: tuple[str, ...] = ()
        if self.kb is not None and row >= 0:
            record = self.kb.record(row)
            title, description, types = record.title, record.description, record.types
        name, apart = split_title(title)
        words, own, entire = map(words_of, (f"{apart} {description}", name, title))
        context = frozenset(word for word in words if _counts(word) and word not in own)
        whole = frozenset(filter(_counts, entire))
        initials = frozenset(map(_initials, (own, entire)))
        told = f" {' '.join(words)} "
        return Described(_without_article(own), context, whole, told, frozenset(words), types, initials)


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
        all_right, all_wrong = right[label].total() + _SMOOTHING, wrong[label].total() + _SMOOTHING
        found[label] = {
            x: round(
                math.log((right[label][x] + _SMOOTHING) / (all_right + _SMOOTHING))
                - math.log((wrong[label][x] + _SMOOTHING) / (all_wrong + _SMOOTHING)),
                4,
            )
            for x in sorted({*right[label], *wrong[label]})
        }
    return found


def _is_name(doc: Doc, i: int, *, first: bool = False) -> bool:
    """Whether the word i has a capital. first: also where it begins a sentence, as any word then has."""
    if not 0 <= i < len(doc):
        return False
    word = doc[i]
    return bool(word.is_title and word.is_alpha and (first or not word.is_sent_start))


def _is_short(text: str) -> bool:
    return text.isupper() and sum(map(str.isalpha, text)) <= _MOST_CAPITALS


def _without_article(words: tuple[str, ...]) -> tuple[str, ...]:
    """A name without "The" at its beginning, if there is more."""
    return words[1:] if len(words) > 1 and words[0] == "the" else words


def _initials(words: tuple[str, ...]) -> str:
    return "".join(word[0] for word in words if word not in _SMALL)


def _fuller(words: tuple[str, ...], names: Iterable[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    """Names that have the one word of a mention among others."""
    return frozenset(name for name in names if len(words) == 1 and words[0] in name)


def _counts(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word not in STOP_WORDS
