"""brat's standoff files (Stenetorp et al., EACL 2012): a text, and beside it what is marked in it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...stores.plain_text import read_text
from ..lines import decode_line
from ..records import Mention, Record, check_choice
from .places import other_words, same_words

_GAPS = {"error": "", "cover": "which are covered", "skip": "left out"}
_LEFT_OUT = {"A": "attributes", "M": "attributes", "#": "notes of annotators", "*": "sets of equal mentions"}
_REFERRED_TO = ("T", "E")  # by other lines
_NAME = re.compile(r"[TREANM]\d+\S*|#\S*|\*")
_PLACES = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
_REFERENCE = re.compile(r"Reference (\S+) [^\s:]+:(.+)")


def read_brat(path: str | Path, *, gaps: str = "error") -> Iterator[Record]:
    """A document: the .ann file, beside it the .txt with the text, in whose characters the places are.

    Mentions (T), which may be nested, relations (R) and events (E): each argument of an event is a relation from its
    trigger, with the role as label, without its number (Theme2 is a Theme); an event as argument is its trigger.
    Relations within the same words, such as of a trigger of two events, are left out, and counted.
    References (N) are ids of a knowledge base, without the name of that. Attributes, notes and sets of equal mentions
    are left out, and counted. The title is the name of the file.

    gaps: what becomes of a mention of several places with words between them: "error"; "cover": it is all from its
    first word to its last; "skip": it is left out with its relations, and counted.
    Raises ValueError, naming the line, for what brat would not write, such as an id that two mentions or events have,
    and where a mention's own text is not what stands at its place.
    """
    check_choice("gaps", gaps, tuple(_GAPS))
    path = Path(path)
    source = path.with_suffix(".txt")
    if path.suffix != ".ann":
        raise ValueError(f"{path}: expected a file .ann of brat's, beside which its text lies as {source.name}.")
    if not source.exists():
        raise ValueError(f"{path}: expected the text beside it, {source.name}, but it is not there.")
    found = _Annotation(read_text(source), gaps)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if line := decode_line(path, number, raw).rstrip():
                found.take(f"{path}, line {number}", line)
    yield found.record(path)


@dataclass
class _Annotation:
    """What the lines of a file say; they may name one another before they come."""

    text: str
    gaps: str
    places: dict[str, str] = field(default_factory=dict)  # the line of each mention and event, by id
    mentions: dict[str, Mention] = field(default_factory=dict)  # by id, without those that are skipped
    skipped: set[str] = field(default_factory=set)
    triggers: dict[str, str] = field(default_factory=dict)  # the mention of an event
    relations: list[tuple[str, str, str, str]] = field(default_factory=list)  # line, label, head, tail
    references: dict[str, tuple[str, str]] = field(default_factory=dict)  # line and id of a mention
    notes: Counter[str] = field(default_factory=Counter)

    def take(self, where: str, line: str) -> None:
        name, _, rest = line.partition("\t")
        what, _, said = rest.partition("\t")
        kind = name[:1] if _NAME.fullmatch(name) else ""
        if kind in _REFERRED_TO and self.places.setdefault(name, where) != where:
            raise ValueError(f"{where}: expected an id of its own, but {self.places[name]} has {name}, too.")
        if kind in _LEFT_OUT:
            self.notes[f"{_LEFT_OUT[kind]}, left out"] += 1
        elif kind == "T":
            self._take_mention(where, name, what, said)
        elif kind == "R":
            label, *ends = what.split() or [""]
            pairs = sorted(_arguments(where, ends), key=lambda pair: pair[0] == "Arg2")
            if len(pairs) != 2:
                raise ValueError(f"{where}: expected a relation of two arguments, but got {what!r:.60}.")
            self.relations.append((where, label, pairs[0][1], pairs[1][1]))
        elif kind == "E":
            (_, trigger), *pairs = _arguments(where, what.split())
            self.triggers[name] = trigger
            self.relations += [(where, role.rstrip("0123456789"), name, tail) for role, tail in pairs]
        elif kind == "N" and (reference := _REFERENCE.fullmatch(what)):
            if reference[1] in self.references:
                self.notes["further references of a mention, left out"] += 1
            self.references.setdefault(reference[1], (where, reference[2]))
        else:
            raise ValueError(f"{where}: expected a line of brat's, 'T1<tab>PER 0 3<tab>Ada', but got {line!r:.60}.")

    def _take_mention(self, where: str, name: str, what: str, said: str) -> None:
        if not (match := _PLACES.fullmatch(what)):
            raise ValueError(f"{where}: expected a label and characters, 'PER 0 3', but got {what!r:.60}.")
        places = [(int(start), int(end)) for start, end in (place.split() for place in match[2].split(";"))]
        if not all(0 <= start < end <= len(self.text) for start, end in places):
            raise ValueError(f"{where}: expected characters of the {len(self.text)} of the text, but got {match[2]!r}.")
        stands = " ".join(self.text[start:end] for start, end in places)
        if not same_words(said, stands):
            raise other_words(where, match[2], said, stands)
        places.sort()
        if any(self.text[one[1] : other[0]].strip() for one, other in zip(places, places[1:])):
            if self.gaps == "error":
                raise ValueError(
                    f"{where}: the mention {said!r:.60} has words between its parts, which a span cannot leave out. "
                    "Set gaps (--gaps) to cover, which takes these words too, or to skip, which leaves the mention out."
                )
            self.notes[f"mentions with words between their parts, {_GAPS[self.gaps]}"] += 1
            if self.gaps == "skip":
                self.skipped.add(name)
                return
        self.mentions[name] = Mention(places[0][0], max(end for _, end in places), match[1])

    def record(self, path: Path) -> Record:
        numbers = {name: i for i, name in enumerate(self.mentions)}
        relations = []
        for where, label, *ends in self.relations:
            named = [self.triggers.get(end, end) for end in ends]
            self._check(where, named)
            if not self.skipped.isdisjoint(named):
                self.notes["relations of mentions that are left out"] += 1
                continue
            head, tail = (self.mentions[end] for end in named)
            if (head.start, head.end) == (tail.start, tail.end):
                self.notes["relations within the same words, left out"] += 1
            else:
                relations.append((numbers[named[0]], numbers[named[1]], label))
        for name, (where, kb_id) in self.references.items():
            self._check(where, [name])
            if name in self.mentions:
                self.mentions[name] = replace(self.mentions[name], kb_id=kb_id)
        return Record(
            str(path),
            title=path.stem,
            text=self.text,
            mentions=list(self.mentions.values()),
            relations=relations or None,
            links=bool(self.references),
            notes=dict(self.notes),
        )

    def _check(self, where: str, names: list[str]) -> None:
        if missing := [name for name in names if name not in self.mentions and name not in self.skipped]:
            raise ValueError(f"{where}: expected a mention or an event of the file, but {missing[0]} is none.")


def _arguments(where: str, parts: list[str]) -> list[tuple[str, str]]:
    """Names and ids of 'Arg1:T1 Arg2:T2'."""
    pairs = [(name, to) for name, colon, to in (part.partition(":") for part in parts) if colon and to]
    if not parts or len(pairs) < len(parts):
        raise ValueError(f"{where}: expected arguments, 'Arg1:T1 Arg2:T2', but got {' '.join(parts)!r:.60}.")
    return pairs
