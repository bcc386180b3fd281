"""The settings of `luke_linker` where a config does not name them, and what they may be."""

from typing import Any

from thinc.api import Config

from ...batch.linking import SPLITS
from ..base import check_limits
from .decisions import INFERENCE
from .inputs import OTHERS

DEFAULT_MODEL = Config().from_str("""
[model]
@architectures = "spacy-luke.EntityLinker.v1"
attention = "one_way"
prior = true

[model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["model"]
DEFAULT_CONFIG = {
    "model": DEFAULT_MODEL,
    "getter": {"@misc": "spacy-luke.doc_ents.v1"},
    "max_candidates": 30,
    "use_given": True,
    "share_names": False,
    "inference": "global",
    "sure": None,
    "split": "cores",
    "overlap": 128,
    "max_window": None,
    "max_mentions": 128,
    "others": "masked",
    "pseudo_prior": 0.1,
    "masked_share": 0.9,
    "threshold": 0.0,
    "batch_size": 4096,
    "scorer": {"@scorers": "spacy-luke.linking_scorer.v1"},
}
SCORE_WEIGHTS: dict[str, float | None] = {
    "links_accuracy": 1.0,
    "links_macro_accuracy": 0.0,
    "links_f": 0.0,
    "links_strict_f": 0.0,
    "links_candidate_recall": 0.0,
}


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
