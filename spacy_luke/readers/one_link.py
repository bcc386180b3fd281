"""Training texts of a linker that learns one mention at a time: each mention is an Example."""

from collections.abc import Iterator

from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from ..annotations import LINKS, NIL
from .corpora import Augmenter
from .given import copy_words


@registry.augmenters("spacy-luke.one_link.v1")
def make_one_link(nil: bool = False) -> Augmenter:
    """An augmenter that makes an Example of each linked mention, so that an epoch learns each once, in whatever
    document it stands, and a batch has mentions of different documents: the paper's of 2019, whose inputs are of one
    mention. For pipelines that learn links alone: the gold of an Example is its mention's entity, while the pipeline is
    given the document with all mentions and their candidates.

    nil: whether mentions whose entity is NIL get one too, as they are learned with `nil` of the linker's model.
    """

    def augment(nlp: Language, example: Example) -> Iterator[Example]:
        gold = example.reference
        for span in gold.spans[LINKS] if LINKS in gold.spans else gold.ents:
            if span.kb_id_ and (nil or span.kb_id_ != NIL):
                own = copy_words(gold, gold.vocab, sentences=True)
                own.spans[LINKS] = [Span(own, span.start, span.end, label=span.label, kb_id=span.kb_id)]
                yield Example(example.predicted, own)

    return augment
