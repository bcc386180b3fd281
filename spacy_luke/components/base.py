"""What all components share: weights from checkpoints, one file on disk, updates that accumulate."""

import contextlib
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import (
    Any,
    TypeVar,
)

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from thinc.api import ConfigValidationError, Optimizer

from ..bridge.documents import read_document
from ..bridge.finite import check_loss
from ..bridge.optimizer import AdamW
from ..bridge.wrapper import TorchShim, shims_of
from ..checkpoint.contents import Checkpoint, LukeCheckpoint
from ..encoders.nodes import ENCODER, is_linked, number_format
from ..encoders.shares import Share, gather_shares, teaching
from ..text.tokenizer import PieceTokenizer
from .attached import check_encoder
from .extents import WindowedComponent, forget_limits, record_windows
from .knowledge import ALIGNMENTS, KnownGetter
from .loading import load_ernie, load_luke, make_ernie_checkpoint, make_luke_checkpoint
from .units.known import KnownEntities

logger = logging.getLogger("spacy")
KINDS = {"luke": "LUKE's (spacy-luke.LukeEncoder.v1)", "ernie": "ERNIE's (spacy-luke.ErnieEncoder.v1)"}
LOADERS = {"luke": "spacy-luke.checkpoint.v1", "ernie": "spacy-luke.ernie_checkpoint.v1"}
PREFIXES = {ENCODER: "encoder"}  # of a node's parameters in a checkpoint


class LukeComponent(WindowedComponent):
    """A trainable component whose model holds a LUKE encoder. Settings are in `self.cfg`, and so on disk."""

    noun = "LUKE component"  # what messages call it
    learned = ("labels",)
    entity_rows = "special"  # or "all": rows of the entity table that the model needs
    special_entities: tuple[str, ...] = ("[MASK]",)  # that the task's inputs have
    prepare: tuple[Callable[[LukeCheckpoint], None], ...] = ()  # what the task adds to a checkpoint before it is loaded
    knowledge: KnownGetter | None = None  # entities of a Doc that an ERNIE encoder knows
    _tokenizer: tuple[str, PieceTokenizer] | None = None  # read from the encoder's texts when it is needed
    _divisor = 0.0  # of the gradients since the last step
    _steps = 0  # that it has made since it was built or loaded

    @property
    def tokenizer(self) -> PieceTokenizer:
        if "tokenizer" not in self.encoder.texts:
            _ = self.encoder.module  # raises: nothing is loaded
        text, known = self.encoder.texts["tokenizer"], self._tokenizer
        if known is None or known[0] is not text:  # a shared encoder is loaded by its owner
            known = self._tokenizer = (text, PieceTokenizer.from_json(text))
        return known[1]

    def special_row(self, name: str) -> int:
        """Row of "[MASK]" or "[MASK2]" in the module's entity table."""
        _ = self.encoder.module  # raises where nothing is loaded
        return self.encoder.settings["specials"][name]

    def load_weights(self, weights: Callable[[], LukeCheckpoint] | None) -> LukeCheckpoint | None:
        """Load what the config names, at initialisation. RETURNS: the checkpoint, None where the encoder is there
        already. Raises ValueError where neither is the case."""
        if self.shared and not is_linked(self.encoder_node):
            raise ValueError(self.encoder.absent)
        if weights is not None and self.shared:
            raise ValueError(
                f"'{self.name}' shares the encoder of '{self.encoder.owner}': give its checkpoint in "
                f"[initialize.components.{self.encoder.owner}.weights] and leave that of '{self.name}' out."
            )
        if weights is not None:
            checkpoint = weights()
            self.load_encoder(checkpoint)
            return checkpoint
        if not self.encoder.ready:
            name = self.encoder.owner if self.shared else self.name
            frozen = (
                f" Or is '{name}' in frozen_components? spaCy does not initialise those: set trainable = false in "
                f"[components.{name}.model] instead, or source it from a saved pipeline."
            )
            # An error of this kind is shown by `spacy train` without a traceback.
            raise ConfigValidationError(
                title=f"'{name}' needs a checkpoint, but the config names none; add for example",
                desc=f"[initialize.components.{name}]\n\n[initialize.components.{name}.weights]\n"
                f'@misc = "{LOADERS[self.encoder_node.attrs["kind"]]}"\n'
                'path = "studio-ousia/luke-base"\n'
                "where path is a folder, a tar.gz or a hub name, and let the @optimizers of [training.optimizer] be "
                f"spacy-luke.AdamW.v1, whose rate is one for pretrained encoders.{frozen if self.shared else ''}",
            )
        return None

    def load_encoder(self, checkpoint: Checkpoint) -> None:
        """Take over a checkpoint's encoder, tokenizer and entities, or vectors of entities: see `load_luke`,
        `load_ernie`."""
        kind = self.encoder_node.attrs["kind"]
        if kind != checkpoint.kind:
            raise ValueError(
                f"The encoder of '{self.name}' is {KINDS[kind]}, but the checkpoint was read for "
                f"{KINDS[checkpoint.kind]}. "
                f"Expected {LOADERS[kind]} in [initialize.components.{self.name}.weights]."
            )
        if kind == "ernie":
            load_ernie(self.encoder, checkpoint)
            return
        for add in self.prepare:
            add(checkpoint)
        load_luke(self.encoder, checkpoint, special=self.special_entities, every_row=self.entity_rows == "all")

    def to_checkpoint(self) -> Checkpoint:
        """The reverse of `load_encoder`, for export."""
        make = make_ernie_checkpoint if self.encoder_node.attrs["kind"] == "ernie" else make_luke_checkpoint
        return make(self.encoder, self.tokenizer)

    @property
    def known(self) -> KnownEntities | None:
        """What finds the entities of Docs that an ERNIE encoder knows; None where it is given none."""
        if self.knowledge is None or self.encoder_node.attrs["kind"] != "ernie":
            return None
        strips = self.tokenizer.strips_accents
        return KnownEntities(self.knowledge, self.cfg["alignment"], self.encoder.vectors, strips)

    def check_knowledge(self, get_examples: Callable[[], Iterable[Example]]) -> None:
        """At initialisation: say how many of the examples' entities have a vector. Raises ValueError where there are no
        vectors, warns where none of the entities has one."""
        if self.knowledge is None or self.encoder_node.attrs["kind"] != "ernie":
            return
        if self.encoder.vectors is None:
            raise ValueError(
                f"'{self.name}' reads entities of Docs (setting knowledge), but its encoder has no entity vectors. "
                f"Expected "
                'vectors = "FOLDER" in the checkpoint\'s loader (see `spacy luke build-vectors`), or knowledge = null.'
            )
        counts: Counter = Counter()
        for example in get_examples():
            doc = example.predicted
            self.known.find(doc, read_document(doc, self.tokenizer), counts=counts)
        said = f"'{self.name}': of {counts.total()} entities of the training data " + ", ".join(
            f"{n} {what}" for what, n in sorted(counts.items())
        )
        if counts.total() and not counts["have a vector"]:
            warnings.warn(f"{said}. Are their ids those of the vectors' file?", stacklevel=3)
        logger.info(said)

    def predicting(self) -> AbstractContextManager[None]:
        """Around the passes of one prediction; an encoder without weights, or another than the component was saved
        with, raises here already."""
        _ = self.encoder.module
        check_encoder(self.encoder_node, name=self.name)
        return number_format(self.encoder_node, self.encoder, is_train=False)

    def named_parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Trainable parameters of its own with their names in a checkpoint: encoder.*, head.*"""
        return [
            (f"{PREFIXES.get(node, node)}.{n}", p)
            for node, x in self.own_shims.items()
            for n, p in x.named_parameters()
        ]

    def marker(self, piece: str) -> int:
        """Id of a piece that marks mentions."""
        number = self.tokenizer.piece_id(piece)
        if number is None:
            raise ValueError(
                f"'{self.name}' marks mentions by the piece {piece!r}, which the encoder's tokenizer does not have. "
                f"Expected "
                "a LUKE checkpoint, or a plain one, which gets it when it is read; or set attention to one_way."
            )
        return number

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate Docs. Components that share an encoder, and so word states, take few Docs at a time and hand them on
        before they take more, so that those states are still held when the next component asks for them."""
        if self.encoder.cache is None or not self.encoder.cache.capacity:
            yield from super().pipe(stream, batch_size=batch_size)
            return
        words = max(self.encoder.cache.capacity // 2, 1)  # a word has less than two pieces on average
        for docs in _by_words(stream, words=words, docs=batch_size):
            yield from super().pipe(docs, batch_size=len(docs))

    # ---- labels

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg.get("labels", []))

    @property
    def label_data(self) -> list[str] | None:
        """What `spacy init labels` writes; None of a component without labels."""
        return list(self.labels) if "labels" in self.cfg else None

    def create_head(self, *, seed: int = 0) -> None:
        """A head with fresh parameters for the labels that there are."""
        raise NotImplementedError

    def add_label(self, label: str) -> int:
        """Add a label. Where the head exists already it gains a row that has learned nothing yet."""
        if not isinstance(label, str) or not label:
            raise ValueError(f"A label must be a string that is not empty, but it is {label!r}.")
        if label in self.cfg["labels"]:
            return 0
        self.cfg["labels"].append(label)
        head = self.model.shims[0]
        if head.ready:
            old = head.module.state_dict()
            self.create_head()
            new = head.module.state_dict()
            for key, value in old.items():
                new[key][: len(value)] = value
            head.fill(new)
        return 1

    def choose_labels(self, given: list[str] | None, seen: Counter, *, where: str) -> None:
        """Take the labels that were given, or those of the examples; where: they were looked for."""
        if given is not None:
            if repeated := sorted(label for label, n in Counter(given).items() if n > 1):
                raise ValueError(f"The labels given for '{self.name}' repeat {repeated}; expected each once.")
            if missing := sorted(set(seen) - set(given)):
                raise ValueError(
                    f"The labels given for '{self.name}' are {sorted(given)}, but the examples also hold {missing}. "
                    f"Add these to [initialize.components.{self.name}.labels] or remove them from the data."
                )
        chosen = given if given is not None else sorted(seen)
        if not chosen:
            raise ValueError(
                f"'{self.name}' found no labels: expected {where} in the examples, "
                f"or a list in [initialize.components.{self.name}.labels]."
            )
        self.cfg["labels"] = list(chosen)

    def warn_missing(self, missing: Counter, total: int, *, what: str, advice: str = "Correct the data.") -> None:
        """Say how much of the gold can never be predicted, and why."""
        if missing:
            reasons = ", ".join(f"{n} {reason}" for reason, n in missing.items())
            warnings.warn(
                f"'{self.name}': {missing.total()} of {total} {what} of the training data can never be predicted "
                f"({reasons}). {advice}",
                stacklevel=3,
            )

    # ---- heads that come from elsewhere, and go there

    def fill_classifier(self, checkpoint: LukeCheckpoint) -> None:
        """Put a checkpoint's classifier in the place of the head's."""
        head = self.model.shims[0]
        forget_limits(self.encoder)
        state = head.module.state_dict()
        for name in ("classifier.weight", "classifier.bias"):
            if name in state and f"head.{name}" in checkpoint.tensors:
                state[name] = checkpoint.tensors[f"head.{name}"]
            elif name in state:  # a head without bias equals one with zeros
                state[name] = torch.zeros_like(state[name])
            elif f"head.{name}" in checkpoint.tensors:
                raise ValueError(
                    f"The checkpoint's classifier has a bias, but the model of '{self.name}' has none; set bias = true."
                )
        head.fill(state)

    def with_classifier(self, checkpoint: LukeCheckpoint) -> LukeCheckpoint:
        """Add the head's classifier to a checkpoint that is to be exported."""
        for name, x in self.model.shims[0].module.classifier.state_dict().items():
            checkpoint.tensors[f"head.classifier.{name}"] = x.detach().cpu()
        return checkpoint

    def check_exportable(self, features: str = "entity") -> None:
        if self.encoder_node.attrs["kind"] == "ernie":
            return  # its one kind of head is the original's
        if (found := self.model.attrs["features"]) != features:
            raise ValueError(
                f"The head of '{self.name}' reads features = {found!r}, but that of other LUKE code reads "
                f"{features!r}. "
                f"Train with features = {features!r} to export it."
            )

    # ---- training

    def batches(self, examples: list[Example]) -> Iterable[Any]:
        """What is encoded of examples, with its gold classes."""
        raise NotImplementedError

    def loss_weight(self, batch: Any) -> float:
        """How many of a batch's losses are summed, for the mean."""
        raise NotImplementedError

    def get_loss(self, batch: Any, outputs: Any) -> tuple[float, tuple[Any, ...]]:  # type: ignore[override]
        """The summed loss, and its gradients by the model's outputs."""
        raise NotImplementedError

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from examples: the mean loss of all that they ask for, however they are divided into batches of
        `batch_size`. The step is made by `finish_update`. `drop` is the rate of every dropout of the model.

        An encoder that is shared learns only if its `luke_encoder` was updated with the same examples before, as
        `nlp.update` does unless it is frozen.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        shim = self.encoder
        _ = shim.module  # raises: nothing is loaded, or linked
        self.encoder_node.attrs.pop("digest", None)  # it learns to work with the encoder that there is
        shim.learning = shim.trainable and (not self.shared or shim.examples is examples)
        self._quiet = True
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        for part in shims_of(self.model).values():
            part.set_dropout(drop)
        batches = list(self.batches(examples))
        total = float(sum(self.loss_weight(batch) for batch in batches))
        if self.counts_windows and (shim.learning or not self.shared):  # of others' encoder only what it learns from
            record_windows(self.encoder, [length for batch in batches for length in batch.lengths])
        # Several updates before a step give the mean of all their losses, also of an encoder that others teach too.
        with self._teaching() as share:
            for batch in batches:
                outputs, backprop = self.model.begin_update(batch)
                loss, gradients = self.get_loss(batch, outputs)
                check_loss(loss, name=self.name, steps=self._steps)
                backprop(*gradients)
                losses[self.name] += loss / (total or 1.0)
        self._divisor += total
        if share is not None:
            share.losses += total
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def _teaching(self) -> AbstractContextManager[Share | None]:
        """Around the passes of an update."""
        if not (self.shared and self.encoder.learning):
            return contextlib.nullcontext()
        return teaching(self.encoder, self.name, self.encoder_node.attrs["weight"])

    def finish_update(self, sgd: Optimizer) -> None:
        """One step with the mean gradient of the updates since the last one. A shared encoder makes its step with the
        first component that is finished: its owner in `spacy train`."""
        if self.shared and self.encoder.learning:
            step_shared(self.encoder, sgd)
        parameters = self.named_parameters()
        divide_gradients(parameters, self._divisor)
        self._divisor = 0.0
        self._steps += 1
        if isinstance(sgd, AdamW):
            sgd.step(self.name, parameters)
        else:
            for shim in self.own_shims.values():
                shim.finish_update(sgd)


def _by_words(stream: Iterable[Doc], *, words: int, docs: int) -> Iterator[list[Doc]]:
    """Lists of Docs with at least this many words in all, or of this many Docs."""
    held: list[Doc] = []
    for doc in stream:
        held.append(doc)
        if len(held) >= docs or sum(len(x) for x in held) >= words:
            yield held
            held = []
    if held:
        yield held


def check_alignment(alignment: str) -> None:
    if alignment not in ALIGNMENTS:
        raise ValueError(f"alignment must be one of {ALIGNMENTS}, but it is {alignment!r}.")


def check_markers(markers: Sequence[str], n: int) -> list[str]:
    if len(markers) != n or not all(isinstance(x, str) and x for x in markers):
        raise ValueError(
            f"markers must be a list of {n} piece(s), such as {['<ent>', '<ent2>'][:n]}, but it is {markers!r}."
        )
    return list(markers)


def check_limits(**limits: int | None) -> None:
    for setting, value in limits.items():
        if value is not None and value < 1:
            raise ValueError(f"{setting} must be at least 1, but it is {value}.")


def divide_gradients(parameters: list[tuple[str, torch.nn.Parameter]], divisor: float) -> None:
    gradients = [p.grad for _, p in parameters if p.grad is not None]
    if divisor and gradients:
        torch._foreach_div_(gradients, float(divisor))


def step_shared(shim: TorchShim, sgd: Optimizer) -> None:
    """One step of a shared encoder with what all components have taught it. It waits for gradients of spaCy's
    components that are still to come."""
    if shim.pending is not None:
        shim.pending.then = lambda: step_shared(shim, sgd)
        return
    shim.changed = True
    gather_shares(shim)
    if isinstance(sgd, AdamW):
        sgd.step(shim.owner, [(f"encoder.{name}", p) for name, p in shim.named_parameters()])
    else:
        shim.finish_update(sgd)


Found = TypeVar("Found", bound=LukeComponent)


def find_component(nlp: Language, kind: type[Found], name: str | None = None) -> Found:
    """The pipeline's component of this kind and name, or its only one. Raises ValueError where there is no such
    thing."""
    found = {key: proc for key, proc in nlp.pipeline if isinstance(proc, kind)}
    if name is None and len(found) != 1:
        raise ValueError(
            f"The pipeline has the {kind.noun}s {list(found)}. Expected one {kind.noun}, or --component to name it."
        )
    if name is not None and name not in found:
        raise ValueError(f"The pipeline has no {kind.noun} {name!r}; it has {list(found)}.")
    return found[name] if name is not None else next(iter(found.values()))
