"""From mentions of a Doc with their candidates to the windows in which they are decided, or learned from.

M mentions of a Doc, E entity tokens of a window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...batch.linking import MASKED, LinkItem, LinkWindow, plan_link_windows
from ...batch.windows import Document
from ...text.tokenizer import PieceTokenizer
from ..mentions import WordRange
from .candidates import Found
from .decisions import LinkTask
from .entity_table import Candidates, EntityTable
from .gold import NO_ENTITY, GoldLink

OTHER_MENTIONS = ("masked", "pseudo", "none")


@dataclass(frozen=True)
class LinkInput:
    """Settings of a linker's input; see `LukeLinker`. room: pieces of a window, [CLS] and [SEP] not counted."""

    tokenizer: PieceTokenizer
    room: int
    split: str
    overlap: int
    max_mentions: int
    others: str
    pseudo_prior: float
    masked_share: float
    drop_gold: float = 0.0
    learned_mentions: int | None = None
    context: bool = True


def place_mentions(document: Document, mentions: Sequence[WordRange]) -> tuple[np.ndarray, np.ndarray]:
    """Pieces [first, last) of mentions, words [start, end)."""
    return document.pieces.of_mentions(*np.array(mentions, dtype=np.int64).reshape(-1, 2).T)


def link_tasks(
    settings: LinkInput,
    document: Document | None,
    mentions: Sequence[WordRange],
    found: Sequence[Candidates],
    table: EntityTable,
    *,
    only: int | None = None,
) -> Iterator[tuple[LinkTask, np.ndarray]]:
    """Windows to be decided, and of each window's entity tokens the mentions (-1 of pseudo annotations). A mention
    without pieces, or longer than a window, is decided in none. document: None where nothing of it counts, and all
    mentions are decided in one window without pieces. only: where each mention has a window, those of so many, the
    first ones."""
    if document is None:
        yield _plain_task(found), np.arange(len(found))
        return
    first_M, last_M = place_mentions(document, mentions)
    real = np.flatnonzero(last_M > first_M)
    if not len(real):
        return
    windows = plan_link_windows(
        document,
        first_M[real],
        last_M[real],
        room=settings.room,
        split=settings.split,
        overlap=settings.overlap,
        most=settings.max_mentions,
        alone=settings.others != "masked",
    )
    for window in windows:
        numbers_E = real[window.mentions_E]
        if only is not None and numbers_E[0] >= only:
            continue
        yield _make_task(settings, document, window, numbers_E, (first_M, last_M), found, table)


def _make_task(
    settings: LinkInput,
    document: Document,
    window: LinkWindow,
    numbers_E: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    found: Sequence[Candidates],
    table: EntityTable,
) -> tuple[LinkTask, np.ndarray]:
    none = np.empty(0, np.int64)
    decided_E, known_E = window.decided_E, np.full(len(numbers_E), MASKED)
    mention_E = numbers_E
    if settings.others != "masked":
        target = int(numbers_E[0])
        pseudo = (
            _pseudo(settings, target, numbers_E[1:], places[0], found, table) if settings.others == "pseudo" else []
        )
        numbers_E = np.array([target, *(mention for mention, _ in pseudo)], dtype=np.int64)
        known_E = np.array([MASKED, *(entity for _, entity in pseudo)], dtype=np.int64)
        decided_E = np.arange(len(numbers_E)) == 0
        mention_E = np.where(decided_E, numbers_E, -1)
    offset = 1 - window.start  # [CLS] is 0
    empty_KF = np.empty((0, 2), np.float32)
    ids = document.pieces.ids_N[window.start : window.end]
    asked = [known == MASKED for known in known_E.tolist()]
    return LinkTask(
        pieces=settings.tokenizer.window(ids),
        first_E=places[0][numbers_E] + offset,
        last_E=places[1][numbers_E] - 1 + offset,
        decided_E=decided_E,
        rows=[found[m].numbers_K if yes else none for m, yes in zip(numbers_E.tolist(), asked)],
        features=[found[m].features_KF if yes else empty_KF for m, yes in zip(numbers_E.tolist(), asked)],
        entities_E=known_E,
    ), mention_E


def _plain_task(found: Sequence[Candidates]) -> LinkTask:
    none_E, all_E = np.zeros(len(found), np.int64), np.ones(len(found), bool)
    return LinkTask(
        pieces=np.empty(0, np.int64),
        first_E=none_E,
        last_E=none_E,
        decided_E=all_E,
        rows=[x.numbers_K for x in found],
        features=[x.features_KF for x in found],
        entities_E=np.full(len(found), MASKED),
    )


def _pseudo(
    settings: LinkInput,
    target: int,
    others: np.ndarray,
    first_M: np.ndarray,
    found: Sequence[Candidates],
    table: EntityTable,
) -> list[tuple[int, int]]:
    """Candidates of the other mentions that are likely by their prior alone, each an entity at its mention (2019 paper,
    section 4.2): (mention, entity). Where there are more than a window takes, those of the nearest mentions."""
    near = others[np.argsort(np.abs(first_M[others] - first_M[target]), kind="stable")]
    pairs = [
        (int(mention), table.number(entity))
        for mention in near.tolist()
        for entity, prior in found[mention].named
        if prior >= settings.pseudo_prior
    ]
    return pairs[: settings.max_mentions - 1]


def other_mentions(
    mentions: Sequence[WordRange], found: Sequence[Found], links: Sequence[GoldLink], table: EntityTable
) -> list[tuple[WordRange, Candidates]]:
    """Those of a Doc's mentions that are not learned, with their candidates."""
    learned = {link.mention for link in links}
    return [(x, table.candidates(one)) for x, one in zip(mentions, found, strict=True) if x not in learned]


def training_items(
    settings: LinkInput,
    document: Document | None,
    links: Sequence[GoldLink],
    table: EntityTable,
    *,
    owner: int,
    others: Sequence[tuple[WordRange, Candidates]] = (),
) -> Iterator[LinkItem]:
    """Windows to learn from. others: mentions that are not learned, whose likely candidates are pseudo annotations.

    Of n mentions of a window max(1, round(n * masked_share)) are masked and learned, the others are given their gold
    entities (train.py of the reference code), those that are NIL none. Of a share `drop_gold` of the learned ones with
    several candidates the gold one is taken away, so that NIL is right. Where each mention has a window of its own, the
    first ones of `learned_mentions` in another order. Which ones is drawn from numpy's global generator.
    """
    golds = [x.number for x in links]
    mentions = [*(x.mention for x in links), *(mention for mention, _ in others)]
    found = [*(x.candidates for x in links), *(candidates for _, candidates in others)]
    only = len(links) if others else None
    tasks = list(link_tasks(settings, document, mentions, found, table, only=only))
    if settings.others != "masked" and settings.learned_mentions is not None and len(tasks) > settings.learned_mentions:
        tasks = [tasks[i] for i in np.random.permutation(len(tasks))[: settings.learned_mentions]]
    for window, mention_E in tasks:
        real = np.flatnonzero(mention_E >= 0)
        shuffled = np.random.permutation(len(real))
        masked = np.zeros(len(mention_E), bool)
        masked[real[shuffled[: max(1, round(len(real) * settings.masked_share))]]] = True
        for e in real[~masked[real]].tolist():
            window.entities_E[e] = golds[int(mention_E[e])]
        scored = np.flatnonzero(masked & window.decided_E)
        if len(scored):
            gold_S = [_gold_place(window, e, golds[int(mention_E[e])], settings.drop_gold) for e in scored.tolist()]
            yield window.item(scored.tolist(), owner=owner, gold=np.array(gold_S, dtype=np.int64))


def _gold_place(window: LinkTask, token: int, gold: int, drop_gold: float) -> int:
    """The place of the right candidate among those of a token, -1 for NIL; it may be taken away from them."""
    if gold == NO_ENTITY:
        return -1
    rows_K = window.rows[token]
    place = int(np.flatnonzero(rows_K == gold)[0])
    if not drop_gold or len(rows_K) == 1 or np.random.random() >= drop_gold:
        return place
    window.rows[token] = np.delete(rows_K, place)
    window.features[token] = np.delete(window.features[token], place, axis=0)
    return -1
