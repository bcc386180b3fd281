"""What the sources of a knowledge base have: entities, redirects and names in any order, and more than memory holds.

They go to sorted runs in temporary files (see `stores.sorting`), from which `kb.write` makes a segment.

p(entity | name) is min(1, sum over the groups of sources of p), as deep-ed combines its lists (data_gen/indexes/
yago_crosswikis_wiki.lua). Within a group it is the entity's share of the name's weights ("count"), the weight itself
("probability") or the same for all entities of the name ("uniform"); "merged": the weight itself, which a knowledge
base had already. All counts are one group, whichever sources they are from: a catalogue in several files is that in
one, and what is added counts as what was there.
"""

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..aliases.counts import LeftOut, Limits
from ..aliases.tables import SLACK
from ..annotations import NIL
from ..stores.sorting import MOST, SortedLines, SortedSums
from ..text.forms import key_of, units
from .knowledge_base import EntityKB
from .record import ABOUT_NOTHING, About, is_page

_KINDS = ("count", "probability", "uniform", "merged")
REST = "\x01"  # in place of an id: the weight of a name's candidates that were left out; no source has such an id
ON_UNKNOWN = ("error", "add", "drop")
NO_LIMITS = Limits(max_words=None)
SHOWN = 20  # damaged lines that are told
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class SourceGroup(NamedTuple):
    """Weights of one source; those of all groups of counts make up one p(entity | name), of others each its own. links:
    they are links in texts, which entities are counted by too. unknown: what becomes of an id that no source of
    entities has: "error", "add" it, or "drop" its name."""

    title: str
    kind: str
    links: bool = False
    unknown: str = "error"


@dataclass
class KBLeftOut(LeftOut):
    """What a knowledge base does not have of what its sources have."""

    unknown: int = 0
    repeated: int = 0
    redirects: int = 0
    nameless: int = 0
    persons: int = 0
    damaged: int = 0
    damage: list[str] = field(default_factory=list)  # of the first lines that were skipped
    above: int = 0  # names whose priors sum up to more than 1, and the first of them
    first_above: str = ""
    clashes: int = 0
    first_clash: str = ""

    def skip(self, error: ValueError) -> None:
        """Count a line that is not as expected, and keep what is said of the first ones."""
        self.damaged += 1
        if len(self.damage) < SHOWN:
            self.damage.append(str(error))

    def check_sum(self, name: str, priors: Iterable[float]) -> None:
        """Count a name whose priors sum up to more than 1."""
        if sum(priors) > 1 + SLACK:
            self.above += 1
            self.first_above = self.first_above or name

    def add_clash(self, id: str, entity: str, other: str) -> None:
        """Count a further id that leads to an entity, and not to another one that has it, too."""
        self.clashes += 1
        self.first_clash = self.first_clash or f"{id!r}: {entity!r}, and not {other!r}"

    def lines(self) -> list[str]:
        told = [
            (self.unknown, "names and their ids that no source of entities has"),
            (self.repeated, "entities that came again (their names are there)"),
            (self.nameless, "items without a name in the language, or without a title in the wiki"),
            (self.redirects, "redirects to nothing"),
            (self.persons, "persons that are no entities"),
            (
                self.clashes,
                "Wikidata ids, titles of pages or redirects that are those of another entity, the first "
                f"{self.first_clash}",
            ),
        ]
        damage = [f"{self.damaged:,} lines that are not as expected, the first: {' | '.join(self.damage)}"]
        told_lines = [f"{count:,} {what}" for count, what in told if count]
        above = (
            f"nothing; but the priors of {self.above:,} names sum up to more than 1, the first {self.first_above!r}: "
            "priors that a source gives, or that follow from a list without weights, are added to those of others"
        )
        return [*super().lines(), *told_lines, *(damage if self.damaged else []), *([above] if self.above else [])]


@dataclass
class Staging:
    """What the sources of a knowledge base have. output: where it will lie; existing: what it will be added to; known:
    the knowledge base that there is, whose entities are errors in the sources where they do not replace them."""

    folder: Path
    output: Path
    limits: Limits = NO_LIMITS
    existing: EntityKB | None = None
    most: int = MOST
    left_out: KBLeftOut = field(default_factory=KBLeftOut)
    read: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = ExitStack()  # folders of work, which go when all is built
        self.groups: list[SourceGroup] = []
        self.sources: list[str] = []
        self.persons: list[str] = []
        self.entities = SortedLines(self.folder / "entities", most=self.most)
        self.redirects = SortedLines(self.folder / "redirects", most=self.most)
        self.names = SortedSums(self.folder / "names", most=self.most)
        self.adding = SortedSums(self.folder / "adding", most=self.most)  # ids whose names make them entities
        self.mentioned = SortedSums(self.folder / "mentioned", most=self.most)  # other ids, which `existing` may have
        self._ids_of: list[SortedSums | None] = []  # by group
        self.known: EntityKB | None = None
        self.removed: set[int] = set()  # rows of `known`
        self.skips = False  # whether lines that are not as expected are skipped
        self.read_names = 0  # names with their entities that sources had
        self.given: set[str] | None = None  # the ids of the sources' entities, where these replace those of `known`

    def add_group(self, group: SourceGroup) -> int:
        """The number of a group, which names are added by."""
        assert group.kind in _KINDS, group
        assert group.unknown in ON_UNKNOWN, group
        self.groups.append(group)
        others = None if self.existing is None else self.mentioned
        self._ids_of.append(self.adding if group.unknown == "add" else others)
        return len(self.groups) - 1

    def add_source(self, title: str) -> int:
        """The number of a source; the lower, the more its descriptions count."""
        self.sources.append(title)
        return len(self.sources) - 1

    def add_entity(
        self, entity: str, *, source: int, line: int, text: str = "", count: float = 0, person: bool = False,
        once: bool = False, about: About = ABOUT_NOTHING,
    ) -> None:  # fmt: skip
        """once: an id that comes again in the source is an error, which names its line. Its Wikidata id, and its title
        if that is a page's, lead to it."""
        entity = check_id(entity)
        if self.known is not None and self.given is None and (row := self.known.row(entity)) >= 0:
            if (own := self.known.name_of(row)) != entity:
                raise ValueError(
                    f"The id {entity!r} is that of {own!r} in the knowledge base already, as a Wikidata id, the title "
                    "of a page or a redirect. Give the entity another id, or, if both are one, leave it out."
                )
            raise ValueError(
                f"The entity {entity!r} is in the knowledge base already. Leave it out to add others; new names of it "
                "can be added with a table of names; to change it, replace it (--replace)."
            )
        if self.given is not None:
            self.given.add(entity)
        self.copy_entity(
            entity, source=source, line=line, text=text, count=count, person=person, once=once, about=about
        )

    def copy_entity(
        self, entity: str, *, source: int, line: int, text: str, count: float, person: bool, about: About,
        once: bool = False,
    ) -> None:  # fmt: skip
        """As `add_entity`, of what a knowledge base has already."""
        entity = check_id(entity)
        text = check_unicode(" ".join(text.split()), "description")
        self.entities.add(
            f"{entity}\t{source:04d}\t{line:012d}\t{int(once)}\t{count!r}\t{int(person)}\t"
            f"{check_unicode(about.to_line(), 'entity')}\t{text}\n"
        )
        for other in (about.wikidata, about.title if is_page(about) else ""):
            if other and other != entity:
                self.add_redirect(other, entity)

    def add_redirect(self, title: str, target: str) -> None:
        self.redirects.add(f"{check_id(title)}\t{check_id(target)}\n")

    def add_name(self, name: str, entity: str, *, group: int, weight: float = 1) -> None:
        """ValueError for an id or a name that is no text; a name without letters or with too many words is left out."""
        key = key_of(name, case="exact")
        if not key:
            self.left_out.blank += 1
            return
        longest = self.limits.max_words
        if longest is not None and len(key) > longest and sum(1 for _ in units(key)) > longest:
            self.left_out.too_long += 1
            return
        self.read_names += 1
        self.add_key(key, check_id(entity), group=group, weight=weight)

    def add_key(self, key: str, entity: str, *, group: int, weight: float) -> None:
        """As `add_name`, of a name in the form of keys and an id that is checked."""
        self.names.add(f"{check_characters(key, 'name')}\t{entity}\t{group}", weight)
        if (ids := self._ids_of[group]) is not None:
            ids.add(entity, 1)

    def is_removed(self, entity: str) -> bool:
        """Whether an id is that of an entity of the knowledge base that is to go."""
        return bool(self.removed) and self.known is not None and self.known.row(entity) in self.removed

    def add_rest(self, key: str, *, group: int, weight: float) -> None:
        """The weight of candidates of a name that are not there."""
        self.names.add(f"{key}\t{REST}\t{group}", weight)

    def refuse(self, error: ValueError, cause: Exception | None = None) -> None:
        """A line that is not as expected: ValueError, or where lines are skipped it is counted."""
        if not self.skips:
            raise error from cause
        self.left_out.skip(error)

    def check_names(self, names: Iterable[str]) -> None:
        """ValueError for names that `add_name` would not take."""
        for name in names:
            check_characters(key_of(name, case="exact"), "name")

    def count(self, what: str, number: int = 1) -> None:
        self.read[what] = self.read.get(what, 0) + number


def check_id(entity: str) -> str:
    """An id with single blanks. ValueError for one without text, and for NIL."""
    plain = " ".join(entity.split())
    if not plain:
        raise ValueError(f"Expected an id with some text for an entity, but got {entity!r}.")
    if plain == NIL:
        raise ValueError(f"Expected another id than {NIL!r}, which is that of mentions without an entity.")
    return check_characters(plain, "id")


def check_characters(text: str, what: str) -> str:
    """ValueError for halves of characters and for control characters, which tries and lines cannot hold."""
    if text.isascii() and text.isprintable():
        return text
    if _CONTROL.search(check_unicode(text, what)):
        raise ValueError(f"Expected no control characters in the {what} {text!r}; remove them.")
    return text


def check_unicode(text: str, what: str) -> str:
    """ValueError for halves of characters."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise ValueError(f"Expected Unicode for the {what} {text!r}, but {error.reason}; repair it.") from error
    return text
