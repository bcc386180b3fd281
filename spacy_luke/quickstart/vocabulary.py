"""Whether an encoder that is on this machine knows the words of the training data."""

from pathlib import Path

from spacy.vocab import Vocab

from ..checkpoint.assemble import read_tokenizer
from ..checkpoint.sources import find_source
from ..readers.docbin import read_docbins
from ..text.unknown import UnknownWords, count_unknown
from .cost import is_here


def unknown_words(weights: str, train: Path, vocab: Vocab) -> UnknownWords | None:
    """The words of the first documents that the encoder's vocabulary lacks pieces of; None where this cannot be said
    without a download, and where only few are."""
    tokenizer = read_tokenizer(find_source(weights, weights=False)) if is_here(weights) else None
    if tokenizer is None:
        return None
    found = count_unknown(tokenizer, ([word.text for word in doc] for doc in read_docbins(train, vocab)))
    return found if found.many else None
