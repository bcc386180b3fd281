"""What a spaCy Doc holds, as the arrays that windows and spans are made of."""

from functools import cache
from typing import Any

import numpy as np
from spacy.attrs import IDX, IS_ALPHA, IS_PUNCT, IS_SPACE, LENGTH, SENT_START
from spacy.tokens import Doc
from spacy.util import get_lang_class

from ..batch.windows import Document
from ..text.align import Pieces, align_text, align_words, core_edges
from ..text.attached import cores_of, may_have
from ..text.tokenizer import PieceTokenizer


def read_document(doc: Doc, tokenizer: PieceTokenizer, *, punctuation_apart: bool = False) -> Document:
    """Pieces, sentences and possible mention borders of a Doc.

    A Doc of which only the words are known (`has_unknown_spaces`, as CoNLL files give) becomes pieces word by word,
    as in the original NER code; any other by its text. A Doc without sentence boundaries is one sentence.

    punctuation_apart: mentions have no pieces of the punctuation that is attached to their words (`text.attached`).
    """
    if len(doc) == 0:
        empty = np.empty(0, np.int64)
        return Document(align_words(tokenizer, []), empty, empty.astype(bool), empty.astype(bool))
    table_WA = doc.to_array([IS_SPACE, SENT_START])
    cores = cores_of_doc(doc) if punctuation_apart else {}
    if doc.has_unknown_spaces:
        pieces = align_words(tokenizer, (word.text for word in doc), cores)
    else:
        pieces = align_text(tokenizer, doc.text, *word_edges(doc), cores)
    begins_W = table_WA[:, 1].astype(np.int64) == 1
    begins_W[0] = True
    bounds_W = (pieces.core_last_W > pieces.core_first_W) & (table_WA[:, 0] == 0)
    return Document(pieces, np.cumsum(begins_W) - 1, bounds_W, _signs(doc, pieces))


def _signs(doc: Doc, pieces: Pieces) -> np.ndarray:
    """The words that share a piece with another one and have neither letters nor digits, bool (W,)."""
    signs_W = np.zeros(len(doc), bool)
    shares = np.flatnonzero(pieces.first_W[1:] < np.maximum.accumulate(pieces.last_W)[:-1])
    for i in {*shares.tolist(), *(shares + 1).tolist()}:
        signs_W[i] = not any(char.isalnum() for char in doc[i].text)
    return signs_W


def cores_of_doc(doc: Doc) -> dict[int, tuple[int, int]]:
    """The words of a Doc to which punctuation is attached, and the characters [start, end) of each without it."""
    lengths_W, alpha_W, punct_W = doc.to_array([LENGTH, IS_ALPHA, IS_PUNCT]).T
    words = ((i, doc[i].text) for i in may_have(lengths_W, alpha_W, punct_W).tolist())
    return cores_of(words, _kept_words(doc.lang_))


@cache
def _kept_words(lang: str) -> frozenset[str]:
    """Words that spaCy's tokenizer of a language keeps whole, abbreviations above all."""
    try:
        return frozenset(get_lang_class(lang).Defaults.tokenizer_exceptions)
    except ImportError:  # a language of a package that is not here
        return frozenset()


def mention_edges(doc: Doc, *, punctuation_apart: bool) -> tuple[np.ndarray, np.ndarray]:
    """Characters [start, end) of each word, as far as mentions begin and end with it; see `read_document`."""
    return core_edges(*word_edges(doc), cores_of_doc(doc)) if punctuation_apart else word_edges(doc)


def word_edges(doc: Doc) -> tuple[np.ndarray, np.ndarray]:
    """Characters [start, end) of each word."""
    starts_W, lengths_W = doc.to_array([IDX, LENGTH]).astype(np.int64).T
    return starts_W, starts_W + lengths_W


def refuse_docs(batch: Any) -> None:
    """Raises ValueError where a model is given Docs, as `spacy debug model` does with any component's."""
    if isinstance(batch, (list, tuple)) and all(isinstance(doc, Doc) for doc in batch):
        raise ValueError(
            "The models of spacy_luke take the batches that their components make of Docs, not Docs, so `spacy debug "
            "model` can show their structure and parameters, but not run them. Use the component: nlp(text), or "
            "component.predict(docs)."
        )
