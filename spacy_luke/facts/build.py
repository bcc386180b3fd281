"""From annotated documents to a graph of facts, in memory that does not grow with them.

Documents are sorted on disk by their ids; the names in them that no knowledge base has, by name; then mentions by node
and evidence by edge. So neither the order nor the division of the input decides a byte of what comes out.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..stores.atomic import write_folder_atomically
from ..stores.progress import ProgressBar
from ..stores.sorting import ROOM, SortedLines
from .clusters import Unlinked, cluster, order_of
from .documents import count_failed, read_annotated
from .edges import EdgeRows
from .forms import GRAPH_VERSION
from .nodes import NodeRows, node_kind
from .settings import FactSettings
from .staging import StagedDocument, stage
from .store import EDGES_FILE, GRAPH_STORE, MENTIONS_FILE, NODES_FILE, FactGraph

SHARED = "nodes that are several entities of a knowledge base, by one item of Wikidata"

Write = Callable[[Path], None]  # writes a further form of the graph into its folder


def build_facts(
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    settings: FactSettings | None = None,
    previous: FactGraph | None = None,
    formats: Sequence[Write] = (),
    room: int = ROOM,
    progress: bool = False,
) -> FactGraph:
    """Write the graph of the documents in files, or in folders that `apply` wrote; an older graph there is replaced.

    previous: an earlier graph, whose nodes keep their ids and their mentions; what is new joins them or is added.
    formats: what else is written. room: characters that a sorter has in memory, of which there are two at a time.
    Raises ValueError where the folder holds something else, for lines that are no documents, and for two documents of
    one id.
    """
    settings, output = settings or FactSettings(), Path(output)
    GRAPH_STORE.check_replaceable(output)
    paths = [Path(x) for x in inputs]
    counts = Counter({"documents that failed in `apply`": count_failed(paths)})
    with write_folder_atomically(output) as new:
        work = new.parent / "sorted"
        work.mkdir()
        documents = SortedLines(work / "documents", room=room)
        for _, found in read_annotated(paths, progress=progress):
            documents.add(stage(found, settings).as_line())
        names = SortedLines(work / "names", room=room)
        earlier = _earlier_mentions(previous, SortedLines(work / "earlier", room=room))
        for line in _shown(_distinct(documents, counts), "names without a link", None, progress):
            for row in _name_rows(StagedDocument.of_line(line), earlier):
                names.add(row)
        placed = SortedLines(work / "placed", room=room)
        for one, node in cluster(map(_read_name, names), settings.similarity):
            placed.add(f"{_document_key(one.order, one.document)}{one.number}\t{node}\n")
        if not counts["documents"]:
            raise ValueError(f"Expected documents in {', '.join(map(str, inputs))}, but there are none.")
        nodes, edges = NodeRows(work / "nodes", room), EdgeRows(work / "edges", room)
        clustered = _ByDocument(placed)
        for line in _shown(_distinct(documents, Counter()), "nodes and edges", counts["documents"], progress):
            document = StagedDocument.of_line(line)
            own = {int(x): node for x, node in (y.split("\t") for y in clustered.take(document.order, document.id))}
            _add_rows(document, own, nodes, edges, counts)
        node_count, mention_count, counts[SHARED] = nodes.write(new / NODES_FILE, new / MENTIONS_FILE)
        values = {"nodes": node_count, "edges": edges.write(new / EDGES_FILE, settings.max_evidence)}
        values |= {"mentions": mention_count, "documents": counts.pop("documents"), "lines": GRAPH_VERSION}
        for write in formats:
            write(new)
        GRAPH_STORE.write_manifest(new, {**values, "info": _info(settings, counts)}, progress=progress)
    return FactGraph.open(output)


def _info(settings: FactSettings, counts: Counter[str]) -> dict[str, Any]:
    listed = {
        key: sorted(x) if isinstance(x, (list, tuple, set, frozenset)) else x for key, x in asdict(settings).items()
    }
    return {"settings": listed, "counts": {key: n for key, n in sorted(counts.items()) if n}}


def _shown(lines: Iterator[str], task: str, total: int | None, progress: bool) -> Iterator[str]:
    """The same, with a bar where a terminal shows one."""
    yield from ProgressBar(lines, task, total=total, unit=" documents", scaled=True, show=progress)


def _document_key(order: str, id: str) -> str:
    return f"{json.dumps(order)}\t{json.dumps(id)}\t"


def _distinct(documents: SortedLines, counts: Counter[str]) -> Iterator[str]:
    """Each document once. ValueError where two that differ have one id. counts: gets the number of documents."""
    last_key, last = "", ""
    for line in documents:
        if line == last:
            counts["documents given twice, taken once"] += 1
            continue
        key = line[: line.index("\t", line.index("\t") + 1)]
        if key == last_key:
            id = json.loads(key.split("\t")[1])
            raise ValueError(
                f"Two documents that differ have the id {id!r}. Give each its own, or leave out the older one: `apply` "
                "counts such ids, and with an --id-field that no record has it names each text by its place."
            )
        counts["documents"] += 1
        last_key, last = key, line
        yield line


class _ByDocument:
    """What sorted lines have behind "ORDER<tab>ID<tab>", for documents in their order."""

    def __init__(self, lines: SortedLines) -> None:
        self._lines = iter(lines)
        self._next = next(self._lines, None)

    def take(self, order: str, id: str) -> list[str]:
        key, found = _document_key(order, id), []
        while self._next is not None:
            if self._next.startswith(key):
                found.append(self._next[len(key) : -1])
            elif self._next > key:
                break
            self._next = next(self._lines, None)
        return found


def _earlier_mentions(previous: FactGraph | None, lines: SortedLines) -> _ByDocument:
    """ "START<tab>END<tab>NODE" of the mentions in an earlier graph that no knowledge base had."""
    for x in [] if previous is None else previous.mentions():
        if node_kind(x.node) == "nil":
            lines.add(f"{_document_key(order_of(x.document), x.document)}{x.start}\t{x.end}\t{x.node}\n")
    return _ByDocument(lines)


def _name_rows(document: StagedDocument, earlier: _ByDocument) -> Iterator[str]:
    """A line for each thing of a document that is to be clustered, which sorts as `cluster` wants it."""
    rows = (x.split("\t") for x in earlier.take(document.order, document.id))
    nodes = {(int(start), int(end)): node for start, end, node in rows}
    for number, referent in enumerate(document.referents):
        if referent.node:
            continue
        places = [(document.mentions[i].start, document.mentions[i].end) for i in referent.mentions]
        known = next((nodes[x] for x in places if x in nodes), "")
        content = json.dumps([document.id, places[0][0], referent.context])
        name = f"{json.dumps(referent.key)}\t{json.dumps(referent.label)}\t{'0' if known else '1'}"
        yield f"{name}\t{json.dumps(document.order)}\t{number:08d}\t{known}\t{content}\n"


def _read_name(line: str) -> Unlinked:
    key, label, _, order, number, known, content = line.split("\t")
    document, start, context = json.loads(content)
    return Unlinked(json.loads(key), json.loads(label), known, json.loads(order), document, int(number), start, context)


def _add_rows(
    document: StagedDocument, clustered: Mapping[int, str], nodes: NodeRows, edges: EdgeRows, counts: Counter[str]
) -> None:
    """clustered: nodes of the document's referents that had none."""
    node_of = {}
    for number, referent in enumerate(document.referents):
        for mention in referent.mentions:
            node_of[mention] = referent.node or clustered[number]
    counts.update(document.counts)
    used = set()
    for relation in document.relations:
        head, tail = node_of[relation.head], node_of[relation.tail]
        if head == tail:
            counts["relations of a thing with itself, left out"] += 1
            continue
        used |= {relation.head, relation.tail}
        edges.add(head, relation, tail, document)
    for number, node in sorted(node_of.items()):
        if node_kind(node) == "value" and number not in used:
            counts["values without a relation, left out"] += 1
        else:
            nodes.add_mention(node, document, number)
    for node, known in document.known.items():
        nodes.add_known(node, known)
