"""`luke_typer`: types of mentions, several for each (LUKE, EMNLP 2020, section 4.1)."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model
from torch import Tensor

from ..annotations import TYPES, register_extensions
from ..architectures.entity_classifier import create_entity_head
from ..batch.entities import EntityBatch, EntityItem, batch_entities
from ..batch.windows import CONTEXTS
from ..bridge.finite import check_scores
from ..bridge.wrapper import to_tensor
from ..checkpoint.contents import LukeCheckpoint
from ..model.heads import multi_label_cross_entropy
from .base import LukeComponent, check_alignment, check_limits, check_markers
from .extents import check_window
from .knowledge import KnownGetter
from .mentions import Mention, SpanGroupGetter, align_mention
from .tuning import best_label_threshold, check_found, check_positives
from .units.inputs import Input, unit_items

DEFAULT_MODEL = Config().from_str("""
[model]
@architectures = "spacy-luke.EntityClassifier.v1"
attention = "one_way"
features = "all"
bias = true

[model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["model"]


DEFAULT_CONFIG = {
    "model": DEFAULT_MODEL,
    "getter": {"@misc": "spacy-luke.doc_ents.v1"},
    "context": "document",
    "max_window": None,
    "overlap": 128,
    "threshold": 0.5,
    "always_best": False,
    "set_label": False,
    "focus": 0.0,
    "batch_size": 4096,
    "scorer": {"@scorers": "spacy-luke.typing_scorer.v1"},
}
SCORE_WEIGHTS = {
    "types_micro_f": 1.0,
    "types_micro_p": 0.0,
    "types_micro_r": 0.0,
    "types_macro_f": 0.0,
    "types_strict": 0.0,
    "types_per_type": None,
}


@Language.factory(
    "luke_typer",
    assigns=["span._.luke_types"],
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_luke_typer(
    nlp: Language,
    name: str,
    model: Model,
    getter: Callable[[Doc], Iterable[Span]],
    context: str,
    max_window: int | None,
    overlap: int,
    threshold: float,
    always_best: bool,
    set_label: bool,
    focus: float,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> "LukeTyper":
    """Builds the component; see `LukeTyper` for the settings."""
    return LukeTyper(
        nlp.vocab,
        model,
        name,
        getter=getter,
        context=context,
        max_window=max_window,
        overlap=overlap,
        threshold=threshold,
        always_best=always_best,
        set_label=set_label,
        focus=focus,
        batch_size=batch_size,
        scorer=scorer,
    )


class LukeTyper(LukeComponent):
    """Gives each mention the types that hold for it, with their probabilities, in `span._.luke_types`.

    getter: the mentions of a Doc, such as spacy-luke.doc_ents.v1 or spacy-luke.span_group.v1.
    markers: the piece around a mention, of full attention.
    knowledge: entities that an ERNIE encoder knows, such as spacy-luke.linked_ents.v1; null: none. alignment: where
        they stand, "characters" or the original's "whitespace" (see `align_known`).
    context: "document" surrounds a mention by as much of its document as fits, "sentence" by its sentence.
    max_window: pieces of a window at most, [CLS] and [SEP] included; null: that of the shared encoder, or as many as
        its checkpoint and training are known for (see `extents`).
    overlap: least context in pieces, at most a quarter of a window, where a document is longer (one-way attention).
    threshold: least probability of a type; the paper's "logit above 0" is 0.5. `tune` finds the best one on dev data.
    always_best: whether the most probable types are given also below it.
    set_label: whether the most probable type that is given becomes the mention's own label: a new Span where the getter
        found it, in its span group, or in doc.ents.
    focus: weighs types that do not hold by their probability to this power, for thousands of types (see
        `multi_label_cross_entropy`); 0 is the paper's loss.
    batch_size: pieces and entity tokens encoded at once.

    Gold: `doc.spans["luke_types"]`, for each type of a mention a span with that label; a mention without any has a span
    with the label "".
    """

    noun = "luke_typer"
    counts_windows = True

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke_typer",
        *,
        getter: Callable[[Doc], Iterable[Span]],
        markers: Sequence[str] = ("<ent>",),
        knowledge: KnownGetter | None = None,
        alignment: str = "characters",
        context: str = "document",
        max_window: int | None = None,
        overlap: int = 128,
        threshold: float = 0.5,
        always_best: bool = False,
        set_label: bool = False,
        focus: float = 0.0,
        batch_size: int = 4096,
        scorer: Callable[..., Any] | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            markers=check_markers(markers, 1),
            alignment=alignment,
            context=context,
            max_window=max_window,
            overlap=overlap,
            threshold=threshold,
            always_best=always_best,
            set_label=set_label,
            focus=focus,
            batch_size=batch_size,
            labels=[],
        )
        self.getter = getter
        self.knowledge = knowledge
        check_alignment(alignment)
        self.scorer = scorer
        register_extensions()
        if context not in CONTEXTS:
            raise ValueError(f"context must be one of {CONTEXTS}, but it is {context!r}.")
        check_window(max_window)
        check_limits(overlap=overlap, batch_size=batch_size)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold is a probability, from 0 to 1, but it is {threshold}.")
        if focus < 0:
            raise ValueError(f"focus must be 0 or more, but it is {focus}.")

    @property
    def fixed(self) -> dict[str, Any]:
        return {**super().fixed, **({"markers": self.cfg["markers"]} if self.attention == "full" else {})}

    def create_head(self, *, seed: int = 0, prior_L: np.ndarray | None = None) -> None:
        create_entity_head(self.model, len(self.labels), states=1, seed=seed, prior_L=prior_L)

    def input(self, *, learning: bool = False) -> Input:
        full = self.attention == "full"
        return Input(
            tokenizer=self.tokenizer,
            attention=self.attention,
            **self.limits(learning=learning),
            widest=self.widest(),
            context=self.cfg["context"],
            rows=self.special_rows("[MASK]"),
            markers=[self.marker(x) for x in self.cfg["markers"]] if full else [],
            tokens=self.cfg["batch_size"],
            known=self.known,
        )

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[tuple[list[Mention], np.ndarray]]:
        """For each Doc its mentions as words [start, end), and their logits (M, L), NaN where one cannot be encoded."""
        docs = list(docs)
        mentions = [list(dict.fromkeys((x.start, x.end) for x in self.getter(doc) if x.end > x.start)) for doc in docs]
        logits = [np.full((len(x), len(self.labels)), np.nan, dtype=np.float32) for x in mentions]
        with self.predicting():
            items = (item for i, doc in enumerate(docs) for item in self._items(i, doc, mentions[i]))
            for batch in batch_entities(items, size=self.cfg["batch_size"]):
                rows_UL = self.model.predict(batch).cpu().numpy()
                check_scores(rows_UL, batch.owner_U, docs, name=self.name)
                for i, number, row in zip(batch.owner_U().tolist(), batch.number_U().tolist(), rows_UL):
                    logits[i][number] = row
        return list(zip(mentions, logits, strict=True))

    def _items(self, owner: int, doc: Doc, mentions: Sequence[Mention]) -> Iterator[EntityItem]:
        lost: list[int] = []
        units_UK = np.arange(len(mentions))[:, None]
        yield from unit_items(self.input(), doc, mentions, units_UK, owner=owner, lost=lost)
        if lost:
            a, b = mentions[lost[0]]
            warnings.warn(
                f"'{self.name}': {len(lost)} of {len(mentions)} mentions get no types, as they have no pieces or are "
                f"longer "
                f"than a window of {self.widest()} pieces; the first is words [{a}, {b}), {doc[a:b].text[:80]!r}.",
                stacklevel=2,
            )

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[tuple[list[Mention], np.ndarray]]) -> None:
        for doc, (mentions, logits) in zip(docs, predictions):
            with np.errstate(over="ignore"):
                probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
            labels: dict[Mention, str] = {}
            for (start, end), row in zip(mentions, probabilities):
                chosen = row > self.cfg["threshold"]
                if self.cfg["always_best"]:
                    chosen |= row == row.max()
                found = [i for i in np.argsort(-row, kind="stable").tolist() if chosen[i]]
                doc[start:end]._.luke_types = {self.labels[i]: float(row[i]) for i in found}
                if found:
                    labels[start, end] = self.labels[found[0]]
            if self.cfg["set_label"]:
                _relabel(doc, labels, key=self.getter.key if isinstance(self.getter, SpanGroupGetter) else None)

    # ---- training

    def gold(self, example: Example) -> tuple[list[Mention], np.ndarray, Counter[str]]:
        """Mentions of the predicted Doc that have gold types, these as (M, L) of 0 and 1, and why others are
        missing."""
        classes = {label: i for i, label in enumerate(self.cfg["labels"])}
        types, missing = _read_types(example)
        gold_ML = np.zeros((len(types), len(classes)), dtype=np.float32)
        for row, (place, labels) in zip(gold_ML, types.items()):
            for label in labels:
                if label not in classes:
                    a, b = place
                    raise ValueError(
                        f"'{self.name}' does not know the type {label!r} of {example.predicted[a:b].text!r}; it was "
                        f"initialised with {len(classes)} types. Add it to "
                        f"[initialize.components.{self.name}.labels], call add_label, or initialise with data that "
                        "holds it."
                    )
                row[classes[label]] = 1.0
        return list(types), gold_ML, missing

    def batches(self, examples: list[Example]) -> Iterator[EntityBatch]:
        items = []
        task = self.input(learning=True)
        for i, example in enumerate(examples):
            mentions, gold_ML, _ = self.gold(example)
            units_UK = np.arange(len(mentions))[:, None]
            items += unit_items(task, example.predicted, mentions, units_UK, owner=i, gold=gold_ML)
        return batch_entities(items, size=self.cfg["batch_size"])

    def loss_weight(self, batch: EntityBatch) -> float:
        """Mentions; the paper's mean is also over labels, which changes nothing for AdamW but the size of eps."""
        return float(len(batch.units_UK))

    def get_loss(self, batch: EntityBatch, logits_UL: Tensor) -> tuple[float, tuple[Any, ...]]:
        gold_UL = to_tensor(batch.gold, logits_UL.device)
        loss, gradient = multi_label_cross_entropy(logits_UL, gold_UL, focus=self.cfg["focus"])
        return loss, (gradient,)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
        weights: Callable[[], LukeCheckpoint] | None = None,
        seed: int = 0,
    ) -> None:
        """Load the checkpoint, fix the labels and make the head.

        labels: all types; found in the examples where null. weights: a loader of a checkpoint, such as
        spacy-luke.checkpoint.v1; null keeps what the encoder has. seed: of the head's fresh parameters.
        """
        validate_get_examples(get_examples, "LukeTyper.initialize")
        checkpoint = self.load_weights(weights)
        self.check_knowledge(get_examples)
        seen: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        total = 0
        task = self.input(learning=True)
        for example in get_examples():
            types, reasons = _read_types(example)
            lost: list[int] = []
            units_UK = np.arange(len(types))[:, None]
            for _ in unit_items(task, example.predicted, list(types), units_UK, owner=0, lost=lost):
                pass
            missing.update(reasons)
            missing.update({"have no pieces or are longer than a window": len(lost)} if lost else {})
            seen.update(label for labels_ in types.values() for label in labels_)
            total += len(types) + sum(reasons.values())
        where = f"spans of doc.spans[{TYPES!r}]"
        known = checkpoint.labels if checkpoint is not None and checkpoint.task == "entity_classification" else None
        fits = known is not None and self._is_paper() and set(labels or seen) <= set(known)
        self.choose_labels(known if fits else labels, seen, where=where)
        if fits:
            self.load_head(checkpoint)
        else:
            counts_L = np.array([seen[label] for label in self.labels], dtype=np.float64)
            share_L = (counts_L + 1) / (max(total, 1) + 2)
            self.create_head(seed=seed, prior_L=np.log(share_L / (1 - share_L)))
        self.warn_missing(missing, total, what="gold mentions")

    def load_head(self, checkpoint: LukeCheckpoint) -> None:
        """Take over a fine-tuned checkpoint's labels and classifier."""
        self.cfg["labels"] = list(checkpoint.labels)
        self.create_head()
        self.fill_classifier(checkpoint)

    def to_checkpoint(self) -> LukeCheckpoint:
        self.check_exportable()
        checkpoint = self.with_classifier(super().to_checkpoint())
        checkpoint.labels, checkpoint.task = list(self.labels), "entity_classification"
        return checkpoint

    def _is_paper(self) -> bool:
        return self.model.attrs["features"] in ("entity", "pooled")

    def tune(
        self,
        examples: Sequence[Example],
        *,
        nlp: Language | None = None,
        gold_mentions: bool = False,
        least: int = 0,
    ) -> dict[str, float]:
        """Set the threshold that gives the best loose micro F1 on examples, dev data never trained on.

        Types are those of the mentions that the getter finds in the predicted Docs; types of other gold mentions are
        missed. gold_mentions: they are found, all of them. nlp: pipeline whose config gets the threshold (see
        `settle`).
        RETURNS: it and the F1 that it gives; of equal ones the nearest to 0.5. Raises ValueError for fewer than `least`
        gold types of such mentions.
        """
        found, golds, total = [], [], 0
        for example in examples:
            mentions, gold_ML, _ = self.gold(example)
            spans = example.reference.spans.get(TYPES, [])
            total += len({(x.start, x.end, x.label) for x in spans if x.label})  # also those that cannot be predicted
            if not gold_mentions:
                given = {(x.start, x.end) for x in self.getter(example.predicted)}
                gold_ML = gold_ML[np.array([place in given for place in mentions], dtype=bool)]
                mentions = [place for place in mentions if place in given]
            found.append(self._probabilities(example.predicted, mentions))
            golds.append(gold_ML > 0)
        if not total:
            raise ValueError(f"Expected examples with gold types in doc.spans[{TYPES!r}] to tune on, but found none.")
        check_found(golds, total, name=self.name, what="gold types", where="of mentions that the pipeline finds")
        gold = np.concatenate(golds)
        check_positives(int(gold.sum()), least, name=self.name, what="gold types of mentions")
        threshold, f1 = best_label_threshold(np.concatenate(found), gold, total=total)
        self.settle(nlp, threshold=threshold)
        return {"threshold": threshold, "types_micro_f": f1}

    def _probabilities(self, doc: Doc, mentions: Sequence[Mention]) -> np.ndarray:
        """Of each mention and type (M, L), 0 of a mention that cannot be encoded, 1 where always_best gives the
        type."""
        units_UK = np.arange(len(mentions))[:, None]
        rows_ML = np.full((len(mentions), len(self.labels)), -np.inf, dtype=np.float32)
        with self.predicting():
            items = unit_items(self.input(), doc, mentions, units_UK, owner=0)
            for batch in batch_entities(items, size=self.cfg["batch_size"]):
                rows_UL = self.model.predict(batch).cpu().numpy()
                check_scores(rows_UL, batch.owner_U, [doc], name=self.name)
                rows_ML[batch.number_U()] = rows_UL
        probability_ML = torch.from_numpy(rows_ML).sigmoid().numpy()
        if self.cfg["always_best"] and len(mentions):
            best_M1 = rows_ML.max(1, keepdims=True)
            probability_ML[(rows_ML == best_M1) & (best_M1 > -np.inf)] = 1.0
        return probability_ML

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return {} if self.scorer is None else self.scorer(examples, **kwargs)


def _read_types(example: Example) -> tuple[dict[Mention, list[str]], Counter[str]]:
    """Gold types of each mention, in words of the predicted Doc, and how many mentions have no such place, and why."""
    reference, doc = example.reference, example.predicted
    types: dict[Mention, list[str]] = {}
    lost = set()
    for span in reference.spans[TYPES] if TYPES in reference.spans else []:
        place = align_mention(doc, span.start_char, span.end_char)
        if place is None:
            lost.add((span.start, span.end))
            continue
        labels = types.setdefault(place, [])
        if span.label_ and span.label_ not in labels:
            labels.append(span.label_)
    return types, Counter({"do not fall on word boundaries": len(lost)} if lost else {})


def _relabel(doc: Doc, labels: dict[Mention, str], *, key: str | None) -> None:
    """New Spans with these labels in doc.spans[key], or in doc.ents where there is no key."""
    before = doc.ents if key is None else doc.spans.get(key, [])
    spans = [
        Span(doc, x.start, x.end, label=labels.get((x.start, x.end), x.label_), kb_id=x.kb_id, span_id=x.id)
        for x in before
    ]
    if key is None:
        doc.set_ents(spans, default="unmodified")
    for i, span in enumerate(spans if key is not None else []):
        doc.spans[key][i] = span
