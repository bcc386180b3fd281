"""The factory of `luke_linker`: its settings, their values where a config does not name them."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import Config

from ...architectures.entity_linker import LinkerModel
from .component import LukeLinker

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


@Language.factory(
    "luke_linker",
    assigns=["doc.ents", "token.ent_kb_id", "span._.luke_candidates"],
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_luke_linker(
    nlp: Language,
    name: str,
    model: LinkerModel,
    getter: Callable[[Doc], Iterable[Span]],
    max_candidates: int,
    use_given: bool,
    share_names: bool,
    inference: str,
    sure: float | None,
    split: str,
    overlap: int,
    max_window: int | None,
    max_mentions: int,
    others: str,
    pseudo_prior: float,
    masked_share: float,
    threshold: float,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> LukeLinker:
    """Builds the component; see `LukeLinker` for the settings."""
    return LukeLinker(
        nlp.vocab,
        model,
        name,
        getter=getter,
        max_candidates=max_candidates,
        use_given=use_given,
        share_names=share_names,
        inference=inference,
        sure=sure,
        split=split,
        overlap=overlap,
        max_window=max_window,
        max_mentions=max_mentions,
        others=others,
        pseudo_prior=pseudo_prior,
        masked_share=masked_share,
        threshold=threshold,
        batch_size=batch_size,
        scorer=scorer,
    )
