"""What a Doc says of itself as a document, which is of anybody: its id, its title, and fields of its record."""

from typing import Any

from spacy.tokens import Doc

from .keys import FIELDS

_ID, _TITLE = "id", "title"  # in doc.user_data


def get_document_id(doc: Doc) -> Any:
    """As whoever made the Doc has written it; None where it has none."""
    return doc.user_data.get(_ID)


def set_document_id(doc: Doc, name: str | None) -> None:
    doc.user_data[_ID] = name


def get_title(doc: Doc) -> str | None:
    """None where it has none."""
    title = doc.user_data.get(_TITLE)
    return str(title) if title else None


def get_document_fields(doc: Doc) -> dict[str, Any]:
    """What the record that it was made of says beside its text, by name."""
    fields = doc.user_data.get(FIELDS)
    return dict(fields) if isinstance(fields, dict) else {}


def set_document_fields(doc: Doc, fields: dict[str, Any]) -> None:
    """{}: there are none."""
    if fields:
        doc.user_data[FIELDS] = fields
    else:
        doc.user_data.pop(FIELDS, None)
