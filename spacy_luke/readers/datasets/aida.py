"""AIDA (Hoffart et al., 2011): the text of CoNLL-2003 with the titles of WNED's XML, and candidates of PPRforNED.

AIDA's annotation may be had, its text only from Reuters. All three are in one order of documents, and nothing in them
names a word of the text, so that mentions are aligned on their characters.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ...annotations import NIL
from ..conll import ColumnDocument, read_columns
from ..records import ENTITY_LABEL, Mention, Record
from .pprforned import ListedMention, read_pprforned
from .wned import WnedDocument, WnedMention, read_wned_xml

# Costs of a place for a mention, in characters that it stands off
_LOST = 10_000.0  # not found at all
_INSIDE_WORDS = 500.0  # it begins or ends inside a word
_NO_ENTITY = 100.0  # CoNLL-2003 has no entity there
_BEAM = 64  # ways to place the mentions so far that are followed

Placed = tuple[Mention, WnedMention]  # a mention of the text, and what the XML says of it


class AlignedPlace(NamedTuple):
    """Words [start, end) for a mention, and its characters, counted without blanks."""

    start: int
    end: int
    first: int
    last: int
    cost: float


class Chosen(NamedTuple):
    """The places of the mentions so far, the last one first; None for a mention that has none."""

    before: "Chosen | None"
    place: AlignedPlace | None


class Way(NamedTuple):
    """One way to place the mentions so far: the one placed last, its place, the cost, and the places of all."""

    last: WnedMention | None
    at: AlignedPlace | None
    cost: float
    chosen: Chosen | None


def read_aida(
    path: str | Path, *, links: str | Path | None = None, candidates: str | Path | None = None
) -> Iterator[Record]:
    """Documents of a CoNLL-2003 file (eng.train, eng.testa or eng.testb) with AIDA's gold entities.

    links: WNED's XML of the same part, such as aida-testb.xml; a mention without a title is NIL. candidates: the folder
    or archive of PPRforNED; see `read_pprforned` for their order and priors, and for what must be said of them: the
    right entity is always among them.

    A mention gets the words with its characters that agree best with its order, its offset and the entities of
    CoNLL-2003, whose label it takes. The notes of a record count mentions that begin or end inside a word (they grow to
    whole words) and what is in the files, but not found in the text.
    Raises ValueError where the files have not the same documents.
    """
    documents = list(read_columns(path, format="conll2003"))
    if links is None:
        raise ValueError(
            f"{path}: the format aida needs the XML with AIDA's titles: give it as links, e.g. aida-testb.xml."
        )
    linked = read_wned_xml(links)
    if len(documents) != len(linked):
        raise ValueError(
            f"Expected the same documents in {path} and {links}, but they have {len(documents)} and {len(linked)}: are "
            f"they the same part of AIDA?"
        )
    listed = None if candidates is None else _find_listed(Path(candidates), linked)
    for i, (document, links_of) in enumerate(zip(documents, linked)):
        notes: Counter[str] = Counter()
        mentions = _place_mentions(document, links_of, notes)
        given = None
        if listed is not None:
            mentions, given = _give_candidates(mentions, listed[i], notes)
        starts = document.sentence_starts
        yield Record(
            f"{path}, document {i} ({links_of.name})",
            words=document.words,
            sentence_starts=starts,
            mentions=[mention for mention, _ in mentions],
            links=True,
            candidates=given,
            notes=dict(+notes),
        )


def _place_mentions(document: ColumnDocument, linked: WnedDocument, notes: Counter[str]) -> list[Placed]:
    """The mentions that are in the text."""
    labels = {(start, end): label for start, end, label in document.layers[0]}
    places = align_mentions(document.words, linked.mentions, entities=labels)
    found = [(place, mention) for place, mention in zip(places, linked.mentions, strict=True) if place is not None]
    if linked.mentions and not found:
        raise ValueError(
            f"{linked.where}: none of its mentions, such as {linked.mentions[0].text!r}, is in the document of the "
            f"CoNLL file, which begins {' '.join(document.words[:8])!r}: are they the same part of AIDA?"
        )
    for mention in (mention for place, mention in zip(places, linked.mentions) if place is None):
        notes[f"{'NIL ' if mention.entity == NIL else ''}mentions of the XML not found in the text"] += 1
    notes["mentions inside words, grown to whole words"] += sum(place.cost >= _INSIDE_WORDS for place, _ in found)
    return [
        (
            Mention(place.start, place.end, labels.get((place.start, place.end), ENTITY_LABEL), kb_id=mention.entity),
            mention,
        )
        for place, mention in found
    ]


def align_mentions(
    words: Sequence[str], mentions: Sequence[WnedMention], *, entities: dict[tuple[int, int], str]
) -> list[AlignedPlace | None]:
    """A place for each mention, in order and without overlaps, of the least cost in all; None where it has none.

    mentions: by offset in a text of other blanks. entities: words [start, end) that are known to be entities.
    Of the ways to place the mentions so far, the best 64 are followed.
    """
    edges = [0]
    for word in words:
        edges.append(edges[-1] + len(word))
    solid = "".join(words)
    last = mentions[-1] if mentions else None
    scale = edges[-1] / max(edges[-1], last.offset + len(last.text)) if last else 1.0
    ways = [Way(None, None, 0.0, None)]
    for mention in mentions:
        places = _places_of("".join(mention.text.split()), solid, edges, entities)
        followed: dict[AlignedPlace | None, Way] = {}
        for way in ways:
            _keep(followed, way._replace(cost=way.cost + _LOST, chosen=Chosen(way.chosen, None)))
            for place in places:
                if way.at is not None and place.start < way.at.end:
                    continue
                step = mention.offset - (way.last.offset if way.last else 0)
                off = abs(place.first - (way.at.first if way.at else 0) - step * scale)
                _keep(followed, Way(mention, place, way.cost + place.cost + off, Chosen(way.chosen, place)))
        ways = sorted(followed.values(), key=lambda way: way.cost)[:_BEAM]
    found: list[AlignedPlace | None] = []
    chosen = ways[0].chosen
    while chosen is not None:
        found.append(chosen.place)
        chosen = chosen.before
    return found[::-1]


def _keep(followed: dict[AlignedPlace | None, Way], way: Way) -> None:
    """Of the ways that end at one place the cheapest, the first of equal ones."""
    if way.at not in followed or way.cost < followed[way.at].cost:
        followed[way.at] = way


def _places_of(text: str, solid: str, edges: Sequence[int], entities: dict[tuple[int, int], str]) -> list[AlignedPlace]:
    """All places of a mention's characters, as whole words."""
    places = []
    first = solid.find(text)
    while first >= 0:
        last = first + len(text)
        start, end = bisect_right(edges, first) - 1, bisect_left(edges, last)
        cost = 0.0 if (edges[start], edges[end]) == (first, last) else _INSIDE_WORDS
        cost += 0.0 if (start, end) in entities else _NO_ENTITY
        places.append(AlignedPlace(start, end, first, last, cost))
        first = solid.find(text, first + 1)
    return places


def _find_listed(path: Path, linked: Sequence[WnedDocument]) -> list[list[ListedMention]]:
    """The files of the documents, which have successive numbers: the one beginning at which mentions agree most."""
    files = read_pprforned(path)
    golds = [Counter((_plain(m.text), m.entity) for m in document.mentions) for document in linked]

    def agreeing(first: int) -> int:
        return sum(
            (Counter((_plain(m.text), m.entity) for m in files.get(first + i, [])) & gold).total()
            for i, gold in enumerate(golds[:20])
        )

    first = max(sorted(files), key=agreeing)
    if missing := [first + i for i in range(len(linked)) if first + i not in files]:
        raise ValueError(
            f"{path}: expected a file for each of the {len(linked)} documents from number {first} on, but {missing[0]} "
            "is not there."
        )
    if not agreeing(first):
        raise ValueError(
            f"{path}: expected files of the documents of AIDA, but none has mentions of {linked[0].where}."
        )
    return [files[first + i] for i in range(len(linked))]


def _plain(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _give_candidates(
    placed: Sequence[Placed], listed: Sequence[ListedMention], notes: Counter[str]
) -> tuple[list[Placed], list[tuple[int, int, list[tuple[str, float]]]]]:
    """The mentions, and rows of candidates for those that have some; both are in the order of the text, some of
    which the lists lack. The alignment has most mentions of equal text, and of those most with the same gold title. The
    lists are of another year's Wikipedia: where their gold title differs, the mention gets it, so that id and
    candidates agree."""
    mentions = list(placed)
    pairs = _align([mention for _, mention in mentions], listed)
    notes["mentions of the candidate lists not found in the text"] += len(listed) - len(pairs)
    rows = []
    for i, k in pairs:
        (mention, marked), (_, entity, candidates) = mentions[i], listed[k]
        if (mention.kb_id == NIL) != (entity == NIL):
            notes[f"NIL in {'the XML' if mention.kb_id == NIL else 'the candidate lists'} alone"] += 1
        elif mention.kb_id != entity:
            notes["titles that differ from the XML's, taken from the candidate lists"] += 1
            mention = replace(mention, kb_id=entity)
            mentions[i] = (mention, marked)
        notes["mentions with given candidates"] += 1
        notes["given candidates"] += len(candidates)
        if mention.kb_id != NIL and mention.kb_id not in {title for title, _ in candidates}:
            notes["gold entities not among the given candidates"] += 1
        rows.append((mention.start, mention.end, candidates))
    notes["mentions of a knowledge base without given candidates"] += sum(
        mention.kb_id != NIL for i, (mention, _) in enumerate(mentions) if i not in dict(pairs)
    )
    return mentions, rows


def _align(mentions: Sequence[WnedMention], listed: Sequence[ListedMention]) -> list[tuple[int, int]]:
    n, m = len(mentions), len(listed)
    texts, others = [_plain(mention.text) for mention in mentions], [_plain(item.text) for item in listed]
    best = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for k in range(m - 1, -1, -1):
            best[i][k] = max(best[i + 1][k], best[i][k + 1])
            if texts[i] == others[k]:
                same = mentions[i].entity == listed[k].entity
                best[i][k] = max(best[i][k], best[i + 1][k + 1] + 2 + same)
    pairs, i, k = [], 0, 0
    while i < n and k < m:
        gain = 2 + (mentions[i].entity == listed[k].entity)
        if texts[i] == others[k] and best[i][k] == best[i + 1][k + 1] + gain:
            pairs.append((i, k))
            i, k = i + 1, k + 1
        elif best[i][k] == best[i + 1][k]:
            i += 1
        else:
            k += 1
    return pairs
