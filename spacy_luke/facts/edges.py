"""Evidence, sorted by what it says, and the edges that it makes."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..stores.sorting import SortedLines
from .clusters import order_of
from .forms import Evidence, GraphEdge
from .staging import StagedDocument, StagedRelation

_DIGITS = 6


class EdgeRows:
    """Rows "[HEAD, LABEL, PROPERTY, TAIL]<tab>DIGEST OF THE TEXT<tab>ORDER<tab>EVIDENCE", in JSON, sorted on disk."""

    def __init__(self, folder: Path, room: int) -> None:
        self._rows = SortedLines(folder, room=room)

    def add(self, head: str, relation: StagedRelation, tail: str, document: StagedDocument) -> None:
        edge = json.dumps([head, relation.label, relation.property, tail])
        evidence = json.dumps(relation.evidence)
        self._rows.add(f"{edge}\t{document.digest}\t{json.dumps(document.order)}\t{evidence}\n")

    def write(self, path: Path, most: int) -> int:
        """most: pieces of evidence that an edge lists. RETURNS: how many edges."""
        number = 0
        with path.open("wb") as file:
            for edge, rows in groupby((row.split("\t") for row in self._rows), itemgetter(0)):
                form = _merge(json.loads(edge), ((x[1], json.loads(x[3])) for x in rows), most)
                file.write(form.model_dump_json().encode() + b"\n")
                number += 1
        return number


def _merge(edge: Sequence[str], rows: Iterable[tuple[str, dict[str, Any]]], most: int) -> GraphEdge:
    """rows: by text, of one text by document. The best of a text counts for `combined`, so that neither a sentence
    after another nor a copy of the text makes it surer."""
    head, label, property, tail = edge
    kept: list[Evidence] = []
    times = documents = 0
    wrong, best_of_text, score = 1.0, 0.0, 0.0
    text, document = "", None
    for digest, fields in rows:
        found = Evidence.model_validate(fields)
        if digest != text:
            wrong *= 1 - best_of_text
            text, best_of_text = digest, 0.0
        times += 1
        documents += found.document != document
        document = found.document
        best_of_text, score = max(best_of_text, found.score), max(score, found.score)
        kept.append(found)
        if len(kept) >= 2 * most + 100:
            kept = sorted(kept, key=_rank)[:most]
    return GraphEdge(
        head=head,
        label=label,
        property=property,
        tail=tail,
        score=score,
        combined=round(1 - wrong * (1 - best_of_text), _DIGITS),
        times=times,
        documents=documents,
        evidence=sorted(kept, key=_rank)[:most],
    )


def _rank(found: Evidence) -> tuple[float, str, str, int, int]:
    return -found.score, order_of(found.document), found.document, found.head.start, found.tail.start
