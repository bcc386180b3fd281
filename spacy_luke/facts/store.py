"""A graph of facts in a folder: nodes, edges and mentions as JSON lines, beside them what other programs read.

nodes.jsonl      a `GraphNode` a line, by id
edges.jsonl      a `GraphEdge` a line, by head, label, property and tail
mentions.jsonl   a `GraphMention` a line, by node, document and place
"""

from collections.abc import Iterator
from typing import Any

from ..pages.schema import FormT, read_forms
from ..stores.folder import StoreFolder, StoreKind, is_count
from .forms import GRAPH_FORMAT, GRAPH_VERSION, GraphEdge, GraphMention, GraphNode

NODES_FILE, EDGES_FILE, MENTIONS_FILE = "nodes.jsonl", "edges.jsonl", "mentions.jsonl"


def _is_whole(manifest: dict[str, Any]) -> bool:
    counted = all(is_count(manifest[x]) for x in ("nodes", "edges", "mentions", "documents"))
    return (
        counted
        and manifest["lines"] == GRAPH_VERSION
        and {NODES_FILE, EDGES_FILE, MENTIONS_FILE} <= set(manifest["files"])
    )


GRAPH_STORE = StoreKind(
    what="graph of facts",
    many="a graph of facts",
    form=GRAPH_FORMAT,
    build="Build one with `python -m spacy luke graph`.",
    is_whole=_is_whole,
)


class FactGraph(StoreFolder):
    """A graph that `build_facts` has made. What it gives is read from its files, a line at a time; ValueError where
    another graph took its place since it was opened."""

    kind = GRAPH_STORE

    def __repr__(self) -> str:
        return f"FactGraph({str(self.path)!r}, {self.manifest['nodes']:,} nodes, {self.manifest['edges']:,} edges)"

    def nodes(self) -> Iterator[GraphNode]:
        """By id."""
        return self._lines(NODES_FILE, GraphNode)

    def edges(self) -> Iterator[GraphEdge]:
        """By head, label, property and tail."""
        return self._lines(EDGES_FILE, GraphEdge)

    def mentions(self) -> Iterator[GraphMention]:
        """By node, document and place."""
        return self._lines(MENTIONS_FILE, GraphMention)

    def _lines(self, name: str, form: type[FormT]) -> Iterator[FormT]:
        self.check_current()
        return read_forms(self.path / name, form)
