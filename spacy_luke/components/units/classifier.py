"""One classifier of units, whatever these are: mentions get types, pairs of mentions relations.

L labels, U units; see `units.asked`.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from ...annotations import get_scope
from ...architectures.entity_classifier import create_entity_head
from ...batch.allowed import ANY, AllowedClasses
from ...batch.entities import EntityBatch, EntityItem, make_entity_batch
from ...bridge.wrapper import to_tensor
from ...checkpoint.contents import Checkpoint
from ...model.losses import cross_entropy, multi_label_cross_entropy
from ...model.partial_losses import marginal_cross_entropy, marginal_multi_label
from ...model.taught_losses import taught_cross_entropy
from ..base import need_gold
from ..factories import Function
from ..labelled import LabelledComponent
from ..mentions import MentionGetter
from ..taught import read_taught
from ..window_limits import ContextSettings
from .asked import Gold, Units, UnitSurvey
from .gold_classes import class_numbers, class_table, is_known, unknown_labels
from .inputs import Input, unit_items


class ScoredUnits(NamedTuple):
    """What a batch says of a Doc: the numbers of the Doc and of its units, and these units' logits, on the host."""

    owner: int
    number_U: NDArray[np.int64]
    logits_UL: Tensor


class UnitClassifier(ContextSettings, LabelledComponent[UnitSurvey]):
    """Predicts, learns and counts. What a task says for itself: which units a Doc has (`asked`), what is gold of
    them (`read_gold`), how predictions are read and written, and its words.

    label_noun, unit_noun, mention_noun: what messages call a label, the units, and their mentions.
    lost_reason: what is said of gold whose unit cannot be encoded.
    scope_task: what the scope of a Doc calls the task. metric: that `tune` makes best.
    """

    getter: Function[MentionGetter] = Function(
        {"@misc": "spacy-luke.doc_ents.v1"},
        "the mentions of a Doc: `doc.ents`; `spacy-luke.span_group.v1` with a `key`; or any function of the `misc` "
        "registry",
    )
    counts_windows = True
    make_batch = staticmethod(make_entity_batch)
    label_noun: ClassVar[str]
    unit_noun: ClassVar[str]
    mention_noun: ClassVar[str]
    lost_reason: ClassVar[str]
    scope_task: ClassVar[str]
    metric: ClassVar[str]
    _told_of_missing = False  # that some of the gold is never asked about

    # ---- what a task says

    @abstractmethod
    def asked(self, doc: Doc) -> Units:
        """What is asked about a Doc in predictions."""

    @abstractmethod
    def read_gold(self, example: Example, asked: Units | None = None) -> Gold:
        """What is gold of units of the predicted Doc: of those that training asks about where none are given."""

    @abstractmethod
    def has_gold(self, example: Example) -> bool: ...

    @abstractmethod
    def gold_names(self, reference: Doc) -> list[str]:
        """The labels of all that is gold of a Doc, whether it can be predicted or not."""

    @abstractmethod
    def gold_total(self, example: Example, found: Gold) -> int:
        """How many labels the reference has, with those that cannot be predicted."""

    @abstractmethod
    def asked_and_known(self, example: Example) -> Units:
        """What is asked about the predicted Doc, without units of which the gold says nothing."""

    @abstractmethod
    def lost_message(self, doc: Doc, asked: Units, lost: Sequence[int]) -> str:
        """What is said of units that cannot be encoded, whose numbers are `lost`."""

    @abstractmethod
    def prior(self, survey: UnitSurvey) -> NDArray[np.float64]:
        """Log-odds or log-shares (L,) of the classes, with which a fresh head begins."""

    @property
    def classes(self) -> list[str | None]:
        """Labels of the head's rows; None stands for "no label"."""
        return list(self.labels)

    @property
    def multi_label(self) -> bool:
        """As of any component with labels; the thing is a unit."""
        return True

    @property
    def pairwise(self) -> bool:
        """Whether each unit has entity tokens of its own; otherwise each mention has one in each place."""
        return True

    def marks(self) -> Sequence[str]:
        """The pieces around the mentions of a unit, in full attention."""
        return ("<ent>", "<ent2>")[: len(self.special_entities)]

    @property
    def label_focus(self) -> float:
        """Of the loss of several labels, see `multi_label_cross_entropy`."""
        return 0.0

    def weigh(self, labels: list[str]) -> int:
        """How many things there are to be found in a unit with these gold labels."""
        return len(labels)

    # ---- what is encoded

    @property
    def fixed(self) -> dict[str, Any]:
        return {**super().fixed, **({"markers": list(self.marks())} if self.attention == "full" else {})}

    def create_head(self, *, seed: int = 0, prior_L: NDArray[np.float64] | None = None) -> None:
        create_entity_head(self.model, len(self.classes), states=len(self.special_entities), seed=seed, prior_L=prior_L)

    def input(self, *, learning: bool = False) -> Input:
        full = self.attention == "full"
        limits = self.limits(learning=learning)
        return Input(
            tokenizer=self.tokenizer,
            attention=self.attention,
            room=limits["room"],
            overlap=limits["overlap"],
            widest=self.widest(),
            context=self.context,
            punctuation_apart=self.punctuation_apart,
            rows=self.special_rows(*self.special_entities),
            markers=[self.marker(x) for x in self.marks()] if full else [],
            tokens=self.batch_size,
            pairwise=full or self.pairwise,
            known=self.known,
        )

    def items(
        self,
        doc: Doc,
        asked: Units,
        *,
        owner: int = 0,
        task: Input | None = None,
        gold: np.ndarray | None = None,
        lost: list[int] | None = None,
    ) -> Iterator[EntityItem]:
        """What is encoded of a Doc for its units; see `unit_items`. task: None is that of predictions."""
        task = self.input() if task is None else task
        return unit_items(task, doc, asked.mentions, asked.units_UK, owner=owner, gold=gold, lost=lost)

    # ---- prediction

    def read(self, scored: ScoredUnits) -> Any:
        """What is kept of the logits of some units of a Doc: all, or what is found by them."""
        return scored

    @abstractmethod
    def join(self, asked: Units, parts: list[Any]) -> Any:
        """The prediction for a Doc, of what `read` has kept."""

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """For each Doc what `set_annotations` takes; see `join`."""
        docs = list(docs)
        asked = [self.asked(doc) for doc in docs]
        lost: list[list[int]] = [[] for _ in docs]
        return self.found(docs, asked, self.scored(docs, asked, lost), lost)

    def found(
        self, docs: Sequence[Doc], asked: Sequence[Units], scored: Iterable[ScoredUnits], lost: Sequence[Sequence[int]]
    ) -> list[Any]:
        """As `predict`, by the logits of all units. Warns of those that are lost."""
        parts: list[list[Any]] = [[] for _ in docs]
        for some in scored:
            parts[some.owner].append(self.read(some))
        for doc, units, numbers in zip(docs, asked, lost):
            if numbers:
                warnings.warn(f"'{self.name}': {self.lost_message(doc, units, numbers)}.", stacklevel=2)
        return [self.join(units, some) for units, some in zip(asked, parts)]

    def scored(self, docs: Sequence[Doc], asked: Sequence[Units], lost: list[list[int]]) -> Iterator[ScoredUnits]:
        """The logits of the units of all Docs, batch by batch, by which labels are given. lost: gets of each Doc the
        units that cannot be encoded."""
        return self.with_mentions(docs, asked, self.scored_by_head(docs, asked, lost))

    def with_mentions(
        self, docs: Sequence[Doc], asked: Sequence[Units], scored: Iterable[ScoredUnits]
    ) -> Iterator[ScoredUnits]:
        """The head's logits with what the mentions' own labels and scores say of units; of most tasks nothing."""
        yield from scored

    def scored_by_head(
        self, docs: Sequence[Doc], asked: Sequence[Units], lost: list[list[int]]
    ) -> Iterator[ScoredUnits]:
        """As `scored`, without what mentions say."""
        task = self.input()
        items = (
            item
            for i, (doc, units) in enumerate(zip(docs, asked))
            for item in self.items(doc, units, owner=i, task=task, lost=lost[i])
        )
        for batch, logits_UL in self.scored_batches(items, docs):
            owner_U, number_U = batch.owner_U(), batch.number_U()
            for owner in np.unique(owner_U).tolist():
                own = np.flatnonzero(owner_U == owner)
                yield ScoredUnits(owner, number_U[own], logits_UL[own])

    # ---- training

    def loss_weight(self, batch: EntityBatch) -> float:
        """Units of which something is known. The papers' mean of typing is also over labels: for AdamW as much as an
        eps and a `grad_clip` that are as many times larger, as the papers' configs have them."""
        gold = need_gold(batch.gold)
        return float(len(gold) if gold.ndim == 2 else (gold != ANY).sum())

    def get_loss(self, batch: EntityBatch, logits_UL: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        """Cross-entropy as in the paper, or the binary one of several labels, summed over units."""
        gold = to_tensor(need_gold(batch.gold), logits_UL.device)
        if self.multi_label and batch.leaves_open:
            loss, gradient = marginal_multi_label(logits_UL, gold, groups=batch.groups, focus=self.label_focus)
        elif self.multi_label:
            loss, gradient = multi_label_cross_entropy(logits_UL, gold, focus=self.label_focus)
        elif gold.dim() == 2:
            loss, gradient = taught_cross_entropy(logits_UL, gold)
        elif batch.allowed_SL is not None:
            loss, gradient = marginal_cross_entropy(logits_UL, gold, to_tensor(batch.allowed_SL, logits_UL.device))
        else:
            loss, gradient = cross_entropy(logits_UL, gold)
        return loss, (gradient,)

    def gold(self, example: Example, asked: Units | None = None) -> tuple[Units, np.ndarray, dict[str, int]]:
        """What is asked about the predicted Doc, in training where None is given; what the units are by gold, (U, L),
        or (U,) where each has one class (see `gold_classes`); and why other gold is not among them."""
        found = self.read_gold(example, asked)
        self.check_gold(example, found)
        allowed = AllowedClasses(len(self.classes))
        return found.units, self.classes_of(example, found, allowed), found.missing

    def check_gold(self, example: Example, found: Gold) -> None:
        """ValueError where there is a label that cannot be learned."""
        for u, label in unknown_labels(found, self.classes, get_scope(example.reference, self.scope_task)):
            words = " and ".join(repr(example.predicted[a:b].text) for a, b in found.units.places(u))
            raise self.unknown_label(f"the {self.label_noun} {label!r} of {words}", noun=self.label_noun)

    def classes_of(self, example: Example, found: Gold, allowed: AllowedClasses) -> np.ndarray:
        """What units are by gold; where they have labels that the component does not know, none of its own."""
        scope, classes = get_scope(example.reference, self.scope_task), self.classes
        return class_table(found, classes, scope) if self.multi_label else class_numbers(found, classes, scope, allowed)

    def teaches(self, example: Example) -> bool:
        """Whether the gold Doc says anything of the task."""
        return self.has_gold(example) and not get_scope(example.reference, self.scope_task).is_empty

    def batches(self, examples: list[Example]) -> Iterator[EntityBatch]:
        items: list[EntityItem] = []
        taught: list[EntityItem] = []  # by probabilities, which stand in batches of their own
        allowed = AllowedClasses(len(self.classes))
        task = replace(self.input(learning=True), allowed=allowed)
        for i, example in enumerate(examples):
            if (said := read_taught(example, [label or "" for label in self.classes], name=self.name)) is not None:
                units = Units.of(said.places)
                taught += self.items(example.predicted, units, owner=i, task=task, gold=said.probability_PL)
                continue
            if not self.teaches(example):
                continue
            found = self.read_gold(example)
            if found.missing and not self._told_of_missing:
                self._told_of_missing = True
                self.warn_missing(found.missing, self.gold_total(example, found), what=f"{self.gold_noun} of a Doc")
            self.check_gold(example, found)
            asked, gold = found.units, self.classes_of(example, found, allowed)
            if not get_scope(example.reference, self.scope_task).is_full:  # what teaches nothing is not encoded
                asked, gold = asked.only(is_known(gold).tolist()), gold[is_known(gold)]
            items += self.items(example.predicted, asked, owner=i, task=task, gold=gold)
        return chain(*(self.batched(some) for some in (items, taught)))

    def survey(self, get_examples: Callable[[], Iterable[Example]]) -> UnitSurvey:
        found, task = UnitSurvey(), self.input(learning=True)
        for example in filter(self.teaches, get_examples()):
            gold, scope = self.read_gold(example), get_scope(example.reference, self.scope_task)
            lost: list[int] = []
            for _ in self.items(example.predicted, gold.units, task=task, lost=lost):
                pass
            found.missing.update(gold.missing)
            self._told_of_missing |= bool(gold.missing)
            if gone := sum(self.weigh(gold.labels[u]) for u in lost if u in gold.labels):
                found.missing[self.lost_reason] += gone
            seen = [label for labels in gold.labels.values() for label in labels]
            found.seen.update(one for label in seen for one in sorted(scope.named(label)))
            found.units += len(gold.labels if scope.annotates == frozenset() else gold.units)
            found.total += sum(map(self.weigh, gold.labels.values())) + gold.missing.total()
        return found

    # ---- the head

    def create_first_head(self, survey: UnitSurvey, *, seed: int) -> None:
        self.create_head(seed=seed, prior_L=self.prior(survey))

    def known_labels(self, checkpoint: Checkpoint) -> list[str] | None:
        same = checkpoint.task == self.task and self.model.attrs["features"] in ("entity", "pooled")
        return checkpoint.labels if same else None
