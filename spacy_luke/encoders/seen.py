"""The lengths of windows that training has shown an encoder: kept with its weights, see components/window_limits.py."""

from collections.abc import Sequence

from ..model.luke import Encoder
from .kind import EncoderShim

STEP = 16  # pieces; lengths are counted in steps
SEEN = "seen_pieces"  # key of the encoder's settings


def record_windows(encoder: EncoderShim[Encoder], lengths: Sequence[int]) -> None:
    """Count the windows of an update, by the pieces that are in windows of each length."""
    seen: list[int] = encoder.settings.setdefault(SEEN, [])
    for length in lengths:
        step = (int(length) - 1) // STEP
        seen.extend([0] * (step + 1 - len(seen)))
        seen[step] += int(length)


def seen_windows(encoder: EncoderShim[Encoder]) -> list[int]:
    """Pieces by the length of their windows, in steps of STEP."""
    return list(encoder.settings.get(SEEN, []))


def set_seen(encoder: EncoderShim[Encoder], seen: Sequence[int]) -> None:
    if seen:
        encoder.settings[SEEN] = list(seen)
