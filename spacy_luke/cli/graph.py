"""`spacy luke graph`: what pipelines found in documents as a graph: things, what holds between them and where."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import perf_counter

import typer
from wasabi import msg

from ..facts.build import SHARED, build_facts
from ..facts.neo4j import LOADING, write_neo4j
from ..facts.rdf import write_jsonld, write_turtle
from ..facts.settings import SHORTENED, VALUES, FactSettings
from ..facts.store import FactGraph
from ..facts.triples import BASE, check_base


class GraphFormat(StrEnum):
    neo4j = "neo4j"
    turtle = "turtle"
    jsonld = "jsonld"


def graph_cli(
    inputs: list[Path] = typer.Argument(
        ..., exists=True, metavar="APPLIED...", help="Folders that `apply` wrote, or files of JSON lines in its form"
    ),
    output: Path = typer.Argument(..., help="Folder of the graph; an older graph there is replaced"),
    format: list[GraphFormat] = typer.Option(
        [], "--format", "-f", help="Write this too, beside JSON lines; may be repeated"
    ),
    min_score: float = typer.Option(0.0, help="Least score of entities"),
    min_link_score: float = typer.Option(0.0, help="Least score of links; a mention below it counts as not linked"),
    min_relation_score: float = typer.Option(0.0, help="Least score of relations"),
    labels: str = typer.Option("", help="Labels of entities that are taken, by commas; default: all"),
    relations: str = typer.Option("", help="Labels of relations that are taken, by commas; default: all"),
    values: str = typer.Option(",".join(VALUES), help="Labels of what is no thing: a node a text, where related"),
    shortened: str = typer.Option(",".join(SHORTENED), help="Labels of what is called by a part of its name, too"),
    similarity: float = typer.Option(0.05, help="Of contexts, from which on one name without a link is one thing"),
    join_links: bool = typer.Option(True, help="What has the name of a linked mention of its document is that"),
    own_ids: bool = typer.Option(False, help="Nodes are entities of the knowledge base, not items of Wikidata"),
    max_evidence: int = typer.Option(100, min=1, help="Places that an edge lists, the best; it counts all"),
    previous: Path | None = typer.Option(None, exists=True, file_okay=False, help="Earlier graph, whose ids stay"),
    base: str = typer.Option(BASE, help="Turtle, JSON-LD: what IRIs begin with that are not Wikidata's"),
) -> None:
    """Make a graph of annotated documents: nodes are what mentions are of, linked or not, edges what holds between
    them, with scores and the places where it is said."""
    start = perf_counter()
    check_base(base)
    settings = FactSettings(
        min_score=min_score,
        min_link_score=min_link_score,
        min_relation_score=min_relation_score,
        labels=_listed(labels) or None,
        relations=_listed(relations) or None,
        values=_listed(values),
        shortened=_listed(shortened),
        similarity=similarity,
        join_links=join_links,
        own_ids=own_ids,
        max_evidence=max_evidence,
    )
    writers: dict[GraphFormat, Callable[[Path], None]] = {
        GraphFormat.neo4j: write_neo4j,
        GraphFormat.turtle: partial(write_turtle, base=base),
        GraphFormat.jsonld: partial(write_jsonld, base=base),
    }
    wanted = [writers[x] for x in dict.fromkeys(format)]
    earlier = None if previous is None else FactGraph.open(previous)
    graph = build_facts(inputs, output, settings=settings, previous=earlier, formats=wanted, progress=True)
    msg.good(f"{output}: {_counted(graph)} in {perf_counter() - start:.0f} s")
    for what, number in graph.info["counts"].items():
        msg.text(f"{number:,} {what}")
    if number := graph.info["counts"].get(SHARED):
        example = next(x for x in graph.nodes() if len(x.ids) > 1)
        msg.warn(
            f"{number:,} {SHARED}, such as {example.id}: {', '.join(example.ids[:3])}. Their facts are one thing's. "
            "--own-ids makes each a node of its own."
        )
    if GraphFormat.neo4j in format:
        typer.echo(f"Load it into Neo4j, from this folder:\n{LOADING}")


def _counted(graph: FactGraph) -> str:
    return ", ".join(f"{graph.manifest[x]:,} {x}" for x in ("documents", "nodes", "edges", "mentions"))


def _listed(names: str) -> list[str]:
    """By commas, each once."""
    return list(dict.fromkeys(x for x in (y.strip() for y in names.split(",")) if x))
