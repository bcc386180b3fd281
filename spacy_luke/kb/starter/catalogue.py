"""What several sources say of entities, brought together: each entity once, as far as ids and titles tell."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

_KINDS = ("person", "place", "organization", "product", "work", "other")
_PSEUDO_COUNTS = 5.0  # links that a name's prominence counts as, beside those that were seen


@dataclass(eq=False)
class Known:
    """An entity. kind: "" where it is not known; prominence: on the scale of Wikidata's sitelinks, which the square
    root of a city's inhabitants / 10 fits too (12 for 15,000, 300 for 9 million); names: how much a name means it, 1.0
    the usual; links: how often each name was seen to mean it in texts."""

    id: str
    title: str
    kind: str = ""
    wikidata: str = ""
    page: bool = False  # whether the title is of a page that was read
    url: str = ""
    description: str = ""
    origin: str = ""  # the country of a person, where no other source tells it
    prominence: float = 1.0
    types: list[str] = field(default_factory=list)
    names: dict[str, float] = field(default_factory=dict)
    links: Counter[str] = field(default_factory=Counter)

    def add_name(self, name: str, weight: float = 1.0) -> None:
        name = " ".join(name.split())
        if name and (weight > self.names.get(name, 0.0)):
            self.names[name] = weight

    def add_type(self, name: str) -> None:
        if name and name not in self.types:
            self.types.append(name)


class Catalogue:
    """All entities, and the ways to find them."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._by_id: dict[str, Known] = {}
        self._by_title: defaultdict[str, list[Known]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Known]:
        """The best known first; a link that was seen counts as much as a sitelink."""
        return iter(sorted(self._by_id.values(), key=lambda known: (-known.prominence - known.links.total(), known.id)))

    def get(self, entity: str) -> Known | None:
        return self._by_id.get(entity)

    def add(self, known: Known) -> Known:
        assert known.id not in self._by_id, known
        self._by_id[known.id] = known
        self._by_title[known.title.casefold()].append(known)
        if not known.names:
            known.add_name(known.title)
        return known

    def add_title(self, known: Known, title: str) -> None:
        """`find` finds it by a further title."""
        if known not in self._by_title[title.casefold()]:
            self._by_title[title.casefold()].append(known)

    def named(self, title: str) -> list[Known]:
        """Entities of that title, the best known first."""
        return sorted(self._by_title.get(title.casefold(), ()), key=lambda one: (-one.prominence, one.id))

    def find(self, title: str, kind: str = "") -> Known | None:
        """The best known entity of that title and kind, where these are known."""
        return next((one for one in self.named(title) if not (kind and one.kind) or one.kind == kind), None)

    def set_item(self, known: Known, wikidata: str) -> None:
        """An entity that has no Wikidata id yet gets one: its id, and its address where it has no page."""
        assert not known.wikidata, known
        assert wikidata not in self._by_id, wikidata
        del self._by_id[known.id]
        known.id = known.wikidata = wikidata
        if known.url != "en":  # of a place on the map, or of Freebase's id
            known.url = ""
        self._by_id[wikidata] = known


def weigh_names(catalogue: Catalogue) -> dict[str, dict[str, float]]:
    """Of each entity by its id its names, and how many links each counts as: those that were seen, and `_PSEUDO_COUNTS`
    that the entities of a name share by their prominence squared (of cities: by inhabitants)."""
    shares: defaultdict[str, float] = defaultdict(float)
    for known in catalogue:
        for name, weight in known.names.items():
            shares[name] += weight * known.prominence**2
    weights = {}
    for known in catalogue:
        own = {
            name: _PSEUDO_COUNTS * weight * known.prominence**2 / shares[name] + known.links[name]
            for name, weight in known.names.items()
        }
        weights[known.id] = {**own, **{name: float(n) for name, n in known.links.items() if name not in own}}
    return weights
