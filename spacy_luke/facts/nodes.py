"""Mentions, sorted by their nodes, and the nodes that they make."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Literal

from ..stores.sorting import SortedLines
from .forms import GraphMention, GraphNode
from .staging import Attributes, StagedDocument, StagedMention

_KNOWN, _MENTION = "0", "1"  # what a row is: rows of a node begin with what the knowledge base says
_NOTHING: Attributes = ("", "", "", "", ())


class NodeRows:
    """Rows "NODE<tab>KIND<tab>ORDER<tab>START<tab>JSON", sorted on disk."""

    def __init__(self, folder: Path, room: int) -> None:
        self._rows = SortedLines(folder, room=room)

    def add_known(self, node: str, known: Attributes) -> None:
        self._rows.add(f"{json.dumps(node)}\t{_KNOWN}\t\t\t{json.dumps(known)}\n")

    def add_mention(self, node: str, document: StagedDocument, number: int) -> None:
        """number: of the mention in the document."""
        mention = document.mentions[number]
        content = json.dumps([document.id, *mention])
        place = f"{json.dumps(document.order)}\t{mention.start:012d}"
        self._rows.add(f"{json.dumps(node)}\t{_MENTION}\t{place}\t{content}\n")

    def write(self, nodes: Path, mentions: Path) -> tuple[int, int, int]:
        """RETURNS: how many nodes, how many mentions, and how many nodes have several ids."""
        node_count = mention_count = shared_count = 0
        with nodes.open("wb") as node_file, mentions.open("wb") as mention_file:
            for name, rows in groupby(self._rows, lambda line: line[: line.index("\t")]):
                merged = _Node(json.loads(name))
                for row in rows:
                    if (mention := merged.read(row)) is not None:
                        mention_file.write(mention.model_dump_json().encode() + b"\n")
                        mention_count += 1
                node = merged.form()
                node_file.write(node.model_dump_json().encode() + b"\n")
                node_count += 1
                shared_count += len(node.ids) > 1
        return node_count, mention_count, shared_count


class _Node:
    """A node, of which row after row is read."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._known: Attributes = _NOTHING
        self._names: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._ids: set[str] = set()
        self._mentions = self._documents = 0
        self._document: str | None = None
        self._score: float | None = None
        self._link_score: float | None = None

    def read(self, row: str) -> GraphMention | None:
        _, kind, _, _, content = row.split("\t")
        if kind == _KNOWN:
            self._known = _joined(self._known, json.loads(content))
            return None
        document, *fields = json.loads(content)
        mention = StagedMention(*fields)
        self._names[" ".join(mention.text.split())] += 1
        self._labels[mention.label] += 1
        self._ids |= {mention.entity} - {""}
        self._mentions += 1
        self._documents += document != self._document
        self._document = document
        self._score = _best(self._score, mention.score)
        self._link_score = _best(self._link_score, mention.link_score)
        return GraphMention(node=self._id, document=document, **mention._asdict())

    def form(self) -> GraphNode:
        wikidata, title, description, url, types = self._known
        names, labels = dict(_ordered(self._names)), dict(_ordered(self._labels))
        return GraphNode(
            id=self._id,
            kind=node_kind(self._id),
            label=next(iter(labels)),
            name=title or next(iter(names)),
            title=title,
            description=description,
            url=url,
            wikidata=wikidata,
            ids=sorted(self._ids),
            types=list(types),
            names=names,
            labels=labels,
            mentions=self._mentions,
            documents=self._documents,
            score=self._score,
            link_score=self._link_score,
        )


def node_kind(node: str) -> Literal["linked", "nil", "value"]:
    if node.startswith("nil:"):
        return "nil"
    return "value" if node.startswith("value:") else "linked"


def _joined(one: Attributes, other: Attributes) -> Attributes:
    """What is known first, and all types."""
    wikidata, title, description, url = (x or y for x, y in zip(one[:4], other[:4]))
    return wikidata, title, description, url, tuple(sorted({*one[4], *other[4]}))


def _best(one: float | None, other: float | None) -> float | None:
    return max((x for x in (one, other) if x is not None), default=None)


def _ordered(counts: Counter[str]) -> Iterable[tuple[str, int]]:
    """The most frequent first, of these the longest."""
    return sorted(counts.items(), key=lambda x: (-x[1], -len(x[0]), x[0]))
