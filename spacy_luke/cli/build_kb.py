"""`spacy luke build-kb`: a knowledge base for linking, from dumps, Wikidata, tables and lists of candidates."""

from pathlib import Path
from time import perf_counter

import typer

from ..aliases.counts import Limits
from ..kb.build import BuiltKB, KBSettings, build_kb
from ..kb.change import add_to_kb, change_kb
from ..kb.items import Wikidata
from ..kb.knowledge_base import EntityKB
from ..stores.parallel import Engine
from ..stores.plain_text import read_lines
from .build_corpus import ADDRESS_HELP, ENGINE_HELP
from .built_kb import tell_built
from .errors import failing_as


def build_kb_cli(
    sources: list[Path] | None = typer.Argument(
        None,
        help="All parts of a Wikipedia dump (XML), Wikidata items (.json), tables of entities (columns id, names and, "
        "where known, description, count, prior, person), tables of names (name, entity and count or probability), "
        "the folder of PPRforNED; plain, .bz2 or .gz. None where entities are only removed",
    ),
    output: Path = typer.Argument(..., help="Folder of the knowledge base; an older one there is replaced"),
    add_to: Path | None = typer.Option(
        None, help="A knowledge base whose entities and names are taken over, counts added up; may be the output itself"
    ),
    replace: bool = typer.Option(
        False,
        "--replace",
        help="With --add-to: entities that are there already give way to those with their ids, with their names",
    ),
    remove: Path | None = typer.Option(None, help="With --add-to: file of ids of entities to remove, one a line"),
    columns: str | None = typer.Option(
        None, help="Tables of names without a first line: their columns, such as name,entity,count"
    ),
    unknown: str | None = typer.Option(
        None,
        help="Ids that a name means, but no source of entities has: error, add or drop; default: error, drop for links "
        "in a dump, and add where no source is one of entities and there is no --add-to",
    ),
    persons: Path | None = typer.Option(None, help="File of ids of entities that are persons, one a line"),
    language: str = typer.Option(
        "en",
        help="Wikidata: whose labels, aliases and descriptions are taken, several as en,de; beside them those of all "
        "languages (mul)",
    ),
    site: str | None = typer.Option(
        None, help="Wikidata: the wiki whose titles become ids, such as enwiki; default: Q numbers"
    ),
    disambiguation: list[str] = typer.Option([], help="Dumps: further templates of disambiguation pages"),
    min_count: float = typer.Option(0, min=0, help="Leave out entities of a name with fewer links"),
    max_candidates: int | None = typer.Option(None, min=1, help="Entities to keep for a name, the best; default: all"),
    max_words: int | None = typer.Option(
        None, min=1, help="Leave out names of more words, punctuation counted; default: none"
    ),
    on_damage: str = typer.Option(
        "error", help="Lines of tables and of Wikidata that are not as expected: error, or skip, which lists them"
    ),
    workers: int | None = typer.Option(
        None,
        min=1,
        help="Dumps: processes that parse pages; a run that was stopped goes on then. Default: this one, as pages come",
    ),
    engine: str = typer.Option("processes", help=f"Where these are: {ENGINE_HELP}"),
    address: str | None = typer.Option(None, help=ADDRESS_HELP),
    verify: bool = typer.Option(False, "--verify", help="Read the new files again and compare the digests"),
) -> None:
    """Build a knowledge base of names, priors, entities and descriptions that opens at once and is shared by
    processes."""
    start = perf_counter()
    settings = KBSettings(
        Limits(min_count, 0.0, max_candidates, max_words),
        [column.strip() for column in columns.split(",")] if columns else None,
        unknown,
        Wikidata(language, site),
        persons,
        disambiguation,
        on_damage,
        None if workers is None and engine == "processes" else Engine(engine, workers, address),
    )
    built = _build(sources or [], output, add_to, replace, remove, settings)
    if verify:
        with failing_as("The new knowledge base is not as it was written."):
            built.kb.verify(progress=True)
    tell_built(output, built.kb, built.read, built.left_out, seconds=perf_counter() - start)


def _build(
    sources: list[Path], output: Path, add_to: Path | None, replace: bool, remove: Path | None, settings: KBSettings
) -> BuiltKB:
    if add_to is None and (replace or remove):
        raise ValueError("--replace and --remove change a knowledge base that is there: name it with --add-to.")
    if not sources and remove is None:
        raise ValueError("Expected sources before the folder of the knowledge base, but there are none.")
    if add_to is None:
        return build_kb(sources, output, settings=settings, progress=True)
    kb = EntityKB.open(add_to)
    if not (replace or remove):
        return add_to_kb(kb, sources, output, settings=settings, progress=True)
    ids = [] if remove is None else [line.strip() for line in read_lines(remove)]
    return change_kb(kb, sources, output, remove=list(filter(None, ids)), settings=settings, progress=True)
