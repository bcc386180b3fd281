"""What a knowledge base knows of an entity: its id, and the ids, address, description and types that travel with it."""

import re
from typing import NamedTuple
from urllib.parse import quote

from ..annotations import EntityRecord

_ITEM = re.compile(r"Q[1-9]\d*")
_WIKI = re.compile(r"[a-z]{2,}(-[a-z0-9]+)*")  # the language of a Wikipedia
_ESCAPED = re.compile(r"[\t\n\r]")
WIKIDATA = "https://www.wikidata.org/wiki/"


class About(NamedTuple):
    """What a source says of an entity beside its names; "" and () where it says nothing.

    url: an address, or the language of the Wikipedia ("en") that has a page with this title. types: what it is an
    instance of, as the source has it: ids of Wikidata (P31), or words. name: the title where no source has one; a
    knowledge base keeps the title alone.
    """

    title: str = ""
    wikidata: str = ""
    url: str = ""
    types: tuple[str, ...] = ()
    name: str = ""

    def to_line(self) -> str:
        """The fields with tabs between them."""
        fields = (self.title, self.wikidata, self.url, "|".join(self.types), self.name)
        return "\t".join(_ESCAPED.sub(" ", field) for field in fields)

    @classmethod
    def from_line(cls, line: str) -> "About":
        title, wikidata, url, types, *name = line.split("\t")
        return cls(title, wikidata, url, tuple(filter(None, types.split("|"))), *name)

    def or_of(self, other: "About") -> "About":
        """Each field of this one, or of the other one where it is empty."""
        return About(
            self.title or other.title,
            self.wikidata or other.wikidata,
            self.url or other.url,
            self.types or other.types,
            self.name or other.name,
        )


ABOUT_NOTHING = About()


def make_record(entity: str, about: About, description: str) -> EntityRecord:
    """The record of an entity, with what follows from what is known: the title is the id where it has no other."""
    wikidata = about.wikidata or (entity if is_item(entity) else "")
    title = about.title or entity
    url = about.url
    if _WIKI.fullmatch(url):
        url = f"https://{url}.wikipedia.org/wiki/{quote(title.replace(' ', '_'), safe=_SAFE)}"
    elif not url and wikidata:
        url = WIKIDATA + wikidata
    return EntityRecord(entity, title, wikidata, url, description, about.types)


_SAFE = "/:@!$&'()*+,;=~-._"


def is_item(entity: str) -> bool:
    """Whether an id is one of Wikidata's items."""
    return _ITEM.fullmatch(entity) is not None


def is_page(about: About) -> bool:
    """Whether the title is that of a page of Wikipedia, and so of no other entity."""
    return _WIKI.fullmatch(about.url) is not None
