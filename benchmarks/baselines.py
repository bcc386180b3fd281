"""What a trained linker must be better than."""

from spacy.tokens import Doc, Span

from spacy_luke.annotations import NIL, LinkCandidate, LinkedMention, get_candidates_given, set_linked
from spacy_luke.scorers.counts import get_spans


def link_by_prior(doc: Doc, *, spans_key: str | None = None) -> Doc:
    """Give each mention the given candidate of the highest prior, the first by id of equal ones, and NIL without any.
    With PPRforNED's candidates this is the entity with most in-links."""
    given = {(mention.start, mention.end): mention.candidates for mention in get_candidates_given(doc) or []}
    linked: list[LinkedMention] = []

    def link(span: Span) -> Span:
        place = span.start_char, span.end_char
        ranked = sorted(given.get(place, []), key=lambda one: (-one.prior, one.id))
        linked.append(LinkedMention(*place, [LinkCandidate(one.id, one.prior, score=one.prior) for one in ranked]))
        return Span(doc, span.start, span.end, label=span.label_, kb_id=ranked[0].id if ranked else NIL)

    spans = [link(span) for span in get_spans(doc, spans_key)]
    if spans_key is None:
        doc.set_ents(spans)
    else:
        doc.spans[spans_key] = spans
    set_linked(doc, linked)
    return doc
