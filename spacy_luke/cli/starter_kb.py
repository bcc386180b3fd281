"""`spacy luke starter-kb`: a knowledge base of countries, cities, organizations and well-known persons."""

from pathlib import Path

import typer

from ..kb.starter.build import build_starter_kb
from .built_kb import tell_built


def starter_kb_cli(
    sources: Path = typer.Argument(
        ..., help="Folder of the sources that the workflow `starter-kb` of project.yml downloads; those that are there"
    ),
    output: Path = typer.Argument(..., help="Folder of the knowledge base; its entities go to OUTPUT.jsonl, too"),
    most: int | None = typer.Option(None, min=1, help="Entities to keep, the best known; default: all"),
) -> None:
    """Build a starter knowledge base of some MB from sources that may be passed on: Wikidata ids, titles, descriptions,
    types, addresses, and priors from links, sitelinks and inhabitants."""
    starter = build_starter_kb(sources, output, most=most)
    tell_built(output, starter.built.kb, starter.read, starter.left_out)
