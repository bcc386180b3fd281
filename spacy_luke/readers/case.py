"""Training texts in other case: what people type and shout, as news sites and messages have it."""

import random
from collections.abc import Callable, Iterator

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations import get_all_rows, set_all_rows
from .corpora import Augmenter


@registry.augmenters("spacy-luke.case.v1")
def make_case_augmenter(lower: float = 0.1, upper: float = 0.05, seed: int = 0) -> Augmenter:
    """An augmenter that takes some Examples in small or capital letters, in the place of their own. All annotations are
    kept, where spaCy's own spacy.lower_case.v1 keeps those of spaCy alone.

    lower: share of the Examples in small letters.
    upper: share in capitals; the rest stays as it is.
    seed: of all draws.
    """
    if not (lower >= 0 and upper >= 0 and lower + upper <= 1):
        raise ValueError(
            "lower and upper are shares of the Examples, from 0 to 1 and not more than 1 together, but they are "
            f"{lower} and {upper}."
        )
    draw = random.Random(seed)

    def augment(nlp: Language, example: Example) -> Iterator[Example]:
        share = draw.random()
        if share >= lower + upper:
            yield example
        else:
            change = str.lower if share < lower else str.upper
            yield Example(recase(example.predicted, change), recase(example.reference, change))

    return augment


def recase(doc: Doc, change: Callable[[str], str]) -> Doc:
    """A Doc with the same words in other letters, and everything that is annotated. Letters that would become two, such
    as ß, stay, so that all places hold. change: of a letter."""
    text = "".join(other if len(other := change(letter)) == 1 else letter for letter in doc.text)
    new = Doc(doc.vocab).from_dict({**doc.to_dict(), "text": text})
    new.has_unknown_spaces = doc.has_unknown_spaces
    set_all_rows(new, get_all_rows(doc))  # those of the dict are written for the text as it was
    return new
