"""Persons, places, films and organizations of FB15k-237, a part of Freebase: names, and facts that tell their kind."""

import io
import tarfile
from collections import Counter, defaultdict
from pathlib import Path

from .catalogue import Catalogue, Known
from .peoples import with_origin
from .places import read_table_lines

_ADDRESS = "https://www.google.com/search?kgmid="  # Freebase's ids live on in Google's graph
_FOREIGN = "-GB"  # the end of names whose label is of British English
_WHAT = "/people/person/profession"
_WHERE = ("/people/person/nationality", "/film/film/country")
_GENRE = "/film/film/genre"
# What the head or the tail of a relation is, by the beginning of the relation; the first that fits counts.
_HEADS = (
    ("/people/person/", "person"),
    ("/film/actor/", "person"),
    ("/film/film/", "work"),
    ("/tv/tv_program/", "work"),
    ("/location/", "place"),
    ("/base/aareas/", "place"),
    ("/education/educational_institution/", "organization"),
    ("/sports/sports_team/", "organization"),
    ("/sports/professional_sports_team/", "organization"),
    ("/business/business_operation/", "organization"),
    ("/organization/organization/", "organization"),
    ("/music/record_label/", "organization"),
    ("/music/artist/", "person"),
    ("/award/award_category/", "award"),
)  # fmt: skip
_TAILS = (
    ("/people/person/nationality", "place"),
    ("/people/person/place_of_birth", "place"),
    ("/people/deceased_person/place_of_death", "place"),
    ("/location/location/contains", "place"),
    ("/film/film/country", "place"),
    ("/film/film/directed_by", "person"),
    ("/film/film/written_by", "person"),
    ("/film/film/produced_by", "person"),
    ("/film/film/production_companies", "organization"),
    ("/film/actor/film", "work"),
)
_LEAST = 2  # facts of an entity that is taken whose kind they tell


def add_freebase(names: Path, facts: Path, catalogue: Catalogue) -> None:
    """names: ids and names; facts: an archive with train.txt. An entity is one that is there already where name and
    kind are the same; those whose kind no fact tells (professions, genres, months) are left out."""
    title_of = {entity: name.removesuffix(_FOREIGN) for _, (entity, name) in read_table_lines(names, columns=2)}
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    degree: Counter[str] = Counter()
    told: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for head, relation, tail in _read_facts(facts):
        degree.update((head, tail))
        for entity, table in ((head, _HEADS), (tail, _TAILS)):
            if kind := next((kind for start, kind in table if relation.startswith(start)), ""):
                kinds[entity][kind] += 1
        if relation in (_WHAT, *_WHERE, _GENRE):
            told[head].append((relation, title_of.get(tail, "")))
    for entity, count in sorted(degree.items(), key=lambda pair: (-pair[1], pair[0])):
        title = title_of.get(entity, "")
        kind = max(kinds[entity], key=lambda one: (kinds[entity][one], one), default="")
        if not title or kind in ("", "award") or count < _LEAST:
            catalogue.left_out["entities of Freebase of no kind"] += 1
            continue
        prominence = min(5 * count**0.5, 100)
        known = catalogue.find(title, kind)
        if known is None or (known.url.startswith(_ADDRESS) and not known.wikidata):  # another one of this name
            known = catalogue.add(Known(entity, title, kind, url=_ADDRESS + entity))
        known.prominence = max(known.prominence, prominence)
        known.description = known.description or _describe(kind, told[entity])
        catalogue.read["entities of Freebase"] += 1


def _describe(kind: str, told: list[tuple[str, str]]) -> str:
    what = [name.lower().removesuffix("-gb") for relation, name in told if relation == _WHAT and name][:3]
    genres = [name.lower() for relation, name in told if relation == _GENRE and name][:2]
    if kind == "work" and genres:
        what = [" ".join([*genres, "film"])]
    where = next((name for relation, name in told if relation in _WHERE and name), "")
    return with_origin(", ".join(what), where)


def _read_facts(path: Path) -> list[tuple[str, str, str]]:
    """Head, relation and tail of the training facts."""
    try:
        with tarfile.open(path) as archive:
            member = next((one for one in archive.getmembers() if Path(one.name).name == "train.txt"), None)
            data = archive.extractfile(member) if member is not None else None
            text = data.read().decode("utf8") if data is not None else ""
    except (tarfile.TarError, EOFError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"{path} is not a whole archive of FB15k-237 ({error}).") from error
    facts = []
    for number, line in enumerate(io.StringIO(text), 1):
        fields = line.split()
        if len(fields) != 3:
            raise ValueError(
                f"{path}, train.txt, line {number}: expected head, relation and tail, but got {line!r:.80}."
            )
        facts.append((fields[0], fields[1], fields[2]))
    if not facts:
        raise ValueError(f"{path} has no train.txt with facts.")
    return facts
