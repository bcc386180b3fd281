"""Which of the predicted spans stand together, and which ones are the same to an encoder."""

import numpy as np
from numpy.typing import NDArray


def first_equal(*columns_E: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Of each row of a table with these columns, numbers from 0 on, the first row that is equal to it in all of them;
    None where all rows differ.

    Words may share a piece: "<", "mask" and ">" do where the tokenizer has a special token of these characters. Their
    spans are equal, but by rounding, which depends on the batch that they are in.
    """
    key_E = np.zeros(len(columns_E[0]), dtype=np.int64)
    for column_E in columns_E:
        key_E = key_E * (int(column_E.max(initial=0)) + 1) + column_E
    ordered_E = np.sort(key_E)
    if not (ordered_E[1:] == ordered_E[:-1]).any():
        return None
    _, first_U, unique_E = np.unique(key_E, return_index=True, return_inverse=True)
    first_E: NDArray[np.int64] = first_U[unique_E]
    return first_E


def greedy_flat(start_E: np.ndarray, end_E: np.ndarray, score_E: np.ndarray) -> np.ndarray:
    """Spans without overlap, the best first, as the paper decodes (section 4.3): indices in order of their words.

    start_E, end_E: words of each span, the end exclusive; score_E: the logit of its best label. Of equal scores the
    one that stands first in the input is taken.
    """
    if not len(start_E):
        return np.empty(0, dtype=np.int64)
    taken = bytearray(int(end_E.max()))
    chosen = []
    for i in np.argsort(-score_E, kind="stable").tolist():
        start, end = int(start_E[i]), int(end_E[i])
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            chosen.append(i)
    return np.array(sorted(chosen, key=lambda i: start_E[i]), dtype=np.int64)
