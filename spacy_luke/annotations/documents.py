"""What a Doc says of itself as a document, which is of anybody: its id and its title."""

from typing import Any

from spacy.tokens import Doc

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
