"""Decisions about the mentions of windows: at once ("local"), or one after another, the most confident first, where
each decision is what the next ones see ("global"; Yamada et al., NAACL 2022, section 4).

The decisions are those of the plain procedure (evaluate.py of the reference code): a pass over each window for each of
its mentions. What it would decide in any case is not computed: a mention with one candidate is decided before the first
pass (its probability is 1 whatever the context, where NIL is no candidate), one without candidates is never, and a
window is left when the mentions that it decides are. A mention that is decided to be NIL stays masked.

E entity tokens of a window, K candidates of a mention, F features of a candidate.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ...architectures.entity_linker import LinkerModel, encode_link_words
from ...batch.batches import batch_items
from ...batch.linking import MASKED, LinkItem, LinkVectors, make_link_batch
from ...model.linking import segment_softmax
from ...model.transfer import to_host

INFERENCE = ("global", "local")


@dataclass
class LinkTask:
    """A window, what is known of its entity tokens, and what is decided.

    rows: of each token the rows of its candidates' vectors, each once; features: (K, F) of them; entities_E: rows of
    entities that are known, MASKED of others; decided_E: tokens that the window decides. probabilities: (K,) of each
    token's candidates when it was decided, or (K + 1,), NIL's the last, None before; order: tokens as they were
    decided.
    """

    pieces: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray
    decided_E: np.ndarray
    rows: list[np.ndarray]
    features: list[np.ndarray]
    entities_E: np.ndarray
    probabilities: list[np.ndarray | None] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.probabilities = [None] * len(self.rows)

    @property
    def cost(self) -> int:
        return len(self.pieces) + len(self.first_E)

    def decide(self, token: int, probabilities: np.ndarray) -> int:
        """RETURNS: the row of the best candidate, the first of equal ones, MASKED where that is NIL."""
        self.probabilities[token] = probabilities
        self.order.append(token)
        best = int(np.argmax(probabilities))
        return int(self.rows[token][best]) if best < len(self.rows[token]) else MASKED

    def item(
        self, scored: Sequence[int], *, owner: int = 0, gold: np.ndarray | None = None, tokens: bool = True
    ) -> LinkItem:
        """The window with the candidates of some tokens. gold: of these the place of the right candidate, -1 for none.
        tokens: whether it has entity tokens."""
        sizes = [len(self.rows[e]) for e in scored]
        none = np.empty(0, np.int64)
        width = self.features[0].shape[1] if len(self.features) else 0
        return LinkItem(
            owner=owner,
            pieces=self.pieces,
            first_E=self.first_E if tokens else none,
            last_E=self.last_E if tokens else none,
            entities_E=self.entities_E.copy() if tokens else none,
            owner_C=np.repeat(np.array(scored, dtype=np.int64), sizes),
            rows_C=np.concatenate([none, *(self.rows[e] for e in scored)]),
            features_CF=np.concatenate([np.empty((0, width), np.float32), *(self.features[e] for e in scored)]),
            gold_S=gold,
        )


def decide(
    model: LinkerModel,
    tasks: Iterable[LinkTask],
    vectors: LinkVectors,
    *,
    inference: str,
    size: int,
    sure: float | None = None,
    nil_bias: float = 0.0,
    counts: Counter[str] | None = None,
) -> list[LinkTask]:
    """Fill in the probabilities of the tokens that the windows decide. size: pieces and entity tokens of a batch.

    sure: global decisions of at least this probability are made in one step, which the plain procedure does not; None:
    one at a time.
    nil_bias: added to NIL's score, where NIL is a candidate.
    counts: gets what was computed: "windows" encoded (a window once for each pass over it; "word windows" where words
    are encoded alone), "passes" of the model, and "steps", decisions that took one.
    """
    counts = Counter() if counts is None else counts
    tasks = list(tasks)
    if not model.attrs["nil"]:
        for task in tasks:
            _decide_singles(task, fix=inference == "global")
    waiting = [task for task in tasks if _open(task).size]
    batches = batch_items(waiting, size=size, make=lambda some: list(some))
    for batch in batches:
        if inference == "global":
            _run_global(model, batch, vectors, counts, sure=sure, nil_bias=nil_bias)
        else:
            _run_local(model, batch, vectors, counts, nil_bias=nil_bias)
    return tasks


def _decide_singles(task: LinkTask, *, fix: bool) -> None:
    for token, rows in enumerate(task.rows):
        if len(rows) == 1 and task.entities_E[token] == MASKED:
            row = task.decide(token, np.ones(1, np.float32))
            if fix:
                task.entities_E[token] = row


def _undecided(task: LinkTask) -> np.ndarray:
    """Tokens with candidates whose entity is not known yet."""
    return np.array(
        [
            e
            for e, rows in enumerate(task.rows)
            if len(rows) and task.probabilities[e] is None and task.entities_E[e] == MASKED
        ],
        dtype=np.int64,
    )


def _open(task: LinkTask) -> np.ndarray:
    """Undecided tokens that the window must decide."""
    undecided = _undecided(task)
    opened: np.ndarray = undecided[task.decided_E[undecided]]
    return opened


def _run_local(
    model: LinkerModel, tasks: Sequence[LinkTask], vectors: LinkVectors, counts: Counter[str], *, nil_bias: float
) -> None:
    batch = make_link_batch([task.item(_open(task).tolist()) for task in tasks], vectors)
    counts.update(windows=len(tasks), passes=1)
    tokens = [(task, e) for task in tasks for e in _open(task).tolist()]
    for (task, e), probabilities in zip(tokens, candidate_probabilities(model, batch, nil_bias), strict=True):
        task.decide(e, probabilities)
    counts["steps"] += len(tokens)


def _run_global(
    model: LinkerModel,
    tasks: Sequence[LinkTask],
    vectors: LinkVectors,
    counts: Counter[str],
    *,
    sure: float | None,
    nil_bias: float,
) -> None:
    one_way = model.attrs["attention"] == "one_way"
    words = None
    if (
        one_way
    ):  # one pass over the words serves all steps; windows that are done keep their words and lose their tokens
        words = encode_link_words(model, make_link_batch([x.item([], tokens=False) for x in tasks], vectors))
        counts["word windows"] += len(tasks)
    while active := [task for task in tasks if _open(task).size]:
        scored = {id(task): _undecided(task).tolist() for task in active}
        items = [
            task.item(scored.get(id(task), []), tokens=id(task) in scored) for task in (tasks if one_way else active)
        ]
        found = iter(candidate_probabilities(model, make_link_batch(items, vectors, words=words), nil_bias))
        counts.update(windows=len(active), passes=1)
        for task in active:
            probabilities = [next(found) for _ in scored[id(task)]]
            highest = np.array([x.max() for x in probabilities])
            chosen = {int(highest.argmax())} | set(np.flatnonzero(highest >= (2.0 if sure is None else sure)).tolist())
            for place in sorted(chosen):
                token = scored[id(task)][place]
                task.entities_E[token] = task.decide(token, probabilities[place])
            counts["steps"] += len(chosen)


def candidate_probabilities(model: LinkerModel, batch: Any, nil_bias: float = 0.0) -> list[np.ndarray]:
    """Of each scored token of a batch the probabilities of its candidates (K,), and NIL's after them where it is one.
    nil_bias: added to NIL's score, which is 0."""
    (scores_C,) = to_host([model.predict(batch)])
    n, nil = len(batch.scored_S), bool(model.attrs["nil"])
    if nil:
        scores_C = scores_C - nil_bias
    found = segment_softmax(scores_C, torch.from_numpy(batch.owner_C), n, nil=nil).exp().numpy()
    ends = np.cumsum(np.bincount(batch.owner_C, minlength=n))
    candidates = np.split(found[: len(batch.owner_C)], ends[:-1])
    nil_S = found[len(batch.owner_C) :]
    return [np.append(x, y) for x, y in zip(candidates, nil_S, strict=True)] if nil else candidates
