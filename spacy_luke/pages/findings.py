"""What a pipeline found in a Doc, as the page and the tables of `spacy luke annotate` show it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy.tokens import Doc, Span

from ..annotations import Answer, Relation, get_answers, get_fillers, get_relations


@dataclass(frozen=True)
class Findings:
    """What a pipeline found in a Doc. mentions: entities and typed mentions, with the probability of their label or
    None;
    spans_key: the group where the entities are, None: doc.ents; labels: of entities, in the order of their colors."""

    doc: Doc
    mentions: Sequence[tuple[Span, float | None]]
    relations: Sequence[Relation]
    answers: Sequence[Answer]
    spans_key: str | None
    labels: Sequence[str]

    def counts(self) -> list[str]:
        """What there is, such as "3 entities"; words and entities always."""
        typed = sum(bool(span._.luke_types) for span, _ in self.mentions)
        numbers = {
            "word": len(self.doc),
            "entity": len(self.mentions),
            "entity with types": typed,
            "relation": len(self.relations),
            "question": len(self.answers),
        }
        plural = {"entity": "entities", "entity with types": "with types"}
        always = ("word", "entity")
        return [
            f"{n:,} {name if n == 1 and name != 'entity with types' else plural.get(name, name + 's')}"
            for name, n in numbers.items()
            if n or name in always
        ]


def read_findings(
    doc: Doc, *, spans_key: str | None = None, typed: Iterable[Span] = (), labels: Sequence[str] = ()
) -> Findings:
    """spans_key: of the entities; typed: other mentions that have types; labels: that the entities may have, in
    order."""
    if spans_key is None:
        found = [(span, span._.luke_score) for span in doc.ents]
    else:
        group = doc.spans[spans_key]
        found = list(zip(group, group.attrs.get("scores", [None] * len(group)), strict=True))
    places = {(span.start, span.end) for span, _ in found}
    found += [(span, None) for span in typed if (span.start, span.end) not in places and span._.luke_types]
    found.sort(key=lambda x: (x[0].start, -x[0].end))
    names = list(dict.fromkeys([*labels, *(span.label_ for span, _ in found)]))
    return Findings(doc, found, get_relations(doc), [*get_answers(doc), *get_fillers(doc)], spans_key, names)


def type_list(span: Span) -> str:
    """Types of a mention with their probabilities, in one line."""
    return ", ".join(f"{label} {score:.2f}" for label, score in (span._.luke_types or {}).items())
