"""`luke_typer`: types of mentions, several for each (LUKE, EMNLP 2020, section 4.1)."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import TYPES, TYPES_TASK, get_scope, get_types, gold_words_finder, set_types
from .factories import Function, Scorer, Setting, model_block, register
from .mentions import SpanGroupGetter, WordRange, rewrite_spans
from .units.asked import Gold, Units, UnitSurvey
from .units.classifier import ScoredUnits
from .units.tuning import Scores, ThresholdClassifier

TYPER_MODEL = model_block("spacy-luke.EntityClassifier.v1")
TYPER_SCORES = {
    "types_micro_f": 1.0,
    "types_micro_p": 0.0,
    "types_micro_r": 0.0,
    "types_macro_f": 0.0,
    "types_strict": 0.0,
    "types_per_type": None,
}


class LukeTyper(ThresholdClassifier):
    """Gives each mention the types that hold for it, with their probabilities, in `span._.luke_types`.

    Gold: `doc.spans["luke_types"]`, for each type of a mention a span with that label; a mention without any has a span
    with the label "".
    """

    always_best: Setting[bool] = Setting(
        False, "whether the most probable type is given even below the threshold, as in ERNIE's paper for FIGER"
    )
    set_label: Setting[bool] = Setting(
        False,
        "whether the most probable type that is given becomes the mention's own label: a new Span where the getter "
        "found it, in its span group, or in `doc.ents`; what knows the labels of NER, as `luke_relation` does, comes "
        "before it",
    )
    focus: Setting[float] = Setting(
        0.0,
        "for thousands of types: those that do not hold are weighed by their probability to this power, so that those "
        "that are surely wrong count less; 0 is the paper's loss",
        least=0,
    )
    scorer: Function[Scorer | None] = Function(
        {"@scorers": "spacy-luke.typing_scorer.v1"}, "strict, loose macro and loose micro"
    )

    noun = "luke_typer"
    label_noun = "type"
    unit_noun = mention_noun = "mentions"
    gold_noun = "gold mentions"
    gold_place = f"spans of doc.spans[{TYPES!r}]"
    scope_task = TYPES_TASK
    lost_reason = "have no pieces or are longer than a window"
    task = "entity_classification"
    metric = "types_micro_f"

    # ---- what is asked, and what is gold

    def asked(self, doc: Doc) -> Units:
        return Units.alone((x.start, x.end) for x in self.getter(doc) if x.end > x.start)

    def asked_and_known(self, example: Example) -> Units:
        given = {(x.start, x.end) for x in self.getter(example.predicted)}
        return Units.alone(place for place in self.read_gold(example).units.mentions if place in given)

    def read_gold(self, example: Example, asked: Units | None = None) -> Gold:
        reference, find = example.reference, gold_words_finder(example)
        types: dict[WordRange, list[str]] = {}
        lost = set()
        for span in reference.spans[TYPES] if TYPES in reference.spans else []:
            place = find(span.start_char, span.end_char)
            if place is None:
                lost.add((span.start, span.end))
                continue
            labels = types.setdefault(place, [])
            if span.label_ and span.label_ not in labels:
                labels.append(span.label_)
        units = Units.alone(types) if asked is None else asked
        missing = Counter({"do not fall on word boundaries": len(lost)} if lost else {})
        return Gold(units, {u: types[place] for u, place in enumerate(units.mentions) if place in types}, missing)

    def gold_names(self, reference: Doc) -> list[str]:
        return [x.label_ for x in reference.spans[TYPES] if x.label] if TYPES in reference.spans else []

    def has_gold(self, example: Example) -> bool:
        return TYPES in example.reference.spans

    def gold_total(self, example: Example, found: Gold) -> int:
        scope = get_scope(example.reference, TYPES_TASK)
        spans = [x for x in example.reference.spans[TYPES] if x.label and scope.is_plain(x.label_)]
        return len({(x.start, x.end, x.label) for x in spans})

    def weigh(self, labels: list[str]) -> int:
        return 1  # a mention

    def prior(self, survey: UnitSurvey) -> NDArray[np.float64]:
        counts_L = np.array([survey.seen[label] for label in self.labels], dtype=np.float64)
        share_L = (counts_L + 1) / (max(survey.total, 1) + 2)
        return np.asarray(np.log(share_L / (1 - share_L)))

    def lost_message(self, doc: Doc, asked: Units, lost: Sequence[int]) -> str:
        a, b = asked.mentions[lost[0]]
        return (
            f"{len(lost)} of {len(asked)} mentions get no types, as they have no pieces or are longer than a window of "
            f"{self.widest()} pieces; the first is words [{a}, {b}), {doc[a:b].text[:80]!r}"
        )

    # ---- predictions

    def join(self, asked: Units, parts: list[ScoredUnits]) -> tuple[list[WordRange], Scores]:
        """The mentions as words [start, end), and their logits (M, L), NaN where one cannot be encoded."""
        return asked.mentions, self.table(asked, parts, absent=np.nan)

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[tuple[list[WordRange], Scores]]) -> None:
        for doc, (mentions, logits) in zip(docs, predictions):
            with np.errstate(over="ignore"):
                probabilities = 1 / (1 + np.exp(-self.calibrated_logits(logits.astype(np.float64))))
            labels: dict[WordRange, str] = {}
            for (start, end), row in zip(mentions, probabilities):
                chosen = row > self.threshold
                if self.always_best:
                    chosen |= row == row.max()
                found = [i for i in np.argsort(-row, kind="stable").tolist() if chosen[i]]
                span, own = doc[start:end], {self.labels[i]: float(row[i]) for i in found}
                others = {label: x for label, x in get_types(span).items() if label not in self.labels}
                types = own if not others else dict(sorted({**own, **others}.items(), key=lambda x: -x[1]))
                set_types(span, types)
                if found:
                    labels[start, end] = self.labels[found[0]]
            if self.set_label:
                key = self.getter.key if isinstance(self.getter, SpanGroupGetter) else None
                rewrite_spans(doc, labels=labels, key=key)

    def probabilities(self, logits_UL: Scores) -> Scores:
        """As of any unit, but 1 where `always_best` gives the type."""
        probability_UL = super().probabilities(logits_UL)
        if self.always_best and len(logits_UL):
            best_U1 = logits_UL.max(1, keepdims=True)
            probability_UL[(logits_UL == best_U1) & (best_U1 > -np.inf)] = 1.0
        return probability_UL

    @property
    def label_focus(self) -> float:
        return self.focus


make_luke_typer = register(
    "luke_typer",
    LukeTyper,
    model=TYPER_MODEL,
    requires=["doc.ents"],
    assigns=["span._.luke_types"],
    scores=TYPER_SCORES,
)
