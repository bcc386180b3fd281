"""What gold documents are like: how many, how long, and what is annotated in them."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..annotations import (
    LINKS,
    OWN_GROUPS,
    QUERIES,
    QUESTIONS,
    TYPES,
    UNLINKED,
    get_pair_rows,
    get_relation_rows,
    get_rows,
)
from .rules import Shape


class Survey(NamedTuple):
    """shape: what the choice of settings asks for; labels: how often each is there, by task; longest: words of the
    longest document; sentences: how many, as the documents say or the sentencizer; cut: entities that cross the end of
    one, which luke_ner cannot find."""

    shape: Shape
    labels: dict[str, Counter[str]]
    longest: int
    sentences: int
    cut: int


def survey_docs(docs: Iterable[Doc], *, sentencize: Callable[[Doc], Doc], spans_key: str | None = None) -> Survey:
    """Count what is in gold documents, each read once.

    sentencize: sets the sentences of a Doc that has none, as the pipeline will.
    spans_key: the group of the entities; None: doc.ents where any document has some, or else the group with the most
    spans, this package's own groups apart. Raises ValueError where there is no document.
    """
    counts: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {name: Counter() for name in ("ner", "types", "relations")}
    groups: dict[str, Counter[str]] = {}
    longest: Counter[str] = Counter()
    for doc in docs:
        counts["documents"] += 1
        counts["words"] += len(doc)
        if not doc.has_annotation("SENT_START"):
            doc = sentencize(doc)
        counts["sentences"] += sum(1 for _ in doc.sents)
        longest["document"] = max(longest["document"], len(doc))
        for key, spans in (("", doc.ents), *((k, v) for k, v in doc.spans.items() if k not in OWN_GROUPS)):
            _count_spans(key, list(spans), groups.setdefault(key, Counter()), longest)
        linked = doc.spans[LINKS] if LINKS in doc.spans else doc.ents
        counts["linked"] += sum(span.kb_id_ not in UNLINKED for span in linked)
        if TYPES in doc.spans:
            typed = list(doc.spans[TYPES])
            counts["typed"] += len({(span.start, span.end) for span in typed})
            labels["types"].update(span.label_ for span in typed if span.label_)
        _count_relations(doc, counts, labels["relations"], longest)
        for name in (QUESTIONS, QUERIES):
            asked = get_rows(doc, name) or []
            counts[name] += len(asked)
            counts[f"{name} unanswerable"] += sum(row.get("answers") == [] for row in asked)
    if not counts["documents"]:
        raise ValueError("Expected gold documents, but there are none.")
    key = spans_key if spans_key is not None else _group_of(groups)
    found = groups.get(key, Counter())
    labels["ner"] = Counter({name[1:]: n for name, n in found.items() if name.startswith("/")})
    shape = Shape(
        documents=counts["documents"],
        words=counts["words"],
        mentions=labels["ner"].total(),
        ner_labels=len(labels["ner"]),
        longest_span=longest[f"span {key}"],
        nested=bool(key),
        spans_key=key or "sc",
        typed=counts["typed"],
        type_labels=len(labels["types"]),
        relations=labels["relations"].total(),
        relation_labels=len(labels["relations"]),
        pairs=counts["pairs"],
        several=bool(counts["several"]),
        crossing=bool(counts["crossing"]),
        longest_gap=longest["gap"],
        questions=counts[QUESTIONS],
        unanswerable=counts[f"{QUESTIONS} unanswerable"],
        queries=counts[QUERIES],
        linked=counts["linked"],
    )
    return Survey(shape, labels, longest["document"], counts["sentences"], found["cut"])


def _count_spans(key: str, spans: list[Span], found: Counter[str], longest: Counter[str]) -> None:
    found.update(f"/{span.label_}" for span in spans if span.label_)
    found["cut"] += sum(bool(word.is_sent_start) for span in spans for word in span[1:])
    longest[f"span {key}"] = max([longest[f"span {key}"], *(len(span) for span in spans)])


def _group_of(groups: dict[str, Counter[str]]) -> str:
    """ "" for doc.ents."""
    if groups[""].total():
        return ""
    return max(groups, key=lambda key: groups[key].total())


def _count_relations(doc: Doc, counts: Counter[str], labels: Counter[str], longest: Counter[str]) -> None:
    counts["pairs"] += len(get_pair_rows(doc) or [])
    rows = get_relation_rows(doc) or []
    if not rows:
        return
    labels.update(row.label for row in rows)
    pairs = Counter(row[:4] for row in rows)
    counts["several"] += sum(n > 1 for n in pairs.values())
    for head_start, head_end, tail_start, tail_end in pairs:
        head = doc.char_span(head_start, head_end, alignment_mode="expand")
        tail = doc.char_span(tail_start, tail_end, alignment_mode="expand")
        if head is None or tail is None:
            continue
        longest["gap"] = max(longest["gap"], max(head.start, tail.start) - min(head.end, tail.end))
        if head.sent.start != tail.sent.start:
            counts["crossing"] += 1
