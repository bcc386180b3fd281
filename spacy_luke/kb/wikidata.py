"""Wikidata as a source of a knowledge base: items with labels, other names, descriptions, types and pages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..wikipedia.interwiki import NOT_LANGUAGES
from ..wikipedia.wikidata import id_of_claim, read_items
from .record import About
from .staging import SourceGroup, Staging

_HUMAN = "Q5"  # the item that persons are an instance (P31) of
_ALL = "mul"  # labels that are the same in all languages

Texts = Mapping[str, Any]  # by language


@dataclass(frozen=True)
class Wikidata:
    """language: whose labels and other names are names, several with commas between them, those that are the same in
    all languages ("mul") besides; the first that has a label, a description or a page gives the title, the description
    or the address. site: whose titles ("enwiki") become the ids, None: Q numbers."""

    language: str = "en"
    site: str | None = None

    def __post_init__(self) -> None:
        if not self.languages[:-1]:
            raise ValueError(f"Expected the code of a language, or several with commas, but got {self.language!r}.")

    @property
    def languages(self) -> list[str]:
        """In order, the one of all languages last."""
        codes = [code.strip() for code in self.language.split(",") if code.strip()]
        return [*dict.fromkeys(code for code in codes if code != _ALL), _ALL]


@dataclass(frozen=True)
class Item:
    """What a knowledge base takes of an item."""

    id: str
    about: About
    description: str
    names: list[str]
    sitelinks: int
    person: bool


def stage_wikidata(
    path: Path, staging: Staging, *, wikidata: Wikidata = Wikidata(), unknown: str = "error", progress: bool = False
) -> None:
    """Items of a Wikidata dump, an item a line. Weights are numbers of sitelinks, and so are counts of Q numbers."""
    source, group = staging.add_source(path.name), staging.add_group(SourceGroup(path.name, "count", False, unknown))
    found = False
    for line, data in read_items(path, progress, skip=staging.left_out.skip if staging.skips else None):
        try:
            if "redirect" in data:  # of items that were merged
                staging.add_redirect(data["entity"], data["redirect"])
                staging.count("redirects of items")
                continue
            found = True
            if data.get("type", "item") != "item":
                continue  # properties
            item = read_item(data, wikidata)
            staging.count("items")
            if item is None:
                staging.left_out.nameless += 1
                continue
            staging.check_names(item.names)
            count = 0 if wikidata.site else item.sitelinks
            staging.add_entity(
                item.id, source=source, line=line, text=item.description, count=count, person=item.person,
                about=item.about,
            )  # fmt: skip
            for name in item.names:
                staging.add_name(name, item.id, group=group, weight=max(item.sitelinks, 1))
        except (KeyError, TypeError, AttributeError) as error:
            told = f"{path}, line {line}: expected an item of Wikidata, but {error!r} is missing or odd."
            staging.refuse(ValueError(told), error)
        except ValueError as error:
            staging.refuse(ValueError(f"{path}, line {line}: {error}"), error)
    if not found:
        raise ValueError(f"{path} has no items: expected JSON of Wikidata, an item a line.")


def read_item(data: dict[str, Any], wikidata: Wikidata) -> Item | None:
    """None for an item without a label in the languages, or without a page in the site."""
    languages, sitelinks = wikidata.languages, data.get("sitelinks") or {}
    labels, aliases = data["labels"] or {}, data.get("aliases") or {}
    names = [
        text["value"]
        for language in languages
        for text in (*([labels[language]] if language in labels else []), *aliases.get(language, []))
    ]
    label = next(_values(labels, languages), None)
    page, url = _page(sitelinks, wikidata)
    if label is None or (wikidata.site and not page):
        return None
    types = [id_of_claim(claim) for claim in (data.get("claims") or {}).get("P31", [])]
    about = About(page or label, data["id"], url, tuple(dict.fromkeys(filter(None, types))))
    return Item(
        id=page if wikidata.site else data["id"],
        about=about,
        description=next(_values(data.get("descriptions") or {}, languages), ""),
        names=list(dict.fromkeys(names)),
        sitelinks=len(sitelinks),
        person=_HUMAN in types,
    )


def _values(texts: Texts, languages: list[str]) -> Iterator[str]:
    return (texts[language]["value"] for language in languages if language in texts)


def _page(sitelinks: Texts, wikidata: Wikidata) -> tuple[str, str]:
    """The title of a page, and the language of its Wikipedia; "" where there is none."""
    sites = [wikidata.site] if wikidata.site else [f"{code.replace('-', '_')}wiki" for code in wikidata.languages[:-1]]
    for site in sites:
        title = sitelinks.get(site, {}).get("title", "")
        if title:
            is_wikipedia = site.endswith("wiki") and site not in NOT_LANGUAGES
            return title, site.removesuffix("wiki").replace("_", "-") if is_wikipedia else ""
    return "", ""
