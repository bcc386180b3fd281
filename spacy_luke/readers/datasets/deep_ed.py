"""The disambiguation data sets of deep-ed and mulrel-nel (Ganea and Hofmann, 2017; Le and Titov, 2018): AIDA, MSNBC,
AQUAINT, ACE2004, CWEB and WIKI, a table of mentions with candidates and a file with the words each.

Read as examples/entity_disambiguation/dataset.py of the original LUKE reads them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...stores.plain_text import read_lines, read_text
from ..records import ENTITY_LABEL, Mention, Record

_NO_CANDIDATES = "EMPTYCAND"
_COLUMNS = 9  # the fewest: document, twice, mention, contexts, "CANDIDATES", candidates, "GT:", gold
_LEFT_OUT = "Jiří_Třanovský"  # a document that Le and Titov leave out, and all after them
_MENTION_COLUMNS = 6  # of a line of the file with the words that is part of a mention
_LITTLE = 1e-9  # between priors that the table rounds to the same three decimals

Candidates = dict[str, float]  # titles with priors, the likeliest first


@dataclass(frozen=True)
class TableMention:
    """A line of the table. title: of the right entity."""

    text: str
    title: str
    candidates: Candidates


@dataclass(frozen=True)
class WordedDocument:
    """A document of the file with the words: starts of its sentences, and words [start, end) of its mentions."""

    words: list[str]
    starts: list[int]
    places: list[tuple[int, int]]


def read_deep_ed(
    path: str | Path,
    *,
    conll: str | Path | None = None,
    persons: str | Path | None = None,
    titles: str | Path | None = None,
    redirects: str | Path | None = None,
) -> Iterator[Record]:
    """Documents of a table such as wned-msnbc.csv, with gold entities and candidates.

    conll: the file with the words, such as msnbc.conll, of AIDA aida_train.txt and testa_testb_aggregate_original.
    persons: titles of persons, persons.txt: a mention that is a part of the name of a person in the same document gets
    the candidates of that name. titles: of Wikipedia, mentions of others are left out. redirects: title, tab, title.
    Mentions without a right entity are left out. Raises ValueError where a mention is not among the words.
    """
    if conll is None:
        raise ValueError(
            f"{path}: the format deep_ed needs the file with the words: give it as conll, e.g. msnbc.conll."
        )
    known = None if titles is None else set(read_lines(Path(titles)))
    people = set() if persons is None else {line.strip() for line in read_lines(Path(persons))}
    moved = {} if redirects is None else _read_redirects(Path(redirects))
    documents = read_words(Path(conll))
    for name, mentions in read_table_mentions(Path(path)).items():
        if name == _LEFT_OUT:
            continue
        where = f"{path}, document {name!r}"
        if (document := documents.get(name.split()[0])) is None:
            raise ValueError(f"{where}: expected it in {conll}, but that has not its words. Is it of another data set?")
        shared = [share_names(one, mentions, people) for one in mentions]
        yield _record(where, document, shared, known=known, redirects=moved)


def read_table_mentions(path: Path) -> dict[str, list[TableMention]]:
    """Mentions of each document, in order, those without a right entity left out."""
    found: dict[str, list[TableMention]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        cells = line.strip().split("\t")
        if len(cells) < _COLUMNS - 1 or cells[5] != "CANDIDATES" or cells[-2] != "GT:":
            raise ValueError(
                f"{path}, line {number}: expected document, document, mention, two contexts, CANDIDATES, these, GT: "
                f"and the right one, with tabs between, but got {cells!r:.120}."
            )
        gold = cells[-1].split(",")
        title = ",".join(gold[2 if gold[0] == "-1" else 3 :]).replace("&amp;", "&")
        if not title:
            continue
        listed = [] if cells[6] == _NO_CANDIDATES else [cell.split(",", 2) for cell in cells[6:-2]]
        priors = [(own[2], float(own[1])) for own in listed if len(own) == 3 and own[2]]
        likeliest = sorted(priors, key=lambda x: x[1], reverse=True)
        found.setdefault(cells[0], []).append(TableMention(cells[2], title, _first_of_each(likeliest)))
    if not found:
        raise ValueError(f"{path}: expected lines with mentions, but the file holds none.")
    return found


def _first_of_each(priors: Sequence[tuple[str, float]]) -> Candidates:
    kept: Candidates = {}
    for title, prior in priors:
        kept.setdefault(title, prior)
    return kept


def share_names(mention: TableMention, mentions: Sequence[TableMention], persons: set[str]) -> TableMention:
    """With the mean of the candidates of the mentions of persons whose names have this one among their words."""
    text = mention.text.lower()
    names = [
        other
        for other in mentions
        if next(iter(other.candidates), None) in persons
        and other.text.lower() != text
        and _is_part(text, other.text.lower())
    ]
    if not names:
        return mention
    summed: Candidates = {}
    for other in names:
        for title, prior in other.candidates.items():
            summed[title] = summed.get(title, 0.0) + prior
    mean = sorted(((title, prior / len(names)) for title, prior in summed.items()), key=lambda x: x[1], reverse=True)
    return replace(mention, candidates=dict(mean))


def _is_part(text: str, name: str) -> bool:
    """Whether it stands in the name first between blanks or the ends."""
    start = name.find(text)
    end = start + len(text)
    return start >= 0 and (start == 0 or name[start - 1] == " ") and (end == len(name) or name[end] == " ")


def read_words(path: Path) -> dict[str, WordedDocument]:
    """Documents by their names. A line is a word, and of a mention's words tabs, B or I, and what it means."""
    found: dict[str, WordedDocument] = {}
    own: WordedDocument | None = None
    begins = True
    for number, line in enumerate(read_text(path).split("\n"), 1):
        cells = line.strip().split("\t")
        if cells[0].startswith("-DOCSTART-"):
            own = found.setdefault(cells[0].split()[1][1:], WordedDocument([], [], []))
            begins = True
        elif cells == [""]:
            begins = True
        elif own is None:
            raise ValueError(f"{path}, line {number}: expected '-DOCSTART- (NAME', but got {line!r:.80}.")
        else:
            _add_word(own, cells, begins, where=f"{path}, line {number}")
            begins = False
    return found


def _add_word(own: WordedDocument, cells: list[str], begins: bool, *, where: str) -> None:
    if len(cells) >= _MENTION_COLUMNS:
        if cells[1] == "I" and own.places:
            own.places[-1] = (own.places[-1][0], own.places[-1][1] + 1)
        elif cells[1] == "B":
            own.places.append((len(own.words), len(own.words) + 1))
        else:
            raise ValueError(f"{where}: expected B or I of a mention, but got {cells!r:.80}.")
    if begins:
        own.starts.append(len(own.words))
    own.words.append(cells[0])


def _record(
    where: str,
    document: WordedDocument,
    mentions: Sequence[TableMention],
    *,
    known: set[str] | None,
    redirects: Mapping[str, str],
) -> Record:
    places = iter(document.places)
    kept: list[Mention] = []
    candidates: list[tuple[int, int, list[tuple[str, float]]]] = []
    unknown = 0
    for mention in mentions:
        wanted = _letters(mention.text)
        place = next((x for x in places if _letters(" ".join(document.words[slice(*x)])) == wanted), None)
        if place is None:
            raise ValueError(f"{where}: expected the mention {mention.text!r} among the words, after those before it.")
        title = redirects.get(mention.title, mention.title)
        if known is not None and title not in known:
            unknown += 1
            continue
        kept.append(Mention(*place, label=ENTITY_LABEL, kb_id=title))
        moved = [(redirects.get(x, x), prior) for x, prior in mention.candidates.items()]
        candidates.append((*place, tell_apart(_first_of_each(moved))))
    return Record(
        where,
        words=document.words,
        sentence_starts=document.starts,
        mentions=kept,
        links=True,
        candidates=candidates,
        notes={"mentions of entities that are no titles, left out": unknown} if unknown else {},
    )


def tell_apart(candidates: Candidates) -> list[tuple[str, float]]:
    """The table has rounded priors in the order of the true ones. Of equal ones each gets a little more than the next,
    so that the first 30 are the same as in the original, whose sorting keeps that order."""
    later = Counter(candidates.values())
    told = []
    for title, prior in candidates.items():
        later[prior] -= 1
        told.append((title, prior + _LITTLE * later[prior]))
    return told


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())


def _read_redirects(path: Path) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in read_lines(path) if "\t" in line)
