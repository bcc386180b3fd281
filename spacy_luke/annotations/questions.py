"""Questions and queries on a Doc, and what is found for them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, NotRequired, TypedDict, final

from spacy.tokens import Doc, Span

from .keys import ANSWERS, FILLERS, PLACEHOLDER, QUERIES, QUESTIONS
from .rows import get_parts, get_rows, set_rows
from .spans import span_at

_FOUND = {QUESTIONS: ANSWERS, QUERIES: FILLERS}
_MAY_BE_NULL = ("id", "candidates", "answers", "entities")
_PLACE = {"start": Integral, "end": Integral}
_ENTITY = {**_PLACE, "title": str}
_TEXT_OF = {"candidates": "Doc's text", "answers": "Doc's text", "entities": "question"}


@final
class Question(TypedDict):
    """Places are characters: of answers of the Doc's text, of entities, with a title each, of the question."""

    id: NotRequired[str]
    question: str
    answers: NotRequired[list[list[int]]]  # gold; []: the text has none
    entities: NotRequired[list[tuple[int, int, str]]]


@final
class Query(TypedDict):
    """A sentence with @placeholder once, which one of the candidates fills. Places are characters of the text."""

    id: NotRequired[str]
    query: str
    candidates: NotRequired[list[list[int]]]
    answers: NotRequired[list[list[int]]]  # gold


class ScoredPlace(NamedTuple):
    """What is found for a question or query, characters [start, end) of the text, empty for "no answer"."""

    start: int
    end: int
    score: float


@dataclass(frozen=True)
class ScoredSpan:
    """A piece of the Doc that answers, None for "no answer", and its score."""

    span: Span | None
    score: float

    @property
    def text(self) -> str:
        """Of the place, "" for "no answer"."""
        return "" if self.span is None else self.span.text


@dataclass(frozen=True)
class Answer:
    """A question (or query) and the places of the Doc that answer it, the best first."""

    question: str
    spans: tuple[ScoredSpan, ...]

    @property
    def span(self) -> Span | None:
        """The best place, None where the Doc does not answer."""
        return self.spans[0].span if self.spans else None

    @property
    def text(self) -> str:
        """Of the best place, "" where the Doc does not answer."""
        return self.spans[0].text if self.spans else ""

    @property
    def score(self) -> float:
        """Of the best place, 0 where there is none."""
        return self.spans[0].score if self.spans else 0.0


def get_questions(doc: Doc) -> list[Question]:
    """The questions of `doc._.luke_questions`; none where nothing was asked."""
    return get_rows(doc, QUESTIONS) or []


def set_questions(doc: Doc, questions: Iterable[Any] | None) -> None:
    """questions: strings, or dicts as `Question`, of which only "question" must be there; None takes all away, and
    answers to other questions are taken away."""
    _ask(doc, QUESTIONS, None if questions is None else _asked(doc, questions, "question"))


def get_queries(doc: Doc) -> list[Query]:
    """The queries of `doc._.luke_queries`; none where nothing was asked."""
    return get_rows(doc, QUERIES) or []


def set_queries(doc: Doc, queries: Iterable[Any] | None) -> None:
    """queries: strings, or dicts as `Query`, of which only "query" must be there; None takes all away. Each has
    @placeholder once."""
    asked = None if queries is None else _asked(doc, queries, "query")
    for i, query in enumerate(asked or ()):
        _check_gap(f"Query {i}", query)
    _ask(doc, QUERIES, asked)


def read_question(doc: Doc, question: Any) -> Question:
    """One question about a Doc, which need not ask it. question: a string or a dict as `Question`. Raises ValueError
    for what `set_questions` would not take."""
    return _read_asked("The question", doc, question, "question")  # type: ignore[return-value]


def read_query(doc: Doc, query: Any) -> Query:
    """One query about a Doc, which need not ask it. query: a string or a dict as `Query`. Raises ValueError for what
    `set_queries` would not take."""
    asked = _read_asked("The query", doc, query, "query")
    _check_gap("The query", asked)
    return asked  # type: ignore[return-value]


def get_answers(doc: Doc) -> list[Answer]:
    """What luke_qa has answered, in the order of the questions."""
    return _answers(doc, [question["question"] for question in get_questions(doc)], QUESTIONS)


def get_fillers(doc: Doc) -> list[Answer]:
    """What luke_cloze has filled in, in the order of the queries."""
    return _answers(doc, [query["query"] for query in get_queries(doc)], QUERIES)


def get_found(doc: Doc, asked: str) -> list[list[ScoredPlace]] | None:
    """For each of the Doc's questions (asked QUESTIONS) or queries (QUERIES) what was found for it, the best first.
    None where nothing was answered yet. Raises ValueError where they do not fit together."""
    parts, found = get_parts(doc, asked) or {}, get_parts(doc, _FOUND[asked])
    if found is None:
        return None
    if not set(found) <= set(parts) or any(len(rows) != len(parts[part]) for part, rows in found.items()):
        raise ValueError(
            f"The Doc has {_FOUND[asked]} of {sum(map(len, found.values()))} {asked}, but "
            f"{sum(map(len, parts.values()))} are asked, or others: were they changed by hand? Write doc._.{asked}, "
            "and run the pipeline."
        )
    rows = [row for part, some in parts.items() for row in found.get(part, [[]] * len(some))]
    return [[ScoredPlace(*one) for one in row] for row in rows]


def set_found(doc: Doc, asked: str, found: Sequence[Sequence[Sequence[float]]]) -> None:
    """found: for each question or query (start, end, score) of what is found, the best first."""
    if (some := get_rows(doc, asked)) is not None:
        set_rows(doc, asked, some)  # so that they have one text
    set_rows(doc, _FOUND[asked], found)


def _ask(doc: Doc, name: str, asked: list[dict[str, Any]] | None) -> None:
    set_rows(doc, name, asked)
    set_rows(doc, _FOUND[name], None)


def _check_gap(what: str, query: dict[str, Any]) -> None:
    if query["query"].count(PLACEHOLDER) != 1:
        raise ValueError(f"{what} must have {PLACEHOLDER} exactly once, but it is {query['query']!r}.")


def _asked(doc: Doc, given: Iterable[Any], field: str) -> list[dict[str, Any]]:
    if isinstance(given, (str, dict)):
        raise ValueError(f"Expected a list of questions, but got one {type(given).__name__}: put it into a list.")
    asked = [_read_asked(f"Item {i}", doc, item, field) for i, item in enumerate(given)]
    return [{**item, "id": item.get("id", str(i))} for i, item in enumerate(asked)]


def _read_asked(what: str, doc: Doc, given: Any, field: str) -> dict[str, Any]:
    item: Any = {field: given} if isinstance(given, str) else given
    if not isinstance(item, dict) or not isinstance(item.get(field), str) or not item[field].strip():
        raise ValueError(f"{what} must be a string or a dict with {field!r}, text that is not blank; got {item!r:.80}.")
    read: dict[str, Any] = {
        name: value for name, value in item.items() if value is not None or name not in _MAY_BE_NULL
    }
    for name in ("candidates", "answers"):
        if name in read:
            read[name] = [[start, end] for start, end in _read_rows(what, read, name, _PLACE)]
            if wrong := [x for x in read[name] if not 0 <= x[0] < x[1] <= len(doc.text)]:
                raise ValueError(
                    f"{what}: {name} must be characters [start, end) of the Doc's text, which has {len(doc.text)}, "
                    f"but one is {wrong[0]}."
                )
    if "entities" in read:
        read["entities"] = _read_rows(what, read, "entities", _ENTITY)
    if "id" in read:
        read["id"] = str(read["id"])
    return read


def _read_rows(what: str, item: dict[str, Any], name: str, kinds: Mapping[str, type]) -> list[tuple[Any, ...]]:
    """kinds: what a row has, and of which types."""
    expected = f"{what}: {name} must be a list of [{', '.join(kinds)}], characters of the {_TEXT_OF[name]}, but"
    if isinstance(item[name], str) or not isinstance(item[name], Sequence):
        raise ValueError(f"{expected} got {item[name]!r:.80}.")
    rows = []
    for row in item[name]:
        is_row = isinstance(row, Sequence) and len(row) == len(kinds)
        if not is_row or not all(isinstance(x, kind) for x, kind in zip(row, kinds.values())):
            raise ValueError(f"{expected} one is {row!r:.80}.")
        rows.append(tuple(int(x) if kind is Integral else x for x, kind in zip(row, kinds.values())))
    return rows


def _answers(doc: Doc, questions: Sequence[str], asked: str) -> list[Answer]:
    found = get_found(doc, asked)
    if found is None:
        return []
    return [
        Answer(question, tuple(ScoredSpan(span_at(doc, a, b) if b > a else None, score) for a, b, score in places))
        for question, places in zip(questions, found, strict=True)
    ]
