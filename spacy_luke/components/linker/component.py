"""`luke_linker`: mentions are linked to the entities of a knowledge base (Yamada & Shindo 2019, arXiv:1909.00426v1;
Yamada et al., NAACL 2022, "Global Entity Disambiguation with BERT")."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model
from torch import Tensor

from ...annotations import NIL, register_extensions
from ...architectures.entity_linker import create_candidate_head, fill_candidate_head
from ...batch.batches import batch_items
from ...batch.linking import LinkBatch, LinkItem, make_link_batch
from ...bridge.documents import read_document
from ...bridge.finite import check_scores
from ...bridge.wrapper import to_tensor
from ...checkpoint.contents import LukeCheckpoint
from ...encoders.luke import Luke
from ...kb.knowledge_base import EntityKB
from ...model.linking import candidate_cross_entropy
from ...vectors.store import EntityVectors
from ..base import LukeComponent
from ..mentions import Mention, SpanGroupGetter
from ..storage import BYTES_LIMIT
from ..tuning import best_by_score, check_positives
from .candidates import EntityTable, Named, check_store, find_candidates
from .decisions import LinkTask, decide
from .gold import SCORE_THRESHOLDS, best_threshold, check_learnable, gold_links, learnable_links
from .inputs import LinkInput, link_tasks, training_items
from .outputs import Linked, rank, warn_unreached, write_links
from .settings import DEFAULT_CONFIG, SCORE_WEIGHTS, check_settings
from .stores import has_table, pack_kb, table_vectors, with_table, without_table

KB = "kb"  # folder beside the file
CHUNK = 20_000  # candidates whose vectors are in memory at a time, about


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
    sure: float | None,
    split: str,
    overlap: int,
    max_window: int | None,
    max_mentions: int,
    others: str,
    pseudo_prior: float,
    masked_share: float,
    threshold: float,
    batch_size: int,
    scorer: Callable[..., Any] | None,
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
    """Gives each mention the id of its entity (`ent.kb_id_`), and its candidates with prior and score, the best first,
    in `span._.luke_candidates`. A mention without candidates, or whose best score is below the threshold, gets "NIL".

    getter: the mentions of a Doc, such as spacy-luke.doc_ents.v1 or spacy-luke.span_group.v1.
    max_candidates: those of a mention with the highest priors are scored.
    use_given: whether `doc._.luke_candidates_given` takes the place of the knowledge base's candidates in Docs that
        have it.
    share_names: whether a person's mention that is part of a longer one in the document gets that one's candidates.
    inference: "global" decides the most confident mention first, and the next ones see its entity; "local" all at once.
    sure: "global" decides all mentions of at least this probability in one step, which is faster; null: one a step, as
        the paper does.
    split: of documents longer than a window, "cores" (windows that overlap), "simple" (equal parts) or "per_mention" (a
        window around each), as the original code has them; see `plan_link_windows`.
    overlap: least context in pieces at the ends of cores. max_window: pieces of a window with [CLS] and [SEP]; null: as
        many as the encoder reads. max_mentions: entity tokens of a window; more are divided among several passes over
        it.
    others: what a mention's input has of the others: "masked", all are masked in one input (2022); or, as in the 2019
        paper, each mention has an input of its own, with nothing of them ("none") or their candidates whose prior is at
        least `pseudo_prior` as entities ("pseudo").
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
        sure: float | None = None,
        split: str = "cores",
        overlap: int = 128,
        max_window: int | None = None,
        max_mentions: int = 128,
        others: str = "masked",
        pseudo_prior: float = 0.1,
        masked_share: float = 0.9,
        threshold: float = 0.0,
        batch_size: int = 4096,
        scorer: Callable[..., Any] | None = None,
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
        self.kb: EntityKB | None = None
        self.counts: Counter[str] = Counter()  # about what predictions have computed, see `decide`
        self._vectors: EntityVectors | None = None  # without a knowledge base
        register_extensions()
        check_settings(self.cfg)

    # ---- entities and candidates

    @property
    def vectors(self) -> EntityVectors:
        """Those of the knowledge base, or its own where that has none."""
        found = self._vectors if self.kb is None or self.kb.vectors is None else self.kb.vectors
        if found is None:
            raise ValueError(
                f"'{self.name}' has no entity vectors. Expected a knowledge base with vectors (`spacy luke "
                f"embed-entities`) in "
                f"[initialize.components.{self.name}.kb], a store in .vectors (`spacy luke build-vectors`), or a "
                f"converted "
                "checkpoint."
            )
        return found

    @property
    def own_vectors(self) -> EntityVectors | None:
        return self._vectors if self.kb is None or self.kb.vectors is None else None

    @property
    def stores(self) -> dict[str, Path]:
        return {**super().stores, **({} if self.kb is None else {KB: self.kb.path})}

    def take_vectors(self, vectors: EntityVectors) -> None:
        self._vectors = vectors

    def set_kb(self, kb: EntityKB | None) -> None:
        """Use another knowledge base. Its vectors must be of the same kind as those of training; entities may differ.
        One without vectors gives names and counts alone: entities keep the linker's own vectors, as of a converted
        checkpoint. Raises ValueError where these are not there either, or of another width than the encoder's."""
        if kb is not None and kb.vectors is not None and self.encoder.ready:
            check_store(kb.vectors, self.encoder.module.config.entity_size)
        elif kb is not None and kb.vectors is None and self._vectors is None:
            raise ValueError(
                f"The knowledge base in {kb.path} has no vectors, and '{self.name}' has none of its own. Make them "
                f"with "
                "`spacy luke embed-entities`, by the encoder that it was trained from."
            )
        self.kb = kb

    def table(self) -> EntityTable:
        return EntityTable(self.vectors, size=self.encoder.module.config.entity_size, kb=self.kb)

    def candidates(self, doc: Doc, mentions: Sequence[Mention]) -> list[Named]:
        """Of each mention, words [start, end), the candidates that are scored."""
        if self.cfg["share_names"] and self.kb is None:
            raise ValueError(
                f"'{self.name}' has share_names = true, which needs a knowledge base that knows persons, but it has "
                f"none. Give "
                f"one in [initialize.components.{self.name}.kb], or set share_names = false."
            )
        return find_candidates(
            doc,
            mentions,
            kb=self.kb,
            most=self.cfg["max_candidates"],
            use_given=self.cfg["use_given"],
            share_names=self.cfg["share_names"],
        )

    def input(self) -> LinkInput:
        return LinkInput(
            cls=self.tokenizer.cls_id,
            sep=self.tokenizer.sep_id,
            room=min(self.encoder.module.config.max_window, self.cfg["max_window"] or sys.maxsize) - 2,
            **{x: self.cfg[x] for x in ("split", "overlap", "max_mentions", "others", "pseudo_prior", "masked_share")},
        )

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[list[tuple[Mention, Linked]]]:
        """For each Doc its mentions as words [start, end), and their candidates as (id, prior, score), the best
        first."""
        results: list[list[tuple[Mention, Linked]]] = []
        chunk: list[tuple[Doc, list[Mention], list[Named]]] = []
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
        self, chunk: Sequence[tuple[Doc, list[Mention], list[Named]]]
    ) -> Iterator[list[tuple[Mention, Linked]]]:
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
        self._check(tasks, [i for i, _ in places], [doc for doc, _, _ in chunk])
        scores: list[list[np.ndarray | None]] = [[None] * len(mentions) for _, mentions, _ in chunk]
        reached = [np.zeros(len(mentions), bool) for _, mentions, _ in chunk]
        for task, (i, mention_E) in zip(tasks, places, strict=True):
            for e in np.flatnonzero(task.decided_E).tolist():
                scores[i][int(mention_E[e])] = task.probabilities[e]
                reached[i][int(mention_E[e])] = True
        for (doc, mentions, _), found, some, seen in zip(chunk, everything, scores, reached, strict=True):
            if not seen.all():
                warn_unreached(self.name, doc, mentions, seen, room=self.input().room)
            yield [(m, rank(x, score)) for m, x, score in zip(mentions, found, some, strict=True)]

    def _check(self, tasks: Sequence[LinkTask], owners: Sequence[int], docs: Sequence[Doc]) -> None:
        rows = [(i, x) for task, i in zip(tasks, owners, strict=True) for x in task.probabilities if x is not None]
        if rows:
            scores_C = np.concatenate([x for _, x in rows])
            check_scores(scores_C, lambda: [i for i, x in rows for _ in x], docs, name=self.name)

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[list[tuple[Mention, Linked]]]) -> None:
        key = self.getter.key if isinstance(self.getter, SpanGroupGetter) else None
        for doc, found in zip(docs, predictions):
            write_links(doc, found, threshold=self.cfg["threshold"], key=key)

    # ---- training

    def batches(self, examples: list[Example]) -> Iterator[LinkBatch]:
        table = self.table()
        items: list[LinkItem] = []
        for i, example in enumerate(examples):
            mentions, found, golds, _ = learnable_links(example, table, self.candidates)
            if mentions:
                document = read_document(example.predicted, self.tokenizer)
                items += training_items(self.input(), document, mentions, found, golds, table, owner=i)
        vectors = table.vectors()
        return batch_items(items, size=self.cfg["batch_size"], make=lambda some: make_link_batch(some, vectors))

    def loss_weight(self, batch: LinkBatch) -> float:
        return float(len(batch.scored_S))

    def get_loss(self, batch: LinkBatch, scores_C: Tensor) -> tuple[float, tuple[Any, ...]]:
        owner_C, gold_S = (to_tensor(x, scores_C.device) for x in (batch.owner_C, batch.gold_C()))
        loss, gradient = candidate_cross_entropy(scores_C, owner_C, gold_S)
        return loss, (gradient,)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        kb: Callable[[], EntityKB] | None = None,
        vectors: str | None = None,
        weights: Callable[[], LukeCheckpoint] | None = None,
        seed: int = 0,
    ) -> None:
        """Load the checkpoint, the knowledge base or the vectors, and make the head.

        kb: a loader, such as spacy-luke.entity_kb.v1; vectors: folder of a store, where all candidates are given. Where
        neither has vectors, the entity table of the checkpoint is taken. weights: a loader of a checkpoint, such as
        spacy-luke.checkpoint.v1. The head begins as the checkpoint's masked-entity head where it has one that fits,
        else fresh from the seed.
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
        without = self._vectors is None and (self.kb is None or self.kb.vectors is None)
        if without and checkpoint is not None and has_table(checkpoint):
            self._vectors = table_vectors(checkpoint)
        check_store(self.vectors, self.encoder.module.config.entity_size)
        create_candidate_head(self.model, seed=seed)
        if checkpoint is not None and "entity_head.dense.weight" in checkpoint.tensors:
            fill_candidate_head(self.model, checkpoint.tensors)
        table, total = self.table(), 0
        missing: Counter[str] = Counter()
        for example in get_examples():
            mentions, _, _, reasons = learnable_links(example, table, self.candidates)
            missing.update(reasons)
            total += len(mentions) + sum(reasons.values())
        total -= missing.pop("are NIL", 0)  # which the threshold decides
        check_learnable(self.name, missing, total)
        self.warn_missing(missing, total, what="gold mentions")

    def load_encoder(self, checkpoint: Any) -> None:
        """Without the entity table, whose rows are entities of a store."""
        if not isinstance(checkpoint, LukeCheckpoint):
            raise ValueError(
                f"'{self.name}' has entity tokens, which an encoder of the kind {checkpoint.kind!r} has not."
            )
        super().load_encoder(without_table(checkpoint))

    def load_head(self, checkpoint: LukeCheckpoint) -> None:
        """Take over a disambiguation checkpoint's head, entity table and biases."""
        create_candidate_head(self.model)
        fill_candidate_head(self.model, checkpoint.tensors)
        self.kb, self._vectors = None, table_vectors(checkpoint)

    def to_checkpoint(self) -> LukeCheckpoint:
        """In the original's layout: the entities' vectors are the entity table. Raises ValueError for a head that adds
        a share of the prior, for which the original has no place."""
        head = self.model.shims[0].module
        if head.prior is not None:
            raise ValueError(
                f"The head of '{self.name}' adds a learned share of prior and in-links to its scores, for which the "
                f"original's "
                "layout has no place. Train with prior = false in [components.luke_linker.model] to export it."
            )
        checkpoint = with_table(Luke().to_checkpoint(self.encoder, self.tokenizer), self.vectors)
        checkpoint.tensors.update({f"entity_head.{n}": x.detach().cpu() for n, x in head.state_dict().items()})
        checkpoint.task = "entity_disambiguation"
        return checkpoint

    def tune(
        self,
        examples: Sequence[Example],
        *,
        nlp: Language | None = None,
        gold_mentions: bool = False,
        least: int = 0,
    ) -> dict[str, float]:
        """Set the threshold that is best on examples, dev data never trained on: for the mentions that the getter finds
        in the predicted Docs by the scorer's `links_strict_f`, for which a link of a mention that is none is wrong.

        gold_mentions: mentions are the gold ones, and most of them are to be linked as they should be, to their entity
        or to NIL. nlp: pipeline whose config gets the threshold (see `settle`). RETURNS: it and what it gives; of equal
        ones the lowest. Raises ValueError for fewer than `least` gold mentions with an entity.
        """
        linked = sum(gold != NIL for example in examples for gold in gold_links(example)[1])
        if gold_mentions:
            rows = [row for example in examples for row in self._gold_rows(example)]
            threshold, value = best_threshold(rows)
        else:
            threshold, value = self._best_by_score(examples, linked)
        check_positives(linked, least, name=self.name, what="gold mentions with an entity")
        self.settle(nlp, threshold=threshold)
        return {"threshold": threshold, "links_accuracy" if gold_mentions else "links_strict_f": value}

    def _gold_rows(self, example: Example) -> Iterator[tuple[float, bool, bool]]:
        """Of each gold mention the score of its best candidate, whether this is right, and whether the gold is NIL."""
        mentions, golds, missing = gold_links(example)
        yield from [(0.0, False, False)] * sum(missing.values())
        found = self._link_mentions(example.predicted, mentions)
        for linked, gold in zip(found, golds, strict=True):
            best, score = (linked[0][0], linked[0][2]) if linked else (NIL, -1.0)  # below any threshold
            yield score, best == gold and gold != NIL, gold == NIL

    def _best_by_score(self, examples: Sequence[Example], linked: int) -> tuple[float, float]:
        """The threshold with the best end-to-end score, the lowest of equal ones, and that score."""
        if self.scorer is None or not linked:
            missing = "a scorer" if self.scorer is None else "examples with linked mentions (kb_id)"
            raise ValueError(f"'{self.name}' needs {missing} to tune its threshold.")
        examples = [Example(example.predicted.copy(), example.reference) for example in examples]
        found = self.predict(example.predicted for example in examples)
        if not any(found):
            raise ValueError(
                f"'{self.name}' cannot be tuned: the pipeline finds no mentions. Does a component before '{self.name}' "
                f"find "
                "them? Or give the gold ones: --gold-mentions."
            )
        return best_by_score(self, "threshold", SCORE_THRESHOLDS, examples, found, metric="links_strict_f")

    def _link_mentions(self, doc: Doc, mentions: list[Mention]) -> list[Linked]:
        with self.predicting():
            found = next(iter(self._predict_chunk([(doc, mentions, self.candidates(doc, mentions))])))
        return [linked for _, linked in found]

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return {} if self.scorer is None else self.scorer(examples, **kwargs)

    # ---- saving and loading: the knowledge base is a folder beside the file, in `exclude` "kb"

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        super().to_disk(path, exclude=exclude)
        if self.kb is not None and KB not in exclude:
            self.kb.save(Path(path) / KB)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "LukeLinker":
        super().from_disk(path, exclude=exclude)
        if (kb := self._open_beside(path, KB, exclude, EntityKB.open)) is not None:
            self.kb = kb
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        data = super().to_bytes(exclude=exclude)
        files = {} if self.kb is None or KB in exclude else pack_kb(self.kb, most=BYTES_LIMIT - len(data))
        message: bytes = srsly.msgpack_dumps({"component": data, KB: files})
        return message

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "LukeLinker":
        message = srsly.msgpack_loads(bytes_data)
        super().from_bytes(message["component"], exclude=exclude)
        if message[KB] and KB not in exclude:
            self.kb = EntityKB.unpack(message[KB])
        return self
