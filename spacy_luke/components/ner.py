"""`luke_ner`: named entities by classifying spans (LUKE, EMNLP 2020, section 4.3)."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline.spancat import Suggester
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import get_current_ops
from thinc.types import Ragged
from torch import Tensor

from ..annotations import get_gold_entities
from ..architectures.span_classifier import SpanScores, create_span_head
from ..batch.allowed import ANY, AllowedClasses
from ..batch.batches import SpanBatch, SpanItem, make_batch, split_spans
from ..batch.windows import Document, Spans, WindowPlan, budgets, enumerate_spans, place_spans, plan_windows
from ..bridge.documents import read_document
from ..bridge.wrapper import send_arrays
from ..checkpoint.contents import Checkpoint
from ..model.partial_losses import span_loss
from .base import need_gold
from .calibration import Calibrated
from .factories import Function, Scorer, Setting, model_block, register
from .labelled import LabelledComponent
from .mentions import blocked_words, write_entities
from .spans.found import (
    BIAS_LIMIT,
    FoundSpans,
    begin_scores,
    best_settings,
    give_scores,
    judged_spans,
    make_spans,
    read_spans,
    write_group,
)
from .spans.gold import (
    Obstacle,
    SpanGold,
    SpanSurvey,
    crossing_message,
    gold_classes,
    obstacles,
    read_gold_spans,
    read_scored_spans,
    taught_gold,
    taught_rows,
    with_default_names,
)
from .taught import read_taught
from .thresholds import check_positives
from .window_limits import ContextSettings, check_overlap

NER_MODEL = model_block("spacy-luke.SpanClassifier.v1")
_SCORES = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
_NONE_LABEL = "NIL"  # of a span that is no entity: the first label, as the original has it
_WINDOWS_AT_ONCE = 64  # of one document, so that memory does not grow with its length


class LukeNER(Calibrated, ContextSettings, LabelledComponent[SpanSurvey]):
    """Finds entities by classifying spans of words."""

    max_span_pieces: Setting[int | None] = Setting(16, "longest entity in subword pieces; `null`: no limit", least=1)
    max_span_words: Setting[int | None] = Setting(None, "longest entity in words; `null`: no limit", least=1)
    suggester: Function[Suggester | None] = Function(
        None,
        "a function of spaCy's `misc` registry that proposes the spans, such as `spacy.ngram_range_suggester.v1`",
    )
    spans_key: Setting[str | None] = Setting(
        None,
        "`null`: entities without overlap in `doc.ents`, the best first; a name: all of them, nested or overlapping, "
        "in `doc.spans[name]`. Gold without such a group is read from its `doc.ents`. Where another component writes "
        "`doc.ents` too, `[training.score_weights]` must name `spans_NAME_f` for the group to count",
    )
    set_ents: Setting[bool] = Setting(
        False, "with `spans_key`: whether `doc.ents` gets entities without overlap, the best first, beside the group"
    )
    none_bias: Setting[float] = Setting(
        0.0,
        'added to the logit of "no entity" in predictions; below 0 more is found. `spacy luke tune` finds the best on '
        "dev data; the paper's is 0",
    )
    proposal_threshold: Setting[float] = Setting(
        0.0,
        "with `spans_per_word`: least probability, by the proposing scorer, of spans that are encoded in predictions: "
        "the higher, the faster. `spacy luke tune` finds one that costs next to no F1; 0: `spans_per_word` counts",
        least=0,
        most=0.99,
    )
    overwrite: Setting[bool] = Setting(
        False,
        "whether entities that stand in `doc.ents`, this component's of an earlier run too, give way; otherwise those "
        "that overlap them are left out. Blocked words are in none of `doc.ents` either way, as in spaCy's own",
    )
    scorer: Function[Scorer | None] = Function(
        {"@scorers": "spacy-luke.ner_scorer.v1"}, "exact span and label, as conlleval and seqeval count"
    )

    noun = "luke_ner"
    learned = ("labels", "none")
    gold_noun = "gold spans"
    task = "span_classification"
    head_features = "all"
    counts_windows = True
    make_batch = staticmethod(make_batch)
    _warned_of_sentences = False

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.cfg["none"] = _NONE_LABEL

    @classmethod
    def check_together(cls, values: Mapping[str, Any]) -> None:
        check_overlap(values["overlap"], longest_span=values["max_span_pieces"])

    def create_head(self, *, seed: int = 0, shares: tuple[float, float] | None = None) -> None:
        create_span_head(self.model, len(self.labels) + 1, seed=seed, shares=shares)

    # ---- from Docs to batches

    def items(self, owner: int, doc: Doc, gold: SpanGold | None = None) -> Iterator[SpanItem]:
        """The windows of one Doc with their candidate spans. gold: only in training."""
        document = read_document(doc, self.tokenizer, punctuation_apart=self.punctuation_apart)
        windows = self.plan(document, learning=gold is not None)
        attrs = self.model.attrs
        rate = attrs["spans_per_word"]
        unlimited = np.full(len(windows), np.iinfo(np.int64).max)
        budget_B = unlimited if rate is None else budgets(document, windows, spans_per_word=rate)
        allowed = None if gold is None else gold.allowed
        if gold is not None:
            self._check_sentences(doc, document, gold)
        for first in range(0, len(windows), _WINDOWS_AT_ONCE) if self.suggester is None else [0]:
            last = min(first + _WINDOWS_AT_ONCE, len(windows)) if self.suggester is None else len(windows)
            spans = self.candidates(doc, document, windows, first, last)
            classes = None if gold is None else gold_classes(spans, gold)
            taught = None if gold is None or gold.taught is None else taught_rows(spans, gold.taught)
            edges = np.searchsorted(spans.window_E, np.arange(first, last + 1)).tolist()
            for window, a, b in zip(range(first, last), edges, edges[1:]):
                if a == b:
                    continue
                pieces = self.tokenizer.window(document.pieces.ids_N[windows.start_B[window] : windows.end_B[window]])
                for run in split_spans(a, b, most=attrs["spans_per_pass"]):
                    part = None if classes is None else classes[run.start : run.stop]
                    if part is not None and taught is None and (part == ANY).all():
                        continue  # of what is not annotated nothing is learned
                    said = None if taught is None else taught[run.start : run.stop]
                    budget = int(budget_B[window])
                    yield SpanItem(owner, pieces, spans, run.start, run.stop, budget, part, allowed, said)

    def _check_sentences(self, doc: Doc, document: Document, gold: SpanGold) -> None:
        """In training: say once where gold spans lie in two sentences."""
        if not self._warned_of_sentences and (said := crossing_message(doc, document, gold.classes)):
            self._warned_of_sentences = True
            warnings.warn(f"'{self.name}': {said} This is said of the first such Doc.", stacklevel=2)

    def plan(self, document: Document, *, learning: bool) -> WindowPlan:
        return plan_windows(
            document,
            context=self.context,
            share=self.model.attrs["attention"] == "one_way",
            **self.limits(learning=learning, longest_span=self.max_span_pieces),
        )

    def candidates(self, doc: Doc, document: Document, windows: WindowPlan, first: int, last: int) -> Spans:
        if self.suggester is None:
            return enumerate_spans(
                document,
                windows,
                first_window=first,
                last_window=last,
                max_pieces=self.max_span_pieces,
                max_words=self.max_span_words,
            )
        suggested: Ragged = self.suggester([doc], ops=get_current_ops())
        table = np.asarray(suggested.data.get() if hasattr(suggested.data, "get") else suggested.data).reshape(-1, 2)
        spans, rest = place_spans(document, windows, table[:, 0], table[:, 1])
        if len(rest):
            warnings.warn(
                f"'{self.name}': {len(rest)} of {len(table)} suggested spans cannot be encoded and are not entities; "
                f"the first is words {rest[0].tolist()}, {doc[rest[0][0] : rest[0][1]].text[:80]!r}. A span must begin "
                "and end with a word that is not blank and fit into a window.",
                stacklevel=2,
            )
        return spans

    # ---- prediction

    def predict(
        self, docs: Iterable[Doc], *, none_bias: float | None = None, chance: float | None = None
    ) -> list[FoundSpans]:
        """none_bias, chance: others than the settings `none_bias` and `proposal_threshold`."""
        docs, bias = list(docs), self.none_bias if none_bias is None else none_bias
        found: list[list[NDArray[np.float64]]] = [[] for _ in docs]
        for batch, scores in self.scored(docs, chance=self.proposal_threshold if chance is None else chance):
            for owner, rows in read_spans(batch, scores, none_bias=bias):
                found[owner].append(rows)
        return [FoundSpans.joined(parts) for parts in found]

    def scored(self, docs: Sequence[Doc], *, chance: float) -> Iterator[tuple[SpanBatch, SpanScores]]:
        """Batches of the candidate spans of all Docs, and their scores on the host; see `begin_scores`. chance: least
        probability of a proposal."""
        items = (item for i, doc in enumerate(docs) for item in self.items(i, doc))
        return self.scored_batches(items, docs, chance=chance)

    def begin_scores(self, batch: SpanBatch, outputs: SpanScores, docs: Sequence[Doc]) -> Callable[[], SpanScores]:
        return begin_scores(batch, outputs, docs, name=self.name)

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[FoundSpans]) -> None:
        key = self.spans_key
        for doc, found in zip(docs, predictions):
            if key is None or self.set_ents:
                self._set_entities(doc, found)
            if key is not None:
                write_group(doc, key, *self._scored(doc, found, np.arange(len(found.start_E))))

    def _set_entities(self, doc: Doc, found: FoundSpans) -> None:
        before = [] if self.overwrite else list(doc.ents)
        if self.overwrite:
            for word in (word for entity in doc.ents for word in entity):
                word.ent_id = 0  # of what gives way; spaCy leaves it to entities without one
        spans, scores = self._scored(doc, found, found.beside(before, blocked_words(doc)))
        write_entities(doc, [*before, *spans])
        give_scores(spans, scores)

    def _scored(self, doc: Doc, found: FoundSpans, chosen: NDArray[np.int64]) -> tuple[list[Span], NDArray[np.float64]]:
        return make_spans(doc, found, chosen, self.labels), self.calibrated(found.probability_E[chosen])

    # ---- training

    def batches(self, examples: list[Example]) -> Iterator[SpanBatch]:
        allowed = AllowedClasses(len(self.labels) + 1)
        golds = [self.gold(example, allowed) for example in examples]
        items = (
            item
            for i, (example, gold) in enumerate(zip(examples, golds))
            if gold is not None
            for item in self.items(i, example.predicted, gold)
        )
        return self.batched(items)

    def get_loss(self, batch: SpanBatch, scores: SpanScores) -> tuple[Tensor, tuple[Any, Any]]:
        """Cross-entropy of the encoded spans' labels, plus binary cross-entropy of the proposals, both summed; marginal
        ones where gold leaves labels open, and those of what is taught."""
        gold, device = (need_gold(batch.gold_E), batch.allowed_SL, batch.taught_EL), scores.logits_KL.device
        return span_loss(scores.logits_KL, scores.proposals_E, scores.kept_K, *send_arrays(gold, device))

    def loss_weight(self, batch: SpanBatch) -> float:
        """What the summed loss is divided by: the known spans, or with proposals their words (first words of spans)."""
        known = batch.known_E()
        if self.model.attrs["spans_per_word"] is None:
            return float(known.sum())
        return float(len(np.unique(np.stack([batch.owner_E()[known], batch.start_E[known]]), axis=1).T))

    def gold(self, example: Example, allowed: AllowedClasses | None = None) -> SpanGold | None:
        """What spans may be in the words of the predicted Doc, by numbers of `allowed`; None where the whole Doc has no
        annotation."""
        allowed = AllowedClasses(len(self.labels) + 1) if allowed is None else allowed
        if (taught := read_taught(example, ["", *self.labels], name=self.name)) is not None:
            return taught_gold(allowed, taught)
        return read_gold_spans(
            example, self.labels, allowed, spans_key=self.spans_key, unknown_label=self.unknown_label
        )

    # ---- the head

    @property
    def gold_place(self) -> str:
        return "entities in doc.ents" if self.spans_key is None else f"spans in doc.spans[{self.spans_key!r}]"

    def create_first_head(self, survey: SpanSurvey, *, seed: int) -> None:
        self.create_head(seed=seed, shares=survey.shares())

    def known_labels(self, checkpoint: Checkpoint) -> list[str] | None:
        own = checkpoint.task == self.task and checkpoint.labels is not None
        plain = self.model.attrs["features"] == "all" and self.model.attrs["proposer_size"] == 0
        return checkpoint.named_labels()[1:] if own and plain else None

    def take_labels(self, labels: Sequence[str], *, nlp: Language | None = None) -> None:
        """The first one means no entity."""
        none, *others = labels
        self.cfg.learn(none=none, labels=others)

    def row_labels(self) -> list[str]:
        return [self.cfg["none"], *self.labels]

    def gold_spans(self, reference: Doc) -> list[Span]:
        found = get_gold_entities(reference, self.spans_key)
        return [] if found is None else found.spans

    def survey(self, get_examples: Callable[[], Iterable[Example]]) -> SpanSurvey:
        found, rate = SpanSurvey(), self.model.attrs["spans_per_word"]
        for example in get_examples():
            doc, aligned = example.predicted, found.count_gold(example, self.gold_spans(example.reference))
            if not self.punctuation_apart:
                found.count_attached(doc, aligned)
            document = read_document(doc, self.tokenizer, punctuation_apart=self.punctuation_apart)
            windows = self.plan(document, learning=True)
            offered = self.candidates(doc, document, windows, 0, len(windows))
            found.candidates += len(offered)
            limit = len(offered) if rate is None else budgets(document, windows, spans_per_word=rate).sum()
            found.encoded += min(len(offered), int(limit))
            if self.suggester is not None:
                pairs = set(zip(offered.start_E.tolist(), offered.end_E.tolist()))
                missing = sum((span.start, span.end) not in pairs for span in aligned)
                found.add_missing(Obstacle("are not proposed by the suggester", "Change the suggester."), missing)
                continue
            limits = {"max_pieces": self.max_span_pieces, "max_words": self.max_span_words}
            for obstacle in obstacles(document, windows, aligned, **limits):
                found.add_missing(obstacle)
        found.warn_attached(self.name)
        return found

    def tune(
        self, examples: Sequence[Example], *, nlp: Language | None = None, least: int = 0, calibrate: bool = True
    ) -> dict[str, float]:
        """Set the none_bias that gives the best F1 on examples, dev data never trained on, and the proposal_threshold
        that costs next to none of it (see `best_settings`), in the config of `nlp` too (see `settle`); calibrate what
        is shown. RETURNS: them and the F1. Raises ValueError for fewer than `least` gold entities."""
        read = [(x, read_scored_spans(x, spans_key=self.spans_key)) for x in examples]
        known = [(x, gold) for x, gold in read if gold is not None]
        golds = [gold for _, gold in known]
        check_positives(sum(gold.total for gold in golds), least, name=self.name, what="gold entities")
        found = self.predict((x.predicted for x, _ in known), none_bias=-BIAS_LIMIT, chance=0.0)
        flat = self.spans_key is None or self.set_ents
        best = best_settings(found, golds, self.labels, flat=flat)
        self.settle(nlp, **{name: value for name, value in best.items() if name in self.cfg})
        judged = judged_spans(found, golds, self.labels, best, before=-BIAS_LIMIT, flat=flat)
        return {**best, **(self.fit_calibration(*judged, nlp=nlp, least=least) if calibrate else {})}

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        if self.scorer is None:
            return {}
        examples, key = list(examples), self.spans_key
        keys = [key, None][: 1 + self.set_ents]
        scores = {name: x for one in keys for name, x in self.scorer(examples, spans_key=one, **kwargs).items()}
        return scores if key is None or self.set_ents else with_default_names(scores, examples, spans_key=key)


make_luke_ner = register(
    "luke_ner",
    LukeNER,
    model=NER_MODEL,
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "span._.luke_score"],
    scores=_SCORES,
)
