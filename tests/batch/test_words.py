"""Where the pieces of words stand in windows, against a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.windows import plan_windows
from spacy_luke.batch.words import place_words
from tests.batch.documents import documents, simple_document

ROOMS = st.sampled_from([(4, 1), (5, 2), (8, 3), (9, 8), (16, 6), (40, 10)])  # room, overlap


def read(document, windows):
    """The piece that stands at each place of each word."""
    places = place_words(document, windows)
    sizes = windows.end_B - windows.start_B + 2
    packed = np.concatenate(
        [[-1, *document.pieces.ids_N[a:b], -2] for a, b in zip(windows.start_B, windows.end_B)] or [[]]
    )
    rows = places.rows(np.cumsum(sizes) - sizes)
    return np.split(packed[rows.astype(int)], np.cumsum(places.counts_W)[:-1]) if len(places.counts_W) else []


@given(documents(), ROOMS)
def test_every_word_has_its_pieces_in_order(document, sizes):
    windows = plan_windows(document, room=sizes[0], overlap=sizes[1], context="document", share=True)
    found = read(document, windows)
    assert len(found) == len(document.pieces.first_W)
    for pieces, first, last in zip(found, document.pieces.first_W, document.pieces.last_W):
        assert pieces.tolist() == document.pieces.ids_N[first:last].tolist()


@given(documents(), ROOMS)
def test_a_word_stands_in_the_window_whose_core_holds_its_first_piece(document, sizes):
    windows = plan_windows(document, room=sizes[0], overlap=sizes[1], context="document", share=True)
    places = place_words(document, windows)
    starts = np.cumsum(places.counts_W) - places.counts_W
    for first, last, start in zip(document.pieces.first_W, document.pieces.last_W, starts):
        if first == last:
            continue
        (home,) = np.flatnonzero((windows.core_start_B <= first) & (first < windows.core_end_B))
        inside = min(last, windows.end_B[home]) - first
        assert (places.window_A[start : start + inside] == home).all()
        assert places.column_A[start] == first - windows.start_B[home] + 1


def test_a_word_longer_than_a_window():
    document = simple_document([[2, 30, 3]])
    windows = plan_windows(document, room=10, overlap=4, context="document", share=True)
    places = place_words(document, windows)
    assert places.counts_W.tolist() == [2, 30, 3]
    assert (places.column_A >= 1).all()
    assert (places.column_A <= (windows.end_B - windows.start_B)[places.window_A]).all()
    assert len(set(places.window_A.tolist())) == len(windows)
