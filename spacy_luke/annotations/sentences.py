"""Where sentences begin, of a whole Doc at once: spaCy's setter of a word looks for a tree through all words."""

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import SENT_START
from spacy.tokens import Doc


def get_sentence_starts(doc: Doc) -> NDArray[np.int64]:
    """(W,): 1 where a sentence begins, -1 where none does, 0 where nothing says so."""
    return np.asarray(doc.to_array([SENT_START]).astype(np.int64).reshape(-1))


def set_sentence_starts(doc: Doc, starts_W: NDArray[np.int64]) -> None:
    """starts_W: (W,), see `get_sentence_starts`. The Doc must have no tree (DEP), which says where sentences begin."""
    if len(doc):
        values_W1 = starts_W.astype(np.int64).view(np.uint64).reshape(-1, 1)
        doc.from_array([SENT_START], values_W1)  # type: ignore[arg-type]  # spaCy's stub knows thinc's arrays alone
