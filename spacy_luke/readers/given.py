"""What a pipeline may see of a gold Doc."""

from dataclasses import dataclass

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ..annotations import (
    KNOWLEDGE,
    LINKS,
    MENTIONS,
    QUERIES,
    QUESTIONS,
    TYPES,
    get_candidates_given,
    get_pair_rows,
    get_rows,
    get_second,
    set_candidates_given,
    set_pair_rows,
    set_rows,
    set_second,
)


def copy_words(doc: Doc, vocab: Vocab, *, sentences: bool) -> Doc:
    """A Doc of the same words without annotation, sentence boundaries apart where they are known and wanted."""
    spaces = None if doc.has_unknown_spaces else [bool(word.whitespace_) for word in doc]
    starts: list[bool | int | None] | None = [word.is_sent_start for word in doc] if sentences else None
    return Doc(vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)


@dataclass(frozen=True)
class GivenGold:
    """What a pipeline is given of a gold Doc beside its words; what is no gold of any task it has always.

    sentences: whether the pipeline is given the sentence boundaries.
    entities: whether it is given doc.ents, with their labels.
    mentions: whether it is given the mentions of types, without the types.
    pairs: whether it is given the pairs of mentions that relations are asked of, without the relations.
    questions: whether it is given questions and queries, without the answers.
    knowledge: whether it is given doc._.luke_knowledge, the given entities.
    links: whether it is given doc.ents, the mentions of links, without their entities.
    """

    sentences: bool = True
    entities: bool = False
    mentions: bool = False
    pairs: bool = False
    questions: bool = False
    knowledge: bool = True
    links: bool = False

    def __post_init__(self) -> None:
        if self.entities and self.links:
            raise ValueError("entities and links both give doc.ents, with and without their ids: set one of them.")

    def give(self, doc: Doc, nlp: Language) -> Doc:
        return self.copy(doc, nlp.vocab)

    def copy(self, doc: Doc, vocab: Vocab) -> Doc:
        """A Doc of the same words, with what is given. The mentions of types are doc.spans["luke_mentions"], each once;
        those that are linked are doc.ents, and doc.spans["luke_links"] where a data set has some that overlap."""
        given = copy_words(doc, vocab, sentences=self.sentences)
        if self.entities and doc.has_annotation("ENT_IOB"):
            given.set_ents([Span(given, e.start, e.end, label=e.label_, kb_id=e.kb_id_) for e in doc.ents])
        if self.links:
            given.set_ents([Span(given, e.start, e.end, label=e.label_) for e in doc.ents], default="outside")
            if LINKS in doc.spans:
                places = sorted({(span.start, span.end, span.label_) for span in doc.spans[LINKS]})
                given.spans[LINKS] = [Span(given, start, end, label=label) for start, end, label in places]
        if self.mentions and TYPES in doc.spans:
            extents = sorted({(span.start, span.end) for span in doc.spans[TYPES]})
            given.spans[MENTIONS] = [Span(given, start, end) for start, end in extents]
        if self.pairs:
            set_pair_rows(given, get_pair_rows(doc))
        copy_asked(doc, given, questions=self.questions, knowledge=self.knowledge)
        return given


def copy_given(doc: Doc, vocab: Vocab, **settings: bool) -> Doc:
    """A Doc of the same words, with what a component may see of a gold Doc. settings: those of `GivenGold`."""
    return GivenGold(**settings).copy(doc, vocab)


def copy_asked(doc: Doc, given: Doc, *, questions: bool = True, knowledge: bool = True) -> None:
    """Give a Doc of the same text, whatever its words are, what a gold Doc has beside gold: questions and queries
    without their answers, entities of a knowledge graph, candidates of linking, and where the second of two texts
    begins."""
    for name in (QUESTIONS, QUERIES):
        if questions and (rows := get_rows(doc, name)) is not None:
            set_rows(given, name, [{key: value for key, value in row.items() if key != "answers"} for row in rows])
    if knowledge:
        set_rows(given, KNOWLEDGE, get_rows(doc, KNOWLEDGE))
    set_candidates_given(given, get_candidates_given(doc))
    set_second(given, get_second(doc))
