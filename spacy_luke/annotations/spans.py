"""What components write on Docs beside entities: relations, questions, answers.

Everything lies in `Doc.user_data` as rows of numbers and strings, in the forms of `annotations.rows`, so that it
survives `Doc.to_bytes`, DocBin, other processes, `Doc.from_docs` and `span.as_doc(copy_user_data=True)`. The extensions
`doc._.luke_...` read it as Spans: the words that hold the characters. What they give is made anew each time: to change
it, write it back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .names import PLACEHOLDER
from .rows import KINDS, find_row, get_parts, get_rows, get_second, set_rows

FOUND = {"luke_questions": "luke_answers", "luke_queries": "luke_fillers"}
SPAN_VALUES = ("luke_score", "luke_types")  # of `span._`, by the characters of the span, whoever wrote it last


@dataclass(frozen=True)
class Relation:
    """A directed, labelled pair of mentions; score is the label's probability (1.0 of gold ones)."""

    head: Span
    tail: Span
    label: str
    score: float = 1.0


class LinkCandidate(NamedTuple):
    """An entity proposed for a mention, with its prior p(entity | mention) and a linker's score."""

    id: str
    prior: float
    score: float


@dataclass(frozen=True)
class ScoredSpan:
    """A piece of the Doc that answers, None for "no answer", and its score."""

    span: Span | None
    score: float

    @property
    def text(self) -> str:
        return "" if self.span is None else self.span.text


@dataclass(frozen=True)
class Answer:
    """A question (or query) and the places of the Doc that answer it, the best first."""

    question: str
    spans: tuple[ScoredSpan, ...]

    @property
    def span(self) -> Span | None:
        return self.spans[0].span if self.spans else None

    @property
    def text(self) -> str:
        return self.spans[0].text if self.spans else ""

    @property
    def score(self) -> float:
        return self.spans[0].score if self.spans else 0.0


def register_extensions() -> None:
    """Make `doc._.luke_relations`, `luke_pairs`, `luke_questions`, `luke_queries`, `luke_knowledge`,
    `luke_candidates_given`, `luke_second`, `luke_answers`, `luke_fillers`, `luke_rows` and `span._.luke_score`,
    `span._.luke_types`, `span._.luke_candidates` known to spaCy; those that others have set under these names stay."""
    for name, (getter, setter) in EXTENSIONS.items():
        if not Doc.has_extension(name):
            Doc.set_extension(name, getter=getter, setter=setter)
    for name in SPAN_VALUES:
        if not Span.has_extension(name):
            Span.set_extension(name, default=None)
    if not Span.has_extension("luke_candidates"):
        Span.set_extension("luke_candidates", getter=get_candidates)


def get_relations(doc: Doc) -> list[Relation]:
    """Relations of a Doc. Head and tail are the Doc's entities where these have the same words, and plain spans
    elsewhere."""
    spans = {(entity.start_char, entity.end_char): entity for entity in doc.ents}
    return [
        Relation(_span(doc, a, b, spans), _span(doc, c, d, spans), label, score)
        for a, b, c, d, label, score in get_rows(doc, "luke_relations") or []
    ]


def set_relations(doc: Doc, relations: Iterable[Any]) -> None:
    """relations: `Relation`s, or tuples (head Span, tail Span, label) with or without a score."""
    rows = []
    for relation in relations:
        if not isinstance(relation, Relation):
            relation = Relation(*relation)
        head, tail = _place(doc, relation.head), _place(doc, relation.tail)
        rows.append([*head, *tail, str(relation.label), float(relation.score)])
    set_rows(doc, "luke_relations", rows)


def get_pairs(doc: Doc) -> list[tuple[Span, Span]] | None:
    """Given pairs (head, tail), or None where none are given."""
    rows = get_rows(doc, "luke_pairs")
    if rows is None:
        return None
    spans = {(entity.start_char, entity.end_char): entity for entity in doc.ents}
    return [(_span(doc, a, b, spans), _span(doc, c, d, spans)) for a, b, c, d in rows]


def set_pairs(doc: Doc, pairs: Iterable[tuple[Span, Span]]) -> None:
    set_rows(doc, "luke_pairs", [[*_place(doc, head), *_place(doc, tail)] for head, tail in pairs])


def get_questions(doc: Doc) -> list[dict[str, Any]]:
    return get_rows(doc, "luke_questions") or []


def set_questions(doc: Doc, questions: Iterable[Any]) -> None:
    """questions: strings, or dicts as in `annotations.rows`, of which only "question" must be there. Answers to other
    questions are taken away."""
    _ask(doc, "luke_questions", _asked(doc, questions, "question"))


def get_queries(doc: Doc) -> list[dict[str, Any]]:
    return get_rows(doc, "luke_queries") or []


def set_queries(doc: Doc, queries: Iterable[Any]) -> None:
    """queries: strings, or dicts as in `annotations.rows`, of which only "query" must be there. Each has @placeholder
    once."""
    asked = _asked(doc, queries, "query")
    for i, query in enumerate(asked):
        if query["query"].count(PLACEHOLDER) != 1:
            raise ValueError(f"Query {i} must have {PLACEHOLDER} exactly once, but it is {query['query']!r}.")
    _ask(doc, "luke_queries", asked)


def get_knowledge(doc: Doc) -> list[list[Any]]:
    """[start, end, id, score] of each given entity of a knowledge graph."""
    return get_rows(doc, "luke_knowledge") or []


def set_knowledge(doc: Doc, rows: Iterable[Any]) -> None:
    """rows: (start, end, id) or (start, end, id, score), characters of the text; a score that is left out is 1."""
    size = len(doc.text)
    set_rows(doc, "luke_knowledge", [_known_row(size, i, row) for i, row in enumerate(rows)])


def get_candidates_given(doc: Doc) -> list[list[Any]] | None:
    """[start, end, [[id, prior], ...]] of each mention with given candidates; None where none are given."""
    return get_rows(doc, "luke_candidates")


def set_candidates_given(doc: Doc, rows: Iterable[Any] | None) -> None:
    """rows: (start, end, [(id, prior), ...]), characters of the text; they are sorted by place and id, and None takes
    them away. A mention may have none ([]); the priors of one need not sum to 1."""
    given = None if rows is None else sorted(_candidates_row(doc, i, row) for i, row in enumerate(rows))
    set_rows(doc, "luke_candidates", given)


def get_candidates(span: Span) -> list[LinkCandidate]:
    """What a linker considered for exactly this mention, best first; [] where it did not link it."""
    row = find_row(span.doc, "luke_linked", span.start_char, span.end_char)
    return [] if row is None else [LinkCandidate(*candidate) for candidate in row[2]]


def set_second(doc: Doc, start: int | None) -> None:
    """start: the character at which the second text of a pair begins, None of a single text."""
    if start is not None and (not isinstance(start, int) or isinstance(start, bool) or not 0 <= start <= len(doc.text)):
        raise ValueError(
            f"luke_second must be the character at which the second text begins, from 0 to {len(doc.text)}, or None, "
            f"but "
            f"it is {start!r}."
        )
    set_rows(doc, "luke_second", None if start is None else [start])


def get_answers(doc: Doc) -> list[Answer]:
    return _answers(doc, [q["question"] for q in get_questions(doc)], "luke_questions")


def get_fillers(doc: Doc) -> list[Answer]:
    return _answers(doc, [q["query"] for q in get_queries(doc)], "luke_queries")


def get_found(doc: Doc, asked: str) -> list[list[list[Any]]] | None:
    """For each of the Doc's questions (asked "luke_questions") or queries ("luke_queries") what was found for it,
    [start, end, score], the best first. None where nothing was answered yet. Raises ValueError where they do not fit
    together."""
    parts, found = get_parts(doc, asked) or {}, get_parts(doc, FOUND[asked])
    if found is None:
        return None
    if not set(found) <= set(parts) or any(len(rows) != len(parts[part]) for part, rows in found.items()):
        raise ValueError(
            f"The Doc has {FOUND[asked]} of {sum(map(len, found.values()))} {asked}, but "
            f"{sum(map(len, parts.values()))} are "
            f"asked, or others: were they changed by hand? Write doc._.{asked}, and run the pipeline."
        )
    return [x for part, some in parts.items() for x in found.get(part, [[]] * len(some))]


def set_found(doc: Doc, asked: str, rows: list[list[list[Any]]]) -> None:
    """As `get_found` gives it, one list for each question or query."""
    if (some := get_rows(doc, asked)) is not None:
        set_rows(doc, asked, some)  # so that they have one text
    set_rows(doc, FOUND[asked], rows)


def get_all_rows(doc: Doc) -> dict[str, list[Any]]:
    """All that the Doc has, by kind, in the forms of `annotations.rows`: `doc._.luke_rows`, which is JSON."""
    rows = {name: get_rows(doc, name) for name in KINDS if name != "luke_second"}
    second = get_second(doc)
    rows["luke_second"] = None if second is None else [second]
    return {name: some for name, some in rows.items() if some is not None}


def set_all_rows(doc: Doc, rows: dict[str, list[Any]]) -> None:
    """Put rows as `get_all_rows` gives them in the place of all that the Doc has."""
    if not isinstance(rows, dict) or not set(rows) <= set(KINDS):
        raise ValueError(f"luke_rows must be a dict with keys of {list(KINDS)}, but it is {rows!r:.120}.")
    for name in KINDS:
        set_rows(doc, name, rows.get(name))


def settle(doc: Doc) -> Doc:
    """Make all that a Doc has its own: what `span.as_doc(copy_user_data=True)` left over of the rest of the text is
    taken away, so that the part can be joined with others by `Doc.from_docs`. RETURNS: the Doc."""
    set_all_rows(doc, get_all_rows(doc))
    size = len(doc.text)
    for key in list(doc.user_data):
        if isinstance(key, tuple) and len(key) == 4 and key[:1] == ("._.",) and key[1] in SPAN_VALUES:
            if isinstance(key[2], int) and isinstance(key[3], int) and not 0 <= key[2] < key[3] <= size:
                del doc.user_data[key]
    return doc


def _ask(doc: Doc, name: str, asked: list[dict[str, Any]]) -> None:
    set_rows(doc, name, asked)
    set_rows(doc, FOUND[name], None)


def _asked(doc: Doc, given: Iterable[Any], field: str) -> list[dict[str, Any]]:
    if isinstance(given, (str, dict)):
        raise ValueError(f"Expected a list of questions, but got one {type(given).__name__}: put it into a list.")
    asked = []
    for i, item in enumerate(given):
        item = {field: item} if isinstance(item, str) else item
        if not isinstance(item, dict) or not isinstance(item.get(field), str) or not item[field].strip():
            raise ValueError(
                f"Item {i} must be a string or a dict with {field!r}, text that is not blank; got {item!r}."
            )
        item = dict(item)
        for name in ("candidates", "answers"):
            if item.get(name) is None:
                item.pop(name, None)
                continue
            item[name] = [[int(start), int(end)] for start, end in item[name]]
            if wrong := [x for x in item[name] if not 0 <= x[0] < x[1] <= len(doc.text)]:
                raise ValueError(
                    f"Item {i}: {name} must be characters [start, end) of the Doc's text, which has {len(doc.text)}, "
                    f"but "
                    f"one is {wrong[0]}."
                )
        item.setdefault("id", str(i))
        asked.append(item)
    return asked


def _known_row(size: int, number: int, row: Any) -> list[Any]:
    try:
        start, end, name, *rest = row
        (score,) = rest or (1.0,)
        good = isinstance(name, str) and bool(name) and 0 <= int(start) < int(end) <= size
        row = [int(start), int(end), name, float(score)]
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"Given entity {number} must be [start, end, id] or [start, end, id, score] with characters [start, end) "
            f"of the "
            f"Doc's text, which has {size}, and an id that is not empty; got {row!r:.80}."
        )
    return row


def _candidates_row(doc: Doc, number: int, row: Any) -> list[Any]:
    try:
        start, end, candidates = row
        candidates = sorted([name, float(prior)] for name, prior in candidates)
        names = [name for name, _ in candidates]
        good = 0 <= int(start) < int(end) <= len(doc.text)
        good = good and all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
        good = good and all(0 <= prior < float("inf") for _, prior in candidates)
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"Given candidates {number} must be [start, end, [[id, prior], ...]] with characters [start, end) of the "
            f"Doc's "
            f"text, which has {len(doc.text)}, ids that are not empty and differ, and priors from 0; got {row!r:.120}."
        )
    return [int(start), int(end), candidates]


def _answers(doc: Doc, questions: Sequence[str], asked: str) -> list[Answer]:
    found = get_found(doc, asked)
    if found is None:
        return []
    return [
        Answer(question, tuple(ScoredSpan(_span(doc, a, b, {}) if b > a else None, score) for a, b, score in rows))
        for question, rows in zip(questions, found, strict=True)
    ]


def _span(doc: Doc, start: int, end: int, known: dict[tuple[int, int], Span]) -> Span:
    span = known.get((start, end)) or doc.char_span(start, end, alignment_mode="expand")
    if span is None:
        raise ValueError(
            f"An annotation has the characters [{start}, {end}), but the Doc's text has {len(doc.text)}. "
            "Was user_data copied from another Doc?"
        )
    return span


def _place(doc: Doc, span: Span) -> tuple[int, int]:
    if span.doc is not doc:
        raise ValueError(f"The span {span.text!r} belongs to another Doc; expected one of the Doc that is annotated.")
    return span.start_char, span.end_char


EXTENSIONS: dict[str, tuple[Any, Any]] = {
    "luke_relations": (get_relations, set_relations),
    "luke_pairs": (get_pairs, set_pairs),
    "luke_questions": (get_questions, set_questions),
    "luke_queries": (get_queries, set_queries),
    "luke_knowledge": (get_knowledge, set_knowledge),
    "luke_candidates_given": (get_candidates_given, set_candidates_given),
    "luke_second": (get_second, set_second),
    "luke_answers": (get_answers, None),
    "luke_fillers": (get_fillers, None),
    "luke_rows": (get_all_rows, set_all_rows),
}
