"""`luke_relation`: relations between mentions (LUKE, EMNLP 2020, section 4.2)."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from ..annotations import RELATIONS_TASK, RelationRow, get_pair_rows, get_relation_rows, get_scope, set_relation_rows
from ..batch.allowed import ANY
from ..batch.entities import EntityBatch
from ..bridge.wrapper import to_tensor
from ..checkpoint.contents import Checkpoint
from ..model.losses import cross_entropy, multi_label_cross_entropy
from ..model.partial_losses import marginal_cross_entropy, marginal_multi_label
from ..model.taught_losses import taught_cross_entropy
from .base import need_gold
from .factories import Function, Scorer, Setting, model_block, register
from .mentions import PairSuggester
from .units.asked import Gold, Units, UnitSurvey
from .units.pairs import barred_classes, check_between, gold_relations, suggested_pairs, training_pairs
from .units.tuning import Classes, Scores, ThresholdClassifier

RELATION_MODEL = model_block("spacy-luke.EntityClassifier.v1")
_TOKENS = ("pair", "mention")
_NO_CHANCE = -1e4  # a logit: probability 0 in float32, but a finite number
RELATION_SCORES = {
    "relations_f": 1.0,
    "relations_p": 0.0,
    "relations_r": 0.0,
    "relations_macro_f": 0.0,
    "relations_strict_f": 0.0,
    "relations_accuracy": 0.0,
    "relations_per_type": None,
}


@dataclass(frozen=True)
class FoundRelations:
    """Relations of a Doc: pairs of mentions (R, 2), class and probability of each."""

    asked: Units
    pair_R2: NDArray[np.int64]
    label_R: NDArray[np.int64]
    probability_R: NDArray[np.float64]


class LukeRelation(ThresholdClassifier):
    """Finds relations between a Doc's mentions and writes them to `doc._.luke_relations`. A Doc with given pairs
    (`doc._.luke_pairs`) is asked about these, and the getter is not asked."""

    suggester: Function[PairSuggester] = Function(
        {"@misc": "spacy-luke.pairs.v1", "same_sentence": False, "max_words": 100, "types": None},
        "the ordered pairs that are classified; a Doc's own `Doc._.luke_pairs` come first",
    )
    none: Setting[str | None] = Setting(
        "no_relation", "name of the class of pairs without a relation; `null`: every pair has one"
    )
    multi_label: Setting[bool] = Setting(
        False,
        "whether a pair may have several relations, each above the `threshold`; then there is no class for none",
    )
    threshold: Setting[float] = Setting(
        0.5,
        "only with `multi_label`: least probability of a relation; `python -m spacy luke tune` finds the best one",
        least=0,
        most=1,
        rule="a probability, from 0 to 1",
    )
    tokens: Setting[str] = Setting(
        "pair",
        '`one_way`: two entity tokens for each pair, that see each other; `"mention"`: two for each mention, as a head '
        "and as a tail, however many pairs",
        choices=_TOKENS,
    )
    mention_scores: Setting[bool] = Setting(
        False,
        "only with `multi_label`: whether a relation's probability is multiplied by those of its two mentions "
        "(`span._.luke_score`), as it is right only if both are",
    )
    between: Setting[dict[str, list[list[str]]]] = Setting(
        {},
        'labels of the heads and of the tails that a relation has, such as `{"date of birth": [["PER"], ["TIME"]]}`: '
        "it is not predicted of others; mentions without a label may be anything, and so may those of other relations",
    )
    ids: Setting[dict[str, str]] = Setting(
        {}, 'what labels are elsewhere, such as properties of Wikidata: `{"country": "P17"}`; nothing depends on it'
    )
    scorer: Function[Scorer | None] = Function(
        {"@scorers": "spacy-luke.relation_scorer.v1"},
        "micro and macro, with and without the entities' labels, accuracy, SemEval's; with `spans_key` for entities in "
        "a group",
    )

    noun = "luke_relation"
    special_entities = ("[MASK]", "[MASK2]")
    label_noun = "relation"
    unit_noun, mention_noun = "the pairs that are asked about", "entities"
    gold_noun = "gold relations"
    gold_place = "relations in doc._.luke_relations"
    scope_task = RELATIONS_TASK
    lost_reason = "have mentions without pieces, or longer than a window"
    advice = "Correct the data, or change getter, suggester or multi_label."
    task = "entity_pair_classification"
    metric = "relations_f"

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        check_between(self.between, name=self.name)
        if self.mention_scores and not self.multi_label:
            raise ValueError(
                f"mention_scores = true of '{self.name}' needs multi_label = true: with one label a pair, the "
                "probabilities of all labels are one."
            )

    @property
    def has_none(self) -> bool:
        """Whether a class of the head stands for "no relation"."""
        return self.none is not None and not self.multi_label

    @property
    def classes(self) -> list[str | None]:
        return [None, *self.labels] if self.has_none else list(self.labels)

    @property
    def pairwise(self) -> bool:
        return self.tokens == "pair"

    @property
    def fixed(self) -> dict[str, Any]:
        own = {"multi_label": self.multi_label, "none": "a name" if self.has_none else None}
        return {**super().fixed, **own, **({} if self.attention == "full" else {"tokens": self.tokens})}

    @property
    def scoring(self) -> dict[str, Any]:
        return {"none": self.none}

    # ---- what is asked, and what is gold

    def asked(self, doc: Doc) -> Units:
        """The given pairs, or those that the suggester gives of the mentions."""
        if (given := doc._.luke_pairs) is None:
            self._warn_of_one_sentence(doc)
            return suggested_pairs(doc, self.getter(doc), self.suggester, name=self.name)
        pairs = [((head.start, head.end), (tail.start, tail.end)) for head, tail in given]
        if same := [head for head, tail in pairs if head == tail]:
            warnings.warn(
                f"'{self.name}': {len(same)} of {len(pairs)} given pairs have no relation, as head and tail are the "
                f"same words; the first is {doc[same[0][0] : same[0][1]].text[:60]!r}.",
                stacklevel=3,
            )
        return Units.given(pairs)

    def _warn_of_one_sentence(self, doc: Doc) -> None:
        if len(doc) and getattr(self.suggester, "same_sentence", False) and not doc.has_annotation("SENT_START"):
            warnings.warn(
                f"'{self.name}' is asked of pairs of one sentence (same_sentence), but a Doc says nothing of its "
                "sentences and is taken as one: expect relations between names that are far apart. Put a "
                "paragraph_sentencizer or the like before it, and leave it enabled.",
                stacklevel=3,
            )

    def asked_and_known(self, example: Example) -> Units:
        asked = self.asked(example.predicted)
        if get_pair_rows(example.reference) is None:
            return asked
        known = training_pairs(example, self.getter, self.suggester, name=self.name).numbers()
        return asked.only([asked.places(u) in known for u in range(len(asked))])

    def read_gold(self, example: Example, asked: Units | None = None) -> Gold:
        asked = training_pairs(example, self.getter, self.suggester, name=self.name) if asked is None else asked
        return gold_relations(example, asked, none=self.none, multi_label=self.multi_label)

    def has_gold(self, example: Example) -> bool:
        return get_relation_rows(example.reference) is not None

    def gold_total(self, example: Example, found: Gold) -> int:
        scope = get_scope(example.reference, RELATIONS_TASK)
        labels = [label for some in found.labels.values() for label in some if scope.is_plain(label)]
        return len(labels) + found.missing.total()

    def prior(self, survey: UnitSurvey) -> NDArray[np.float64]:
        seen, pairs = survey.seen, survey.units
        counts_L = np.array([pairs - seen.total() if x is None else seen[x] for x in self.classes], dtype=np.float64)
        share_L = (np.maximum(counts_L, 0) + 1) / (max(pairs, seen.total()) + len(self.classes))
        return np.asarray(np.log(share_L / (1 - share_L)) if self.multi_label else np.log(share_L))

    def lost_message(self, doc: Doc, asked: Units, lost: Sequence[int]) -> str:
        (a, b), (c, d) = asked.places(lost[0])
        return (
            f"{len(lost)} of {len(asked)} pairs have no relation, as a mention has no pieces or the two are longer "
            f"than a window of {self.widest()} pieces; the first is {doc[a:b].text[:60]!r} and {doc[c:d].text[:60]!r}"
        )

    # ---- predictions

    def scored(
        self, docs: Sequence[Doc], asked: Sequence[Units], lost: list[list[int]]
    ) -> Iterator[tuple[EntityBatch, Tensor]]:
        chances = [self._chances(doc, units) for doc, units in zip(docs, asked)] if self.mention_scores else []
        barred = [self._barred(doc, units) for doc, units in zip(docs, asked)] if self.between else []
        for batch, logits_UL in super().scored(docs, asked, lost):
            places = list(zip(batch.owner_U().tolist(), batch.number_U().tolist(), strict=True))
            if chances:
                logits_UL = joint_logits(logits_UL, torch.tensor([chances[i][number] for i, number in places]))
            if barred:
                barred_UL = np.stack([barred[i][number] for i, number in places])
                logits_UL = logits_UL.masked_fill(torch.from_numpy(barred_UL), _NO_CHANCE)
            yield batch, logits_UL

    def _chances(self, doc: Doc, asked: Units) -> list[float]:
        """Of each pair the probability that both mentions are right; 1 of mentions without a score."""
        scores = {(span.start, span.end): span._.luke_score for span in self.getter(doc)}
        known = [1.0 if (score := scores.get(mention)) is None else float(score) for mention in asked.mentions]
        return [known[head] * known[tail] for head, tail in asked.units_UK.tolist()]

    def _barred(self, doc: Doc, asked: Units) -> NDArray[np.bool_]:
        labels = {(span.start, span.end): span.label_ for span in self.getter(doc)}
        return barred_classes([labels.get(x, "") for x in asked.mentions], asked.units_UK, self.classes, self.between)

    def predict(self, docs: Iterable[Doc]) -> list[FoundRelations]:
        docs = list(docs)
        asked = [self.asked(doc) for doc in docs]
        rows: list[list[NDArray[np.float64]]] = [[] for _ in docs]
        lost: list[list[int]] = [[] for _ in docs]
        for batch, logits_UL in self.scored(docs, asked, lost):
            found = self._read(batch, logits_UL)
            for i in np.unique(found[:, 0]).astype(int).tolist():
                rows[i].append(found[found[:, 0] == i, 1:])
        self.warn_lost(docs, asked, lost)
        return [self._found(units, parts) for units, parts in zip(asked, rows)]

    def _read(self, batch: EntityBatch, logits_UL: Tensor) -> NDArray[np.float64]:
        """A row (document, pair, class, probability) for each relation found."""
        if self.multi_label:
            probability_UL = self.calibrated_logits(logits_UL).sigmoid()
            unit, label = torch.nonzero(probability_UL > self.threshold, as_tuple=True)
        else:
            probability_UL = logits_UL.softmax(-1)
            label = logits_UL.argmax(-1)
            unit = torch.arange(len(label), device=label.device)
            if self.has_none:
                unit, label = unit[label > 0], label[label > 0]
        probability = probability_UL[unit, label].numpy()
        if not self.multi_label:
            probability = self.calibrated(probability)
        numbers = unit.numpy()
        return np.stack([batch.owner_U()[numbers], batch.number_U()[numbers], label.numpy(), probability], 1)

    def _found(self, asked: Units, parts: list[NDArray[np.float64]]) -> FoundRelations:
        table = np.concatenate(parts) if parts else np.empty((0, 3))
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        return FoundRelations(asked, asked.units_UK[table[:, 0].astype(np.int64)], table[:, 1].astype(int), table[:, 2])

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[FoundRelations]) -> None:
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

    def loss_weight(self, batch: EntityBatch) -> float:
        gold = need_gold(batch.gold)
        return float(len(gold) if gold.ndim == 2 else (gold != ANY).sum())

    def get_loss(self, batch: EntityBatch, logits_UL: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        """Cross-entropy as in the paper, or the binary one of several labels, summed over pairs."""
        gold, allowed_SL = to_tensor(need_gold(batch.gold), logits_UL.device), batch.allowed_SL
        if gold.dim() == 2 and not self.multi_label:
            loss, gradient = taught_cross_entropy(logits_UL, gold)
        elif allowed_SL is not None and not self.multi_label:
            table_SL = to_tensor(allowed_SL, logits_UL.device)
            loss, gradient = marginal_cross_entropy(logits_UL, gold, table_SL)
        elif self.multi_label and batch.leaves_open:
            loss, gradient = marginal_multi_label(logits_UL, gold, groups=batch.groups)
        elif self.multi_label:
            loss, gradient = multi_label_cross_entropy(logits_UL, gold)
        else:
            loss, gradient = cross_entropy(logits_UL, gold)
        return loss, (gradient,)

    def choose_labels(self, given: list[str] | None, seen: Any, *, where: str) -> None:
        if self.none is not None and self.none in (given or []):
            raise ValueError(
                f"The labels given for '{self.name}' hold its name for no relation, {self.none!r}. Leave it out, or "
                "set none to null, or to another name."
            )
        super().choose_labels(given, seen, where=where)

    # ---- heads: index 0 of a checkpoint's labels means no relation, unless `none` is null

    def known_labels(self, checkpoint: Checkpoint) -> list[str] | None:
        rows = super().known_labels(checkpoint)
        return rows[1:] if rows is not None and self.has_none else None

    def take_labels(self, labels: Sequence[str], *, nlp: Language | None = None) -> None:
        if self.has_none:
            self.settle(nlp, none=labels[0])
        super().take_labels(labels[1:] if self.has_none else labels)

    def row_labels(self) -> list[str]:
        return [self.none or "no_relation", *self.labels] if self.has_none else list(self.labels)

    def to_checkpoint(self) -> Checkpoint:
        checkpoint = super().to_checkpoint()
        checkpoint.task = self.encoder.kind.pair_task
        return checkpoint

    # ---- the threshold

    @property
    def has_threshold(self) -> bool:
        return self.multi_label

    def has_label(self, gold: Classes) -> NDArray[np.bool_]:
        return np.asarray(gold > 0 if self.multi_label or self.has_none else gold >= 0)

    def shown_scores(self, logits_UL: Scores, gold: Classes) -> tuple[Scores, NDArray[np.bool_]]:
        if self.multi_label:
            return super().shown_scores(logits_UL, gold)
        known_U = np.isfinite(logits_UL[:, 0]) & (gold >= 0)
        probability_U, best_U = (x.numpy() for x in torch.from_numpy(logits_UL[known_U]).softmax(-1).max(-1))
        shown_U = best_U > 0 if self.has_none else np.ones(len(best_U), dtype=np.bool_)
        return probability_U[shown_U], (best_U == gold[known_U])[shown_U]


def joint_logits(logits_UL: Tensor, chance_U: Tensor) -> Tensor:
    """Log-odds of p times a chance, where the logits are log-odds of p; those with chance 1 stay as they are."""
    log_UL = F.logsigmoid(logits_UL) + chance_U.log()[:, None]
    return torch.where(chance_U[:, None] == 1, logits_UL, log_UL - torch.log1p(-log_UL.exp()))


make_luke_relation = register(
    "luke_relation", LukeRelation, model=RELATION_MODEL, assigns=["doc._.luke_relations"], scores=RELATION_SCORES
)
