"""Wikidata as a source of a knowledge base: items with labels, other names, descriptions, types and pages."""

from collections.abc import Iterator
from pathlib import Path

from ..stores.parallel import Engine
from .items import ODD, ItemFacts, Wikidata, facts_by_tasks, facts_of_items, tell_odd, work_of_items
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
        facts = facts_of_items(path, wikidata, progress=progress)
    else:
        work = staging.held.enter_context(work_of_items(staging.output, source, path, wikidata))
        facts = facts_by_tasks(work, path, wikidata, engine, progress=progress)
    found = False
    for fact in facts:
        found |= fact.kind not in ("damaged", "redirect")
        try:
            _stage(fact, staging, source, group, counts=not wikidata.site)
        except ODD as error:
            staging.refuse(ValueError(tell_odd(path, fact.line, error)), error)
        except ValueError as error:
            told = str(error) if fact.kind == "damaged" else f"{path}, line {fact.line}: {error}"
            staging.refuse(ValueError(told), error)
    if not found:
        raise ValueError(f"{path} has no items: expected JSON of Wikidata, an item a line.")


def _stage(fact: ItemFacts, staging: Staging, source: int, group: int, *, counts: bool) -> None:
    """ValueError for what is not as expected. counts: whether sitelinks are the counts of the entities."""
    line, kind, item, told = fact
    if kind == "damaged":
        raise ValueError(told)
    if kind == "redirect":
        staging.add_redirect(item.id, told)
        staging.count("redirects of items")
    if kind not in ("item", "nameless"):
        return
    staging.count("items")
    if kind == "nameless":
        staging.left_out.nameless += 1
        return
    staging.check_names(item.names)
    staging.add_entity(
        item.id, source=source, line=line, text=item.description, count=item.sitelinks if counts else 0,
        person=item.person, about=item.about,
    )  # fmt: skip
    for name in item.names:
        staging.add_name(name, item.id, group=group, weight=max(item.sitelinks, 1))
