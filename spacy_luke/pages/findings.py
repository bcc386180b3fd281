"""What a pipeline found in a Doc, as the page and the tables of `spacy luke annotate` show it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from spacy.tokens import Doc, Span

from ..annotations import (
    UNLINKED,
    Answer,
    LinkCandidate,
    Relation,
    get_answers,
    get_entity,
    get_fillers,
    get_linked,
    get_relations,
    get_score,
    get_types,
)


@dataclass(frozen=True)
class Link:
    """The entity that a mention was linked to. score: the linker's, None where it did not tell; title, description,
    url: what its knowledge base says, "" where that says nothing."""

    id: str
    score: float | None = None
    title: str = ""
    description: str = ""
    url: str = ""


Describe = Callable[[str], Link]  # what is known of an entity, by its id


@dataclass(frozen=True)
class FoundMention:
    """An entity of the text, or a typed mention. score: the probability of its label, None where nobody told."""

    span: Span
    score: float | None
    link: Link | None = None


@dataclass(frozen=True)
class Findings:
    """What a pipeline found in a Doc. mentions: in the order of the text; spans_key: the group where the entities are,
    None: doc.ents; labels: of entities, in the order of their colors; properties: what labels of relations are
    elsewhere, such as P19 of Wikidata."""

    doc: Doc
    mentions: Sequence[FoundMention]
    relations: Sequence[Relation]
    answers: Sequence[Answer]
    spans_key: str | None
    labels: Sequence[str]
    properties: Mapping[str, str] = field(default_factory=dict)

    def counts(self) -> list[str]:
        """What there is, such as "3 entities"; words and entities always."""
        typed = sum(bool(get_types(mention.span)) for mention in self.mentions)
        numbers = {
            "word": len(self.doc),
            "entity": len(self.mentions),
            "entity with types": typed,
            "link": sum(mention.link is not None for mention in self.mentions),
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
    doc: Doc,
    *,
    spans_key: str | None = None,
    typed: Iterable[Span] = (),
    labels: Sequence[str] = (),
    describe: Describe = Link,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Findings:
    """spans_key: of the entities; typed: other mentions that have types; labels: that the entities may have, in order;
    describe: what is known of the entities that mentions are linked to, where the Doc does not say it; properties:
    what labels of relations are elsewhere."""
    if spans_key is None:
        found = [(span, get_score(span)) for span in doc.ents]
    else:
        group = doc.spans[spans_key]
        found = list(zip(group, group.attrs.get("scores", [None] * len(group)), strict=True))
    places = {(span.start, span.end) for span, _ in found}
    found += [(span, None) for span in typed if (span.start, span.end) not in places and get_types(span)]
    found.sort(key=lambda x: (x[0].start, -x[0].end))
    linked = {(x.start, x.end): x.candidates for x in get_linked(doc) or []}
    mentions = [FoundMention(span, score, _read_link(span, describe, linked)) for span, score in found]
    names = list(dict.fromkeys([*labels, *(span.label_ for span, _ in found)]))
    answers = [*get_answers(doc), *get_fillers(doc)]
    return Findings(doc, mentions, get_relations(doc), answers, spans_key, names, dict(properties))


def _read_link(
    span: Span, describe: Describe, linked: Mapping[tuple[int, int], Sequence[LinkCandidate]]
) -> Link | None:
    entity = span.kb_id_
    if entity in UNLINKED:
        return None
    record = get_entity(span)
    known = describe(entity) if record is None else record
    candidates = linked.get((span.start_char, span.end_char), ())
    score = next((one.score for one in candidates if one.id == entity), None)
    return Link(entity, score, known.title, known.description, known.url)


def type_list(spans: Iterable[Span]) -> str:
    """Types of mentions with their highest probabilities, the most probable first, in one line."""
    best: dict[str, float] = {}
    for span in spans:
        for label, score in get_types(span).items():
            best[label] = max(score, best.get(label, 0.0))
    return ", ".join(f"{label} {score:.2f}" for label, score in sorted(best.items(), key=lambda x: -x[1]))
