"""`spacy luke compact-kb`: the additions to a knowledge base become one with it."""

from pathlib import Path

import typer
from wasabi import msg

from ..kb.change import change_kb
from ..kb.knowledge_base import EntityKB


def compact_kb_cli(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base to which entities were added (build-kb --add-to)"),
    output: Path | None = typer.Option(None, help="Folder of the new one; default: it takes the old one's place"),
    remove: list[str] = typer.Option([], help="Ids of entities to remove"),
) -> None:
    """Write all additions to a knowledge base as one, which opens and is searched faster, and remove entities. Vectors
    stay."""
    found = EntityKB.open(kb)
    built = change_kb(found, folder=output, remove=remove, progress=True)
    was, now = len(found.segments), len(built.kb.segments)
    msg.good(f"{built.kb.path}: {len(built.kb):,} entities, {built.kb.n_names:,} names; {was} parts became {now}")
