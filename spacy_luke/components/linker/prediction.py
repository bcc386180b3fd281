"""From mentions with their candidates to scores: windows are planned Doc by Doc, and decided together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ...batch.linking import LinkVectors
from ...bridge.documents import read_document
from ...bridge.finite import check_scores
from ...text.tokenizer import PieceTokenizer
from ..mentions import WordRange
from .candidates import Found
from .decisions import LinkTask
from .entity_table import EntityTable
from .inputs import LinkInput, link_tasks
from .outputs import Linked, Weights, rank, warn_unreached

_CHUNK = 20_000  # candidates whose vectors are in memory at a time, about

Decide = Callable[[list[LinkTask], LinkVectors], None]  # fills in the probabilities of windows, see `decide`


class AskedDoc(NamedTuple):
    """A Doc, its mentions as words [start, end), and the candidates of each."""

    doc: Doc
    mentions: list[WordRange]
    found: list[Found]


def chunk_docs(asked: Iterable[AskedDoc]) -> Iterator[list[AskedDoc]]:
    """Docs that are decided together: of CHUNK candidates, about."""
    chunk: list[AskedDoc] = []
    candidates = 0
    for one in asked:
        chunk.append(one)
        candidates += sum(len(x.named) for x in one.found)
        if candidates >= _CHUNK:
            yield chunk
            chunk, candidates = [], 0
    if chunk:
        yield chunk


def score_candidates(
    chunk: Sequence[AskedDoc],
    table: EntityTable,
    decide: Decide,
    *,
    settings: LinkInput,
    tokenizer: PieceTokenizer,
    name: str,
    nil: bool,
    weights: Weights | None,
) -> Iterator[list[Linked]]:
    """For each Doc the candidates of its mentions with their scores, the best first.

    table: gets the entities of all candidates; name: of the component; nil: whether NIL is a candidate; weights: of
    what is known of candidates, where it is asked what scores are made of. Warns of mentions that no window reached,
    whose scores are 0; raises ValueError for scores that are not finite.
    """
    table.add([entity for one in chunk for x in one.found for entity, _ in x.named])
    found = [[table.candidates(x) for x in one.found] for one in chunk]
    tasks: list[LinkTask] = []
    places: list[tuple[int, np.ndarray]] = []  # of each window its Doc, and the mentions of its entity tokens
    for number, (one, candidates) in enumerate(zip(chunk, found, strict=True)):
        if one.mentions:
            document = read_document(one.doc, tokenizer) if settings.context else None
            for task, mention_E in link_tasks(settings, document, one.mentions, candidates, table):
                tasks.append(task)
                places.append((number, mention_E))
    decide(tasks, table.vectors())
    _check(tasks, [number for number, _ in places], [one.doc for one in chunk], name=name)
    scores: list[list[np.ndarray | None]] = [[None] * len(one.mentions) for one in chunk]
    reached = [np.zeros(len(one.mentions), bool) for one in chunk]
    for task, (number, mention_E) in zip(tasks, places, strict=True):
        for e in np.flatnonzero(task.decided_E).tolist():
            scores[number][int(mention_E[e])] = task.probabilities[e]
            reached[number][int(mention_E[e])] = True
    for one, candidates, probabilities, seen_M in zip(chunk, found, scores, reached, strict=True):
        if not seen_M.all():
            warn_unreached(name, one.doc, one.mentions, seen_M, room=settings.room)
        yield [
            rank(x, probabilities_K, nil=nil, weights=weights)
            for x, probabilities_K in zip(candidates, probabilities, strict=True)
        ]


def _check(tasks: Sequence[LinkTask], owners: Sequence[int], docs: Sequence[Doc], *, name: str) -> None:
    rows = [(i, x) for task, i in zip(tasks, owners, strict=True) for x in task.probabilities if x is not None]
    if rows:
        scores_C = np.concatenate([x for _, x in rows])
        check_scores(scores_C, lambda: [i for i, x in rows for _ in x], docs, name=name)
