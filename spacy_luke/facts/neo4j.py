"""A graph as CSV (RFC 4180) for Neo4j's bulk import, each header in a file of its own.

    neo4j-nodes.csv       things and values, :Entity and their label
    neo4j-documents.csv   documents, :Document
    neo4j-relations.csv   from node to node; the type is the label in capitals, PLACE_OF_BIRTH; evidence is JSON
    neo4j-mentions.csv    MENTIONED_IN, from a node to a document, with all places

A quote is doubled. Line ends and U+001F, which stands between the members of a list, become blanks, so that no field
has several lines. In the columns of IDs, by which nodes are found, "%" and control characters are as in URLs; `id` has
it as it is.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ..pages.schema import read_forms
from ..stores.sorting import SortedLines
from .clusters import order_of
from .forms import GraphEdge, GraphMention, GraphNode
from .store import EDGES_FILE, MENTIONS_FILE, NODES_FILE

BETWEEN = "\x1f"
LOADING = """neo4j-admin database import full neo4j --array-delimiter=U+001F \\
  --nodes=neo4j-nodes-header.csv,neo4j-nodes.csv \\
  --nodes=neo4j-documents-header.csv,neo4j-documents.csv \\
  --relationships=neo4j-relations-header.csv,neo4j-relations.csv \\
  --relationships=neo4j-mentions-header.csv,neo4j-mentions.csv"""
_NO_TEXT = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_ESCAPED = re.compile(r"[%\x00-\x1f\x7f\x85\u2028\u2029]")
_NO_TYPE = re.compile(r"\W+")

Row = Sequence[Any]


def write_neo4j(folder: Path) -> None:
    """Beside nodes.jsonl, edges.jsonl and mentions.jsonl, from these."""
    documents = SortedLines(folder.parent / "neo4j")
    nodes = ":ID :LABEL id name kind title description url wikidata ids:string[] types:string[] names:string[]"
    _write(folder, "nodes", f"{nodes} mentions:long documents:long score:double link_score:double", _node_rows)
    relations = ":START_ID :END_ID :TYPE label property score:double combined:double times:long documents:long evidence"
    _write(folder, "relations", relations, _relation_rows)
    mentions = ":START_ID :END_ID :TYPE times:long starts:long[] ends:long[] score:double"
    _write(folder, "mentions", mentions, lambda x: _mention_rows(x, documents))
    _write(folder, "documents", ":ID :LABEL id", lambda _: _document_rows(documents))


def _write(folder: Path, name: str, header: str, rows: Callable[[Path], Iterable[Row]]) -> None:
    for file, content in ((f"neo4j-{name}-header.csv", [header.split()]), (f"neo4j-{name}.csv", rows(folder))):
        with (folder / file).open("w", encoding="utf8", newline="") as opened:
            writer = csv.writer(opened, lineterminator="\n")
            writer.writerows([_field(x) for x in row] for row in content)


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return BETWEEN.join(_field(x) for x in value)
    return repr(value) if isinstance(value, float) else _NO_TEXT.sub(" ", str(value))


def _found_by(kind: str, id: str) -> str:
    return f"{kind}:{_ESCAPED.sub(lambda x: f'%{ord(x[0]):02X}', id)}"


def type_of(label: str) -> str:
    """PLACE_OF_BIRTH, of the label "place of birth"."""
    return _NO_TYPE.sub("_", label).strip("_").upper() or "RELATION"


def _node_rows(folder: Path) -> Iterator[Row]:
    for x in read_forms(folder / NODES_FILE, GraphNode):
        labels = ["Entity", _NO_TYPE.sub("_", x.label).strip("_")] if x.label else ["Entity"]
        known = (x.title, x.description, x.url, x.wikidata, x.ids, x.types)
        counts = (x.mentions, x.documents, x.score, x.link_score)
        yield _found_by("node", x.id), [y for y in labels if y], x.id, x.name, x.kind, *known, list(x.names), *counts


def _relation_rows(folder: Path) -> Iterator[Row]:
    for x in read_forms(folder / EDGES_FILE, GraphEdge):
        evidence = json.dumps([y.model_dump() for y in x.evidence])
        scores = (x.score, x.combined, x.times, x.documents)
        ends = _found_by("node", x.head), _found_by("node", x.tail)
        yield *ends, type_of(x.label), x.label, x.property, *scores, evidence


def _mention_rows(folder: Path, documents: SortedLines) -> Iterator[Row]:
    """A row for each node and document, which `documents` gets."""
    mentions = read_forms(folder / MENTIONS_FILE, GraphMention)
    for (node, document), group in groupby(mentions, lambda x: (x.node, x.document)):
        found = list(group)
        documents.add(f"{json.dumps([order_of(document), document])}\n")
        score = max((x.score for x in found if x.score is not None), default=None)
        ends = _found_by("node", node), _found_by("document", document)
        yield *ends, "MENTIONED_IN", len(found), [x.start for x in found], [x.end for x in found], score


def _document_rows(documents: SortedLines) -> Iterator[Row]:
    for line, _ in groupby(documents):
        id = json.loads(line)[1]
        yield _found_by("document", id), "Document", id
