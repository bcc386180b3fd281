"""What components have whose head has a row for each label: the labels, and how these and the head begin."""

import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from spacy.language import Language
from spacy.training import Example, validate_get_examples

from ..architectures.run_head import make_wider
from ..checkpoint.contents import Checkpoint
from ..text.spelling import shorten
from .base import LukeComponent

_MOST_LABELS = 50  # that a message lists


@dataclass
class LabelSurvey:
    """What the training data hold: how often each label, how many things are to be found in all, and why some of these
    can never be."""

    seen: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    total: int = 0

    @property
    def advice(self) -> str:
        """What to do about these; "": what the component says."""
        return ""


def make_add_labels(labels: dict[str, list[str]]) -> Callable[[Language], Language]:
    """`spacy-luke.add_labels.v1`, for [initialize] before_init: add labels to components that are sourced from a
    trained pipeline, which spaCy does not initialise. What they know already stays.

    labels: of each component by its name, such as {"luke_ner": ["PRODUCT"]}.
    """

    def add_labels(nlp: Language) -> Language:
        for name, some in labels.items():
            component: Any = nlp.get_pipe(name)
            for label in some:
                component.add_label(label)
        return nlp

    return add_labels


SurveyT = TypeVar("SurveyT", bound=LabelSurvey)


class LabelledComponent(LukeComponent, Generic[SurveyT]):
    """A component whose head has a row for each label, and one for none where a task has that.

    gold_noun: what messages call what is to be found; advice: what to do about gold that never can be. task: of a
    checkpoint whose head it can take; head_features: what a head that is exported must read.
    """

    learned: tuple[str, ...] = ("labels",)
    gold_noun: ClassVar[str]
    advice: ClassVar[str] = "Correct the data."
    task: ClassVar[str]
    head_features: ClassVar[str] = "entity"

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.cfg.learn(labels=[])

    # ---- what a task says

    @property
    @abstractmethod
    def gold_place(self) -> str:
        """Where gold is looked for."""

    @abstractmethod
    def survey(self, get_examples: Callable[[], Iterable[Example]]) -> SurveyT:
        """Read the training data once."""

    @abstractmethod
    def create_head(self, *, seed: int = 0) -> None:
        """A head with fresh parameters for the labels that there are."""

    @abstractmethod
    def create_first_head(self, survey: SurveyT, *, seed: int) -> None:
        """A fresh head that begins with the shares of the training data."""

    @abstractmethod
    def known_labels(self, checkpoint: Checkpoint) -> list[str] | None:
        """Labels of a checkpoint whose head can be the component's; None of others."""

    # ---- labels

    @property
    def multi_label(self) -> bool:
        """Whether several labels may hold of one thing; otherwise their probabilities are shares of one."""
        return False

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        """What `spacy init labels` writes."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label. Where the head exists already it gains a row that has learned nothing yet (see `make_wider`).
        Other threads may predict meanwhile: they read labels after scores, so that each class has its label."""
        if not isinstance(label, str) or not label:
            raise ValueError(f"A label must be a string that is not empty, but it is {label!r}.")
        if label in self.cfg["labels"]:
            return 0
        wider = make_wider(self.model, several=self.multi_label) if self.head.ready else None
        self.cfg.learn(labels=[*self.labels, label])
        if wider is not None:
            self.head.take(wider)
        return 1

    def check_learned(self, name: str, value: Any) -> None:
        """Raises ValueError for labels that are no list of names, each once, or not as many as the head has outputs:
        `cfg["labels"]` may give these other names."""
        if name != "labels":
            return
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) and x for x in value):
            raise ValueError(f"The labels of '{self.name}' must be a list of strings that are not empty: {value!r}.")
        if repeated := sorted(label for label, n in Counter(value).items() if n > 1):
            raise ValueError(f"The labels of '{self.name}' repeat {repeated}; expected each once.")
        if not self.head.ready:
            return
        outputs = self.head.settings["n_labels"] - len(self.row_labels()) + len(self.labels)  # without that of none
        if len(value) != outputs:
            raise ValueError(
                f"The model of '{self.name}' has outputs for {outputs} labels, but {len(value)} are given: "
                f"{shorten(value, noun='labels')}. Give {outputs}, in the same order, to rename them; to add one, call "
                f"nlp.get_pipe({self.name!r}).add_label, and to take some away, train again."
            )

    def choose_labels(self, given: list[str] | None, seen: Counter[str], *, where: str) -> None:
        """Take the labels that were given, or those that were added and those of the examples; where: these were looked
        for. A component that has a head already begins anew, without the labels of before."""
        if given is not None:
            if repeated := sorted(label for label, n in Counter(given).items() if n > 1):
                raise ValueError(f"The labels given for '{self.name}' repeat {repeated}; expected each once.")
            if missing := sorted(set(seen) - set(given)):
                raise ValueError(
                    f"The labels given for '{self.name}' are {sorted(given)}, but the examples also hold {missing}. "
                    f"Add these to [initialize.components.{self.name}.labels] or remove them from the data."
                )
        added = [] if self.head.ready else self.cfg["labels"]
        chosen = given if given is not None else sorted({*added, *seen})
        if not chosen:
            raise ValueError(
                f"'{self.name}' found no labels: expected {where} in the examples, "
                f"a list in [initialize.components.{self.name}.labels], or add_label before. What is in doc._ is in a "
                ".spacy file only if its DocBin was made with store_user_data=True."
            )
        self.cfg.learn(labels=list(chosen))

    def unknown_label(self, what: str, *, noun: str = "label") -> ValueError:
        """The error of a label in the examples that the component does not have; what: the label, and where it is."""
        known = sorted(self.labels)
        return ValueError(
            f"'{self.name}' does not know {what}; it was initialised with {len(known)} "
            f"{noun}s{f': {known}' if len(known) <= _MOST_LABELS else ''}. Add it to "
            f"[initialize.components.{self.name}.labels], or initialise with data that holds it. A component that is "
            "sourced is not initialised: add_label adds to it, in a config [initialize.before_init] with "
            '@callbacks = "spacy-luke.add_labels.v1".'
        )

    # ---- the beginning

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
        weights: Callable[[], Checkpoint] | None = None,
        seed: int = 0,
        bias_init: str = "prior",
    ) -> None:
        """Load the checkpoint, fix the labels and make the head: the checkpoint's, where it has all labels.

        labels: all labels, without a name for none; found in the examples where null; a checkpoint whose head has all
        of these brings its own, all of them. weights: a loader of a checkpoint, such as spacy-luke.checkpoint.v1; null
        keeps what the encoder has. seed: of the head's fresh parameters. bias_init: where the biases of a fresh head
        begin: "prior", the log-odds of the labels in the training data, which saves steps; "zeros", as the papers'
        code, whose rates are too small to move them.
        """
        self.check_bias_init(bias_init)
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        checkpoint = self.load_weights(weights)
        self.check_knowledge(get_examples)
        self.check_words(get_examples)
        survey = self.survey(get_examples)
        known = None if checkpoint is None else self.known_labels(checkpoint)
        fits = known is not None and set(labels or survey.seen) <= set(known)
        self.choose_labels(known if fits else labels, survey.seen, where=self.gold_place)
        if checkpoint is not None and fits:
            self.load_head(checkpoint, nlp=nlp)
        elif bias_init == "prior":
            self.create_first_head(survey, seed=seed)
        else:
            self.create_head(seed=seed)
        if not fits and checkpoint is not None and checkpoint.labels:
            self._warn_of_fresh_head(checkpoint.labels, known, labels or survey.seen)
        self.warn_missing(survey.missing, survey.total, what=self.gold_noun, advice=survey.advice or self.advice)

    def _warn_of_fresh_head(self, theirs: Sequence[str], known: Sequence[str] | None, seen: Iterable[str]) -> None:
        why = "it is of another task, or of a head with other settings, such as features or none"
        if known is not None:
            why = f"it has not the labels {shorten(sorted(set(seen) - set(known)))}"
        warnings.warn(
            f"'{self.name}' begins with a fresh head: that of the checkpoint, whose labels are "
            f"{shorten(theirs)}, is not used, as {why}.",
            stacklevel=3,
        )

    # ---- heads that come from elsewhere, and go there

    def load_head(self, checkpoint: Checkpoint, *, nlp: Language | None = None) -> None:
        """Take over a fine-tuned checkpoint's labels and classifier. nlp: pipeline whose config gets settings that they
        fix."""
        self.take_labels(checkpoint.named_labels(), nlp=nlp)
        self.create_head()
        self.fill_classifier(checkpoint)

    def take_labels(self, labels: Sequence[str], *, nlp: Language | None = None) -> None:
        """labels: of all rows of a checkpoint's classifier."""
        self.cfg.learn(labels=list(labels))

    def row_labels(self) -> list[str]:
        """The reverse of `take_labels`."""
        return list(self.labels)

    def to_checkpoint(self) -> Checkpoint:
        self.check_exportable(self.head_features)
        checkpoint = self.with_head(super().to_checkpoint())
        checkpoint.labels, checkpoint.task = self.row_labels(), self.task
        return checkpoint
