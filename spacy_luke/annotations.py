"""What components write on Docs beside entities: relations, questions, answers.

Everything lies in `Doc.user_data` as lists of numbers and strings, places as characters [start, end) of the text, so that
it survives `Doc.to_bytes`, DocBin and other processes. The extensions `doc._.luke_...` read it as Spans.

    luke_relations  [[head_start, head_end, tail_start, tail_end, label, score], ...]
    luke_pairs      [[head_start, head_end, tail_start, tail_end], ...]: pairs that shall be classified, where they are given
    luke_questions  [{"id", "question", "answers": [[start, end], ...]}, ...]; answers only of gold, [] where there is none
    luke_queries    [{"id", "query", "candidates": [[start, end], ...], "answers": [[start, end], ...]}, ...]
    luke_answers, luke_fillers  for each question or query [[start, end, score], ...], the best first; "no answer": [0, 0, score]
"""

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

PLACEHOLDER = "@placeholder"  # what a query asks for, as in ReCoRD


@dataclass(frozen=True)
class Relation:
    """A directed, labelled pair of mentions; score is the label's probability (1.0 of gold ones)."""

    head: Span
    tail: Span
    label: str
    score: float = 1.0


@dataclass(frozen=True)
class ScoredSpan:
    """A piece of the Doc that answers, None for "no answer", and its score."""

    span: Optional[Span]
    score: float

    @property
    def text(self) -> str:
        return "" if self.span is None else self.span.text


@dataclass(frozen=True)
class Answer:
    """A question (or query) and the places of the Doc that answer it, the best first."""

    question: str
    spans: Tuple[ScoredSpan, ...]

    @property
    def span(self) -> Optional[Span]:
        return self.spans[0].span if self.spans else None

    @property
    def text(self) -> str:
        return self.spans[0].text if self.spans else ""

    @property
    def score(self) -> float:
        return self.spans[0].score if self.spans else 0.0


def register_extensions() -> None:
    """Make `doc._.luke_relations`, `luke_pairs`, `luke_questions`, `luke_queries`, `luke_answers`, `luke_fillers` and
    `span._.luke_score`, `span._.luke_types` known to spaCy; those that others have set under these names stay."""
    for name, (getter, setter) in EXTENSIONS.items():
        if not Doc.has_extension(name):
            Doc.set_extension(name, getter=getter, setter=setter)
    for name in ("luke_score", "luke_types"):
        if not Span.has_extension(name):
            Span.set_extension(name, default=None)


def get_relations(doc: Doc) -> List[Relation]:
    """Relations of a Doc. Head and tail are the Doc's entities where these have the same words, and plain spans elsewhere."""
    spans = {(entity.start_char, entity.end_char): entity for entity in doc.ents}
    return [
        Relation(_span(doc, a, b, spans), _span(doc, c, d, spans), label, score)
        for a, b, c, d, label, score in doc.user_data.get("luke_relations", [])
    ]


def set_relations(doc: Doc, relations: Iterable[Any]) -> None:
    """relations: `Relation`s, or tuples (head Span, tail Span, label) with or without a score."""
    rows = []
    for relation in relations:
        if not isinstance(relation, Relation):
            relation = Relation(*relation)
        head, tail = _place(doc, relation.head), _place(doc, relation.tail)
        rows.append([*head, *tail, str(relation.label), float(relation.score)])
    doc.user_data["luke_relations"] = rows


def get_pairs(doc: Doc) -> Optional[List[Tuple[Span, Span]]]:
    """Given pairs (head, tail), or None where none are given."""
    if "luke_pairs" not in doc.user_data:
        return None
    spans = {(entity.start_char, entity.end_char): entity for entity in doc.ents}
    return [(_span(doc, a, b, spans), _span(doc, c, d, spans)) for a, b, c, d in doc.user_data["luke_pairs"]]


def set_pairs(doc: Doc, pairs: Iterable[Tuple[Span, Span]]) -> None:
    doc.user_data["luke_pairs"] = [[*_place(doc, head), *_place(doc, tail)] for head, tail in pairs]


def get_questions(doc: Doc) -> List[Dict[str, Any]]:
    return doc.user_data.get("luke_questions", [])


def set_questions(doc: Doc, questions: Iterable[Any]) -> None:
    """questions: strings, or dicts as at the top of this file, of which only "question" must be there."""
    doc.user_data["luke_questions"] = _asked(doc, questions, "question")


def get_queries(doc: Doc) -> List[Dict[str, Any]]:
    return doc.user_data.get("luke_queries", [])


def set_queries(doc: Doc, queries: Iterable[Any]) -> None:
    """queries: strings, or dicts as at the top of this file, of which only "query" must be there. Each has @placeholder once."""
    asked = _asked(doc, queries, "query")
    for i, query in enumerate(asked):
        if query["query"].count(PLACEHOLDER) != 1:
            raise ValueError(f"Query {i} must have {PLACEHOLDER} exactly once, but it is {query['query']!r}.")
    doc.user_data["luke_queries"] = asked


def get_answers(doc: Doc) -> List[Answer]:
    return _answers(doc, [q["question"] for q in get_questions(doc)], "luke_answers")


def get_fillers(doc: Doc) -> List[Answer]:
    return _answers(doc, [q["query"] for q in get_queries(doc)], "luke_fillers")


def _asked(doc: Doc, given: Iterable[Any], field: str) -> List[Dict[str, Any]]:
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
                    f"Item {i}: {name} must be characters [start, end) of the Doc's text, which has {len(doc.text)}, but "
                    f"one is {wrong[0]}."
                )
        item.setdefault("id", str(i))
        asked.append(item)
    return asked


def _answers(doc: Doc, questions: Sequence[str], key: str) -> List[Answer]:
    found = doc.user_data.get(key)
    if found is None:
        return []
    return [
        Answer(question, tuple(ScoredSpan(_span(doc, a, b, {}) if b > a else None, score) for a, b, score in rows))
        for question, rows in zip(questions, found, strict=True)
    ]


def _span(doc: Doc, start: int, end: int, known: Dict[Tuple[int, int], Span]) -> Span:
    span = known.get((start, end)) or doc.char_span(start, end, alignment_mode="expand")
    if span is None:
        raise ValueError(
            f"An annotation has the characters [{start}, {end}), but the Doc's text has {len(doc.text)}. "
            "Was user_data copied from another Doc?"
        )
    return span


def _place(doc: Doc, span: Span) -> Tuple[int, int]:
    if span.doc is not doc:
        raise ValueError(f"The span {span.text!r} belongs to another Doc; expected one of the Doc that is annotated.")
    return span.start_char, span.end_char


EXTENSIONS: Dict[str, Tuple[Any, Any]] = {
    "luke_relations": (get_relations, set_relations),
    "luke_pairs": (get_pairs, set_pairs),
    "luke_questions": (get_questions, set_questions),
    "luke_queries": (get_queries, set_queries),
    "luke_answers": (get_answers, None),
    "luke_fillers": (get_fillers, None),
}
