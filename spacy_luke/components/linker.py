"""`luke_linker`: mentions are linked to the entities of a knowledge base (Yamada & Shindo 2019, arXiv:1909.00426v1; Yamada et
al., NAACL 2022, "Global Entity Disambiguation with BERT")."""

import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model
from torch import Tensor

from ..annotations import register_extensions
from ..batch.batches import batch_items
from ..batch.linking import SPLITS, LinkBatch, make_link_batch
from ..bridge.documents import read_document
from ..bridge.linking import create_candidate_head
from ..bridge.wrapper import to_tensor
from ..checkpoint.checkpoint import Checkpoint
from ..knowledge.vectors import EntityVectors
from ..linking.kb import EntityKB
from ..linking.persons import share_person_names
from ..linking.store import Candidate
from ..model.linking import candidate_cross_entropy
from .base import BYTES_LIMIT, LukeComponent, check_limits
from .candidates import Candidates, EntityTable, Named, best_candidates, check_store, given_candidates
from .decisions import INFERENCE, decide
from .link_inputs import OTHERS, LinkInput, link_tasks, training_items
from .link_stores import has_table, pack_kb, table_vectors, unpack_kb
from .mentions import SpanGroupGetter, align_mention

DEFAULT_MODEL = Config().from_str("""
[model]
@architectures = "spacy-luke.EntityLinker.v1"
attention = "one_way"
prior = true

[model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
trainable = true
train_precision = "auto"
predict_precision = "float32"
""")["model"]
NIL = "NIL"
GOLD_KEY = "luke_links"
LINKED = "luke_linked"
KB = "kb"  # folder beside the file
CHUNK = 20_000  # candidates whose vectors are in memory at a time, about

Mention = Tuple[int, int]
Linked = List[Tuple[str, float, float]]  # id, prior, score, the best first

DEFAULT_CONFIG = {
    "model": DEFAULT_MODEL,
    "getter": {"@misc": "spacy-luke.doc_ents.v1"},
    "max_candidates": 30,
    "use_given": True,
    "share_names": False,
    "inference": "global",
    "sure": None,
    "split": "cores",
    "overlap": 128,
    "max_window": None,
    "max_mentions": 128,
    "others": "masked",
    "pseudo_prior": 0.1,
    "masked_share": 0.9,
    "threshold": 0.0,
    "batch_size": 4096,
    "scorer": {"@scorers": "spacy-luke.linking_scorer.v1"},
}
SCORE_WEIGHTS = {
    "links_accuracy": 1.0,
    "links_macro_accuracy": 0.0,
    "links_f": 0.0,
    "links_strict_f": 0.0,
    "links_candidate_recall": 0.0,
}


@Language.factory(
    "luke_linker",
    assigns=["doc.ents", "token.ent_kb_id", "span._.luke_candidates"],
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_luke_linker(
    nlp: Language,
    name: str,
    model: Model,
    getter: Callable[[Doc], Iterable[Span]],
    max_candidates: int,
    use_given: bool,
    share_names: bool,
    inference: str,
    sure: Optional[float],
    split: str,
    overlap: int,
    max_window: Optional[int],
    max_mentions: int,
    others: str,
    pseudo_prior: float,
    masked_share: float,
    threshold: float,
    batch_size: int,
    scorer: Optional[Callable[..., Any]],
) -> "LukeLinker":
    """Builds the component; see `LukeLinker` for the settings."""
    return LukeLinker(
        nlp.vocab,
        model,
        name,
        getter=getter,
        max_candidates=max_candidates,
        use_given=use_given,
        share_names=share_names,
        inference=inference,
        sure=sure,
        split=split,
        overlap=overlap,
        max_window=max_window,
        max_mentions=max_mentions,
        others=others,
        pseudo_prior=pseudo_prior,
        masked_share=masked_share,
        threshold=threshold,
        batch_size=batch_size,
        scorer=scorer,
    )


class LukeLinker(LukeComponent):
    """Gives each mention the id of its entity (`ent.kb_id_`), and its candidates with prior and score, the best first, in
    `span._.luke_candidates`. A mention without candidates, or whose best score is below the threshold, gets "NIL".

    getter: the mentions of a Doc, such as spacy-luke.doc_ents.v1 or spacy-luke.span_group.v1.
    max_candidates: those of a mention with the highest priors are scored.
    use_given: whether `doc._.luke_candidates_given` takes the place of the knowledge base's candidates in Docs that have it.
    share_names: whether a person's mention that is part of a longer one in the document gets that one's candidates.
    inference: "global" decides the most confident mention first, and the next ones see its entity; "local" all at once.
    sure: "global" decides all mentions of at least this probability in one step, which is faster; null: one a step, as the
        paper does.
    split: of documents longer than a window, "cores" (windows that overlap), "simple" (equal parts) or "per_mention" (a
        window around each), as the original code has them; see `plan_link_windows`.
    overlap: least context in pieces at the ends of cores. max_window: pieces of a window with [CLS] and [SEP]; null: as many
        as the encoder reads. max_mentions: entity tokens of a window; more are divided among
        several passes over it.
    others: what a mention's input has of the others: "masked", all are masked in one input (2022); or, as in the 2019 paper,
        each mention has an input of its own, with nothing of them ("none") or their candidates whose prior is at least
        `pseudo_prior` as entities ("pseudo").
    masked_share: of a window's mentions in training; the others are given as their gold entities.
    threshold: least score, the probability among the candidates. `tune` finds the best one on dev data.
    batch_size: pieces and entity tokens encoded at once.

    Gold: doc.ents with kb_id ("NIL" for none), or where mentions overlap doc.spans["luke_links"].
    """

    noun = "luke_linker"

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke_linker",
        *,
        getter: Callable[[Doc], Iterable[Span]],
        max_candidates: int = 30,
        use_given: bool = True,
        share_names: bool = False,
        inference: str = "global",
        sure: Optional[float] = None,
        split: str = "cores",
        overlap: int = 128,
        max_window: Optional[int] = None,
        max_mentions: int = 128,
        others: str = "masked",
        pseudo_prior: float = 0.1,
        masked_share: float = 0.9,
        threshold: float = 0.0,
        batch_size: int = 4096,
        scorer: Optional[Callable[..., Any]] = None,
    ):
        super().__init__(
            vocab,
            model,
            name,
            max_candidates=max_candidates,
            use_given=use_given,
            share_names=share_names,
            inference=inference,
            sure=sure,
            split=split,
            overlap=overlap,
            max_window=max_window,
            max_mentions=max_mentions,
            others=others,
            pseudo_prior=pseudo_prior,
            masked_share=masked_share,
            threshold=threshold,
            batch_size=batch_size,
        )
        self.getter = getter
        self.scorer = scorer
        self.kb: Optional[EntityKB] = None
        self.counts: Counter = Counter()  # what predictions have computed; see `decide`
        self._vectors: Optional[EntityVectors] = None  # without a knowledge base
        register_extensions()
        for setting, value, choices in (
            ("inference", inference, INFERENCE),
            ("split", split, SPLITS),
            ("others", others, OTHERS),
        ):
            if value not in choices:
                raise ValueError(f"{setting} must be one of {choices}, but it is {value!r}.")
        check_limits(
            max_candidates=max_candidates,
            overlap=overlap,
            max_mentions=max_mentions,
            batch_size=batch_size,
        )
        for setting, value in (
            ("sure", 1.0 if sure is None else sure),
            ("threshold", threshold),
            ("pseudo_prior", pseudo_prior),
            ("masked_share", masked_share),
        ):
            if not 0 <= value <= 1:
                raise ValueError(f"{setting} must be from 0 to 1, but it is {value}.")

    # ---- entities and candidates

    @property
    def vectors(self) -> EntityVectors:
        """Those of the knowledge base, or its own."""
        found = self._vectors if self.kb is None else self.kb.vectors
        if found is None:
            raise ValueError(
                f"'{self.name}' has no entity vectors. Expected a knowledge base with vectors (`spacy luke embed-entities`) in "
                f"[initialize.components.{self.name}.kb], a store in .vectors (`spacy luke build-vectors`), or a converted "
                "checkpoint."
            )
        return found

    @property
    def own_vectors(self) -> Optional[EntityVectors]:
        return self._vectors if self.kb is None else None

    def take_vectors(self, vectors: EntityVectors) -> None:
        self._vectors = vectors

    def set_kb(self, kb: Optional[EntityKB]) -> None:
        """Use another knowledge base. Its vectors must be of the same kind as those of training; entities may differ."""
        if kb is not None and kb.vectors is not None and self.encoder.ready:
            check_store(kb.vectors, self.encoder.module.config.entity_size)
        self.kb = kb

    def table(self) -> EntityTable:
        return EntityTable(self.vectors, size=self.encoder.module.config.entity_size, kb=self.kb)

    def candidates(self, doc: Doc, mentions: Sequence[Mention]) -> List[Named]:
        """Of each mention, words [start, end), the candidates that are scored."""
        given = given_candidates(doc) if self.cfg["use_given"] else None
        found = []
        for start, end in mentions:
            span = doc[start:end]
            if given is not None:
                named = given.get((span.start_char, span.end_char), [])
            elif self.kb is not None:
                named = [(x.entity, x.prior) for x in self.kb.candidates(span.text, top=self.cfg["max_candidates"])]
            else:
                named = []
            found.append(best_candidates(named, most=self.cfg["max_candidates"]))
        if self.cfg["share_names"]:
            found = self._share_names([doc[start:end].text for start, end in mentions], found)
        return found

    def _share_names(self, texts: Sequence[str], found: Sequence[Named]) -> List[Named]:
        if self.kb is None:
            raise ValueError(
                f"'{self.name}' has share_names = true, which needs a knowledge base that knows persons, but it has none. Give "
                f"one in [initialize.components.{self.name}.kb], or set share_names = false."
            )
        shared = share_person_names(texts, [[Candidate(*x) for x in named] for named in found], self.kb)
        return [best_candidates([tuple(x) for x in named], most=self.cfg["max_candidates"]) for named in shared]

    def input(self) -> LinkInput:
        return LinkInput(
            cls=self.tokenizer.cls_id,
            sep=self.tokenizer.sep_id,
            room=min(self.encoder.module.config.max_window, self.cfg["max_window"] or sys.maxsize) - 2,
            **{x: self.cfg[x] for x in ("split", "overlap", "max_mentions", "others", "pseudo_prior", "masked_share")},
        )

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> List[List[Tuple[Mention, Linked]]]:
        """For each Doc its mentions as words [start, end), and their candidates as (id, prior, score), the best first."""
        results: List[List[Tuple[Mention, Linked]]] = []
        chunk: List[Tuple[Doc, List[Mention], List[Named]]] = []
        total = 0
        with self.predicting():
            for doc in docs:
                mentions = list(dict.fromkeys((x.start, x.end) for x in self.getter(doc) if x.end > x.start))
                named = self.candidates(doc, mentions)
                chunk.append((doc, mentions, named))
                total += sum(len(x) for x in named)
                if total >= CHUNK:
                    results.extend(self._predict_chunk(chunk))
                    chunk, total = [], 0
            results.extend(self._predict_chunk(chunk))
        return results

    def _predict_chunk(
        self, chunk: Sequence[Tuple[Doc, List[Mention], List[Named]]]
    ) -> Iterator[List[Tuple[Mention, Linked]]]:
        if not any(mentions for _, mentions, _ in chunk):
            yield from ([] for _ in chunk)
            return
        table, tasks, places = self.table(), [], []
        table.add([entity for _, _, found in chunk for named in found for entity, _ in named])
        everything = [[table.candidates(named) for named in found] for _, _, found in chunk]
        for i, ((doc, mentions, _), found) in enumerate(zip(chunk, everything)):
            if mentions:
                for task, mention_E in link_tasks(
                    self.input(), read_document(doc, self.tokenizer), mentions, found, table
                ):
                    tasks.append(task)
                    places.append((i, mention_E))
        decide(
            self.model,
            tasks,
            table.vectors(),
            inference=self.cfg["inference"] if self.cfg["others"] == "masked" else "local",
            size=self.cfg["batch_size"],
            sure=self.cfg["sure"],
            counts=self.counts,
        )
        scores: List[List[Optional[np.ndarray]]] = [[None] * len(mentions) for _, mentions, _ in chunk]
        reached = [np.zeros(len(mentions), bool) for _, mentions, _ in chunk]
        for task, (i, mention_E) in zip(tasks, places, strict=True):
            for e in np.flatnonzero(task.decided_E).tolist():
                scores[i][int(mention_E[e])] = task.probabilities[e]
                reached[i][int(mention_E[e])] = True
        for (doc, mentions, _), found, some, seen in zip(chunk, everything, scores, reached, strict=True):
            self._warn_unreached(doc, mentions, seen)
            yield [(m, _linked(x, score)) for m, x, score in zip(mentions, found, some, strict=True)]

    def _warn_unreached(self, doc: Doc, mentions: Sequence[Mention], seen_M: np.ndarray) -> None:
        if not seen_M.all():
            a, b = mentions[int(np.flatnonzero(~seen_M)[0])]
            warnings.warn(
                f"'{self.name}': {int((~seen_M).sum())} of {len(mentions)} mentions get no score, as they have no pieces or "
                f"are longer than a window of {self.input().room} pieces; the first is words [{a}, {b}), "
                f"{doc[a:b].text[:80]!r}.",
                stacklevel=3,
            )

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[List[Tuple[Mention, Linked]]]) -> None:
        for doc, found in zip(docs, predictions):
            ids: Dict[Mention, str] = {}
            rows = []
            for (start, end), linked in found:
                ids[start, end] = linked[0][0] if linked and linked[0][2] >= self.cfg["threshold"] else NIL
                span = doc[start:end]
                rows.append([span.start_char, span.end_char, [list(x) for x in linked]])
            doc.user_data[LINKED] = rows
            _set_ids(doc, ids, key=self.getter.key if isinstance(self.getter, SpanGroupGetter) else None)

    # ---- training

    def gold(self, example: Example) -> Tuple[List[Mention], List[str], Counter]:
        """Mentions of the predicted Doc that have gold entities, these ("NIL" among them), and why others are missing."""
        reference = example.reference
        spans = reference.spans[GOLD_KEY] if GOLD_KEY in reference.spans else reference.ents
        places: Dict[Mention, str] = {}
        missing: Counter = Counter()
        for span in spans:
            if not span.kb_id_:
                continue
            place = align_mention(example.predicted, span.start_char, span.end_char)
            if place is None:
                missing["do not fall on word boundaries"] += 1
            else:
                places[place] = span.kb_id_
        return list(places), list(places.values()), missing

    def _learnable(
        self, example: Example, table: EntityTable
    ) -> Tuple[List[Mention], List[Candidates], List[int], Counter]:
        """Gold mentions whose entity has a vector and is among the candidates, as in the reference code; and why not."""
        mentions, golds, missing = self.gold(example)
        kept: List[Tuple[Mention, Candidates, int]] = []
        for mention, named, gold in zip(mentions, self.candidates(example.predicted, mentions), golds, strict=True):
            if gold == NIL:
                missing["are NIL"] += 1
            elif gold not in (entity for entity, _ in named):
                missing["have no candidates" if not named else "have candidates without the gold entity"] += 1
            elif table.rows[number := table.number(gold)] in (-1, table.unknown):
                missing["have a gold entity without a vector"] += 1
            else:
                kept.append((mention, table.candidates(named), number))
        columns = [list(x) for x in zip(*kept)] or [[], [], []]
        return (*columns, missing)  # type: ignore[return-value]

    def batches(self, examples: List[Example]) -> Iterator[LinkBatch]:
        table, items = self.table(), []
        for i, example in enumerate(examples):
            mentions, found, golds, _ = self._learnable(example, table)
            if mentions:
                document = read_document(example.predicted, self.tokenizer)
                items += training_items(self.input(), document, mentions, found, golds, table, owner=i)
        vectors = table.vectors()
        return batch_items(items, size=self.cfg["batch_size"], make=lambda some: make_link_batch(some, vectors))

    def loss_weight(self, batch: LinkBatch) -> float:
        return float(len(batch.scored_S))

    def get_loss(self, batch: LinkBatch, scores_C: Tensor) -> Tuple[float, Tuple[Any, ...]]:
        owner_C, gold_S = (to_tensor(x, scores_C.device) for x in (batch.owner_C, batch.gold_C()))
        loss, gradient = candidate_cross_entropy(scores_C, owner_C, gold_S)
        return loss, (gradient,)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        kb: Optional[Callable[[], EntityKB]] = None,
        vectors: Optional[str] = None,
        weights: Optional[Callable[[], Checkpoint]] = None,
        seed: int = 0,
    ) -> None:
        """Load the checkpoint, the knowledge base or the vectors, and make the head.

        kb: a loader, such as spacy-luke.entity_kb.v1; vectors: folder of a store, where all candidates are given. Without
        both, the entity table of the checkpoint is taken. weights: a loader of a checkpoint, such as
        spacy-luke.checkpoint.v1. The head begins as the checkpoint's masked-entity head where it has one that fits, else
        fresh from the seed.
        """
        validate_get_examples(get_examples, "LukeLinker.initialize")
        if kb is not None and vectors is not None:
            raise ValueError(
                f"'{self.name}' was given a kb and vectors; a knowledge base has its own vectors: give one."
            )
        checkpoint = self.load_weights(weights)
        if kb is not None:
            self.kb = kb()
        elif vectors is not None:
            self.kb, self._vectors = None, EntityVectors.open(vectors)
        elif self.kb is None and self._vectors is None and checkpoint is not None and has_table(checkpoint):
            self._vectors = table_vectors(checkpoint)
        check_store(self.vectors, self.encoder.module.config.entity_size)
        create_candidate_head(self.model, seed=seed)
        if checkpoint is not None and "entity_head.dense.weight" in checkpoint.tensors:
            self._fill_head(checkpoint)
        missing: Counter = Counter()
        total = 0
        table = self.table()
        for example in get_examples():
            mentions, _, _, reasons = self._learnable(example, table)
            missing.update(reasons)
            total += len(mentions) + sum(reasons.values())
        total -= missing.pop("are NIL", 0)  # which the threshold decides
        if total and total == missing.total():
            raise ValueError(
                f"'{self.name}' cannot learn from any of {total} gold mentions: "
                + ", ".join(f"{n} {what}" for what, n in missing.items())
                + ". Are the ids of the gold mentions those of the knowledge base?"
            )
        self.warn_missing(missing, total, what="gold mentions")

    def load_encoder(self, checkpoint: Any) -> None:
        """Without the entity table, whose rows are entities of a store."""
        if checkpoint.kind != "luke":
            raise ValueError(
                f"'{self.name}' has entity tokens, which an encoder of the kind {checkpoint.kind!r} has not."
            )
        rows = sorted(set(checkpoint.entities.special_rows().values())) if checkpoint.entities is not None else []
        if checkpoint.entities is not None and len(rows) < checkpoint.config.entity_vocab_size:
            name = "encoder.entities.table.weight"
            checkpoint = replace(
                checkpoint,
                config=replace(checkpoint.config, entity_vocab_size=len(rows)),
                tensors={**checkpoint.tensors, name: checkpoint.tensors[name][rows].clone()},
                entities=checkpoint.entities.restricted(rows),
            )
        super().load_encoder(checkpoint)

    def load_head(self, checkpoint: Checkpoint) -> None:
        """Take over a disambiguation checkpoint's head, entity table and biases."""
        create_candidate_head(self.model)
        self._fill_head(checkpoint)
        self.kb, self._vectors = None, table_vectors(checkpoint)

    def _fill_head(self, checkpoint: Checkpoint) -> None:
        head = self.model.shims[0]
        state = head.module.state_dict()
        state.update(
            {n: checkpoint.tensors[f"entity_head.{n}"] for n in state if f"entity_head.{n}" in checkpoint.tensors}
        )
        head.fill(state)

    def tune(self, examples: Sequence[Example]) -> Dict[str, float]:
        """Set the threshold that links most gold mentions of dev data as they should be, to their entity or to NIL.
        RETURNS: it and this share; of equal ones the lowest."""
        rows: List[Tuple[float, bool, bool]] = []  # score, whether the best is right, whether the gold is NIL
        for example in examples:
            mentions, golds, missing = self.gold(example)
            rows += [(0.0, False, False)] * sum(missing.values())
            found = self._link_mentions(example.predicted, mentions)
            for linked, gold in zip(found, golds, strict=True):
                best, score = (linked[0][0], linked[0][2]) if linked else (NIL, 0.0)
                rows.append((score, best == gold and gold != NIL, gold == NIL))
        if not rows:
            raise ValueError("Expected examples with linked mentions (kb_id) to tune on, but found none.")
        score, right, nil = (np.array(x) for x in zip(*rows))
        best = (-1.0, 0.0, 0.0)
        for threshold in np.arange(0.0, 1.0, 0.01).round(2).tolist():
            share = float(np.where(score >= threshold, right, nil).mean())
            best = max(best, (share, -threshold, threshold))
        self.cfg["threshold"] = best[2]
        return {"threshold": best[2], "links_accuracy": best[0]}

    def _link_mentions(self, doc: Doc, mentions: List[Mention]) -> List[Linked]:
        with self.predicting():
            found = next(iter(self._predict_chunk([(doc, mentions, self.candidates(doc, mentions))])))
        return [linked for _, linked in found]

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        return {} if self.scorer is None else self.scorer(examples, **kwargs)

    # ---- saving and loading: the knowledge base is a folder beside the file

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        super().to_disk(path, exclude=exclude)
        if self.kb is not None:
            self.kb.save(Path(path) / KB)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "LukeLinker":
        super().from_disk(path, exclude=exclude)
        if (folder := Path(path) / KB).is_dir():
            self.kb = EntityKB.open(folder)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        data = super().to_bytes(exclude=exclude)
        files = {} if self.kb is None else pack_kb(self.kb, most=BYTES_LIMIT - len(data))
        return srsly.msgpack_dumps({"component": data, KB: files})

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "LukeLinker":
        message = srsly.msgpack_loads(bytes_data)
        super().from_bytes(message["component"], exclude=exclude)
        if message[KB]:
            self.kb = unpack_kb(message[KB])
        return self


def _linked(candidates: Candidates, probabilities: Optional[np.ndarray]) -> Linked:
    """Candidates with their scores, the best first; of equal ones the one with the higher prior."""
    score_of = np.zeros(len(candidates.named))
    if probabilities is not None:
        score_of[candidates.places_K] = probabilities
    order = np.argsort(-score_of, kind="stable").tolist()
    return [(*candidates.named[i], float(score_of[i])) for i in order]


def _set_ids(doc: Doc, ids: Dict[Mention, str], *, key: Optional[str]) -> None:
    """New Spans with these ids in doc.spans[key], or in doc.ents where there is no key."""
    before = doc.ents if key is None else doc.spans.get(key, [])
    spans = [
        Span(doc, x.start, x.end, label=x.label_, kb_id=ids.get((x.start, x.end), x.kb_id_), span_id=x.id)
        for x in before
    ]
    if key is None:
        doc.set_ents(spans, default="unmodified")
    for i, span in enumerate(spans if key is not None else []):
        doc.spans[key][i] = span
