"""`luke_ner`: named entities by classifying spans (LUKE, EMNLP 2020, section 4.3)."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model, get_current_ops
from thinc.types import Ragged

from ..annotations import register_extensions
from ..architectures.span_classifier import SpanScores, create_span_head
from ..batch.batches import Item, SpanBatch, batch_items, make_batch, split_spans
from ..batch.decode import greedy_flat
from ..batch.windows import CONTEXTS, Document, Spans, Windows, budgets, enumerate_spans, place_spans, plan_windows
from ..bridge.documents import read_document
from ..bridge.finite import check_scores
from ..bridge.wrapper import to_tensor
from ..checkpoint.contents import LukeCheckpoint
from ..model.heads import binary_cross_entropy, cross_entropy
from .base import LukeComponent, check_limits
from .extents import check_window
from .gold import gold_classes, obstacles, read_gold, unknown_words, with_default_names
from .mentions import blocked_words, write_entities
from .tuning import check_positives

DEFAULT_MODEL = Config().from_str("""
[model]
@architectures = "spacy-luke.SpanClassifier.v1"
attention = "one_way"
features = "all"
spans_per_word = 0.5
proposer_size = 150
spans_per_pass = 128

[model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["model"]
NONE_LABEL = "NIL"  # of a span that is no entity: the first label, as the original has it
BIAS_LIMIT = 6.0  # of the biases that `tune` tries, in steps of a quarter
WINDOWS_AT_ONCE = 64  # of one document, so that memory does not grow with its length


@dataclass(frozen=True)
class Predictions:
    """Spans of a Doc whose best label is not "none": words [start, end), class (from 1), its logit and probability, and
    by how much that logit is above the one of "none"."""

    start_E: np.ndarray
    end_E: np.ndarray
    label_E: np.ndarray
    logit_E: np.ndarray
    probability_E: np.ndarray
    margin_E: np.ndarray


@dataclass(frozen=True)
class Survey:
    """What the training data hold: gold spans by label, those that can never be predicted by the reason, and how many
    spans are candidates and how many of them are encoded."""

    labels: Counter[str]
    unreachable: Counter[str]
    candidates: int
    encoded: int

    def shares(self) -> tuple[float, float]:
        """Shares of gold spans among the encoded spans and among the candidates, within (0, 1)."""
        gold = self.labels.total() + 1
        return gold / (max(self.encoded, gold) + gold), gold / (max(self.candidates, gold) + gold)


@Language.factory(
    "luke_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "span._.luke_score"],
    default_config={
        "model": DEFAULT_MODEL,
        "context": "document",
        "max_window": None,
        "overlap": 128,
        "max_span_pieces": 16,
        "max_span_words": None,
        "suggester": None,
        "spans_key": None,
        "none_bias": 0.0,
        "overwrite": False,
        "batch_size": 4096,
        "scorer": {"@scorers": "spacy-luke.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_luke_ner(
    nlp: Language,
    name: str,
    model: Model,
    context: str,
    max_window: int | None,
    overlap: int,
    max_span_pieces: int | None,
    max_span_words: int | None,
    suggester: Callable[..., Any] | None,
    spans_key: str | None,
    none_bias: float,
    overwrite: bool,
    batch_size: int,
    scorer: Callable[..., Any] | None,
) -> "LukeNER":
    """Builds the component; see `LukeNER` for the settings."""
    return LukeNER(
        nlp.vocab,
        model,
        name,
        context=context,
        max_window=max_window,
        overlap=overlap,
        max_span_pieces=max_span_pieces,
        max_span_words=max_span_words,
        suggester=suggester,
        spans_key=spans_key,
        none_bias=none_bias,
        overwrite=overwrite,
        batch_size=batch_size,
        scorer=scorer,
    )


class LukeNER(LukeComponent):
    """Finds entities by classifying spans of words.

    context: "document" surrounds each sentence by as much of its document as fits, "sentence" by nothing.
    max_window: pieces of a window at most, [CLS] and [SEP] included; null: that of the shared encoder, or as many as
        its checkpoint and training are known for (see `extents`).
    overlap: least context in pieces, at most a quarter of a window, where a document or a sentence is longer.
    max_span_pieces, max_span_words: longest span that may be an entity, in pieces and words; null for no limit.
    suggester: a function of spaCy's `misc` registry that proposes the spans instead, such as spacy.ngram_suggester.v1.
    spans_key: null writes entities without overlap to `doc.ents`, the best first; a name writes all of them, nested or
        overlapping, to `doc.spans[spans_key]` with their probabilities in `attrs["scores"]`. Where another component
        writes `doc.ents` too, [training.score_weights] must name spans_KEY_f for the group to count.
    none_bias: added to the logit of "no entity" in predictions; below 0 more is found, above 0 less. `tune` finds the
        best one on dev data; the paper's is 0.
    overwrite: whether `doc.ents` set by earlier components give way; otherwise entities that overlap them are left out.
        Words that are blocked (`doc.set_ents(..., blocked=...)`) are in no entity either way, as in spaCy's own.
    batch_size: pieces and spans encoded at once.
    """

    noun = "luke_ner"
    learned = ("labels", "none")
    counts_windows = True
    _warned_of_sentences = False

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke_ner",
        *,
        context: str = "document",
        max_window: int | None = None,
        overlap: int = 128,
        max_span_pieces: int | None = 16,
        max_span_words: int | None = None,
        suggester: Callable[..., Any] | None = None,
        spans_key: str | None = None,
        none_bias: float = 0.0,
        overwrite: bool = False,
        batch_size: int = 4096,
        scorer: Callable[..., Any] | None = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            context=context,
            max_window=max_window,
            overlap=overlap,
            max_span_pieces=max_span_pieces,
            max_span_words=max_span_words,
            spans_key=spans_key,
            none_bias=float(none_bias),
            overwrite=overwrite,
            batch_size=batch_size,
            labels=[],
            none=NONE_LABEL,
        )
        self.suggester = suggester
        self.scorer = scorer
        register_extensions()
        if context not in CONTEXTS:
            raise ValueError(f"context must be one of {CONTEXTS}, but it is {context!r}.")
        check_window(max_window)
        check_limits(
            overlap=overlap, batch_size=batch_size, max_span_pieces=max_span_pieces, max_span_words=max_span_words
        )
        if max_span_pieces is not None and max_span_pieces > overlap // 2:
            raise ValueError(
                f"overlap must be at least twice max_span_pieces, or spans at the end of a window could be lost; "
                f"expected {2 * max_span_pieces} or more, but it is {overlap}."
            )

    def create_head(self, *, seed: int = 0, shares: tuple[float, float] | None = None) -> None:
        create_span_head(self.model, len(self.labels) + 1, seed=seed, shares=shares)

    # ---- from Docs to batches

    def items(self, owner: int, doc: Doc, gold: dict[tuple[int, int], int] | None = None) -> Iterator[Item]:
        """The windows of one Doc with their candidate spans. gold: class of each gold span; only in training."""
        document = read_document(doc, self.tokenizer)
        windows = self.plan(document, learning=gold is not None)
        attrs = self.model.attrs
        rate = attrs["spans_per_word"]
        unlimited = np.full(len(windows), np.iinfo(np.int64).max)
        budget_B = unlimited if rate is None else budgets(document, windows, spans_per_word=rate)
        unknown_W = None if gold is None else unknown_words(gold, len(doc))
        if gold is not None:
            self._check_sentences(doc, document, gold)
        for first in range(0, len(windows), WINDOWS_AT_ONCE) if self.suggester is None else [0]:
            last = min(first + WINDOWS_AT_ONCE, len(windows)) if self.suggester is None else len(windows)
            spans = self.candidates(doc, document, windows, first, last)
            classes = None if gold is None else gold_classes(spans, gold, unknown_W)
            edges = np.searchsorted(spans.window_E, np.arange(first, last + 1)).tolist()
            for window, a, b in zip(range(first, last), edges, edges[1:]):
                if a == b:
                    continue
                pieces = self._window_pieces(document, windows, window)
                for run in split_spans(a, b, most=attrs["spans_per_pass"]):
                    part = None if classes is None else classes[run.start : run.stop]
                    yield Item(owner, pieces, spans, run.start, run.stop, int(budget_B[window]), part)

    def _check_sentences(self, doc: Doc, document: Document, gold: dict[tuple[int, int], int]) -> None:
        """In training: say once where a gold span lies in two sentences, which a component before has found since the
        gold was counted."""
        crossing = [
            (a, b) for (a, b), x in gold.items() if x > 0 and document.sentence_W[a] != document.sentence_W[b - 1]
        ]
        if crossing and not self._warned_of_sentences:
            self._warned_of_sentences = True
            a, b = crossing[0]
            warnings.warn(
                f"'{self.name}': {len(crossing)} of {sum(x > 0 for x in gold.values())} gold spans of a Doc lie in two "
                f"sentences and are not learned; the first is {doc[a:b].text[:80]!r}. Correct the data, or the "
                f"component that "
                "finds the sentences. This is said of the first such Doc.",
                stacklevel=2,
            )

    def plan(self, document: Document, *, learning: bool) -> Windows:
        return plan_windows(
            document,
            context=self.cfg["context"],
            share=self.model.attrs["attention"] == "one_way",
            **self.limits(learning=learning, longest_span=self.cfg["max_span_pieces"]),
        )

    def candidates(self, doc: Doc, document: Document, windows: Windows, first: int, last: int) -> Spans:
        if self.suggester is None:
            return enumerate_spans(
                document,
                windows,
                first_window=first,
                last_window=last,
                max_pieces=self.cfg["max_span_pieces"],
                max_words=self.cfg["max_span_words"],
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

    def _window_pieces(self, document: Document, windows: Windows, window: int) -> np.ndarray:
        pieces = document.pieces.ids_N[windows.start_B[window] : windows.end_B[window]]
        return self.tokenizer.window(pieces)

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[Predictions]:
        return self._predict(list(docs), self.cfg["none_bias"])

    def _predict(self, docs: Sequence[Doc], none_bias: float) -> list[Predictions]:
        found: list[list[np.ndarray]] = [[] for _ in docs]
        items = (item for i, doc in enumerate(docs) for item in self.items(i, doc))
        with self.predicting():
            for batch in batch_items(items, size=self.cfg["batch_size"], make=make_batch):
                scores = self.model.predict(batch)
                self._check(batch, scores, docs)
                for owner, rows in self._read(batch, scores, none_bias):
                    found[owner].append(rows)
        empty = np.empty((0, 6))
        tables = [np.concatenate(x) if x else empty for x in found]
        tables = [x[np.lexsort((x[:, 1], x[:, 0]))] for x in tables]
        return [Predictions(*(x[:, i].astype(np.int64) for i in range(3)), *x[:, 3:].T) for x in tables]

    def _check(self, batch: SpanBatch, scores: SpanScores, docs: Sequence[Doc]) -> None:
        if scores.proposals_E is not None:
            check_scores(scores.proposals_E, batch.owner_E, docs, name=self.name)
        check_scores(scores.logits_KL, lambda: batch.owner_E()[scores.kept_K.cpu().numpy()], docs, name=self.name)

    def _read(self, batch: SpanBatch, scores: SpanScores, none_bias: float) -> Iterator[tuple[int, np.ndarray]]:
        """For each document of the batch a row (start, end, class, logit, probability, margin) for each span found."""
        logits_KL = scores.logits_KL
        if none_bias:
            logits_KL = torch.cat([logits_KL[:, :1] + none_bias, logits_KL[:, 1:]], 1)
        label_K = logits_KL.argmax(-1)
        some_K = label_K > 0
        kept = scores.kept_K[some_K].cpu().numpy()
        if not len(kept):
            return
        best = label_K[some_K, None]
        logit = logits_KL[some_K].gather(1, best)[:, 0].cpu().numpy()
        probability = logits_KL[some_K].softmax(-1).gather(1, best)[:, 0].cpu().numpy()
        margin = logit - (logits_KL[some_K, 0].cpu().numpy() - none_bias)
        label = best[:, 0].cpu().numpy()
        rows = np.stack([batch.start_E[kept], batch.end_E[kept], label, logit, probability, margin], 1)
        owner = batch.owner_E()[kept]
        for i in np.unique(owner).tolist():
            yield i, rows[owner == i]

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[Predictions]) -> None:
        key = self.cfg["spans_key"]
        for doc, found in zip(docs, predictions):
            if key is None:
                self._set_entities(doc, found)
                continue
            chosen = np.arange(len(found.start_E))
            spans = self._spans(doc, found, chosen)
            scores = found.probability_E.astype("float32")
            doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs={"scores": scores})

    def _set_entities(self, doc: Doc, found: Predictions) -> None:
        before = [] if self.cfg["overwrite"] else list(doc.ents)
        blocked_W = np.concatenate([[0], np.cumsum(blocked_words(doc))])
        free = blocked_W[found.start_E] == blocked_W[found.end_E]
        for entity in before:
            free &= (found.end_E <= entity.start) | (found.start_E >= entity.end)
        candidates = np.flatnonzero(free)
        chosen = greedy_flat(found.start_E[candidates], found.end_E[candidates], found.logit_E[candidates])
        write_entities(doc, [*before, *self._spans(doc, found, candidates[chosen])])

    def _spans(self, doc: Doc, found: Predictions, chosen: np.ndarray) -> list[Span]:
        spans = []
        for i in chosen.tolist():
            label = self.cfg["labels"][int(found.label_E[i]) - 1]
            span = Span(doc, int(found.start_E[i]), int(found.end_E[i]), label=label)
            span._.luke_score = float(found.probability_E[i])
            spans.append(span)
        return spans

    # ---- training

    def batches(self, examples: list[Example]) -> Iterator[SpanBatch]:
        golds = [self.gold(example) for example in examples]
        items = (
            item
            for i, (example, gold) in enumerate(zip(examples, golds))
            if gold is not None
            for item in self.items(i, example.predicted, gold)
        )
        return batch_items(items, size=self.cfg["batch_size"], make=make_batch)

    def get_loss(self, batch: SpanBatch, scores: SpanScores) -> tuple[float, tuple[Any, Any]]:
        """Cross-entropy of the encoded spans' labels, plus binary cross-entropy of the proposals, both summed."""
        gold_E = to_tensor(batch.gold_E, scores.logits_KL.device)
        loss, d_logits = cross_entropy(scores.logits_KL, gold_E[scores.kept_K])
        if scores.proposals_E is None:
            return loss, (d_logits, None)
        extra, d_proposals = binary_cross_entropy(scores.proposals_E, gold_E)
        return loss + extra, (d_logits, d_proposals)

    def loss_weight(self, batch: SpanBatch) -> float:
        """What the summed loss is divided by: the known spans, or with proposals their words (first words of spans)."""
        known = batch.gold_E >= 0
        if self.model.attrs["spans_per_word"] is None:
            return float(known.sum())
        return float(len(np.unique(np.stack([batch.owner_E()[known], batch.start_E[known]]), axis=1).T))

    def gold(self, example: Example) -> dict[tuple[int, int], int] | None:
        """Class of each gold span in the words of the predicted Doc, -1 for words without annotation; None where the
        whole Doc has none."""
        classes = {label: i + 1 for i, label in enumerate(self.cfg["labels"])}
        return read_gold(example, classes, spans_key=self.cfg["spans_key"], name=self.name)

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

        labels: all labels; found in the examples where null. weights: a loader of a checkpoint, such as
        spacy-luke.checkpoint.v1; null keeps what the encoder has. seed: of the head's fresh parameters.
        """
        validate_get_examples(get_examples, "LukeNER.initialize")
        checkpoint = self.load_weights(weights)
        survey = self._survey(get_examples)
        seen, unreachable = survey.labels, survey.unreachable
        has_head = checkpoint is not None and self._fits(checkpoint, labels or sorted(seen))
        key = self.cfg["spans_key"]
        where = "entities in doc.ents" if key is None else f"spans in doc.spans[{key!r}]"
        self.choose_labels(checkpoint.labels[1:] if has_head else labels, seen, where=where)
        if has_head:
            self.load_head(checkpoint)
        else:
            self.create_head(seed=seed, shares=survey.shares())
        advice = "Raise max_span_pieces or max_span_words, change the suggester, or correct the data."
        self.warn_missing(unreachable, seen.total(), what="gold spans", advice=advice)

    def load_head(self, checkpoint: LukeCheckpoint) -> None:
        """Take over a fine-tuned checkpoint's labels and classifier; index 0 of its labels means no entity."""
        self.cfg["none"], self.cfg["labels"] = checkpoint.labels[0], list(checkpoint.labels[1:])
        self.create_head()
        self.fill_classifier(checkpoint)

    def to_checkpoint(self) -> LukeCheckpoint:
        self.check_exportable("all")
        checkpoint = self.with_classifier(super().to_checkpoint())
        checkpoint.labels = [self.cfg["none"], *self.cfg["labels"]]
        checkpoint.task = "span_classification"
        return checkpoint

    def _fits(self, checkpoint: LukeCheckpoint, labels: Sequence[str]) -> bool:
        known = checkpoint.labels or []
        return (
            checkpoint.task == "span_classification"
            and self.model.attrs["features"] == "all"
            and self.model.attrs["proposer_size"] == 0
            and set(labels) <= set(known[1:])
        )

    def _survey(self, get_examples: Callable[[], Iterable[Example]]) -> "Survey":
        seen: Counter[str] = Counter()
        unreachable: Counter[str] = Counter()
        candidates = encoded = 0
        key, rate = self.cfg["spans_key"], self.model.attrs["spans_per_word"]
        for example in get_examples():
            reference, doc = example.reference, example.predicted
            spans = list(reference.ents) if key is None else list(reference.spans.get(key, []))
            seen.update(span.label_ for span in spans)
            aligned = example.get_aligned_spans_y2x(spans, allow_overlap=True)
            if len(aligned) < len(spans):
                unreachable["do not fall on word boundaries"] += len(spans) - len(aligned)
            doubled = len({(x.start, x.end, x.label) for x in aligned}) - len({(x.start, x.end) for x in aligned})
            if doubled:
                unreachable["have the words of another one with another label"] += doubled
            document = read_document(doc, self.tokenizer)
            windows = self.plan(document, learning=True)
            offered = self.candidates(doc, document, windows, 0, len(windows))
            limit = len(offered) if rate is None else int(budgets(document, windows, spans_per_word=rate).sum())
            candidates, encoded = candidates + len(offered), encoded + min(len(offered), limit)
            if self.suggester is not None:
                pairs = set(zip(offered.start_E.tolist(), offered.end_E.tolist()))
                missing = sum((span.start, span.end) not in pairs for span in aligned)
                unreachable.update({"are not proposed by the suggester": missing} if missing else {})
                continue
            limits = {"max_pieces": self.cfg["max_span_pieces"], "max_words": self.cfg["max_span_words"]}
            unreachable.update(obstacles(document, windows, aligned, **limits))
        return Survey(seen, unreachable, candidates, encoded)

    def tune(self, examples: Sequence[Example], *, nlp: Language | None = None, least: int = 0) -> dict[str, float]:
        """Set the none_bias that gives the best F1 on examples, dev data never trained on.

        nlp: pipeline whose config gets it (see `settle`). RETURNS: it and the F1; of equal ones the nearest to 0.
        Raises ValueError for fewer than `least` gold entities.
        """
        examples = [example for example in examples if self.gold(example) is not None]
        found = self._predict([example.predicted for example in examples], -BIAS_LIMIT)
        golds, total = [], 0
        for example in examples:
            golds.append({(*place, label) for place, label in self.gold(example).items() if label > 0})
            reference = example.reference
            spans = reference.ents if self.cfg["spans_key"] is None else reference.spans[self.cfg["spans_key"]]
            total += len({(span.start, span.end, span.label) for span in spans})  # also those that cannot be predicted
        if not total:
            raise ValueError("Expected examples with gold entities to tune on, but found none.")
        check_positives(total, least, name=self.name, what="gold entities")
        best = (-1.0, 0.0, 0.0)
        for bias in np.arange(-BIAS_LIMIT, BIAS_LIMIT + 0.1, 0.25).round(2).tolist():
            right = given = 0
            for one, gold in zip(found, golds):
                chosen = np.flatnonzero(one.margin_E > bias)
                if self.cfg["spans_key"] is None:
                    chosen = chosen[greedy_flat(one.start_E[chosen], one.end_E[chosen], one.logit_E[chosen])]
                rows = np.stack([one.start_E, one.end_E, one.label_E], 1)[chosen].tolist()
                right, given = right + sum(tuple(row) in gold for row in rows), given + len(rows)
            best = max(best, (2 * right / (given + total), -abs(bias), bias))
        self.settle(nlp, none_bias=best[2])
        return {"none_bias": best[2], "ents_f": best[0]}

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        if self.scorer is None:
            return {}
        examples, key = list(examples), self.cfg["spans_key"]
        scores = self.scorer(examples, spans_key=key, **kwargs)
        return scores if key is None else with_default_names(scores, examples, spans_key=key)
