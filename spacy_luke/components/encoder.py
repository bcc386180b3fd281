"""`luke_encoder`: one encoder for several components, stored and stepped once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from thinc.api import Model, Optimizer

from ..batch.windows import Document
from ..bridge.finite import check_scores
from ..checkpoint.contents import Checkpoint
from ..encoders.doc_windows import DocWindows, encode_docs, pool_words, read_windows
from ..encoders.listeners import (
    Listener,
    fit_width,
    install_extensions,
    listens_to,
    refuse_copy,
    split_pieces,
    split_words,
    wants_pieces,
    wants_words,
    warn_of_renaming,
)
from ..encoders.nodes import ENCODER, is_shared, share_encoder
from ..encoders.seen import record_windows
from ..encoders.sharing import SharedEncoder
from ..encoders.word_pass import WordPass
from .base import LukeComponent
from .encoder_checks import check_encoder, warn_of_another
from .factories import Setting, register
from .known_entities import KnownFinder
from .window_limits import WindowSettings

_MODEL = {"@architectures": "spacy-luke.LukeEncoder.v1"}
_ENTITY_ROWS = ("special", "all")


class LukeEncoderOwner(WindowSettings, LukeComponent):
    """Has the encoder of the components after it whose model holds spacy-luke.SharedEncoder.v1.

    The weights are loaded, stored and stepped here alone. All that share them train them together: a step has the sum
    of the gradients of their mean losses; a mean is over all updates before the step, whichever had gold, so that until
    then each component's gradients are kept apart, as many numbers as the encoder has for each. Frozen (in
    frozen_components, or not updated with the same examples), the encoder learns nothing and its weights stay as they
    are. In one-way attention the components also share the pass over the words.

    spaCy's own components read its word states by their listeners, spacy.Tok2VecListener.v1 (a word is the mean of its
    pieces, in `doc.tensor`), or spacy-transformers.TransformerListener.v1 (`doc._.trf_data`) where that package is
    installed. In an update all of them share one pass over the words, with their whole documents as context. The
    gradients of their losses are summed, as always in spaCy, also over several updates before a step.
    """

    has_loss = False  # of its own, for logs

    entity_rows: Setting[str] = Setting(
        "special",
        'rows of the entity table that are kept; `"all"` for components with known entities, as `luke_qa` with linked '
        "entities",
        choices=_ENTITY_ROWS,
    )
    shared_pieces: Setting[int] = Setting(
        8192,
        "windows of so many pieces in all are held for the components that follow; memory, not results, depends on it: "
        "twice as many numbers a piece as the encoder has layers times its width (about 70 KB of a base model); 0 "
        "holds none",
        least=0,
    )
    batch_size: Setting[int] = Setting(4096, "pieces encoded at once, for spaCy's own components", least=1)
    listener_weight: Setting[float] = Setting(
        1.0,
        "what the gradients of spaCy's own components are multiplied by. Their losses are sums over words or "
        "documents, those of LUKE components means, so that in a batch of 1000 words a tagger outweighs them by far; "
        "0.001 balances the two; 0: the encoder learns nothing from them",
        least=0,
    )

    noun = "luke_encoder"
    special_entities = ("[MASK]", "[MASK2]")

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.listener_map: dict[str, list[Model[Any, Any]]] = {}
        self.former = self.name  # what it was called before it was renamed
        self.encoder.sharing = SharedEncoder(self.encoder, self.name, self.cfg)
        self.model.attrs["replace_listener"] = refuse_copy

    @property
    def every_row(self) -> bool:
        return self.entity_rows == "all"

    @property
    def sharing(self) -> SharedEncoder:
        sharing = self.encoder.sharing
        assert sharing is not None
        return sharing

    @property
    def fixed(self) -> dict[str, Any]:
        return {**super().fixed, "entity_rows": self.entity_rows}

    def _restore(self, *args: Any, **kwargs: Any) -> None:
        was_ready = self.encoder.ready
        super()._restore(*args, **kwargs)
        for component, nodes in self.listener_map.items():
            for node in nodes if not was_ready else ():  # components that were loaded before their encoder
                check_encoder(node, name=component)

    # ---- spaCy's protocol of components that others listen to

    @property
    def listeners(self) -> list[Model[Any, Any]]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def listening_components(self) -> list[str]:
        return list(self.listener_map)

    def add_listener(self, listener: Model[Any, Any], component_name: str) -> None:
        self.listener_map.setdefault(component_name, [])
        if listener not in self.listener_map[component_name]:
            self.listener_map[component_name].append(listener)

    def remove_listener(self, listener: Model[Any, Any], component_name: str) -> bool:
        nodes = self.listener_map.get(component_name, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component_name]
        return True

    def find_listeners(self, component: Any) -> None:
        """Give the encoder, or what it says of words, to a component that asks for it; spaCy calls this whenever the
        pipeline changes."""
        model = getattr(component, "model", None)
        if not isinstance(model, Model):
            return
        if self.sharing.owner != self.name:
            self.former, self.sharing.owner = self.sharing.owner, self.name
        for node in model.walk():
            if node.name == ENCODER and is_shared(node) and node.attrs["upstream"] in ("*", self.name):
                warn_of_another(node, self.encoder, name=component.name, owner=self.name)
                share_encoder(node, self.model)
                self.add_listener(node, component.name)
                self.prepare = tuple(dict.fromkeys((*self.prepare, *getattr(component, "prepare", ()))))
            elif listens_to(node, self.name):
                self.add_listener(node, component.name)
                if wants_pieces(node):
                    install_extensions()
                if self.encoder.ready and node.has_dim("nO") is None:
                    node.set_dim("nO", self.encoder.module.config.hidden_size)
            elif listens_to(node, self.former):
                warn_of_renaming(component.name, former=self.former, owner=self.name)

    def word_listeners(self) -> list[Listener]:
        """Those that are given word states. Raises ValueError where one expects other sizes."""
        found: list[Listener] = []
        for component, nodes in self.listener_map.items():
            for node in nodes:
                if wants_words(node) or wants_pieces(node):
                    fit_width(node, self.encoder.module.config.hidden_size, component=component, owner=self.name)
                    found.append(node)
        return found

    def read(self, docs: Iterable[Doc], *, learning: bool) -> list[DocWindows]:
        limits = self.limits(learning=learning)
        find = self._find_known if self.encoder.kind.reads_knowledge else None
        return [read_windows(doc, self.tokenizer, **limits, find=find) for doc in docs]

    def _find_known(self, doc: Doc, document: Document) -> tuple[np.ndarray, np.ndarray]:
        found = KnownFinder(self.known, doc, document).find(())
        return found.pieces_E, found.rows_E

    # ---- the pipe

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Give the Docs their word states where a component listens, or hand them on as they are."""
        yield from super().pipe(stream, batch_size=batch_size) if self.word_listeners() else stream

    def predict(self, docs: Iterable[Doc]) -> tuple[list[Any], list[Any]] | None:
        """For each Doc its word vectors (W, D) and its TransformerData, both only where a component listens. Without
        listeners nothing: windows are encoded when the first component asks for them."""
        listeners = self.word_listeners()
        if not listeners:
            return None
        docs = list(docs)
        with self.predicting():
            read = self.read(docs, learning=False)
            states_ND = encode_docs(self.encoder, read, size=self.predicted_at_once)
            check_scores(
                states_ND, lambda: [i for i, x in enumerate(read) for _ in range(sum(x.lengths))], docs, name=self.name
            )
            words = split_words(pool_words(states_ND, read), read) if any(map(wants_words, listeners)) else []
            pieces = split_pieces(states_ND, read, self.tokenizer) if any(map(wants_pieces, listeners)) else []
        return words, pieces

    def set_annotations(self, docs: Iterable[Doc], predictions: tuple[list[Any], list[Any]] | None) -> None:
        docs, (words, pieces) = list(docs), predictions or ([], [])
        for doc, tensor in zip(docs, words):
            doc.tensor = tensor.copy()  # not a part of the whole batch's
        for doc, data in zip(docs, pieces):
            install_extensions()
            doc._.trf_data = data

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Let the encoder learn from what the components after it will ask of these same examples; its loss is the
        squared gradient of those that listen. `drop` is the rate of every dropout."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        shim = self.encoder
        shim.check_learning(shim.trainable)
        self.sharing.begin(examples)
        examples = list(examples)
        validate_examples(examples, "LukeEncoderOwner.update")
        if listeners := self.word_listeners():
            shim.set_dropout(drop)
            docs = [example.predicted for example in examples]
            read = self.read(docs, learning=True)
            if shim.trainable:
                record_windows(shim, [length for doc in read for length in doc.lengths])
            words = WordPass(
                self.encoder_node,
                self.sharing,
                read,
                size=self.batch_size,
                weight=self.listener_weight,
                losses=losses,
                names={id(node): component for component, nodes in self.listener_map.items() for node in nodes},
            )
            words.feed(listeners, docs, self.tokenizer)
        if sgd:  # spaCy says False, too
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """One step of the encoder with what all components have taught it; see `SharedEncoder.finish`."""
        self.sharing.finish(sgd)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        weights: Callable[[], Checkpoint] | None = None,
    ) -> None:
        """Load the checkpoint. weights: a loader of one, such as spacy-luke.checkpoint.v1; null keeps what is there."""
        validate_get_examples(get_examples, "LukeEncoderOwner.initialize")
        self.load_weights(weights)
        self.check_knowledge(get_examples)
        self.check_words(get_examples, again=True)
        self.word_listeners()


make_luke_encoder = register("luke_encoder", LukeEncoderOwner, model=_MODEL)
