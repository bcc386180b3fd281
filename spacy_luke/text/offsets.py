"""Which characters of a text a piece holds."""

import numpy as np

from .charsmap import continues

# Shapes: N pieces.
_SPACES = np.array([chr(code).isspace() for code in range(0x3002)])


def trim_whitespace(text: str, starts_N: np.ndarray, ends_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take whitespace off the edges of pieces that hold other characters too."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    solid = ~_SPACES[np.minimum(codes, 0x3001)]
    places = np.flatnonzero(solid)
    before = np.concatenate([[0], np.cumsum(solid)])
    keep = before[ends_N] > before[starts_N]
    starts_N, ends_N = starts_N.copy(), ends_N.copy()
    first, last = before[starts_N[keep]], before[ends_N[keep]] - 1
    starts_N[keep], ends_N[keep] = places[first], places[last] + 1
    return starts_N, ends_N


def extend_over_marks(text: str, starts_N: np.ndarray, ends_N: np.ndarray) -> None:
    """Give marks and Hangul finals that normalisation composed or removed to the pieces before them, in place."""
    depth = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(depth, starts_N, 1)
    np.add.at(depth, ends_N, -1)
    for place in np.flatnonzero(np.cumsum(depth[:-1]) == 0):
        if continues(text[place]):
            piece = int(np.searchsorted(ends_N, place, side="right")) - 1
            while piece >= 0 and ends_N[piece] == place:
                ends_N[piece] += 1
                piece -= 1
