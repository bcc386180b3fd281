"""Where sentences begin, of a whole Doc at once: spaCy's setter of a word looks for a tree through all words.

W words, T words that have no head in their sentence.
"""

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, HEAD, SENT_START
from spacy.tokens import Doc


def get_sentence_starts(doc: Doc) -> NDArray[np.int64]:
    """(W,): 1 where a sentence begins, -1 where none does, 0 where nothing says so."""
    return np.asarray(doc.to_array([SENT_START]).astype(np.int64).reshape(-1))


def set_sentence_starts(doc: Doc, starts_W: NDArray[np.int64]) -> None:
    """starts_W: (W,), see `get_sentence_starts`. A tree (DEP), from which spaCy reads sentences when a Doc comes from
    bytes or another process, becomes one for each sentence, see `_divide_tree`."""
    if not len(doc):
        return
    if doc.has_annotation("DEP"):
        _divide_tree(doc, np.cumsum(starts_W == 1))
    values_W1 = starts_W.astype(np.int64).view(np.uint64).reshape(-1, 1)
    doc.from_array([SENT_START], values_W1)  # type: ignore[arg-type]  # spaCy's stub knows thinc's arrays alone


def _divide_tree(doc: Doc, sentence_W: NDArray[np.int64]) -> None:
    """Give each sentence one root: the one that it has, or of the words whose head is in another sentence the one with
    most words below it. The others of these hang on it with their own label, other roots with "dep"; all other words
    keep head and label."""
    root, other = (doc.vocab.strings.add(label) for label in ("ROOT", "dep"))
    place_W, table_W2 = np.arange(len(doc)), np.asarray(doc.to_array([HEAD, DEP]))
    head_W, label_W = table_W2[:, 0].astype(np.int64) + place_W, table_W2[:, 1].copy()
    known_W, root_W = label_W != 0, head_W == place_W
    top_T = np.flatnonzero(known_W & (root_W | (sentence_W[head_W] != sentence_W)))
    above_W = head_W.copy()
    above_W[top_T] = top_T
    for _ in range(len(doc).bit_length()):  # each time twice as far up
        above_W = above_W[above_W]
    words_W = np.bincount(above_W, minlength=len(doc))
    top_T = top_T[np.lexsort((-words_W[top_T], ~root_W[top_T], sentence_W[top_T]))]
    _, first_S, which_T = np.unique(sentence_W[top_T], return_index=True, return_inverse=True)
    new_W = head_W.copy()
    new_W[top_T] = top_T[first_S][which_T]
    if (new_W == head_W).all():
        return
    label_W[root_W & (new_W != place_W)] = other
    label_W[known_W & ~root_W & (new_W == place_W)] = root
    values_W2 = np.stack([(new_W - place_W).view(np.uint64), label_W.astype(np.uint64)], 1)
    doc.from_array([HEAD, DEP], values_W2)  # type: ignore[arg-type]  # as above
