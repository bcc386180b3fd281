"""From characters of a Doc's text to Spans, and back."""

from spacy.tokens import Doc, Span


def span_at(doc: Doc, start: int, end: int, known: dict[tuple[int, int], Span] | None = None) -> Span:
    """The Span of known at the characters [start, end), else the words that hold them."""
    span = (known or {}).get((start, end)) or doc.char_span(start, end, alignment_mode="expand")
    if span is None:
        raise ValueError(
            f"An annotation has the characters [{start}, {end}), but the Doc's text has {len(doc.text)}. "
            "Was user_data copied from another Doc?"
        )
    return span


def entities_at(doc: Doc) -> dict[tuple[int, int], Span]:
    """The Doc's entities by their characters [start, end)."""
    return {(entity.start_char, entity.end_char): entity for entity in doc.ents}


def place_of(doc: Doc, span: Span) -> tuple[int, int]:
    """The characters [start, end) of a Span of this Doc; ValueError for one of another Doc, and for what is none."""
    if not isinstance(span, Span):
        raise ValueError(f"Expected a Span of the Doc, such as doc[0:2], but got {span!r:.80} ({type(span).__name__}).")
    if span.doc is not doc:
        raise ValueError(f"The span {span.text!r} belongs to another Doc; expected one of the Doc that is annotated.")
    return span.start_char, span.end_char
