"""Which of the predicted spans stand together."""

import numpy as np


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
