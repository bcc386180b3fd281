"""What the corpora of `spacy train` share: gold Docs of a file, joined and cut where that is wanted, as Examples."""

from collections.abc import Callable, Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from .docbin import look_up_codecs_once

CorpusReader = Callable[[Language], Iterator[Example]]  # what configs call a corpus
Lengths = Callable[[Iterable[Doc]], Iterator[Doc]]  # gold documents, joined and cut (see `lengths`)
Augmenter = Callable[[Language, Example], Iterator[Example]]  # of spaCy's registry `augmenters`


def check_limit(limit: int | None, *, noun: str) -> None:
    """noun: what a corpus has a limit of, such as "documents"."""
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be a number of {noun} from 1, or None for all, but it is {limit}.")


def make_examples(
    docs: Iterable[Doc],
    given: Callable[[Doc], Doc],
    nlp: Language,
    *,
    lengths: Lengths | None = None,
    augmenter: Augmenter | None = None,
) -> Iterator[Example]:
    """given: what the pipeline gets of a gold Doc; lengths: what joins and cuts the gold Docs first; augmenter: what
    changes the Examples then."""
    look_up_codecs_once()
    for gold in docs if lengths is None else lengths(docs):
        example = Example(given(gold), gold)
        if augmenter is None:
            yield example
        else:
            yield from augmenter(nlp, example)
