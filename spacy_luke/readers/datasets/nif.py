"""Entity linking in NIF 2.0 (Hellmann et al., 2013): Turtle files, as those of RSS-500, ISTEX and OKE."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ...annotations import NIL
from ..records import ENTITY_LABEL, Mention, Record
from .linking import find_near, title_of
from .turtle import Resources, read_turtle

_SAME = "sameAs"  # of OWL
_WIKIDATA = re.compile(r"https?://(?:www\.)?wikidata\.org/(?:entity|wiki)/(Q\d+)")
_WIKIPEDIA = re.compile(r"https?://(?:\w+\.wikipedia\.org/wiki|(?:\w+\.)?dbpedia\.org/resource)/(.+)")


def read_nif(path: str | Path) -> Iterator[Record]:
    """Contexts (nif:isString) with their phrases (nif:beginIndex, nif:endIndex, itsrdf:taIdentRef), by address.

    The id is that of Wikidata, or the title of Wikipedia or DBpedia, also where owl:sameAs leads to it. Any other
    address (RSS-500's notInWiki) is NIL, and counted in the notes; no address is NIL. Raises ValueError, naming the
    line, for what is no Turtle (see `turtle`), and where a phrase belongs to no context, or is not what its
    nif:anchorOf says; up to 40 characters away it is found and counted in the notes. So is a context that is named with
    other characters than its own, where its document has but one.
    """
    path = Path(path)
    resources = read_turtle(path)
    properties = {uri: {_local(key): values for key, values in found.items()} for uri, found in resources.items()}
    phrases: dict[str, list[Mention]] = {}
    notes: dict[str, Counter[str]] = {}
    texts = {uri: found["isString"][0] for uri, found in properties.items() if "isString" in found}
    of_document: dict[str, list[str]] = {}
    for uri in texts:
        of_document.setdefault(uri.partition("#")[0], []).append(uri)
    for uri, found in properties.items():
        if "anchorOf" not in found:
            continue
        context = found.get("referenceContext", [""])[0]
        if context not in texts and len(same := of_document.get(context.partition("#")[0], [])) == 1:
            (context,) = same
            notes.setdefault(context, Counter())["contexts found by their document"] += 1
        if context not in texts:
            raise ValueError(f"{path}: expected a text for the phrase {uri}, but there is no context {context!r}.")
        try:
            start, end = (int(found[f"{edge}Index"][0]) for edge in ("begin", "end"))
        except (KeyError, ValueError):
            raise ValueError(f"{path}: expected nif:beginIndex and nif:endIndex with numbers of {uri}.") from None
        anchor = found["anchorOf"][0]
        place = find_near(texts[context], anchor, start)
        if place is None or not anchor:
            raise ValueError(
                f"{path}: expected {anchor!r} at [{start}, {end}) of {context}, or near, but there is "
                f"{texts[context][start:end]!r}."
            )
        if (place, place + len(anchor)) != (start, end):
            notes.setdefault(context, Counter())["mentions found beside their offset"] += 1
            start, end = place, place + len(anchor)
        entity = _entity_of(found.get("taIdentRef", []), resources)
        if entity is None:
            notes.setdefault(context, Counter())["ids of no item or page, read as NIL"] += 1
        phrases.setdefault(context, []).append(Mention(start, end, ENTITY_LABEL, kb_id=entity or NIL))
    if not texts:
        raise ValueError(f"{path}: expected contexts with nif:isString, but there are none.")
    for uri in sorted(texts):
        marked = phrases.get(uri, [])
        mentions = list(
            {(mention.start, mention.end, mention.kb_id): mention for mention in sorted(marked, key=_place)}.values()
        )
        counted = notes.setdefault(uri, Counter())
        counted["equal labels counted once"] += len(marked) - len(mentions)
        yield Record(f"{path}, {uri}", text=texts[uri], mentions=mentions, links=True, notes=dict(+counted))


def _place(mention: Mention) -> tuple[int, int]:
    return mention.start, mention.end


def _entity_of(addresses: list[str], resources: Resources) -> str | None:
    """NIL for no address; None for addresses of something else than Wikidata, Wikipedia or DBpedia. One that is said to
    be the same as such an address (owl:sameAs) means that."""
    for address in addresses:
        same = [other for key, others in resources.get(address, {}).items() if _local(key) == _SAME for other in others]
        for uri in (address, *same):
            if match := _WIKIDATA.fullmatch(uri):
                return match[1]
            if match := _WIKIPEDIA.fullmatch(uri):
                return title_of(unquote(match[1]))
    return None if any(addresses) else NIL


def _local(address: str) -> str:
    """What follows the namespace of a property."""
    return re.split("[#/]", address)[-1]
