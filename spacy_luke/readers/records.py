"""What one record of any data set says, before it is a Doc; and the Doc that it becomes.

Places are [start, end): characters where the record has real text, words where it has words.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..annotations import (
    LINKS,
    TYPES,
    PairRow,
    Query,
    Question,
    RelationRow,
    set_candidates_given,
    set_knowledge,
    set_pair_rows,
    set_queries,
    set_questions,
    set_relation_rows,
    set_second,
    set_sentence_starts,
)
from ..text.scripts import judged_blanks

ALIGN = ("strict", "expand", "split")
OVERLAPS = ("error", "outermost")
TEXTS = ("file", "paper")
DAMAGED = ("error", "skip")

ENTITY_LABEL = "ENTITY"  # the label of mentions in data sets that give them none

Place = tuple[int, int]


@dataclass(frozen=True)
class Mention:
    """A marked piece of the text."""

    start: int
    end: int
    label: str = ""  # of the entity; "": it is none (and stands in no doc.ents), but may have types
    types: list[str] | None = None  # gold of typing, [] where none holds; None: not said
    kb_id: str = ""


@dataclass(frozen=True)
class Record:
    """One document. Exactly one of text and words is set."""

    where: str  # file and line or number, for errors
    title: str = field(default="", kw_only=True)  # of the document, where the data set says it
    text: str | None = None
    words: list[str] | None = None
    spaces: list[bool] | None = None  # with words: whether a blank follows each; None: unknown, see `judged_blanks`
    sentence_starts: list[int] | None = None  # where sentences begin, characters or words; None: unknown
    mentions: list[Mention] = field(default_factory=list)
    has_entities: bool = True  # whether the mentions with labels are gold entities; else nothing is said about these
    relations: list[tuple[int, int, str]] | None = None  # numbers of head and tail mention, label; None: not said
    pairs: list[tuple[int, int]] | None = None  # numbers of the mentions whose relation is asked for; None: all
    questions: list[Question] | None = None  # as doc._.luke_questions
    queries: list[Query] | None = None  # as doc._.luke_queries
    knowledge: list[tuple[int, int, str, float]] | None = None  # given entities: place, id, score; None: not said
    second: str | None = None  # with text: a second one, which the same Doc holds
    cats: dict[str, float] | None = None  # of the whole text
    empty: int = 0  # mentions that the file gives without a character, and that are left out
    links: bool = False  # whether the mentions' kb_ids are gold of entity linking, all of them; then they may overlap
    candidates: list[tuple[int, int, list[tuple[str, float]]]] | None = None  # given ones: place, (id, prior)s
    annotated: Place | None = None  # what the annotation covers, where it is not the whole document
    notes: dict[str, int] = field(default_factory=dict)  # what else the reader has to report, and how often


def blanks_between(words: Sequence[str], *, text: str) -> list[bool] | None:
    """Spaces of tokenised data: unknown (text = "file"), or one blank between all words, as the original LUKE code
    joins them (text = "paper")."""
    check_choice("text", text, TEXTS)
    return None if text == "file" else [i + 1 < len(words) for i in range(len(words))]


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}, but it is {value!r}.")


def make_doc(
    nlp: Language,
    record: Record,
    *,
    spans_key: str | None = None,
    align: str = "split",
    overlaps: str = "error",
    counts: Counter[str] | None = None,
) -> Doc:
    """The record as a Doc with all its gold annotation.

    Entities go to doc.ents, or to doc.spans[spans_key]; types to doc.spans["luke_types"], a span for each type and one
    with the label "" for a mention without any; relations, pairs, questions, queries and given entities to its rows
    (see `annotations`). Equal relations and pairs count once. A second text follows the first after a blank.
    A text may be longer than nlp.max_length, which is for what pipelines do with it.

    align: where a mention of real text does not begin and end with a word: "strict" is an error, "expand" makes it grow
    to whole words, "split" splits the words there. Answers are kept as characters, whatever the words are: splitting
    words there would tell where the answers lie.
    overlaps: where entities overlap and go to doc.ents, "error", or "outermost": the longest is kept, then the first.
    Relations are kept all the same. Gold of linking (record.links) that overlaps is no error: where a document has any,
    all its mentions are in doc.spans["luke_links"] too, and doc.ents has the outermost ones.
    counts: gets the number of entities "left out" so, of "equal relations", of "empty mentions", and "notes: ..." of
        the record, and of words that were divided and mentions that grew.

    Raises ValueError, naming the record, for what does not align or overlaps so, places outside the document, and a
    relation or pair whose head is its tail.
    """
    check_choice("align", align, ALIGN)
    check_choice("overlaps", overlaps, OVERLAPS)
    counts = Counter() if counts is None else counts
    doc = _tokenize(nlp, record)
    if record.text is not None and align == "split":
        _split_words(doc, record, record.text, counts)
    if record.sentence_starts is not None:
        begins = [word.i if record.text is None else word.idx for word in doc]
        set_sentence_starts(doc, np.where(np.isin(begins, record.sentence_starts), 1, -1))
    spans = [_span_of(doc, record, mention, align=align) for mention in record.mentions]
    if record.text is not None and align == "expand":
        places = [_trim(record, record.text, mention) for mention in record.mentions]
        grown = sum((x.start_char, x.end_char) != place for x, place in zip(spans, places, strict=True))
        counts.update({"notes: mentions that begin or end inside a word, grown to whole words": grown} if grown else {})
    _set_relations(doc, spans, record, counts)
    if record.has_entities:
        ids = record.links
        entities = sorted(
            {(s.start, s.end, s.label_, s.kb_id_ if ids else ""): s for s in spans if s.label_}.values(),
            key=lambda span: (span.start, span.end, span.label_),
        )
        if spans_key is not None:
            doc.spans[spans_key] = entities
        else:
            _set_entities(doc, entities, record, overlaps=overlaps, counts=counts)
    _set_types(doc, spans, record)
    counts.update({"empty mentions": record.empty} if record.empty else {})
    counts.update({f"notes: {name}": n for name, n in record.notes.items()})
    doc.cats = dict(record.cats or {})
    try:
        if record.knowledge is not None:
            set_knowledge(doc, [_knowledge_row(doc, record, *row) for row in record.knowledge])
        if record.candidates is not None:
            set_candidates_given(doc, [(*_edges(doc, record, a, b), given) for a, b, given in record.candidates])
        if record.questions is not None:
            set_questions(doc, record.questions)
        if record.queries is not None:
            set_queries(doc, record.queries)
    except ValueError as error:
        raise ValueError(f"{record.where}: {error}") from None
    return doc


def _tokenize(nlp: Language, record: Record) -> Doc:
    text, words = record.text, record.words
    if text is not None and words is None:
        return nlp.tokenizer(text) if record.second is None else _join(nlp, text, record.second)
    if text is not None or words is None:
        raise ValueError(f"{record.where}: a record has either text or words.")
    if record.second is not None:
        raise ValueError(f"{record.where}: a record with a second text must have text, not words.")
    if blank := [i for i, word in enumerate(words) if not word]:
        raise ValueError(f"{record.where}: expected words, but word {blank[0]} of {len(words)} is empty.")
    spaces = judged_blanks(words) if record.spaces is None else record.spaces
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _join(nlp: Language, first: str, second: str) -> Doc:
    """Two texts in one Doc with a blank between them, each tokenised by itself."""
    parts = [nlp.tokenizer(text) for text in (first, second)]
    words = [word.text for part in parts for word in part]
    spaces = [bool(word.whitespace_) for part in parts for word in part]
    if len(parts[0]) and len(parts[1]):
        spaces[len(parts[0]) - 1] = True
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    set_second(doc, doc[len(parts[0])].idx if len(parts[1]) else len(doc.text))
    return doc


def _split_words(doc: Doc, record: Record, text: str, counts: Counter[str]) -> None:
    """Make words begin and end where mentions do; those that are divided are counted."""
    edges = sorted({edge for mention in record.mentions for edge in _trim(record, text, mention)})
    with doc.retokenize() as retokenizer:
        for word in doc:
            start, end = word.idx, word.idx + len(word)
            inner = [edge - start for edge in edges[bisect_right(edges, start) : bisect_left(edges, end)]]
            if inner:
                counts["notes: words divided where a mention begins or ends inside; other texts have them whole"] += 1
                cuts = [0, *inner, len(word)]
                parts = [word.text[a:b] for a, b in zip(cuts, cuts[1:])]
                retokenizer.split(word, parts, heads=[(word, i) for i in range(len(parts))])


def _trim(record: Record, text: str, mention: Mention) -> Place:
    """Blanks at the edges belong to no mention, and would pull in the next word."""
    _check_place(record, mention)
    piece = text[mention.start : mention.end]
    return mention.start + len(piece) - len(piece.lstrip()), mention.end - len(piece) + len(piece.rstrip())


def _check_place(record: Record, mention: Mention) -> None:
    start, end = mention.start, mention.end
    text = record.text
    size, unit = (len(record.words or ()), "words") if text is None else (len(text), "characters")
    inside = 0 <= start < end <= size
    if not inside or (text is not None and not text[start:end].strip()):
        raise ValueError(
            f"{record.where}: mention {[start, end, mention.label]} must hold {unit} of the text, which has {size} of "
            "them, and not blanks alone."
        )


def _span_of(doc: Doc, record: Record, mention: Mention, *, align: str) -> Span:
    _check_place(record, mention)
    if record.text is None:
        return Span(doc, mention.start, mention.end, label=mention.label, kb_id=mention.kb_id)
    start, end = (mention.start, mention.end) if align == "strict" else _trim(record, record.text, mention)
    mode = "expand" if align == "expand" else "strict"
    span = doc.char_span(start, end, label=mention.label, kb_id=mention.kb_id, alignment_mode=mode)
    if span is None:
        near = doc.char_span(start, end, alignment_mode="expand")
        raise ValueError(
            f"{record.where}: mention {[start, end, mention.label]} is {record.text[start:end]!r}, which does not "
            f"begin and end with a word; the words there are {[word.text for word in near or ()]}. Mend the offsets, "
            "or set align to 'expand' or 'split' (--align split)."
        )
    return span


def _knowledge_row(doc: Doc, record: Record, start: int, end: int, name: str, score: float) -> tuple[Any, ...]:
    return (*_edges(doc, record, start, end), name, score)


def _edges(doc: Doc, record: Record, start: int, end: int) -> Place:
    """Characters of what is given at a place of the record."""
    if record.words is None:
        return start, end
    if not 0 <= start < end <= len(doc):
        raise ValueError(f"What is given must be at words of the {len(doc)}, but it is at [{start}, {end}).")
    return doc[start].idx, doc[end - 1].idx + len(doc[end - 1])


def _set_entities(doc: Doc, entities: list[Span], record: Record, *, overlaps: str, counts: Counter[str]) -> None:
    kept = filter_spans(entities)
    if len(kept) < len(entities) and record.links and overlaps == "error":
        doc.spans[LINKS] = entities
        counts["linked mentions inside or across others"] += len(entities) - len(kept)
    elif len(kept) < len(entities) and overlaps == "error":
        lost = next(span for span in entities if span not in kept)
        other = next(span for span in kept if span.start < lost.end and lost.start < span.end)
        raise ValueError(
            f"{record.where}: mentions {_describe(other)} and {_describe(lost)} overlap, which doc.ents cannot hold; "
            "set spans_key, e.g. to 'sc', to keep all in doc.spans, or overlaps to 'outermost'."
        )
    else:
        counts["left out"] += len(entities) - len(kept)
    doc.set_ents(kept, missing=_not_annotated(doc, record, kept))


def _not_annotated(doc: Doc, record: Record, entities: Sequence[Span]) -> list[Span]:
    """The words of which nothing is known, one by one."""
    if record.annotated is None:
        return []
    known = {word.i for span in entities for word in span}
    start, end = record.annotated
    if record.text is not None:
        outside = [word.i for word in doc if word.idx + len(word) <= start or word.idx >= end]
    else:
        outside = [i for i in range(len(doc)) if not start <= i < end]
    return [doc[i : i + 1] for i in outside if i not in known]


def _set_types(doc: Doc, spans: Sequence[Span], record: Record) -> None:
    types: dict[Place, list[str]] = {}
    for span, mention in zip(spans, record.mentions, strict=True):
        if mention.types is not None:
            types.setdefault((span.start, span.end), []).extend(mention.types)
    if types:
        doc.spans[TYPES] = [
            Span(doc, start, end, label=label)
            for (start, end), labels in sorted(types.items())
            for label in (sorted(set(labels)) or [""])
        ]


def _set_relations(doc: Doc, spans: Sequence[Span], record: Record, counts: Counter[str]) -> None:
    if record.pairs is not None:
        rows = [_pair_row(spans, head, tail, record, f"pair {i}") for i, (head, tail) in enumerate(record.pairs)]
        set_pair_rows(doc, dict.fromkeys(rows))
    if record.relations is not None:
        seen: dict[RelationRow, None] = {}
        for i, (head, tail, label) in enumerate(record.relations):
            row = _pair_row(spans, head, tail, record, f"relation {i} ({label!r})")
            seen[RelationRow(*row, label, 1.0)] = None
        counts["equal relations"] += len(record.relations) - len(seen)
        set_relation_rows(doc, seen)


def _pair_row(spans: Sequence[Span], head: int, tail: int, record: Record, name: str) -> PairRow:
    if not (0 <= head < len(spans) and 0 <= tail < len(spans)):
        raise ValueError(
            f"{record.where}: {name} must have numbers of the {len(spans)} mentions as head and tail, from 0, but it "
            f"has {head} and {tail}."
        )
    a, b = spans[head], spans[tail]
    if (a.start, a.end) == (b.start, b.end):
        raise ValueError(f"{record.where}: {name} has one mention as head and tail, {_describe(a)}; they must differ.")
    return PairRow(a.start_char, a.end_char, b.start_char, b.end_char)


def _describe(span: Span) -> str:
    return f"[{span.start_char}, {span.end_char}, {span.label_!r}] {span.text!r}"
