"""`ernie_typer`, `ernie_relation` and `ernie_encoder`: the components of LUKE with the encoder and the input of ERNIE
(Zhang et al., ACL 2019, section 3.6): marks around mentions, known entities inside the text, [CLS] classified.
"""

from collections.abc import Sequence
from typing import Any

from spacy.language import Language

from ..encoders.nodes import EncoderModel
from .base import check_markers
from .encoder import LukeEncoderOwner
from .factories import Configured, Function, Setting, model_block, register
from .knowledge import ALIGNMENTS, KnownGetter
from .relation import SCORES as RELATION_SCORES
from .relation import LukeRelation
from .typer import SCORES as TYPER_SCORES
from .typer import LukeTyper

ENCODER = "spacy-luke.ErnieEncoder.v1"
CLASSIFIER = model_block("spacy-luke.PooledClassifier.v1", encoder=ENCODER)
MARKERS = ("#", "$")
ONE_WAY = ("overlap", "tokens")  # settings of one-way attention, which ERNIE has not


class ReadsKnowledge(Configured):
    """The settings of what gives an ERNIE encoder the entities of Docs."""

    knowledge: Function[KnownGetter | None] = Function(
        {"@misc": "spacy-luke.linked_ents.v1"}, "the known entities of a Doc, see above; `null`: none"
    )
    alignment: Setting[str] = Setting(
        "characters",
        "an entity stands at the word of its mention's first character; `\"whitespace\"`: the original's rule, which "
        "loses mentions after punctuation",
        choices=ALIGNMENTS,
    )


class ErnieTyper(ReadsKnowledge, LukeTyper):
    """As `LukeTyper`, with ERNIE's encoder and input. FIGER's rule is always_best."""

    markers: Setting[list[str]] = Setting(  # a symbol of BERT's vocabulary, as in the original
        ["\u3002"], "the piece before and after the mention"
    )

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        check_markers(self.markers, 1)

    def marks(self) -> Sequence[str]:
        return self.markers


class ErnieRelation(ReadsKnowledge, LukeRelation):
    """As `LukeRelation`, with ERNIE's encoder and input."""

    # The default is null, since a config doubles every "$" whenever spaCy writes it.
    markers: Setting[list[str] | None] = Setting(
        None, "the pieces around head and tail; `null`: the original's, `#` and `$`"
    )

    def __init__(self, *args: Any, markers: list[str] | None = None, **settings: Any):
        super().__init__(*args, markers=list(MARKERS) if markers is None else markers, **settings)
        check_markers(self.marks(), 2)

    def marks(self) -> Sequence[str]:
        return self.markers or MARKERS


make_ernie_typer = register(
    "ernie_typer",
    ErnieTyper,
    model={**CLASSIFIER, "bias": False},  # as the original's typing head
    without=ONE_WAY,
    assigns=["span._.luke_types"],
    scores=TYPER_SCORES,
)
make_ernie_relation = register(
    "ernie_relation",
    ErnieRelation,
    model=CLASSIFIER,
    without=ONE_WAY,
    assigns=["doc._.luke_relations"],
    scores=RELATION_SCORES,
)


@Language.factory(
    "ernie_encoder",
    default_config={
        "knowledge": {"@misc": "spacy-luke.linked_ents.v1"},
        "alignment": "characters",
        "model": {"@architectures": ENCODER},
        "max_window": None,
        "overlap": 128,
        "batch_size": 4096,
        "listener_weight": 1.0,
    },
)
def make_ernie_encoder(
    nlp: Language,
    name: str,
    model: EncoderModel,
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
