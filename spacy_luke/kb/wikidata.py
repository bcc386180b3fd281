"""Wikidata as a source of a knowledge base: items with labels, other names, descriptions, types and pages."""

from collections.abc import Iterator
from pathlib import Path

from ..stores.parallel import Engine
from .items import ODD, ItemFacts, Wikidata, facts_of, read_by_tasks, tell_odd, work_of
from .staging import SourceGroup, Staging


def stage_wikidata(
    path: Path,
    staging: Staging,
    *,
    wikidata: Wikidata = Wikidata(),
    unknown: str = "error",
    engine: Engine | None = None,
    progress: bool = False,
) -> None:
    """Items of a Wikidata dump, an item a line. Weights are numbers of sitelinks, and so are counts of Q numbers.
    engine: where items are parsed, see `kb.items`; None: here, as they come."""
    source, group = staging.add_source(path.name), staging.add_group(SourceGroup(path.name, "count", False, unknown))
    facts: Iterator[ItemFacts]
    if engine is None:
        facts = facts_of(path, wikidata, progress=progress)
    else:
        work = staging.held.enter_context(work_of(staging.output, source, path, wikidata))
        facts = read_by_tasks(work, path, wikidata, engine, progress=progress)
    found = False
    for line, kind, item, told in facts:
        if kind == "damaged":
            staging.refuse(ValueError(told))
            continue
        try:
            if kind == "redirect":
                staging.add_redirect(item.id, told)
                staging.count("redirects of items")
                continue
            found = True
            if kind == "other":
                continue
            staging.count("items")
            if kind == "nameless":
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
        except ODD as error:
            staging.refuse(ValueError(tell_odd(path, line, error)), error)
        except ValueError as error:
            staging.refuse(ValueError(f"{path}, line {line}: {error}"), error)
    if not found:
        raise ValueError(f"{path} has no items: expected JSON of Wikidata, an item a line.")
