"""Countries, from a table of this project, the cities of GeoNames, and the cities, persons and others that all know."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...stores.opening import open_source
from ...wikipedia.wikidata import text_of
from .catalogue import Catalogue, Known

COUNTRIES = Path(__file__).with_name("countries.tsv")
_COUNTRY = 300.0  # the prominence of a country
_KNOWN = 200.0  # of a person, an organization, a work that all know
_REGION = 100.0  # of a state, a province, a continent
_SHORT = 0.5  # how much "Clinton" means Bill Clinton, and "Celtic" the club, beside what else it may mean
_ADJECTIVE = 0.3  # how much "French" means France, beside what else it may mean


class City(NamedTuple):
    """A city of GeoNames."""

    known: Known
    country: Known | None
    inhabitants: int


def add_countries(path: Path, catalogue: Catalogue) -> dict[str, Known]:
    """The countries by their codes (ISO 3166)."""
    by_code = {}
    for line, fields in read_table_lines(path, columns=6):
        if line == 1:
            continue  # the names of the columns
        code, wikidata, name, continent, others, adjectives = fields
        known = Known(wikidata, name, "place", wikidata, url="en", prominence=_COUNTRY)
        known.description = f"country in {continent}"
        known.types = ["country"]
        for other in (name, name.removeprefix("The "), *filter(None, others.split("|"))):
            known.add_name(other)
        for adjective in filter(None, adjectives.split("|")):
            known.add_name(adjective, _ADJECTIVE)
        catalogue.add(known)
        for other in known.names:
            catalogue.add_title(known, other)
        catalogue.read["countries"] += 1
        if code:
            by_code[code] = known
    return by_code


def add_cities(path: Path, catalogue: Catalogue, countries: dict[str, Known]) -> list[City]:
    """The cities, which have no ids but their places."""
    cities = []
    for line, fields in read_table_lines(path, columns=6):
        name, plain, latitude, longitude, code, inhabitants = fields
        try:
            size = int(inhabitants)
        except ValueError:
            raise ValueError(
                f"{path}, line {line}: expected a number of inhabitants, but got {inhabitants!r}."
            ) from None
        entity = f"geo:{latitude},{longitude}"  # RFC 5870
        if catalogue.get(entity) is not None or size < 1:
            catalogue.left_out["cities at the place of another one, or without inhabitants"] += 1
            continue
        known = Known(entity, name, "place", prominence=math.sqrt(size) / 10)
        known.url = f"https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}"
        country = countries.get(code)
        known.description = f"city{f' in {country.title}' if country else ''} with {size:,} inhabitants"
        known.types = ["city"]
        known.add_name(name)
        known.add_name(plain)
        cities.append(City(catalogue.add(known), country, size))
        catalogue.read["cities"] += 1
    return cities


def add_well_known(path: Path, catalogue: Catalogue, cities: Sequence[City], countries: dict[str, Known]) -> None:
    """Large cities with their ids and other names, regions, persons, organizations, works and events, from a table of
    this project. A city that GeoNames lacks is left out."""
    for line, fields in read_table_lines(path, columns=6):
        if line == 1:
            continue  # the names of the columns
        wikidata, kind, code, title, name, others = fields
        country = countries.get(code)
        if kind == "place":
            inside = [city for city in cities if city.country is country and city.known.title == (name or title)]
            largest = max(inside, key=lambda city: city.inhabitants, default=None)
            if largest is None:
                catalogue.left_out["well-known cities that no source has"] += 1
                continue
            known = largest.known
            catalogue.set_item(known, wikidata)
            known.title = title
            catalogue.add_title(known, title)
        elif kind == "region":
            known = catalogue.add(Known(wikidata, title, "place", wikidata, prominence=_REGION))
            known.description = f"{name} in {country.title}" if country else name
            known.types = [name]
        else:
            known = catalogue.get(wikidata) or catalogue.add(Known(wikidata, title, kind, wikidata))
            known.prominence = max(known.prominence, _KNOWN)
            known.title, known.origin = title, country.title if country else ""
            catalogue.add_title(known, title)
        known.url = "en"
        known.add_name(title)
        for other in filter(None, others.split("|")):
            known.add_name(other, 1.0 if known.kind == "place" else _SHORT)
            if known.kind == "place":
                catalogue.add_title(known, other)
        catalogue.read["well-known places, persons and organizations"] += 1


def read_table_lines(path: Path, *, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table with tabs, and their numbers. ValueError for one with another number of columns."""
    with open_source(path) as file, text_of(file) as lines:
        for number, line in enumerate(lines, 1):
            fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
            if len(fields) != columns:
                raise ValueError(f"{path}, line {number}: expected {columns} columns, but got {len(fields)}.")
            yield number, fields
