"""PubTator's format (Wei et al., 2013), of BC5CDR, NCBI's diseases, BioRED and others: titles and abstracts."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...annotations import NIL
from ..lines import decode_line
from ..records import Mention, Record, check_choice
from .docred import MENTION_PAIRS, pairs_between
from .places import other_words, same_words

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)")
_ID_END = re.compile(r"[|\t]")
_SEVERAL = re.compile(r"[|,;]")
_UNKNOWN = ("", "-", "-1")
_MENTION_COLUMNS = (5, 6, 7)


def read_pubtator(path: str | Path, *, mention_pairs: str = "all") -> Iterator[Record]:
    """Documents, of which each ends at a blank line or where the next begins: ID|t|TITLE, ID|a|ABSTRACT, which are one
    text with a line end between them, and lines of tabs. A mention is ID, first character, end, text, label, id in a
    knowledge base (of which "-1", "-" and nothing are none) and perhaps its parts; a relation ID, label and the ids of
    two entities, and more that is not read. The title of the document is its ID.

    Mentions of several ids have no link; these and ids of relations that no mention has are counted.
    mention_pairs: a relation holds between entities, a Doc's between mentions: "all" pairs of their mentions, or the
    "first" of each. A document without relations says nothing of these.
    Raises ValueError, naming the line, for lines that are none, for those of another document's ID, for a second title
    or abstract, and where a mention's own text is not what stands at its place.
    """
    check_choice("mention_pairs", mention_pairs, MENTION_PAIRS)
    path = Path(path)
    for lines in _documents(path):
        yield _read_document(path, lines, mention_pairs)


def _documents(path: Path) -> Iterator[list[tuple[int, str]]]:
    """The numbered lines of each document."""
    lines: list[tuple[int, str]] = []
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = decode_line(path, number, raw)
            title = _TEXT.fullmatch(line)
            is_next = title is not None and title[2] == "t" and lines and title[1] != _id(lines[0][1])
            if lines and (is_next or not line.strip()):
                yield lines
                lines = []
            if line.strip():
                lines.append((number, line))
    if lines:
        yield lines


def _id(line: str) -> str:
    return _ID_END.split(line, maxsplit=1)[0]


def _read_document(path: Path, lines: list[tuple[int, str]], mention_pairs: str) -> Record:
    texts: dict[str, str] = {}
    rows: list[tuple[str, list[str]]] = []
    first, own_id = f"{path}, line {lines[0][0]}", _id(lines[0][1])
    for number, line in lines:
        where = f"{path}, line {number}"
        match, cells = _TEXT.fullmatch(line), line.split("\t")
        if not match and len(cells) < 4:
            raise ValueError(
                f"{where}: expected ID|t|TITLE, ID|a|ABSTRACT, or four cells with tabs, but got {line!r:.60}."
            )
        if _id(line) != own_id:
            raise ValueError(
                f"{where}: expected a line of the document {own_id!r:.60}, which begins on line {lines[0][0]}, but got "
                f"{line!r:.60}. Begin another document with ID|t|TITLE."
            )
        if not match:
            rows.append((where, cells))
        elif match[2] in texts:
            raise ValueError(
                f"{where}: expected ID|t|TITLE and ID|a|ABSTRACT once each for a document, but got {line!r:.60} "
                "after another. Put a blank line between documents of the same ID."
            )
        else:
            texts[match[2]] = match[3]
    if "t" not in texts:
        raise ValueError(f"{first}: expected a document that begins with ID|t|TITLE, but got {lines[0][1]!r:.60}.")
    text = "\n".join(texts[part] for part in "ta" if part in texts)
    notes: Counter[str] = Counter()
    mentions: list[Mention] = []
    numbers: dict[str, list[int]] = {}  # the mentions of an id
    facts: list[list[str]] = []
    for where, cells in rows:
        if not cells[1].isdecimal():
            facts.append(cells)
            continue
        mention, ids = _read_mention(where, cells, text)
        for one in ids:
            numbers.setdefault(one, []).append(len(mentions))
        notes["mentions of several ids, without a link"] += len(ids) > 1
        mentions.append(mention)
    relations = []
    for cells in facts:
        ends = [numbers.get(end) for end in cells[2:4]]
        if ends[0] is None or ends[1] is None:
            notes["relations of ids that no mention has, left out"] += 1
            continue
        pairs = pairs_between(mentions, ends[0], ends[1])
        if not pairs:
            notes["relations whose entities have the same words, left out"] += 1
        relations += [(*pair, cells[1]) for pair in (pairs if mention_pairs == "all" else pairs[:1])]
    return Record(
        first,
        title=own_id,
        text=text,
        mentions=mentions,
        relations=relations if facts else None,
        links=any(mention.kb_id for mention in mentions),
        notes={name: n for name, n in notes.items() if n},
    )


def _read_mention(where: str, cells: list[str], text: str) -> tuple[Mention, list[str]]:
    """The mention, and the ids that relations may name it by."""
    if len(cells) not in _MENTION_COLUMNS or not cells[2].isdecimal() or not cells[4].strip():
        raise ValueError(
            f"{where}: expected a mention's ID, start, end, text, label and id, but got {cells[1:]!r:.80}."
        )
    start, end, said = int(cells[1]), int(cells[2]), cells[3]
    if not same_words(said, text[start:end]):
        raise other_words(where, f"{start} {end}", said, text[start:end])
    given = cells[5].strip() if len(cells) > 5 else ""
    ids = [] if given in _UNKNOWN else [one.strip() for one in _SEVERAL.split(given)]
    kb_id = NIL if given in _UNKNOWN and len(cells) > 5 else ids[0] if len(ids) == 1 else ""
    return Mention(start, end, cells[4].strip(), kb_id=kb_id), ids
