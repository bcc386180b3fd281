"""A starter knowledge base from what may be passed on, for texts of no special field."""

import json
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...stores.atomic import write_atomically
from ..build import BuiltKB, build_kb
from ..files import KB
from .catalogue import Catalogue, Known, weigh_names
from .freebase import add_freebase
from .items import Codex, add_descriptions, add_fewrel, add_slice, read_codex
from .pages import add_pages, read_dump_links
from .places import COUNTRIES, add_cities, add_countries, add_well_known

WELL_KNOWN = Path(__file__).with_name("well_known.tsv")
# The names of the sources in their folder
_SLICE = "wikidata-slice.tsv"
_CITIES = "cities15000.tsv"
_CODEX = "codex"  # entity2types.json, types.json, train.txt
_FEWREL = "fewrel"  # .json
_FREEBASE, _FACTS = "entity2text.txt", "FB15k-237.tar.gz"  # one needs the other
_DUMP = "enwiki.xml.bz2"
_TABLE = "entities.jsonl"


@dataclass(frozen=True)
class StarterKB:
    """The knowledge base; how many entities came of each source, and what was left out, in words."""

    built: BuiltKB
    read: dict[str, int]
    left_out: list[str]


def build_starter_kb(sources: Path, folder: Path, *, most: int | None = None) -> StarterKB:
    """Build it of those sources (see above) that are in a folder, and of the package's own tables. The entities are
    also written as a table of the kind that `build_kb` reads, which is named as `folder`, with the ending .jsonl. most:
    entities, the best known; None: all. ValueError for a source that is not as expected."""
    if not sources.is_dir():
        raise ValueError(f"Expected a folder with sources at {sources}, but there is none.")
    KB.check_replaceable(folder)
    catalogue, absent = collect_entities(sources)
    table = folder.with_name(f"{folder.name}.jsonl")
    if most is not None and most < len(catalogue):
        catalogue.left_out["entities that are known less than others"] = len(catalogue) - most
    write_table(catalogue, table, most=most)
    built = build_kb([table], folder)
    left = [f"{count:,} {what}" for what, count in catalogue.left_out.items() if count]
    return StarterKB(built, dict(catalogue.read), [*left, *(f"{name}, which is not there" for name in absent)])


def collect_entities(sources: Path) -> tuple[Catalogue, list[str]]:
    """All entities of the sources that are there, and the names of those that are not."""
    names = (_SLICE, _CITIES, _CODEX, _FEWREL, _FREEBASE, _FACTS, _DUMP)
    absent = [name for name in names if not (sources / name).exists()]
    catalogue = Catalogue()
    countries = add_countries(COUNTRIES, catalogue)
    if _SLICE not in absent:
        add_slice(sources / _SLICE, catalogue)
    cities = [] if _CITIES in absent else add_cities(sources / _CITIES, catalogue, countries)
    add_well_known(WELL_KNOWN, catalogue, cities, countries)
    codex = Codex() if _CODEX in absent else read_codex(sources / _CODEX)
    if _FEWREL not in absent:
        add_fewrel(sorted((sources / _FEWREL).glob("*.json")), catalogue, codex, cities)
    if not {_FREEBASE, _FACTS} & set(absent):
        add_freebase(sources / _FREEBASE, sources / _FACTS, catalogue)
    if _DUMP not in absent:
        add_pages(*read_dump_links(sources / _DUMP), catalogue, what="the dump")
    add_descriptions(catalogue, codex)
    return catalogue, absent


def write_table(catalogue: Catalogue, path: Path, *, most: int | None = None) -> None:
    """A table of entities for `build_kb`, the best known first."""
    weights = weigh_names(catalogue)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as new, new.open("w", encoding="utf8", newline="\n") as file:
        for known in islice(catalogue, most):
            file.write(json.dumps(_row(known, weights[known.id]), ensure_ascii=False) + "\n")


def _row(known: Known, weights: dict[str, float]) -> dict[str, object]:
    row: dict[str, object] = {
        "id": known.id,
        "names": {name: round(weight, 4) for name, weight in weights.items() if round(weight, 4)},
        "title": known.title,
        "wikidata": known.wikidata,
        "url": known.url,
        "description": known.description,
        "types": known.types,
        "count": round(known.prominence, 1),
        "person": known.kind == "person",
    }
    return {key: value for key, value in row.items() if value not in ("", [], False)}
