"""Relations that the ready pipeline shows on sentences of news: CoNLL04, from which nothing was learned or tuned.

    python benchmarks/shown_relations.py PIPELINE      # results/shown_relations.json and shown_relations.md

CoNLL04 has five relations, of which four are among those of the pipeline by other names: MEANT. A relation that is
shown is held to be right where the annotation has one of these between mentions that overlap with its two sides, in
either order. So the share that is right is a lower bound: the annotation says of few sentences that a state lies in its
country, or that "a Jordanian immigrant" was a citizen. Relations that CoNLL04 has no name for are counted, not judged.
Found are those of its relations with these names that one of the shown tells.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import numpy as np
import spacy
from machine import describe_machine
from measuring import data_parser, interval_of_share, share, title_of, write_report
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_luke.readers.datasets.conll04 import read_conll04
from spacy_luke.readers.records import Record

MEANT = {
    "country": ("Located_In", "OrgBased_In", "Live_In"),
    "country of citizenship": ("Live_In",),
    "employer": ("Work_For",),
    "headquarters location": ("OrgBased_In",),
    "located in": ("Located_In", "OrgBased_In"),
    "member of": ("Work_For",),
    "member of sports team": ("Work_For",),
    "place of birth": ("Live_In",),
    "place of death": ("Live_In",),
    "residence": ("Live_In",),
}
PARTS = ("train", "dev", "test")  # nothing was learned from any of them
THRESHOLDS = (0.65, 0.70, 0.75, 0.80, 0.85, 0.90)
DRAWS = 2000  # of sentences


Gold = tuple[int, int, str]  # mentions of a record, and a relation of CoNLL04


class Shown(NamedTuple):
    """told: the relations of CoNLL04 that it tells; None where this has no such relation."""

    sentence: int
    label: str
    score: float
    told: list[Gold] | None


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("pipeline", help="folder or name of the ready pipeline")
    options = parser.parse_args()
    records = [x for part in PARTS for x in read_conll04(options.data / f"conll04/conll04_{part}.json")]
    nlp = spacy.load(options.pipeline)
    shown = find_shown(nlp, records)
    result = {"pipeline": title_of(nlp), "threshold": nlp.get_pipe("luke_relation").cfg["threshold"]}
    result |= {"sentences": len(records), "gold": count_gold(records)}
    result |= {"shown": [list(x) for x in shown], **describe_machine()}
    write_report("shown_relations", result, make_report(result, shown))


def find_shown(nlp: Language, records: Sequence[Record]) -> list[Shown]:
    docs = nlp.pipe(Doc(nlp.vocab, words=record.words) for record in records)
    return [
        Shown(i, relation.label, relation.score, find_told(record, relation))
        for i, (record, doc) in enumerate(zip(records, docs, strict=True))
        for relation in doc._.luke_relations
    ]


def find_told(record: Record, relation: Any) -> list[Gold] | None:
    if relation.label not in MEANT:
        return None
    heads, tails = (_mentions_at(record, span) for span in (relation.head, relation.tail))
    pairs = {pair for a in heads for b in tails for pair in ((a, b), (b, a))}
    return [
        (head, tail, label)
        for head, tail, label in record.relations or []
        if label in MEANT[relation.label] and (head, tail) in pairs
    ]


def count_gold(records: Sequence[Record]) -> int:
    """Relations that something shown may tell."""
    names = {name for names in MEANT.values() for name in names}
    return len({(i, *x) for i, record in enumerate(records) for x in record.relations or [] if x[2] in names})


def _mentions_at(record: Record, span: Span) -> list[int]:
    return [i for i, x in enumerate(record.mentions or []) if x.start < span.end and span.start < x.end]


def make_report(result: dict[str, Any], shown: Sequence[Shown]) -> str:
    judged = [x for x in shown if x.told is not None]
    low, high = interval(judged, result["sentences"])
    lines = [
        "# Relations of the ready pipeline on sentences of news",
        "",
        f"Written by `python benchmarks/shown_relations.py`: {result['pipeline']}, {result['sentences']:,} sentences "
        "of CoNLL04, words given.",
        f"Of {len(shown)} relations that are shown {len(judged)} can be judged; the annotation has "
        f"{annotated(judged)} of them (95 % of draws of",
        f"sentences: {low:.1f} to {high:.1f} %), a lower bound: it leaves out most of what goes without saying. Of its "
        f"{result['gold']:,} relations {found(judged)} are found.",
        "",
        "| relation | meant in CoNLL04 | shown | annotated |",
        "| --- | --- | --- | --- |",
    ]
    by_label = defaultdict(list)
    for x in shown:
        by_label[x.label].append(x)
    for label, own in sorted(by_label.items(), key=lambda item: (-len(item[1]), item[0])):
        meant = ", ".join(MEANT.get(label, ()))
        lines.append(f"| {label} | {meant} | {len(own)} | {annotated(own) if meant else ''} |")
    lines += [
        "",
        "| shown from the score of | relations that can be judged | annotated | found |",
        "| --- |" + " --- |" * 3,
    ]
    for threshold in (x for x in THRESHOLDS if x > result["threshold"]):
        own = [x for x in judged if x.score >= threshold]
        lines.append(f"| {threshold:.2f} | {len(own)} | {annotated(own)} | {found(own)} |")
    return "\n".join(lines) + "\n"


def annotated(shown: Sequence[Shown]) -> str:
    return share([bool(x.told) for x in shown])


def found(shown: Sequence[Shown]) -> int:
    return len({(x.sentence, *gold) for x in shown for gold in x.told or []})


def interval(judged: Sequence[Shown], sentences: int) -> tuple[float, float]:
    counts = np.zeros((sentences, 2))
    for x in judged:
        counts[x.sentence] += (bool(x.told), 1)
    return interval_of_share(counts, DRAWS)


if __name__ == "__main__":
    main()
