"""What a pipeline found in a text, as JSON: one form, with a version, for the page, the service and files.

Places are characters [start, end) of the text, counted as Python does: code points of Unicode, not bytes and not the
UTF-16 units of JavaScript. Scores are probabilities from 0 to 1, rounded to six digits, null where nobody told one.
Fields may be added within a version; what a field means changes only with the version.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from spacy.tokens import Span

from ..annotations import (
    EntityRecord,
    LinkCandidate,
    Relation,
    ScoredSpan,
    get_answers,
    get_entities,
    get_fillers,
    get_linked,
    get_queries,
    get_questions,
    get_types,
)
from .findings import Findings, FoundMention, Link

FORMAT: Literal["spacy-luke-annotations/1"] = "spacy-luke-annotations/1"
_DIGITS = 6
FormT = TypeVar("FormT", bound=BaseModel)
_CANDIDATES = 5  # that are told of a link beside the one that was chosen


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)  # fields that are added later are left out


class TypeForm(_Part):
    """A type of an entity beside its label."""

    label: str = Field(description="of the type")
    score: float = Field(ge=0, le=1, allow_inf_nan=False, description="its probability")


class CandidateForm(_Part):
    """An entity of the knowledge base that the linker considered too."""

    id: str = Field(description="of the knowledge base; NIL: none that it has")
    score: float = Field(allow_inf_nan=False, description="of the linker, for this mention")


class LinkForm(_Part):
    """The entity of a knowledge base that a mention means."""

    id: str = Field(description="of the knowledge base, such as Q84")
    wikidata: str = Field(description='Q and a number, "" where the knowledge base does not tell')
    title: str = Field(description='"" where the knowledge base has none')
    description: str = Field(description='"" where the knowledge base has none')
    url: str = Field(description='its address, "" where the knowledge base has none')
    types: list[str] = Field(description="what it is an instance of, as the knowledge base has it")
    score: float | None = Field(allow_inf_nan=False, description="of the linker; null where it did not tell")
    candidates: list[CandidateForm] = Field(description="what else was considered, the best first; at most five")


class EntityForm(_Part):
    """A mention with a label. Mentions may lie in others and overlap them."""

    id: int = Field(ge=0, description="its number in `entities`")
    start: int = Field(ge=0, description="its first character")
    end: int = Field(ge=1, description="the character behind its last one")
    text: str = Field(description="its words")
    label: str = Field(description='"" of a mention that has types alone')
    score: float | None = Field(ge=0, le=1, allow_inf_nan=False, description="probability of the label")
    types: list[TypeForm] = Field(description="finer types, such as of luke_typer")
    link: LinkForm | None = Field(description="null where it is not linked, or means nothing in the knowledge base")


class EndForm(_Part):
    """The head or the tail of a relation."""

    entity: int | None = Field(description="`id` of the entity at this place; null where it is none")
    start: int = Field(ge=0, description="its first character")
    end: int = Field(ge=1, description="the character behind its last one")
    text: str = Field(description="its words")


class RelationForm(_Part):
    """What holds between two mentions, from head to tail."""

    head: EndForm = Field(description="what it is said of")
    label: str = Field(description="what holds")
    property: str = Field(description='what the label is elsewhere, such as P19 of Wikidata; "" where nobody says')
    tail: EndForm = Field(description="what it is said with")
    score: float = Field(ge=0, le=1, allow_inf_nan=False, description="probability of the label")


class PlaceForm(_Part):
    """A piece of the text that answers. start and end are null for "the text does not say"."""

    start: int | None = Field(description="its first character")
    end: int | None = Field(description="the character behind its last one")
    text: str = Field(description='its words; "" for "the text does not say"')
    score: float = Field(ge=0, le=1, allow_inf_nan=False, description="its probability")


class AnswerForm(_Part):
    """A question about the text, or a query (a sentence with @placeholder), and what answers it."""

    id: str = Field(description="the question's own, or its number")
    kind: Literal["question", "query"] = Field(description="of luke_qa, or of luke_cloze")
    question: str = Field(description="as it was asked")
    places: list[PlaceForm] = Field(description="the best first; empty where there was nothing to choose from")


class AnnotatedText(_Part):
    """A text and all that a pipeline found in it."""

    format: Literal["spacy-luke-annotations/1"] = Field(description="name and version of this form")
    id: str | None = Field(description="of the document, as whoever asked calls it")
    pipeline: str = Field(description='name and version of the pipeline, "" where nobody told')
    language: str = Field(description='such as en; "" where it is not known')
    text: str = Field(description="of which all places are")
    words: int = Field(ge=0, description="how many tokens it has")
    sentences: list[tuple[int, int]] | None = Field(description="their places; null where the pipeline makes none")
    entities: list[EntityForm] = Field(description="in the order of the text, of those at one place the longest first")
    relations: list[RelationForm] = Field(description="in the order in which they were found")
    answers: list[AnswerForm] = Field(description="to what was asked, in its order")
    fields: dict[str, Any] = Field(
        default={},
        description="what else the record has that the text is of, as it is there, but null for what is no number that "
        "JSON has and a double holds (NaN, 1e400); in Parquet a text of JSON",
    )


class _Known(NamedTuple):
    """What the Doc knows of links, by the characters of their mentions."""

    entities: Mapping[tuple[int, int], EntityRecord]
    candidates: Mapping[tuple[int, int], Sequence[LinkCandidate]]


def as_form(
    found: Findings, *, id: str | None = None, pipeline: str = "", fields: Mapping[str, Any] | None = None
) -> AnnotatedText:
    """id: the caller's of the document; pipeline: who found it, such as "en_luke_sm 0.1.0"; fields: the caller's."""
    doc = found.doc
    known = _Known(get_entities(doc), {(x.start, x.end): x.candidates for x in get_linked(doc) or []})
    entities = [_entity(number, mention, known) for number, mention in enumerate(found.mentions)]
    numbers = {(x.start, x.end): x.id for x in reversed(entities)}
    return AnnotatedText(
        format=FORMAT,
        id=id,
        pipeline=pipeline,
        language=doc.lang_ or "",
        text=doc.text,
        words=len(doc),
        sentences=[_place(x) for x in doc.sents] if len(doc) and doc.has_annotation("SENT_START") else None,
        entities=entities,
        relations=[_relation(x, numbers, found.properties) for x in found.relations],
        answers=_answers(found),
        fields=dict(fields or {}),
    )


def json_schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of `AnnotatedText`, which docs/reference/annotations.json is drawn from."""
    return AnnotatedText.model_json_schema(ref_template="#/$defs/{model}")


def _entity(number: int, mention: FoundMention, known: _Known) -> EntityForm:
    span = mention.span
    start, end = _place(span)
    types = [TypeForm(label=label, score=_rounded(score)) for label, score in get_types(span).items()]
    return EntityForm(
        id=number,
        start=start,
        end=end,
        text=span.text,
        label=span.label_,
        score=_maybe(mention.score),
        types=types,
        link=None if mention.link is None else _link((start, end), mention.link, known),
    )


def _link(place: tuple[int, int], link: Link, known: _Known) -> LinkForm:
    record, candidates = known.entities.get(place), known.candidates.get(place, ())
    others = [x for x in candidates if x.id != link.id][:_CANDIDATES]
    return LinkForm(
        id=link.id,
        wikidata="" if record is None else record.wikidata,
        title=link.title,
        description=link.description,
        url=link.url,
        types=[] if record is None else list(record.types),
        score=_maybe(link.score),
        candidates=[CandidateForm(id=x.id, score=_rounded(x.score)) for x in others],
    )


def _relation(
    relation: Relation, numbers: Mapping[tuple[int, int], int], properties: Mapping[str, str]
) -> RelationForm:
    return RelationForm(
        head=_end(relation.head, numbers),
        label=relation.label,
        property=properties.get(relation.label, ""),
        tail=_end(relation.tail, numbers),
        score=_rounded(relation.score),
    )


def _end(span: Span, numbers: Mapping[tuple[int, int], int]) -> EndForm:
    start, end = _place(span)
    return EndForm(entity=numbers.get((start, end)), start=start, end=end, text=span.text)


def _answers(found: Findings) -> list[AnswerForm]:
    doc = found.doc
    asked: list[tuple[Literal["question", "query"], str]] = []
    if get_answers(doc):
        asked += [("question", x.get("id", str(i))) for i, x in enumerate(get_questions(doc))]
    if get_fillers(doc):
        asked += [("query", x.get("id", str(i))) for i, x in enumerate(get_queries(doc))]
    return [
        AnswerForm(id=id, kind=kind, question=answer.question, places=[_answer_place(x) for x in answer.spans])
        for (kind, id), answer in zip(asked, found.answers, strict=True)
    ]


def _answer_place(answer: ScoredSpan) -> PlaceForm:
    start, end = (None, None) if answer.span is None else _place(answer.span)
    return PlaceForm(start=start, end=end, text=answer.text, score=_rounded(answer.score))


def _place(span: Span) -> tuple[int, int]:
    return span.start_char, span.end_char


def _maybe(score: float | None) -> float | None:
    return None if score is None else _rounded(score)


def _rounded(score: float) -> float:
    return round(float(score), _DIGITS)


def read_forms(path: Path, form: type[FormT]) -> Iterator[FormT]:
    """What this package has written, a form a line as JSON."""
    with path.open("rb") as file:
        for line in file:
            yield form.model_validate_json(line)
