"""`ernie_typer`, `ernie_relation` and `ernie_encoder`: the components of LUKE with the encoder and the input of ERNIE
(Zhang et al., ACL 2019, section 3.5): marks around mentions, known entities inside the text, [CLS] classified.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from .encoder import LukeEncoderOwner
from .factories import Function, Setting, model_block, register
from .knowledge import ALIGNMENTS, KnownGetter
from .known_entities import KnownEntities
from .relation import RELATION_SCORES, LukeRelation
from .typer import TYPER_SCORES, LukeTyper
from .with_encoder import EncoderComponent

_ENCODER = "spacy-luke.ErnieEncoder.v1"
CLASSIFIER = model_block("spacy-luke.PooledClassifier.v1", encoder=_ENCODER)
_MARKERS = ("#", "$")
_ONE_WAY = ("overlap", "tokens")  # settings of one-way attention, which ERNIE has not


def are_pieces(markers: Any, *, n: int) -> bool:
    return len(markers) == n and all(isinstance(x, str) and x for x in markers)


class ReadsKnowledge(EncoderComponent):
    """The settings of what gives an ERNIE encoder the entities of Docs."""

    knowledge: Function[KnownGetter | None] = Function(
        {"@misc": "spacy-luke.linked_ents.v1"}, "the known entities of a Doc; `null`: none"
    )
    alignment: Setting[str] = Setting(
        "characters",
        "an entity stands at the word of its mention's first character; `\"whitespace\"`: the original's rule, which "
        "loses mentions after punctuation",
        choices=ALIGNMENTS,
    )

    @property
    def known(self) -> KnownEntities | None:
        """Raises ValueError where there are no vectors."""
        encoder = self.encoder
        if self.knowledge is None or not encoder.kind.reads_knowledge:
            return None
        if encoder.vectors is None:
            raise ValueError(
                f"'{self.name}' reads entities of Docs (setting knowledge), but its encoder has no entity vectors. "
                'Expected vectors = "FOLDER" in the checkpoint\'s loader (see `spacy luke build-vectors`), or '
                "knowledge = null."
            )
        return KnownEntities(self.knowledge, self.alignment, encoder.vectors, self.tokenizer.strips_accents)


class ErnieTyper(ReadsKnowledge, LukeTyper):
    """As `LukeTyper`, with ERNIE's encoder and input. FIGER's rule is always_best."""

    markers: Setting[list[str]] = Setting(  # a symbol of BERT's vocabulary, as in the original
        ["\u3002"],
        "the piece before and after the mention",
        valid=partial(are_pieces, n=1),
        rule="a list of 1 piece, such as ['<ent>']",
    )

    def marks(self) -> Sequence[str]:
        return self.markers


class ErnieRelation(ReadsKnowledge, LukeRelation):
    """As `LukeRelation`, with ERNIE's encoder and input."""

    # The default is null, since a config doubles every "$" whenever spaCy writes it.
    markers: Setting[list[str] | None] = Setting(
        None,
        "the pieces around head and tail; `null`: the original's, `#` and `$`",
        valid=partial(are_pieces, n=2),
        rule="a list of 2 pieces, such as ['<ent>', '<ent2>'], or null",
    )

    def __init__(self, *args: Any, markers: list[str] | None = None, **settings: Any):
        super().__init__(*args, markers=list(_MARKERS) if markers is None else markers, **settings)

    def marks(self) -> Sequence[str]:
        return self.markers or _MARKERS


class ErnieEncoderOwner(ReadsKnowledge, LukeEncoderOwner):
    """As `LukeEncoderOwner`, of an ERNIE encoder. Nothing is held for other components, whose windows are marked."""

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **{"shared_pieces": 0, **settings})


make_ernie_typer = register(
    "ernie_typer",
    ErnieTyper,
    model={**CLASSIFIER, "bias": False},  # as the original's typing head
    without=_ONE_WAY,
    requires=["doc.ents"],
    assigns=["span._.luke_types"],
    scores=TYPER_SCORES,
)
make_ernie_relation = register(
    "ernie_relation",
    ErnieRelation,
    model=CLASSIFIER,
    without=_ONE_WAY,
    requires=["doc.ents"],
    assigns=["doc._.luke_relations"],
    scores=RELATION_SCORES,
)


make_ernie_encoder = register(
    "ernie_encoder",
    ErnieEncoderOwner,
    model={"@architectures": _ENCODER},
    without=("entity_rows", "shared_pieces"),
)
