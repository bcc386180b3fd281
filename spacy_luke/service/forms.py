"""What the service is sent and what it sends back, and its OpenAPI document, which is made of the same classes."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import models_json_schema

from ..pages.schema import FORMAT, AnnotatedText

CODES = {  # what a code of an error means, with the status of its reply
    "invalid_request": (422, "the request is not as it should be; `where` says what of it"),
    "too_long": (413, "a text, the list of documents or the whole request is longer than the service takes"),
    "not_asked": (422, "questions or queries, and the pipeline has no component that answers them"),
    "busy": (503, "too much is waiting; try again after the seconds that Retry-After says"),
    "too_late": (504, "it was not done in time"),
    "failed": (500, "the pipeline failed; the log of the service has why"),
    "not_found": (404, "there is nothing at this address"),
    "wrong_method": (405, "this address takes another method"),
    "packed": (415, "the request is packed, such as by gzip"),
}


class DocumentIn(BaseModel):
    """A text that shall be annotated."""

    model_config = ConfigDict(extra="forbid")
    text: str
    id: str | None = Field(None, description="comes back with what was found")
    questions: list[str] = Field([], description="for luke_qa")
    queries: list[str] = Field([], description="sentences with @placeholder, for luke_cloze")


class RequestIn(BaseModel):
    """Texts that shall be annotated."""

    model_config = ConfigDict(extra="forbid")
    documents: list[DocumentIn] = Field(min_length=1)


class Failure(BaseModel):
    """What went wrong."""

    code: str = Field(description="; ".join(f"{code}: {meaning}" for code, (_, meaning) in CODES.items()))
    message: str = Field(description="what was expected, and what came")
    where: str | None = Field(description="such as documents[3].text; null where it is the whole request")


class ErrorReply(BaseModel):
    """The reply to a request that could not be answered."""

    error: Failure


class FailedDocument(BaseModel):
    """A document that failed by itself, in the place of what would have been found."""

    id: str | None
    error: Failure


class Reply(BaseModel):
    """What was found, in the order of the documents of the request."""

    documents: list[AnnotatedText | FailedDocument]


@dataclass(frozen=True)
class RequestLimits:
    """characters: of a text; documents: of a request; waiting: documents that may wait; seconds: until a request must
    be done; request: bytes."""

    characters: int = 100_000
    documents: int = 64
    waiting: int = 512
    seconds: float = 60.0
    request: int = 8_000_000


class ServiceError(Exception):
    """A request that cannot be answered; it becomes an `ErrorReply`."""

    def __init__(self, code: str, message: str, where: str | None = None) -> None:
        super().__init__(message)
        self.status = CODES[code][0]
        self.failure = Failure(code=code, message=message, where=where)


def read_request(body: bytes, limits: RequestLimits, *, asks: bool, fills: bool) -> RequestIn:
    """The documents of a request. asks, fills: whether the pipeline answers questions and fills queries in."""
    try:
        request = RequestIn.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = _path(first["loc"])
        shown = first["loc"] and first["type"] not in ("missing", "extra_forbidden")
        came = f", but it is {first['input']!r:.80}" if shown else ""
        told = f"{where or 'the request'}: {first['msg']}{came}."
        raise ServiceError("invalid_request", f'Expected {{"documents": [{{"text": "..."}}]}}; {told}', where) from None
    if len(request.documents) > limits.documents:
        told = f"{len(request.documents)} documents, but a request may have {limits.documents}: send several."
        raise ServiceError("too_long", told, "documents")
    for i, document in enumerate(request.documents):
        where = f"documents[{i}]"
        if len(document.text) > limits.characters:
            told = f"{where}.text has {len(document.text):,} characters, but may have {limits.characters:,}: cut it."
            raise ServiceError("too_long", told, f"{where}.text")
        if document.questions and not asks:
            raise ServiceError("not_asked", "Questions need a luke_qa in the pipeline.", f"{where}.questions")
        if document.queries and not fills:
            raise ServiceError("not_asked", "Queries need a luke_cloze in the pipeline.", f"{where}.queries")
    return request


def _path(place: tuple[int | str, ...]) -> str | None:
    text = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in place).lstrip(".")
    return text or None


def openapi(limits: RequestLimits) -> dict[str, Any]:
    """The OpenAPI document of the service."""
    _, schema = models_json_schema(
        [(RequestIn, "validation"), (Reply, "serialization"), (ErrorReply, "serialization")],
        ref_template="#/components/schemas/{model}",
    )

    def content(name: str) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}

    errors: dict[int, list[str]] = {}
    for code, (status, meaning) in CODES.items():
        errors.setdefault(status, []).append(f"{code}: {meaning}")
    replies: dict[str, Any] = {"200": {"description": "What was found", "content": content("Reply")}}
    for status, told in sorted(errors.items()):
        replies[str(status)] = {"description": "; ".join(told), "content": content("ErrorReply")}
    plain = {"200": {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    health = {"200": {"description": "It answers"}, "503": {"description": "It is ending"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "spacy_luke", "version": FORMAT.rpartition("/")[2], "description": "Annotates texts."},
        "paths": {
            "/annotate": {
                "post": {
                    "operationId": "annotate",
                    "summary": "Annotate texts",
                    "description": (
                        f"At most {limits.documents} documents of {limits.characters:,} characters, in "
                        f"{limits.seconds:g} seconds."
                    ),
                    "requestBody": {"required": True, "content": content("RequestIn")},
                    "responses": replies,
                }
            },
            "/health": {"get": {"operationId": "health", "summary": "Whether it answers", "responses": health}},
            "/metrics": {"get": {"operationId": "metrics", "summary": "For Prometheus", "responses": plain}},
        },
        "components": {"schemas": schema["$defs"]},
    }
