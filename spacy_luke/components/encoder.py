"""`luke_encoder`: one encoder for several components, stored and stepped once."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer

from ..bridge.cache import WordCache
from ..bridge.encoders import ENCODER, is_shared, share_encoder
from ..checkpoint.checkpoint import Checkpoint
from .base import LukeComponent, step_shared

DEFAULT_MODEL = Config().from_str("""
[model]
@architectures = "spacy-luke.LukeEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["model"]
ENTITY_ROWS = ("special", "all")


@Language.factory(
    "luke_encoder",
    default_config={"model": DEFAULT_MODEL, "entity_rows": "special", "shared_pieces": 8192},
)
def make_luke_encoder(
    nlp: Language, name: str, model: Model, entity_rows: str, shared_pieces: int
) -> "LukeEncoderOwner":
    """Builds the component; see `LukeEncoderOwner` for the settings."""
    return LukeEncoderOwner(nlp.vocab, model, name, entity_rows=entity_rows, shared_pieces=shared_pieces)


class LukeEncoderOwner(LukeComponent):
    """Has the encoder of the components after it whose model holds spacy-luke.SharedEncoder.v1.

    The weights are loaded, stored and stepped here alone. All that share them train them together: a step has the sum of
    the gradients of their mean losses. Frozen (in frozen_components, or not updated with the same examples), the encoder
    learns nothing and its weights stay as they are. In one-way attention the components also share the pass over the
    words.

    entity_rows: "special", or "all" rows of the entity table, which components with known entities need.
    shared_pieces: windows of so many pieces in all are held for the components that follow; they need twice as many
        numbers a piece as the encoder has layers times its width (about 70 KB of a base model); 0 holds none.
    """

    noun = "luke_encoder"
    special_entities = ("[MASK]", "[MASK2]")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke_encoder",
        *,
        entity_rows: str = "special",
        shared_pieces: int = 8192,
    ):
        if entity_rows not in ENTITY_ROWS:
            raise ValueError(f"entity_rows must be one of {ENTITY_ROWS}, but it is {entity_rows!r}.")
        if shared_pieces < 0:
            raise ValueError(f"shared_pieces must be 0 or more, but it is {shared_pieces}.")
        self.entity_rows = entity_rows
        super().__init__(vocab, model, name)
        self.listener_map: Dict[str, List[Model]] = {}
        self.encoder.cache = WordCache(shared_pieces)
        self.encoder.owner = name

    # ---- spaCy's protocol of components that others listen to

    @property
    def listeners(self) -> List[Model]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def listening_components(self) -> List[str]:
        return list(self.listener_map)

    def add_listener(self, listener: Model, component_name: str) -> None:
        self.listener_map.setdefault(component_name, [])
        if listener not in self.listener_map[component_name]:
            self.listener_map[component_name].append(listener)

    def remove_listener(self, listener: Model, component_name: str) -> bool:
        nodes = self.listener_map.get(component_name, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component_name]
        return True

    def find_listeners(self, component: Any) -> None:
        """Give the encoder to a component that asks for it; spaCy calls this whenever the pipeline changes."""
        model = getattr(component, "model", None)
        if not isinstance(model, Model):
            return
        self.encoder.owner = self.name
        for node in model.walk():
            if node.name == ENCODER and is_shared(node) and node.attrs["upstream"] in ("*", self.name):
                share_encoder(node, self.model)
                self.add_listener(node, component.name)

    # ---- the pipe

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Hand the Docs on."""
        yield from stream

    def predict(self, docs: Iterable[Doc]) -> None:
        """Nothing: windows are encoded when the first component asks for them."""

    def set_annotations(self, docs: Iterable[Doc], predictions: None) -> None:
        """Nothing: the components after it annotate."""

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Let the encoder learn from what the components after it will ask of these same examples."""
        losses = {} if losses is None else losses
        shim = self.encoder
        shim.examples = examples
        shim.updates += 1
        validate_examples(list(examples), "LukeEncoderOwner.update")
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        step_shared(self.encoder, sgd)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        weights: Optional[Callable[[], Checkpoint]] = None,
    ) -> None:
        """Load the checkpoint. weights: a loader of one, such as spacy-luke.checkpoint.v1; null keeps what is there."""
        validate_get_examples(get_examples, "LukeEncoderOwner.initialize")
        self.load_weights(weights)
