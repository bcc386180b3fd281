"""Sources of a knowledge base: tables of entities, tables of names, PPRforNED (`kb.wikipedia` and `kb.wikidata` read
dumps).

Entities, .csv, .tsv or .jsonl, plain, .gz or .bz2; further columns are errors:

    id              any text
    names           .jsonl: a list, or an object that has the count of each; .csv and .tsv: separated by |
    description     optional: what the entity is, best in one sentence
    count           optional: how often it is linked, or another measure of how often names mean it; below 1 counts as
                    1; added to the counts of other sources
    prior           optional: p(entity | name) for each of its names, which must not sum up to more than 1 for a name
    person          optional: 1, true or yes for a person; 0, false, no or nothing for another entity
    title           optional: what people call it; without it the id where a name is part of that ("Paris, Texas"), or
                    else the first of its names, of names with counts the most frequent
    wikidata        optional: its id in Wikidata; knowledge bases find the entity by it, too
    url             optional: an address; or "en" where the title is that of a page of the English Wikipedia, and so on:
                    knowledge bases find the entity by such a title, too
    types           optional: what it is an instance of; .jsonl: a list; .csv and .tsv: separated by |

Names: the columns name, entity, and count or probability (see `aliases.tables`); without both all entities of a name
are equal.
Persons: a file with an id a line.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..aliases.tables import WEIGHTS, read_number, read_table, table_kind
from ..stores.opening import open_source
from ..stores.progress import ProgressBar
from ..text.forms import distinct, key_of, words_of
from ..wikipedia.wikidata import text_of
from .record import About, is_item, is_page
from .staging import SourceGroup, Staging

_ENTITY_COLUMNS = ("id", "names", "description", "count", "prior", "person", "title", "wikidata", "url", "types")
_PERSON = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}
_TITLE = "http://en.wikipedia.org/wiki/"


def stage_entities(path: Path, staging: Staging, *, unknown: str = "error", progress: bool = False) -> None:
    """A table of entities. ValueError names the line that is not as expected."""
    source, group, loose = staging.add_source(path.name), None, table_kind(path) == ".jsonl"
    for line, row in read_table(path, progress=progress, skip=staging.left_out.skip if staging.skips else None):
        try:
            if group is None:
                columns = _check_columns(row)
                group = staging.add_group(
                    SourceGroup(path.name, "probability" if "prior" in row else "count", False, unknown)
                )
            if _check_columns(row) != columns and (not loose or ("prior" in row) != ("prior" in columns)):
                raise ValueError(f"expected the columns {sorted(columns)}, as before, but got {sorted(row)}.")
            count = read_number(row, "count", zero=True) if row.get("count") not in (None, "") else 0.0
            weight = read_number(row, "prior", zero=False, most=1) if "prior" in columns else max(count, 1.0)
            entity, person = _text(row, "id"), _PERSON.get(str(row.get("person") or "").strip().lower())
            if person is None:
                raise ValueError(f"expected 1 or 0, true or false, yes or no for person, but got {row['person']!r}.")
            text = row.get("description") or ""
            if not isinstance(text, str):
                raise ValueError(f"expected a text for description, but got {text!r}.")
            named = _names(row["names"])
            staging.check_names(named)
            staging.add_entity(
                entity,
                source=source,
                line=line,
                text=text,
                count=count,
                person=person,
                once=True,
                about=_about(row, entity, named),
            )
            for name, own in named.items():
                staging.add_name(name, entity, group=group, weight=weight if own is None else own)
        except ValueError as error:
            staging.refuse(ValueError(f"{path}, line {line}: {error}"), error)
            continue
        staging.count("entities read")
    if group is None:
        raise ValueError(f"{path} has no entities: expected lines with the columns {_ENTITY_COLUMNS}.")


def stage_names(
    path: Path,
    staging: Staging,
    *,
    columns: Sequence[str] | None = None,
    unknown: str = "error",
    progress: bool = False,
) -> None:
    """A table of names. ValueError names the line that is not as expected."""
    group, weighted = None, ""
    skip = staging.left_out.skip if staging.skips else None
    for line, row in read_table(path, columns=columns, progress=progress, skip=skip):
        try:
            if group is None:
                weights = [column for column in WEIGHTS if column in row]
                if not {"name", "entity"} <= set(row) <= {"name", "entity", *weights} or len(weights) > 1:
                    raise ValueError(
                        f"expected the columns name, entity and one of {WEIGHTS} or none, but got {list(row)}."
                    )
                weighted = weights[0] if weights else ""
                group = staging.add_group(SourceGroup(path.name, weighted or "uniform", False, unknown))
            if set(row) != {"name", "entity", *([weighted] if weighted else [])}:
                raise ValueError(f"expected the columns of the first line, but got {sorted(row)}.")
            name, entity = _text(row, "name"), _text(row, "entity")
            staging.add_name(
                name, entity, group=group, weight=read_number(row, weighted, zero=False) if weighted else 1
            )
        except ValueError as error:
            staging.refuse(ValueError(f"{path}, line {line}: {error}"), error)
            continue
        staging.count("rows of names")
    if group is None:
        raise ValueError(f"{path} has no names: expected lines with name, entity and, if known, one of {WEIGHTS}.")


def stage_ppr(folder: Path, staging: Staging, *, unknown: str = "add", progress: bool = False) -> None:
    """The candidates of PPRforNED (Pershina et al., NAACL 2015), a folder of files, one for each document of AIDA.
    Their order tells the answer, and is not used: p(entity | name) is the entity's share of Wikipedia's links
    (`inCount`) to all candidates of the name, as the reader of these files has it, and `inCount` is the entity's count.
    Names are the mentions' `origText`, as it stands in the document, and the longer `text` that they were looked up
    by."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.isdigit())
    if not files:
        raise ValueError(f"Expected the files of PPRforNED, named 1, 2, ..., in {folder}, but there is none.")
    source, group = (
        staging.add_source(folder.name),
        staging.add_group(SourceGroup(folder.name, "count", False, unknown)),
    )
    known: dict[str, int] = {}
    named: set[tuple[str, str]] = set()
    for path in ProgressBar(files, "reading PPRforNED", show=progress):
        names: list[str] = []
        for line, fields in _read_ppr_lines(path):
            if fields["kind"] == "ENTITY":
                names = [key_of(fields[text], case="exact") for text in ("text", "origText") if fields.get(text)]
                staging.count("mentions")
                continue
            title = title_of_url(fields["url"])
            if title is None:
                raise ValueError(f"{path}, line {line}: expected a url {_TITLE}..., but got {fields['url']!r}.")
            count = int(fields["inCount"])
            if known.get(title) != count:
                staging.add_entity(title, source=source, line=line, count=count)
                known[title] = count
            for name in names:
                if (name, title) not in named:  # a list comes again in other documents, or by both texts
                    staging.add_name(name, title, group=group, weight=max(count, 1))
                    named.add((name, title))


def stage_persons(path: Path, staging: Staging) -> None:
    """Ids of entities that are persons, one a line."""
    with open_source(path) as file:
        for line in file.read().decode("utf-8-sig").split("\n"):
            if line.strip():
                staging.persons.append(" ".join(line.split()))


def title_of_url(url: str) -> str | None:
    """The title of an English Wikipedia page, None for another address."""
    if not url.startswith(_TITLE):
        return None
    title = url[len(_TITLE) :]
    return (unquote(title) if "%" in title else title).replace("_", " ")


def _check_columns(row: dict[str, Any]) -> set[str]:
    unknown = [column for column in row if column not in _ENTITY_COLUMNS]
    if unknown or not {"id", "names"} <= set(row):
        raise ValueError(
            f"expected the columns id, names and some of {_ENTITY_COLUMNS[2:]}, so written, but got {list(row)}; a "
            "table of names has the columns name and entity."
        )
    return set(row)


def _text(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text for {column}, but got {value!r}.")
    return value


def _about(row: dict[str, Any], entity: str, named: dict[str, float | None]) -> About:
    title, wikidata, url = (row.get(column) or "" for column in ("title", "wikidata", "url"))
    types = row.get("types") or []
    types = types.split("|") if isinstance(types, str) else types
    if not isinstance(types, list) or not all(isinstance(x, str) for x in (title, wikidata, url, *types)):
        raise ValueError(f"expected texts for title, wikidata, url and types, but got {row!r:.200}.")
    if wikidata and not is_item(wikidata):
        raise ValueError(f"expected Q and a number for wikidata, but got {wikidata!r}.")
    about = About(" ".join(title.split()), wikidata, url.strip(), tuple(dict.fromkeys(map(_plain_type, types))))
    return about if is_page(about) else about._replace(name=_name_of(entity, named))


def _name_of(entity: str, named: dict[str, float | None]) -> str:
    """What an entity without a title is called; "" where its id says it."""
    whole = f" {' '.join(words_of(entity))} "
    if any(f" {' '.join(words_of(name))} " in whole for name in named):
        return ""
    return " ".join(max(named, key=lambda name: named[name] or 0.0).split())


def _plain_type(name: str) -> str:
    if not name.strip() or "|" in name:
        raise ValueError(f"expected types that have some text and no |, but got {name!r}.")
    return " ".join(name.split())


def _names(value: Any) -> dict[str, float | None]:
    """Names and their counts where these are said; otherwise each once, however it is spelled."""
    if isinstance(value, dict):
        return {name: read_number(value, name, zero=False) for name in _check_names(list(value))}
    return dict.fromkeys(distinct(_check_names(value.split("|") if isinstance(value, str) else value), case="exact"))


def _check_names(names: Any) -> list[str]:
    if not isinstance(names, list) or not names:
        raise ValueError(f"expected one or more names, but got {names!r}.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"expected names that have some text, but got {name!r} among {names!r}.")
    return names


def _read_ppr_lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    wanted = {"ENTITY": ("text",), "CANDIDATE": ("inCount", "url")}
    with open_source(path) as file, text_of(file) as lines:
        for line, data in enumerate(lines, 1):
            kind, *fields = data.rstrip("\r\n").split("\t")
            pairs = dict(field.split(":", 1) for field in fields if ":" in field)
            if (
                kind not in wanted
                or any(what not in pairs for what in wanted[kind])
                or (line == 1 and kind != "ENTITY")
            ):
                raise ValueError(f"{path}, line {line}: expected a line of PPRforNED, but got {data[:80]!r}.")
            yield line, {"kind": kind, **pairs}
