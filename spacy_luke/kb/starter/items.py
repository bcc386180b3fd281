"""Items of Wikidata: organizations and products of a slice, CoDEx's types and facts, and the entities of FewRel."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...stores.opening import open_source
from ...wikipedia.wikidata import text_of
from .catalogue import Catalogue, Known
from .peoples import with_origin
from .places import City, read_table_lines

_HUMAN, _OCCUPATION, _CITIZENSHIP, _COUNTRY = "Q5", "P106", "P27", "P17"
# Words in the labels of types that tell a kind.
_WORKS = ("film", "series", "album", "novel", "book", "song", "program", "video game", "manga", "literary work")
_PLACES = tuple(
    "city town village municipality settlement country state province region island mountain river lake county "
    "district capital borough commune territory continent".split()
)
_ORGANIZATIONS = tuple(
    "university company organization party label club team group school college business institut airline band museum "
    "agency publisher enterprise".split()
)
# Words in the labels of types of cities, and of larger areas that often have a city's name.
_CITY = re.compile(r"\b(city|commune|municipality)\b")
_AREA = re.compile(r"\b(county of|counties|country|district of|island|nation|province|region|state|borough of)\b")
_BY_FAR = 5  # so many times as many inhabitants
_WHERE = re.compile(r"\b(?:of|in) (?:the )?(.+)$")  # "city of the United States"
# What heads and tails of FewRel's relations are.
_HEADS = {
    "person": ("P22", "P25", "P26", "P27", "P40", "P39", "P101", "P410", "P412", "P413", "P800", "P135"),
    "place": ("P177", "P206", "P1435"),
    "organization": ("P159",),
    "work": ("P57", "P175", "P364", "P407", "P449", "P1877"),
    "product": ("P178", "P400"),
}
_TAILS = {
    "person": ("P22", "P25", "P26", "P40", "P57", "P991", "P84"),
    "place": ("P159", "P740", "P177", "P206", "P27", "P1408"),
    "organization": ("P178", "P449", "P1923"),
    "work": ("P800",),
}
_NO_TAILS = ("P101", "P39", "P410", "P412", "P413", "P364", "P407", "P641", "P2094", "P135", "P1435", "P921", "P140")
_SEEN = 8.0  # the prominence of an item of which nothing else is known


@dataclass
class Codex:
    """CoDEx: labels of types, types of entities, and facts, by ids; degree: facts of an entity."""

    labels: dict[str, str] = field(default_factory=dict)
    types: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    degree: Counter[str] = field(default_factory=Counter)

    def types_of(self, entity: str) -> list[str]:
        return [self.labels[one] for one in self.types.get(entity, ()) if one in self.labels]

    def kind_of(self, entity: str) -> str:
        if _HUMAN in self.types.get(entity, ()):
            return "person"
        return kind_of_types(self.types_of(entity))

    def objects(self, entity: str, relation: str) -> list[str]:
        return [tail for other, tail in self.facts.get(entity, ()) if other == relation]


def kind_of_types(types: Iterable[str]) -> str:
    """ "" where the types tell none."""
    kinds = {"work": _WORKS, "place": _PLACES, "organization": _ORGANIZATIONS}
    for name in types:
        for kind, words in kinds.items():
            if any(word in name for word in words):
                return kind
    return ""


def read_codex(folder: Path) -> Codex:
    """entity2types.json, types.json, and triples in .txt files."""
    codex = Codex()
    codex.types = _read_json(folder / "entity2types.json")
    codex.labels = {key: one["label"] for key, one in _read_json(folder / "types.json").items() if one.get("label")}
    for path in sorted(folder.glob("*.txt")):
        for _, (head, relation, tail) in read_table_lines(path, columns=3):
            codex.facts[head].append((relation, tail))
            codex.degree.update((head, tail))
    return codex


def add_slice(path: Path, catalogue: Catalogue) -> None:
    """Organizations and products: id, kind, sitelinks, label, and other names with | between them."""
    for line, (wikidata, kind, sitelinks, label, others) in read_table_lines(path, columns=5):
        if kind not in ("organization", "product") or not sitelinks.isdigit():
            raise ValueError(f"{path}, line {line}: expected an organization or a product, but got {kind!r}.")
        if catalogue.get(wikidata) is not None:
            catalogue.left_out["items that came again"] += 1
            continue
        known = Known(wikidata, label, kind, wikidata, prominence=float(sitelinks))
        for name in (label, *filter(None, others.split("|"))):
            known.add_name(name)
        catalogue.add(known)
        catalogue.read["organizations and products"] += 1


def add_fewrel(paths: Sequence[Path], catalogue: Catalogue, codex: Codex, cities: Sequence[City]) -> None:
    """Heads and tails of relations, named as their sentences have them. A place that has the name of a city, and lies
    in its country as far as CoDEx knows, is that city. Each name counts once, however many sentences have it: there are
    as many of each relation, so that "France" is more often its team here than the country."""
    names: defaultdict[str, Counter[str]] = defaultdict(Counter)
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in paths:
        for wikidata, name, kind in _read_fewrel(path):
            names[wikidata][name] += 1
            kinds[wikidata][kind] += 1
    by_name: defaultdict[str, list[City]] = defaultdict(list)
    for one in cities:
        by_name[one.known.title].append(one)
    for wikidata in sorted(names, key=lambda one: (-names[one].total() - codex.degree[one], one)):
        title = _title_of(names[wikidata])
        kind = codex.kind_of(wikidata) or max(kinds[wikidata], key=lambda one: (kinds[wikidata][one], one))
        known = catalogue.get(wikidata)
        if known is None:
            if kind == "-" or not title:
                catalogue.left_out["heads and tails that are no names"] += 1
                continue
            city = _find_city(wikidata, by_name.get(title, ()), codex) if kind in ("place", "") else None
            if city is not None:
                catalogue.set_item(city.known, wikidata)
                known = city.known
            else:
                prominence = max(_SEEN, 5 * codex.degree[wikidata] ** 0.5)
                known = catalogue.add(Known(wikidata, title, kind, wikidata, prominence=prominence))
            catalogue.read["items of FewRel"] += 1
        known.links.update(name for name, n in names[wikidata].items() if name in known.names or n > 1)


def add_descriptions(catalogue: Catalogue, codex: Codex) -> None:
    """Types of CoDEx, and descriptions from its facts, for what has none."""
    for known in catalogue:
        for name in codex.types_of(known.wikidata):
            known.add_type(name)
        if known.description:
            continue
        what = [codex.labels[one] for one in codex.objects(known.wikidata, _OCCUPATION) if one in codex.labels][:3]
        what = what or [name for name in known.types if name not in ("human", known.kind)][:2] or [known.kind or ""]
        relation = _CITIZENSHIP if known.kind == "person" else _COUNTRY
        countries = [catalogue.get(one) for one in codex.objects(known.wikidata, relation)]
        where = next((country.title for country in countries if country is not None), known.origin)
        known.description = with_origin(", ".join(what), where)
    for known in catalogue:
        if known.kind:
            known.types = list(dict.fromkeys([known.kind, *known.types]))


def _read_fewrel(path: Path) -> Iterator[tuple[str, str, str]]:
    """Id, name and kind of each head and tail; "" for a kind that its relation does not tell, "-" for no entity."""
    for relation, instances in _read_json(path).items():
        head = next((kind for kind, relations in _HEADS.items() if relation in relations), "")
        tail = next((kind for kind, relations in _TAILS.items() if relation in relations), "")
        tail = "-" if relation in _NO_TAILS else tail
        for instance in instances:
            for part, kind in (("h", head), ("t", tail)):
                _, wikidata, places = instance[part]
                yield wikidata, " ".join(instance["tokens"][i] for i in places[0]), kind


def _title_of(names: Counter[str]) -> str:
    """The most frequent of the names that have a capital or a digit first; of equal ones the longest."""
    names_like = [name for name in names if name[:1].isupper() or name[:1].isdigit()]
    return max(names_like, key=lambda name: (names[name], len(name), name), default="")


def _find_city(wikidata: str, cities: Sequence[City], codex: Codex) -> City | None:
    """The city of its name in its country, as far as CoDEx knows that: by facts, or by types ("city of Iran"); where it
    knows of no country but that it is a city and no area, that of its name anywhere. Of several the largest, if it is
    so by far."""
    types = codex.types_of(wikidata)
    named = {place for name in types for place in _WHERE.findall(name)}
    facts = codex.objects(wikidata, _COUNTRY)
    of_city = any(map(_CITY.search, types)) and not any(map(_AREA.search, types))
    free = [(city, city.country) for city in cities if city.country is not None and not city.known.wikidata]
    found = [city for city, country in free if country.wikidata in facts or (of_city and country.title in named)]
    if of_city and not facts and not named:
        found = [city for city, _ in free]
    found.sort(key=lambda city: city.inhabitants, reverse=True)
    if len(found) > 1 and found[0].inhabitants < _BY_FAR * found[1].inhabitants:
        return None
    return found[0] if found else None


def _read_json(path: Path) -> dict[str, Any]:
    with open_source(path) as file, text_of(file) as text:
        try:
            data = json.load(text)
        except ValueError as error:
            raise ValueError(f"{path} is not JSON ({error}).") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected an object, but got {type(data).__name__}.")
    return data
