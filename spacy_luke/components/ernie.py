"""`ernie_typer`, `ernie_relation` and `ernie_encoder`: the components of LUKE with the encoder and the input of ERNIE
(Zhang et al., ACL 2019, section 3.6): marks around mentions, known entities inside the text, [CLS] classified.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import Config, Model

from .encoder import DEFAULT_CONFIG as ENCODER_CONFIG
from .encoder import LukeEncoderOwner
from .knowledge import KnownGetter
from .relation import DEFAULT_CONFIG as RELATION_CONFIG
from .relation import SCORE_WEIGHTS as RELATION_WEIGHTS
from .relation import LukeRelation
from .typer import DEFAULT_CONFIG as TYPER_CONFIG
from .typer import SCORE_WEIGHTS as TYPER_WEIGHTS
from .typer import LukeTyper

ENCODER = Config().from_str("""
[encoder]
@architectures = "spacy-luke.ErnieEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["encoder"]
CLASSIFIER = {"@architectures": "spacy-luke.PooledClassifier.v1", "encoder": ENCODER}
KNOWLEDGE = {"knowledge": {"@misc": "spacy-luke.linked_ents.v1"}, "alignment": "characters"}
MARKERS = ("#", "$")
WINDOWS = ("overlap", "tokens")  # settings of one-way attention, which ERNIE has not


@Language.factory(
    "ernie_typer",
    assigns=["span._.luke_types"],
    default_config={
        **{name: value for name, value in TYPER_CONFIG.items() if name not in WINDOWS},
        **KNOWLEDGE,
        "model": {**CLASSIFIER, "bias": False},  # as the original's typing head
        "markers": ["\u3002"],  # a symbol of BERT's vocabulary, as in the original
    },
    default_score_weights=TYPER_WEIGHTS,
)
def make_ernie_typer(
    nlp: Language,
    name: str,
    model: Model,
    getter: Callable[[Doc], Iterable[Span]],
    markers: list[str],
    knowledge: KnownGetter | None,
    alignment: str,
    context: str,
    max_window: int | None,
    threshold: float,
    always_best: bool,
    set_label: bool,
    focus: float,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> LukeTyper:
    """Builds the component; see `LukeTyper` for the settings. FIGER's rule is always_best."""
    return LukeTyper(
        nlp.vocab,
        model,
        name,
        getter=getter,
        markers=markers,
        knowledge=knowledge,
        alignment=alignment,
        context=context,
        max_window=max_window,
        threshold=threshold,
        always_best=always_best,
        set_label=set_label,
        focus=focus,
        batch_size=batch_size,
        scorer=scorer,
    )


@Language.factory(
    "ernie_relation",
    assigns=["doc._.luke_relations"],
    default_config={
        **{name: value for name, value in RELATION_CONFIG.items() if name not in WINDOWS},
        **KNOWLEDGE,
        "model": {**CLASSIFIER, "bias": True},
        "markers": None,  # of the original: "#" and "$"; a config doubles every "$" whenever spaCy writes it
    },
    default_score_weights=RELATION_WEIGHTS,
)
def make_ernie_relation(
    nlp: Language,
    name: str,
    model: Model,
    getter: Callable[[Doc], Iterable[Span]],
    suggester: Callable[[Doc, Sequence[Span]], Any],
    markers: list[str] | None,
    knowledge: KnownGetter | None,
    alignment: str,
    context: str,
    max_window: int | None,
    none: str | None,
    multi_label: bool,
    threshold: float,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> LukeRelation:
    """Builds the component; see `LukeRelation` for the settings. markers: null is the original's, "#" around heads and
    "$" around tails."""
    return LukeRelation(
        nlp.vocab,
        model,
        name,
        getter=getter,
        suggester=suggester,
        markers=MARKERS if markers is None else markers,
        knowledge=knowledge,
        alignment=alignment,
        context=context,
        max_window=max_window,
        none=none,
        multi_label=multi_label,
        threshold=threshold,
        batch_size=batch_size,
        scorer=scorer,
    )


@Language.factory(
    "ernie_encoder",
    default_config={
        **KNOWLEDGE,
        "model": ENCODER,
        "max_window": ENCODER_CONFIG["max_window"],
        "overlap": ENCODER_CONFIG["overlap"],
        "batch_size": ENCODER_CONFIG["batch_size"],
        "listener_weight": ENCODER_CONFIG["listener_weight"],
    },
)
def make_ernie_encoder(
    nlp: Language,
    name: str,
    model: Model,
    knowledge: KnownGetter | None,
    alignment: str,
    max_window: int | None,
    overlap: int,
    batch_size: int,
    listener_weight: float,
) -> LukeEncoderOwner:
    """Builds the component; see `LukeEncoderOwner` for the settings."""
    return LukeEncoderOwner(
        nlp.vocab,
        model,
        name,
        knowledge=knowledge,
        alignment=alignment,
        shared_pieces=0,
        max_window=max_window,
        overlap=overlap,
        batch_size=batch_size,
        listener_weight=listener_weight,
    )
