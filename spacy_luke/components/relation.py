"""`luke_relation`: relations between mentions (LUKE, EMNLP 2020, section 4.2)."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import (
    RELATIONS_TASK,
    add_relation_rows,
    get_pair_rows,
    get_pairs,
    get_relation_rows,
    get_scope,
    get_score,
)
from ..checkpoint.contents import Checkpoint
from .factories import Function, Scorer, Setting, model_block, register
from .mentions import PairSuggester
from .units.asked import Gold, Units, UnitSurvey
from .units.classifier import ScoredUnits
from .units.found import FoundRelations
from .units.pairs import given_pairs, gold_relations, suggested_pairs, training_pairs
from .units.sides import Sides, check_between
from .units.tuning import Classes, Scores, ThresholdClassifier

# Labels that pipelines of the OntoNotes corpus alone have, and entity_annotator's; "": none.
_OF_OTHERS = {"PERSON", "GPE", "NORP", "FAC", "ENTITY", ""}

RELATION_MODEL = model_block("spacy-luke.EntityClassifier.v1")
_TOKENS = ("pair", "mention")
RELATION_SCORES = {
    "relations_f": 1.0,
    "relations_p": 0.0,
    "relations_r": 0.0,
    "relations_macro_f": 0.0,
    "relations_strict_f": 0.0,
    "relations_accuracy": 0.0,
    "relations_per_type": None,
}


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
    tokens: Setting[str] = Setting(
        "pair",
        'of `one_way`, `"pair"`: two entity tokens for each pair, that see each other; `"mention"`: two for each '
        "mention, as a head and as a tail, however many pairs",
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

    @classmethod
    def check_together(cls, values: Mapping[str, Any]) -> None:
        check_between(values["between"])
        if values["mention_scores"] and not values["multi_label"]:
            raise ValueError(
                "mention_scores = true needs multi_label = true: with one label a pair, the probabilities of all "
                "labels are one."
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
        if (given := get_pairs(doc)) is None:
            mentions = list(self.getter(doc))
            if len(mentions) > 1:
                self._warn_of_one_sentence(doc)
            self._warn_of_labels(mentions)
            return suggested_pairs(doc, mentions, self.suggester, name=self.name)
        return given_pairs(doc, given, name=self.name)

    def _warn_of_one_sentence(self, doc: Doc) -> None:
        if getattr(self.suggester, "same_sentence", False) and not doc.has_annotation("SENT_START"):
            warnings.warn(
                f"'{self.name}' is asked of pairs of one sentence (same_sentence), but a Doc says nothing of its "
                "sentences and is taken as one: expect relations between names that are far apart. Put a "
                "paragraph_sentencizer or the like before it, and leave it enabled.",
                stacklevel=3,
            )

    def _warn_of_labels(self, mentions: Sequence[Span]) -> None:
        """Mentions of spaCy's pipelines, of rules and by hand are between no relation that knows "PER" and "LOC"."""
        known = {label for pair in getattr(self.suggester, "types", None) or () for label in pair}
        if not known and self.between.keys() >= set(self.labels):
            known = {label for sides in self.between.values() for side in sides for label in side}
        strange = [span for span in mentions if span.label_ not in known] if known else []
        if not strange:
            return
        alone = len(strange) == len(mentions) > 1  # there can be no relation at all
        beside = any(get_score(span) is not None for span in mentions)  # luke_ner found the others
        unscored = {x.label_ for x in strange if get_score(x) is None} if alone or beside else set()
        others = unscored | ({x.label_ for x in strange} & _OF_OTHERS)
        if others:
            named = ", ".join(x or "without a label" for x in sorted(others))
            warnings.warn(
                f"'{self.name}' asks for relations of mentions that are {', '.join(sorted(known))}, but a Doc has some "
                f"that are {named}, of another component such as spaCy's ner or an entity_ruler, or set by hand: no "
                f"relations of these are found. Give them labels of {', '.join(sorted(known))}, or leave them to "
                "luke_ner (overwrite = true).",
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

    def gold_names(self, reference: Doc) -> list[str]:
        return [row.label for row in get_relation_rows(reference) or [] if row.label != self.none]

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

    def with_mentions(
        self, docs: Sequence[Doc], asked: Sequence[Units], scored: Iterable[ScoredUnits]
    ) -> Iterator[ScoredUnits]:
        if not (self.between or self.mention_scores):
            yield from scored
            return
        if unknown := sorted(self.between.keys() - set(self.labels)):
            warnings.warn(
                f"between of '{self.name}' is of relations that it does not predict, and of these nothing comes: "
                f"{', '.join(map(repr, unknown))}. Its relations: {', '.join(self.labels)}.",
                stacklevel=2,
            )
        about = partial(Sides, getter=self.getter, between=self.between, scores=self.mention_scores)
        sides: dict[int, Sides] = {}
        for some in scored:
            if some.owner not in sides:  # the classes are those of the head that has scored them
                classes = self.classes[: some.logits_UL.shape[1]]
                sides[some.owner] = about(docs[some.owner], asked[some.owner], classes=classes)
            yield some._replace(logits_UL=sides[some.owner].tell(some.number_U, some.logits_UL))

    def read(self, scored: ScoredUnits) -> NDArray[np.float64]:
        """A row (number of the pair, class, probability) for each relation found."""
        logits_UL = scored.logits_UL
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
        return np.stack([scored.number_U[unit.numpy()], label.numpy(), probability], 1)

    def join(self, asked: Units, parts: list[NDArray[np.float64]]) -> FoundRelations:
        return FoundRelations.joined(asked, parts)

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[FoundRelations]) -> None:
        for doc, found in zip(docs, predictions):
            add_relation_rows(doc, found.rows(doc, self.classes), labels=self.classes)

    # ---- labels

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


make_luke_relation = register(
    "luke_relation",
    LukeRelation,
    model=RELATION_MODEL,
    requires=["doc.ents"],
    assigns=["doc._.luke_relations"],
    scores=RELATION_SCORES,
)
