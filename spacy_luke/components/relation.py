"""`luke_relation`: relations between mentions (LUKE, EMNLP 2020, section 4.2)."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model
from torch import Tensor

from ..annotations import RelationRow, get_pair_rows, get_relation_rows, register_extensions, set_relation_rows
from ..architectures.entity_classifier import create_entity_head
from ..batch.entities import EntityBatch, batch_entities
from ..batch.windows import CONTEXTS
from ..bridge.finite import check_scores
from ..bridge.wrapper import to_tensor
from ..checkpoint.contents import LukeCheckpoint
from ..model.heads import cross_entropy, multi_label_cross_entropy
from .base import LukeComponent, check_alignment, check_limits, check_markers
from .extents import check_window
from .knowledge import KnownGetter
from .tuning import best_label_threshold, check_found, check_positives
from .units.inputs import Input, unit_items
from .units.pairs import Pairs, gold_relations, training_pairs

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
TOKENS = ("pair", "mention")


@dataclass(frozen=True)
class Found:
    """Relations of a Doc: pairs of mentions (R, 2), class and probability of each."""

    asked: Pairs
    pair_R2: np.ndarray
    label_R: np.ndarray
    probability_R: np.ndarray


DEFAULT_CONFIG = {
    "model": DEFAULT_MODEL,
    "getter": {"@misc": "spacy-luke.doc_ents.v1"},
    "suggester": {"@misc": "spacy-luke.pairs.v1", "same_sentence": False, "max_words": 100, "types": None},
    "context": "document",
    "max_window": None,
    "overlap": 128,
    "none": "no_relation",
    "multi_label": False,
    "threshold": 0.5,
    "tokens": "pair",
    "batch_size": 4096,
    "scorer": {"@scorers": "spacy-luke.relation_scorer.v1"},
}
SCORE_WEIGHTS = {
    "relations_f": 1.0,
    "relations_p": 0.0,
    "relations_r": 0.0,
    "relations_macro_f": 0.0,
    "relations_strict_f": 0.0,
    "relations_accuracy": 0.0,
    "relations_per_type": None,
}


@Language.factory(
    "luke_relation",
    assigns=["doc._.luke_relations"],
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_luke_relation(
    nlp: Language,
    name: str,
    model: Model,
    getter: Callable[[Doc], Iterable[Span]],
    suggester: Callable[[Doc, Sequence[Span]], Any],
    context: str,
    max_window: int | None,
    overlap: int,
    none: str | None,
    multi_label: bool,
    threshold: float,
    tokens: str,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> "LukeRelation":
    """Builds the component; see `LukeRelation` for the settings."""
    return LukeRelation(
        nlp.vocab,
        model,
        name,
        getter=getter,
        suggester=suggester,
        context=context,
        max_window=max_window,
        overlap=overlap,
        none=none,
        multi_label=multi_label,
        threshold=threshold,
        tokens=tokens,
        batch_size=batch_size,
        scorer=scorer,
    )


class LukeRelation(LukeComponent):
    """Finds relations between a Doc's mentions and writes them to `doc._.luke_relations`.

    getter: the mentions of a Doc, such as spacy-luke.doc_ents.v1.
    suggester: the ordered pairs (head, tail) that are classified, such as spacy-luke.pairs.v1. A Doc with given pairs
        (`doc._.luke_pairs`) has these instead, and the getter is not asked.
    markers: the piece around a head, and that around a tail, of full attention.
    knowledge: entities that an ERNIE encoder knows, such as spacy-luke.linked_ents.v1; null: none. alignment: where
        they stand, "characters" or the original's "whitespace" (see `align_known`).
    context: "document" surrounds mentions by as much of their document as fits, "sentence" by their sentences.
    max_window: pieces of a window at most, [CLS] and [SEP] included; null: that of the shared encoder, or as many as
        its checkpoint and training are known for (see `extents`).
    overlap: least context in pieces, at most a quarter of a window, where a document is longer (one-way attention).
    none: name of the class for "no relation"; null: every pair has one.
    multi_label: whether a pair may have several relations; then none is the absence of all, and `threshold` the least
        probability of one (`tune` finds the best on dev data).
    tokens: in one-way attention, "pair" gives each pair two entity tokens that see each other, "mention" each mention
        one as a head and one as a tail, whatever the number of pairs.
    batch_size: pieces and entity tokens encoded at once.
    """

    noun = "luke_relation"
    counts_windows = True
    special_entities = ("[MASK]", "[MASK2]")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke_relation",
        *,
        getter: Callable[[Doc], Iterable[Span]],
        suggester: Callable[[Doc, Sequence[Span]], Any],
        markers: Sequence[str] = ("<ent>", "<ent2>"),
        knowledge: KnownGetter | None = None,
        alignment: str = "characters",
        context: str = "document",
        max_window: int | None = None,
        overlap: int = 128,
        none: str | None = "no_relation",
        multi_label: bool = False,
        threshold: float = 0.5,
        tokens: str = "pair",
        batch_size: int = 4096,
        scorer: Callable[..., Any] | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            markers=check_markers(markers, 2),
            alignment=alignment,
            context=context,
            max_window=max_window,
            overlap=overlap,
            none=none,
            multi_label=multi_label,
            threshold=threshold,
            tokens=tokens,
            batch_size=batch_size,
            labels=[],
        )
        self.getter = getter
        self.suggester = suggester
        self.knowledge = knowledge
        check_alignment(alignment)
        self.scorer = scorer
        register_extensions()
        if context not in CONTEXTS:
            raise ValueError(f"context must be one of {CONTEXTS}, but it is {context!r}.")
        if tokens not in TOKENS:
            raise ValueError(f"tokens must be one of {TOKENS}, but it is {tokens!r}.")
        check_window(max_window)
        check_limits(overlap=overlap, batch_size=batch_size)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold is a probability, from 0 to 1, but it is {threshold}.")

    @property
    def classes(self) -> list[str | None]:
        """Labels of the head's rows; None stands for "no relation"."""
        has_none = self.cfg["none"] is not None and not self.cfg["multi_label"]
        return [None, *self.cfg["labels"]] if has_none else list(self.cfg["labels"])

    @property
    def fixed(self) -> dict[str, Any]:
        has_none = self.classes[:1] == [None]
        own = {"multi_label": self.cfg["multi_label"], "none": "a name" if has_none else None}
        own.update({"markers": self.cfg["markers"]} if self.attention == "full" else {"tokens": self.cfg["tokens"]})
        return {**super().fixed, **own}

    def create_head(self, *, seed: int = 0, prior_L: np.ndarray | None = None) -> None:
        create_entity_head(self.model, len(self.classes), states=2, seed=seed, prior_L=prior_L)

    def input(self, *, learning: bool = False) -> Input:
        full = self.attention == "full"
        return Input(
            tokenizer=self.tokenizer,
            attention=self.attention,
            **self.limits(learning=learning),
            widest=self.widest(),
            context=self.cfg["context"],
            rows=self.special_rows("[MASK]", "[MASK2]"),
            markers=[self.marker(x) for x in self.cfg["markers"]] if full else [],
            tokens=self.cfg["batch_size"],
            pairwise=full or self.cfg["tokens"] == "pair",
            known=self.known,
        )

    # ---- prediction

    def asked(self, doc: Doc) -> Pairs:
        """The given pairs, or those that the suggester gives of the mentions."""
        if (given := doc._.luke_pairs) is None:
            return Pairs.suggested(doc, self.getter(doc), self._suggest)
        pairs = [((head.start, head.end), (tail.start, tail.end)) for head, tail in given]
        if same := [head for head, tail in pairs if head == tail]:
            warnings.warn(
                f"'{self.name}': {len(same)} of {len(pairs)} given pairs have no relation, as head and tail are the "
                f"same "
                f"words; the first is {doc[same[0][0] : same[0][1]].text[:60]!r}.",
                stacklevel=3,
            )
        return Pairs.given(pairs)

    def _suggest(self, doc: Doc, spans: Sequence[Span]) -> np.ndarray:
        pairs_P2 = np.asarray(self.suggester(doc, spans), dtype=np.int64).reshape(-1, 2)
        if len(pairs_P2) and not (0 <= pairs_P2.min() and pairs_P2.max() < len(spans)):
            raise ValueError(
                f"The suggester of '{self.name}' must give indices of the Doc's {len(spans)} mentions, but it gave "
                f"{int(pairs_P2.max())} and {int(pairs_P2.min())} among others."
            )
        if (same := pairs_P2[:, 0] == pairs_P2[:, 1]).any():
            text = spans[int(pairs_P2[same][0, 0])].text
            raise ValueError(
                f"The suggester of '{self.name}' paired a mention with itself, {text!r}: head and tail must differ."
            )
        return pairs_P2

    def predict(self, docs: Iterable[Doc]) -> list[Found]:
        docs = list(docs)
        all_asked = [self.asked(doc) for doc in docs]
        rows: list[list[np.ndarray]] = [[] for _ in docs]
        lost: list[list[int]] = [[] for _ in docs]
        task = self.input()
        with self.predicting():
            items = (
                item
                for i, (doc, asked) in enumerate(zip(docs, all_asked))
                for item in unit_items(task, doc, asked.mentions, asked.pairs_P2, owner=i, lost=lost[i])
            )
            for batch in batch_entities(items, size=self.cfg["batch_size"]):
                logits_UL = self.model.predict(batch)
                check_scores(logits_UL, batch.owner_U, docs, name=self.name)
                found = self._read(batch, logits_UL)
                for i in np.unique(found[:, 0]).astype(int).tolist():
                    rows[i].append(found[found[:, 0] == i, 1:])
        for doc, asked, missing in zip(docs, all_asked, lost):
            if missing:
                self._warn_lost(doc, asked, missing)
        return [self._found(asked, parts) for asked, parts in zip(all_asked, rows)]

    def _read(self, batch: EntityBatch, logits_UL: Tensor) -> np.ndarray:
        """A row (document, pair, class, probability) for each relation found."""
        if self.cfg["multi_label"]:
            probability_UL = logits_UL.sigmoid()
            unit, label = torch.nonzero(probability_UL > self.cfg["threshold"], as_tuple=True)
        else:
            probability_UL = logits_UL.softmax(-1)
            label = logits_UL.argmax(-1)
            unit = torch.arange(len(label), device=label.device)
            if self.classes[0] is None:
                unit, label = unit[label > 0], label[label > 0]
        probability = probability_UL[unit, label].cpu().numpy()
        unit = unit.cpu().numpy()
        return np.stack([batch.owner_U()[unit], batch.number_U()[unit], label.cpu().numpy(), probability], 1)

    def _found(self, asked: Pairs, parts: list[np.ndarray]) -> Found:
        table = np.concatenate(parts) if parts else np.empty((0, 3))
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        return Found(asked, asked.pairs_P2[table[:, 0].astype(np.int64)], table[:, 1].astype(int), table[:, 2])

    def _warn_lost(self, doc: Doc, asked: Pairs, lost: list[int]) -> None:
        (a, b), (c, d) = (asked.mentions[m] for m in asked.pairs_P2[lost[0]])
        warnings.warn(
            f"'{self.name}': {len(lost)} of {len(asked.pairs_P2)} pairs have no relation, as a mention has no pieces "
            f"or "
            f"the two are longer than a window of {self.widest()} pieces; the first is "
            f"{doc[a:b].text[:60]!r} and {doc[c:d].text[:60]!r}.",
            stacklevel=3,
        )

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Found]) -> None:
        classes = self.classes
        for doc, found in zip(docs, predictions):
            places = [(doc[a:b].start_char, doc[a:b].end_char) for a, b in found.asked.mentions]
            rows = []
            for (head, tail), label, probability in zip(
                found.pair_R2.tolist(), found.label_R.tolist(), found.probability_R.tolist()
            ):
                (a, b), (c, d) = places[head], places[tail]
                rows.append(RelationRow(a, b, c, d, classes[label], float(probability)))
            set_relation_rows(doc, rows)

    # ---- training

    def gold(self, example: Example, asked: Pairs | None = None) -> tuple[Pairs, np.ndarray, Counter[str]]:
        """What is asked about the predicted Doc, in training where None is given, the gold classes of the pairs ((P,),
        or (P, L) with several labels), and why gold relations are not among them."""
        asked, relations, missing = self._read_gold(example, asked)
        classes = {label: i for i, label in enumerate(self.classes)}
        multi = self.cfg["multi_label"]
        shape = (len(asked.pairs_P2), len(classes)) if multi else len(asked.pairs_P2)
        gold = np.zeros(shape, dtype=np.float32 if multi else np.int64)
        if not multi and self.classes[0] is not None:
            gold[:] = -1  # a pair without a relation is not known where every pair has one
        for pair, labels in relations.items():
            for label in labels:
                if label not in classes:
                    raise ValueError(
                        f"'{self.name}' does not know the relation {label!r}; it was initialised with "
                        f"{sorted(self.labels)}. "
                        f"Add it to [initialize.components.{self.name}.labels], call add_label, or initialise with "
                        f"data "
                        "that holds it."
                    )
                if multi:
                    gold[pair, classes[label]] = 1.0
            if not multi:
                gold[pair] = classes[labels[0]]
        return asked, gold, missing

    def _read_gold(
        self, example: Example, asked: Pairs | None = None
    ) -> tuple[Pairs, dict[int, list[str]], Counter[str]]:
        """What is asked, labels of its pairs by their numbers, and why gold relations have no number."""
        asked = training_pairs(example, self.getter, self._suggest) if asked is None else asked
        return asked, *gold_relations(example, asked, none=self.cfg["none"], multi_label=self.cfg["multi_label"])

    def batches(self, examples: list[Example]) -> Iterator[EntityBatch]:
        items = []
        task = self.input(learning=True)
        for i, example in enumerate(examples):
            asked, gold, _ = self.gold(example)
            items += unit_items(task, example.predicted, asked.mentions, asked.pairs_P2, owner=i, gold=gold)
        return batch_entities(items, size=self.cfg["batch_size"])

    def loss_weight(self, batch: EntityBatch) -> float:
        return float(len(batch.gold) if self.cfg["multi_label"] else (batch.gold >= 0).sum())

    def get_loss(self, batch: EntityBatch, logits_UL: Tensor) -> tuple[float, tuple[Any, ...]]:
        """Cross-entropy as in the paper, or the binary one of several labels, summed over pairs."""
        gold = to_tensor(batch.gold, logits_UL.device)
        loss, gradient = (multi_label_cross_entropy if self.cfg["multi_label"] else cross_entropy)(logits_UL, gold)
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

        labels: all relations, without that for "no relation"; found in the examples where null. weights: a loader of a
        checkpoint, such as spacy-luke.checkpoint.v1; null keeps what the encoder has. seed: of the head's parameters.
        """
        validate_get_examples(get_examples, "LukeRelation.initialize")
        checkpoint = self.load_weights(weights)
        self.check_knowledge(get_examples)
        if self.cfg["none"] is not None and self.cfg["none"] in (labels or []):
            raise ValueError(
                f"The labels given for '{self.name}' hold its name for no relation, {self.cfg['none']!r}. Leave it "
                f"out, or "
                "set none to null, or to another name."
            )
        seen: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        pairs = total = 0
        task = self.input(learning=True)
        for example in get_examples():
            asked, relations, reasons = self._read_gold(example)
            total += sum(map(len, relations.values())) + reasons.total()
            lost: list[int] = []
            for _ in unit_items(task, example.predicted, asked.mentions, asked.pairs_P2, owner=0, lost=lost):
                pass
            if gone := [number for number in lost if number in relations]:
                reasons["have mentions without pieces, or longer than a window"] += sum(len(relations[x]) for x in gone)
            missing.update(reasons)
            seen.update(label for labels_ in relations.values() for label in labels_)
            pairs += len(asked.pairs_P2)
        rows = checkpoint.labels if checkpoint is not None and checkpoint.task == "entity_pair_classification" else None
        fits = (
            rows is not None
            and self.model.attrs["features"] in ("entity", "pooled")
            and self.classes[:1] == [None]
            and set(labels or seen) <= set(rows[1:])
        )
        self.choose_labels(rows[1:] if fits else labels, seen, where="relations in doc._.luke_relations")
        if fits:
            self.load_head(checkpoint)
            self.settle(nlp, none=self.cfg["none"])
        else:
            self.create_head(seed=seed, prior_L=self._prior(seen, pairs))
        advice = "Correct the data, or change getter, suggester or multi_label."
        self.warn_missing(missing, total, what="gold relations", advice=advice)

    def _prior(self, seen: Counter[str], pairs: int) -> np.ndarray:
        """Log-odds, or log-shares, of each class."""
        counts_L = np.array(
            [seen[x] if x is not None else pairs - seen.total() for x in self.classes], dtype=np.float64
        )
        share_L = (np.maximum(counts_L, 0) + 1) / (max(pairs, seen.total()) + len(self.classes))
        return np.log(share_L / (1 - share_L)) if self.cfg["multi_label"] else np.log(share_L)

    def load_head(self, checkpoint: LukeCheckpoint) -> None:
        """Take over a fine-tuned checkpoint's labels and classifier. Index 0 of its labels means no relation, unless
        `none` is null."""
        if self.classes[:1] == [None]:
            self.cfg["none"], self.cfg["labels"] = checkpoint.labels[0], list(checkpoint.labels[1:])
        else:
            self.cfg["labels"] = list(checkpoint.labels)
        self.create_head()
        self.fill_classifier(checkpoint)

    def to_checkpoint(self) -> LukeCheckpoint:
        self.check_exportable()
        checkpoint = self.with_classifier(super().to_checkpoint())
        none = [self.cfg["none"] or "no_relation"] if self.classes[0] is None else []
        checkpoint.labels = [*none, *self.labels]
        checkpoint.task = self.encoder.kind.pair_task
        return checkpoint

    def tune(
        self,
        examples: Sequence[Example],
        *,
        nlp: Language | None = None,
        gold_mentions: bool = False,
        least: int = 0,
    ) -> dict[str, float]:
        """Set the threshold that gives the best F1 on examples, dev data never trained on. Only with multi_label.

        Pairs are those that are asked about the predicted Docs: given ones, or of the mentions that the getter finds.
        Relations of others are missed, as the scorer counts. gold_mentions: the pairs are those of training instead.
        nlp: pipeline whose config gets the threshold (see `settle`). RETURNS: it and the F1; of equal ones the nearest
        to 0.5. Raises ValueError for fewer than `least` gold relations of such pairs.
        """
        if not self.cfg["multi_label"]:
            raise ValueError(f"'{self.name}' gives each pair one label (multi_label = false), so it has no threshold.")
        found, golds, total = [], [], 0
        for example in examples:
            if get_relation_rows(example.reference) is None:
                continue
            asked = None if gold_mentions else self._asked_and_known(example)
            asked, gold_PL, missing = self.gold(example, asked)
            total += int(gold_PL.sum()) + missing.total()
            probability_PL = np.zeros_like(gold_PL)
            with self.predicting():
                items = unit_items(self.input(), example.predicted, asked.mentions, asked.pairs_P2, owner=0)
                for batch in batch_entities(items, size=self.cfg["batch_size"]):
                    logits_UL = self.model.predict(batch)
                    check_scores(logits_UL, batch.owner_U, [example.predicted], name=self.name)
                    probability_PL[batch.number_U()] = logits_UL.sigmoid().cpu().numpy()
            found.append(probability_PL.reshape(-1))
            golds.append(gold_PL.reshape(-1) > 0)
        if not total:
            raise ValueError("Expected examples with relations to tune on, but found none.")
        check_found(golds, total, name=self.name, what="gold relations", where="of entities that the pipeline finds")
        gold = np.concatenate(golds)
        check_positives(int(gold.sum()), least, name=self.name, what="gold relations of the pairs that are asked about")
        threshold, f1 = best_label_threshold(np.concatenate(found), gold, total=total)
        self.settle(nlp, threshold=threshold)
        return {"threshold": threshold, "relations_f": f1}

    def _asked_and_known(self, example: Example) -> Pairs:
        """What is asked about the predicted Doc, without pairs of which the gold, being given pairs, says nothing."""
        asked = self.asked(example.predicted)
        if get_pair_rows(example.reference) is None:
            return asked
        known = training_pairs(example, self.getter, self._suggest).numbers()
        kept = [(asked.mentions[a], asked.mentions[b]) in known for a, b in asked.pairs_P2.tolist()]
        return Pairs(asked.mentions, asked.pairs_P2[np.array(kept, dtype=bool)])

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return {} if self.scorer is None else self.scorer(examples, none=self.cfg["none"], **kwargs)
