"""Parts of a data set that has none, by a seed or by the titles of documents; and the pairs of ids that a part asks
about."""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..stores.atomic import write_atomically
from .records import Record, check_choice

PARTS = ("train", "dev", "test")
SHARES = (0.8, 0.1, 0.1)


def divide_records(
    records: Iterable[Record],
    *,
    part: str,
    seed: int = 0,
    shares: Sequence[float] = SHARES,
    counts: Counter[str] | None = None,
) -> list[Record]:
    """Those of the records that belong to a part, the same shares of each relation.

    The records of a relation are put into the order of their content and shuffled by seed and relation, so that neither
    the order of files nor other relations matter; then come round(shares[0] n) of training, round(shares[1] n) of dev,
    and the rest is test. Equal records, as in files that repeat one another, are taken once.

    part: "train", "dev" or "test". counts: gets the number of "equal records" of all parts. RETURNS: the part,
    shuffled. Raises ValueError for records that have not exactly one relation or none, and for two that are equal but
    for the relation, of which one part could tell the other's answer.
    """
    check_choice("part", part, PARTS)
    if len(shares) != len(PARTS) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(
            f"shares must be three numbers from 0 that sum to 1, for {PARTS}, but they are {list(shares)}."
        )
    counts = Counter() if counts is None else counts
    by_label: dict[str, dict[str, Record]] = defaultdict(dict)
    label_of: dict[str, str] = {}
    for record in records:
        label, content = _label(record), _content(record)
        if label_of.setdefault(content, label) != label:
            raise ValueError(
                f"{record.where}: the same text and pair have the relation {label!r} here and {label_of[content]!r} "
                f"before."
            )
        counts["equal records"] += content in by_label[label]
        by_label[label].setdefault(content, record)
    chosen = []
    for label, found in sorted(by_label.items()):
        contents = sorted(found)
        random.Random(f"{seed} {label}").shuffle(contents)
        first = round(shares[0] * len(contents))
        second = first + round(shares[1] * len(contents))
        bounds = {"train": (0, first), "dev": (first, second), "test": (second, len(contents))}
        begin, end = bounds[part]
        chosen += [found[content] for content in contents[begin:end]]
    random.Random(f"{seed} {part}").shuffle(chosen)
    return chosen


def part_of_title(title: str) -> str:
    """The part that a document belongs to, by its title alone: a fifth of all titles is "test", a fifth "dev", and the
    rest "train". A document that several data sets have under one title is in the same part of each."""
    turn = int(hashlib.sha1(title.encode("utf8")).hexdigest()[:8], 16) % 5
    return {0: "test", 1: "dev"}.get(turn, "train")


def choose_by_title(records: Iterable[Record], *, part: str) -> list[Record]:
    """Those of the records whose titles belong to a part, in their order. Raises ValueError for one without a title."""
    check_choice("part", part, PARTS)
    chosen = []
    for record in records:
        if not record.title:
            raise ValueError(f"{record.where}: expected a title, by which documents are divided, but it has none.")
        if part_of_title(record.title) == part:
            chosen.append(record)
    return chosen


def write_pair_ids(records: Iterable[Record], path: str | Path) -> int:
    """A tsv file with the ids of head and tail, and the relation, of each pair that the records ask about, each line
    once, in order: what must not stand in a knowledge graph that shall not give the answers away. RETURNS: how many.

    A pair without a relation has an empty third column. Raises ValueError for a mention without an id.
    """
    rows = sorted({row for record in records for row in _id_pairs(record)})
    if not rows:
        raise ValueError(f"Expected records that ask about pairs, to write {path}, but there are none.")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf8")
    return len(rows)


def _id_pairs(record: Record) -> list[Any]:
    label_of = {(head, tail): label for head, tail, label in record.relations or []}
    rows = []
    for head, tail in record.pairs or label_of:
        ids = [record.mentions[number].kb_id for number in (head, tail)]
        if not all(ids):
            raise ValueError(f"{record.where}: expected an id of the head and of the tail of each pair, but got {ids}.")
        rows.append((*ids, label_of.get((head, tail), "")))
    return rows


def _label(record: Record) -> str:
    if record.relations is None or len(record.relations) > 1:
        n = "none" if record.relations is None else len(record.relations)
        raise ValueError(
            f"{record.where}: to be divided by relation, a record must have one or say so, but it has {n}."
        )
    return record.relations[0][2] if record.relations else ""


def _content(record: Record) -> str:
    """Everything that the pair's relation is asked of, as text."""
    mentions = [(mention.start, mention.end, mention.kb_id) for mention in record.mentions]
    return repr((record.text, record.words, mentions, record.pairs))
