"""What the settings of `luke_linker` may be."""

from typing import Any

from ...batch.linking import SPLITS
from ..base import check_limits
from .decisions import INFERENCE
from .inputs import OTHERS


def check_settings(cfg: dict[str, Any]) -> None:
    """Raises ValueError for a value that its setting cannot have."""
    for setting, choices in (("inference", INFERENCE), ("split", SPLITS), ("others", OTHERS)):
        if cfg[setting] not in choices:
            raise ValueError(f"{setting} must be one of {choices}, but it is {cfg[setting]!r}.")
    check_limits(**{x: cfg[x] for x in ("max_candidates", "overlap", "max_mentions", "batch_size")})
    for setting in ("sure", "threshold", "pseudo_prior", "masked_share"):
        value = 1.0 if setting == "sure" and cfg["sure"] is None else cfg[setting]
        if not 0 <= value <= 1:
            raise ValueError(f"{setting} must be from 0 to 1, but it is {value}.")
