"""What a spaCy Doc holds, as the arrays that windows and spans are made of."""

from typing import Any

import numpy as np
from spacy.attrs import IDX, IS_SPACE, LENGTH, SENT_START
from spacy.tokens import Doc

from ..batch.windows import Document
from ..text.align import align_text, align_words
from ..text.tokenizer import PieceTokenizer


def read_document(doc: Doc, tokenizer: PieceTokenizer) -> Document:
    """Pieces, sentences and possible mention borders of a Doc.

    A Doc of which only the words are known (`has_unknown_spaces`, as CoNLL files give) becomes pieces word by word,
    as in the original NER code; any other by its text. A Doc without sentence boundaries is one sentence.
    """
    if len(doc) == 0:
        empty = np.empty(0, np.int64)
        return Document(align_words(tokenizer, []), empty, empty.astype(bool))
    table_WA = doc.to_array([IS_SPACE, SENT_START])
    if doc.has_unknown_spaces:
        pieces = align_words(tokenizer, (word.text for word in doc))
    else:
        pieces = align_text(tokenizer, doc.text, *word_edges(doc))
    begins_W = table_WA[:, 1].astype(np.int64) == 1
    begins_W[0] = True
    bounds_W = (pieces.last_W > pieces.first_W) & (table_WA[:, 0] == 0)
    return Document(pieces, np.cumsum(begins_W) - 1, bounds_W)


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
