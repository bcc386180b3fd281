"""What a knowledge base knows of the entities that mentions are linked to: the ids that users see, and the rest."""

from collections.abc import Sequence

from spacy.tokens import Doc, Span

from ...annotations import UNLINKED, LinkedMention, get_entities, get_linked, set_entities, set_linked
from ...kb.knowledge_base import EntityKB
from ..mentions import WordRange


def write_records(
    doc: Doc, mentions: Sequence[WordRange], kb: EntityKB | None, *, ids: str, key: str | None = None
) -> None:
    """Of each linked mention, words [start, end), in doc.ents or doc.spans[key], what the knowledge base knows of its
    entity. Its `kb_id_`, and the ids of its candidates, become those that `ids` names (see `CHOICES`).
    Without a knowledge base ids stay."""
    if kb is None:
        return
    wanted, entities = set(mentions), get_entities(doc)
    before = list(doc.ents if key is None else doc.spans.get(key, []))
    after = []
    for span in before:
        row = kb.row(span.kb_id_) if (span.start, span.end) in wanted and span.kb_id_ not in UNLINKED else -1
        if row >= 0:
            record = kb.record(row)
            entities[span.start_char, span.end_char] = record
            chosen = record.choose(ids)
            if chosen != span.kb_id_:
                span = Span(doc, span.start, span.end, label=span.label_, kb_id=chosen, span_id=span.id)
        after.append(span)
    set_entities(doc, entities)
    if ids != "id":
        places = {(doc[a:b].start_char, doc[a:b].end_char) for a, b in mentions}
        linked = get_linked(doc) or []
        set_linked(doc, [_with_ids(x, kb, ids) if (x.start, x.end) in places else x for x in linked])
    if key is None:
        doc.set_ents(after, default="unmodified")
        return
    for i, span in enumerate(after):
        doc.spans[key][i] = span


def _with_ids(mention: LinkedMention, kb: EntityKB, ids: str) -> LinkedMention:
    named = [(one, -1 if one.id in UNLINKED else kb.row(one.id)) for one in mention.candidates]
    return mention._replace(
        candidates=[one if row < 0 else one._replace(id=kb.record(row).choose(ids)) for one, row in named]
    )


def to_kb_ids(kb: EntityKB | None, ids: Sequence[str]) -> list[str]:
    """Ids of a data set (titles, Wikidata ids) as the knowledge base's own; those that it does not know stay."""
    if kb is None:
        return list(ids)
    return [kb.name_of(row) if one not in UNLINKED and (row := kb.row(one)) >= 0 else one for one in ids]
