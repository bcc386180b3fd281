"""`luke_cloze`: which entity of a Doc fills the gap of a query (LUKE, EMNLP 2020, section 4.4)."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from ..annotations import QUERIES, Answer, Query, get_queries, read_query
from ..architectures.entity_classifier import create_entity_head
from ..batch.entities import EntityBatch, EntityItem, make_entity_batch
from ..bridge.wrapper import to_tensor
from ..checkpoint.contents import Checkpoint
from ..checkpoint.special import CLOZE_PIECES, add_cloze_pieces
from ..model.losses import binary_cross_entropy
from .base import need_gold
from .factories import Function, Scorer, Setting, model_block, register
from .mentions import MentionGetter
from .questions.cloze_windows import ClozeInput, Place, query_items
from .questions.component import AskedComponent

Filler = tuple[int, int, float]  # characters [start, end) of a candidate, and its logit
CLOZE_MODEL = model_block("spacy-luke.EntityClassifier.v1", attention="full", features="entity")  # the paper's


class LukeCloze(AskedComponent[Query, list[Filler]]):
    """Ranks the candidates for the gap, @placeholder, of each query of a Doc, `doc._.luke_queries`, in
    `doc._.luke_fillers`, the best first, with their probabilities.

    Of a candidate in several windows the highest score counts. "@highlight" in the text stands before a highlight, as
    in ReCoRD. Gold: "answers" of the reference's queries; those at the place of a candidate are learned.
    """

    candidates: Function[MentionGetter] = Function(
        {"@misc": "spacy-luke.doc_ents.v1"}, "the candidates for queries that do not give theirs"
    )
    stride: Setting[int] = Setting(
        128,
        "pieces from the beginning of a window to that of the next one, where the Doc is longer than a window; of a "
        "candidate in several the best score counts",
        least=1,
    )
    max_query_pieces: Setting[int | None] = Setting(
        None, "pieces of a query that are read, 90 in the original code; `null`: all, up to half a window", least=1
    )
    scorer: Function[Scorer | None] = Function(
        {"@scorers": "spacy-luke.cloze_scorer.v1"}, "ReCoRD's exact match and F1"
    )

    noun, rows, asks, many = "luke_cloze", QUERIES, "query", "queries"
    answers = 'with "answers" as characters'
    task = "cloze"
    prepare = (add_cloze_pieces,)
    make_batch = staticmethod(make_entity_batch)

    def input(self) -> ClozeInput:
        config, tokenizer = self.encoder.module.config, self.tokenizer
        ids = [number for piece, _ in CLOZE_PIECES if (number := tokenizer.piece_id(piece)) is not None]
        if len(ids) < len(CLOZE_PIECES):
            raise ValueError(
                f"'{self.name}' needs the pieces {[piece for piece, _ in CLOZE_PIECES]}, which the encoder's tokenizer "
                "does not have: it was loaded before this component was added. Load its checkpoint again."
            )
        highlight, placeholder, marker = ids
        return ClozeInput(
            tokenizer,
            config.token_types,
            config.max_window,
            self.stride,
            self.special_row("[MASK]"),
            highlight,
            placeholder,
            marker,
            most_query=self.max_query_pieces,
        )

    def candidates_of(self, doc: Doc, query: Query) -> list[Place]:
        """Characters of a query's candidates, each once."""
        given: Iterable[Sequence[int]] | None = query.get("candidates")
        if given is None:
            given = [(span.start_char, span.end_char) for span in self.candidates(doc)]
        if wrong := [x for x in given if not 0 <= x[0] < x[1] <= len(doc.text)]:
            raise ValueError(
                f"The candidates of the query {query['query'][:80]!r} must be characters [start, end) of the Doc's "
                f"{len(doc.text)}, but one is {list(wrong[0])}."
            )
        return list(dict.fromkeys((int(start), int(end)) for start, end in given))

    # ---- prediction

    def asked(self, doc: Doc) -> list[Query]:
        return get_queries(doc)

    def fill(self, doc: Doc, query: str | Query) -> Answer:
        """The candidates for the gap of one query, which `doc._.luke_queries` need not have, the best first.
        Raises ValueError for what these would not take."""
        self.check_doc(doc)
        asked = read_query(doc, query)
        return self.answer_to(doc, asked, asked["query"])

    def find(self, asked: Sequence[tuple[Doc, Query]]) -> list[list[Filler]]:
        """For each query its candidates, the best first."""
        places = [self.candidates_of(doc, query) for doc, query in asked]
        logits = [np.full(len(x), -np.inf) for x in places]
        items, docs = self._items(asked, places), [doc for doc, _ in asked]
        for batch, scores_U1 in self.scored_batches(items, docs) if any(places) else ():
            for i, c, (score,) in zip(batch.owner_U().tolist(), batch.number_U().tolist(), scores_U1.tolist()):
                logits[i][c] = max(logits[i][c], score)
        return [_best_first(some, scores) for some, scores in zip(places, logits)]

    def ranked(self, found: list[Filler]) -> list[list[Any]]:
        return [[start, end, float(np.exp(-np.logaddexp(0, -logit)))] for start, end, logit in found]

    def _items(self, asked: Sequence[tuple[Doc, Query]], places: Sequence[list[Place]]) -> Iterator[EntityItem]:
        task, lost = self.input(), []
        for i, ((doc, query), candidates) in enumerate(zip(asked, places)):
            missing: list[int] = []
            yield from query_items(task, doc.text, query, candidates, owner=i, lost=missing)
            lost += [doc.text[slice(*candidates[c])] for c in missing]
        if lost:
            warnings.warn(
                f"'{self.name}': {len(lost)} of {sum(map(len, places))} candidates are longer than a window and get no "
                f"score; the first is {lost[0][:80]!r}.",
                stacklevel=2,
            )

    # ---- training

    def gold_items(self, owner: int, example: Example, report: Counter[str]) -> Iterator[EntityItem]:
        doc = example.predicted
        queries = [query for query in get_queries(example.reference) if "answers" in query]
        if not queries:
            return
        self.check_text(example)
        task = self.input()
        for query in queries:
            candidates = self.candidates_of(doc, query)
            answers: set[Place] = {(start, end) for start, end in query["answers"]}
            gold = np.array([place in answers for place in candidates], dtype=np.int64)
            lost: list[int] = []
            yield from query_items(task, doc.text, query, candidates, owner=owner, gold=gold, lost=lost)
            missing = len(answers) - int(gold.sum())
            report.update(queries=1, candidates=len(candidates), right=int(gold.sum()), answers=len(answers))
            report.update({"answers are no candidates": missing} if missing else {})
            report.update({"candidates are longer than a window": len(lost)} if lost else {})
            report.update({} if gold.any() else {"queries have no right candidate": 1})

    def loss_weight(self, batch: EntityBatch) -> float:
        return float(len(batch.units_UK))

    def get_loss(self, batch: EntityBatch, logits_U1: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        loss, gradient_U = binary_cross_entropy(logits_U1[:, 0], to_tensor(need_gold(batch.gold), logits_U1.device))
        return loss, (gradient_U[:, None],)

    # ---- the head

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        weights: Callable[[], Checkpoint] | None = None,
        seed: int = 0,
        bias_init: str = "prior",
    ) -> None:
        """Load the checkpoint and make the head.

        weights: a loader of a checkpoint, such as spacy-luke.checkpoint.v1; null keeps what the encoder has. seed: of
        the head's fresh parameters. bias_init: where the bias of a fresh head begins: "prior", the log-odds of right
        candidates in the training data, which saves steps; "zeros", as the paper's code, whose rate is too small to
        move it.
        """
        self.check_bias_init(bias_init)
        self.begin(get_examples, weights, seed=seed, prior=bias_init == "prior")

    def create_head(self, report: Counter[str] | None = None, *, seed: int = 0) -> None:
        share = 0.5 if report is None else (report["right"] + 1) / (report["candidates"] + 2)
        prior_L = np.array([np.log(share / (1 - share))])
        create_entity_head(self.model, 1, states=2, seed=seed, prior_L=prior_L)

    def fill_head(self, checkpoint: Checkpoint) -> None:
        self.fill_classifier(checkpoint)

    def takes_head(self, checkpoint: Checkpoint) -> bool:
        return super().takes_head(checkpoint) and self.model.attrs["features"] == "entity"

    def advice(self, report: Counter[str]) -> str:
        queries, candidates, _, answers = (report.pop(x, 0) for x in ("queries", "candidates", "right", "answers"))
        reasons = ", ".join(f"{n} {reason}" for reason, n in report.items())
        return reasons and (
            f"of {queries} queries with {candidates} candidates and {answers} answers in the training data, {reasons}; "
            "these cannot be found. Correct the data, or give the queries' candidates"
        )

    def to_checkpoint(self) -> Checkpoint:
        self.check_exportable()
        return super().to_checkpoint()


def _best_first(places: Sequence[Place], logits: np.ndarray) -> list[Filler]:
    rows = [(start, end, float(x)) for (start, end), x in zip(places, logits) if x > -np.inf]
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))


make_luke_cloze = register(
    "luke_cloze",
    LukeCloze,
    model=CLOZE_MODEL,
    assigns=["doc._.luke_fillers"],
    scores={"cloze_f": 0.5, "cloze_em": 0.5},
)
