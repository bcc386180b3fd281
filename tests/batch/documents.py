"""Made-up documents: words with any number of pieces, some shared, some blank, with and without sentences."""

from collections.abc import Collection, Sequence

import numpy as np
from hypothesis import strategies as st

from spacy_luke.batch.windows import Document, Spans
from spacy_luke.text.align import Pieces


def make_document(
    words: Sequence[tuple[int, bool, bool, int, bool]], *, tail: int = 0, signs: Collection[int] = ()
) -> Document:
    """words: for each its own pieces, whether it shares the last piece before it, whether it begins a sentence, the
    pieces before it that belong to no word, and whether it is blank. tail: pieces after the last word. signs:
    numbers of words without letters and digits."""
    first, last, sentences, bounds, n = [], [], [], [], 0
    for count, shares, begins, gap, blank in words:
        shared = shares and not gap and bool(last) and last[-1] == n and last[-1] > first[-1]
        n += gap
        first.append(n - 1 if shared else n)
        n += count
        last.append(n)
        sentences.append((sentences[-1] + int(begins)) if sentences else 0)
        bounds.append(last[-1] > first[-1] and not blank)
    ids = 10 + np.arange(n + (tail if words else 0), dtype=np.int64)
    pieces = Pieces(ids, np.array(first, dtype=np.int64), np.array(last, dtype=np.int64))
    signs_W = np.array([i in signs for i in range(len(words))], dtype=bool)
    return Document(pieces, np.array(sentences, dtype=np.int64), np.array(bounds, dtype=bool), signs_W)


def simple_document(sentences: Sequence[Sequence[int]]) -> Document:
    """Sentences of words, each given by its number of pieces."""
    return make_document([(n, False, i == 0, 0, False) for s in sentences for i, n in enumerate(s)])


def documents(*, begins: st.SearchStrategy = st.booleans(), shares: st.SearchStrategy = st.booleans()):
    count = st.one_of(st.integers(0, 3), st.integers(0, 12))
    gap = st.sampled_from([0, 0, 0, 0, 1, 2])
    blank = st.sampled_from([False, False, False, True])
    words = st.lists(st.tuples(count, shares, begins, gap, blank), max_size=40)
    signs = st.sets(st.integers(0, 39))
    return st.builds(
        lambda words, tail, signs: make_document(words, tail=tail, signs=signs), words, st.integers(0, 2), signs
    )


def rows(spans: Spans) -> list[tuple[int, ...]]:
    """(start, end, window, first, last) of each span."""
    columns = (spans.start_E, spans.end_E, spans.window_E, spans.first_E, spans.last_E)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]
