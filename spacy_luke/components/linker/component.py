"""`luke_linker`: mentions are linked to the entities of a knowledge base (Yamada & Shindo 2019, arXiv:1909.00426v1;
Yamada et al., NAACL 2022, "Global Entity Disambiguation with BERT")."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from torch import Tensor

from ...annotations import NIL, get_score
from ...architectures.entity_linker import LinkerModel, create_candidate_head, fill_candidate_head
from ...batch.linking import LinkBatch, LinkItem, LinkVectors, make_link_batch
from ...bridge.documents import read_document
from ...checkpoint.contents import LukeCheckpoint
from ...checkpoint.stand_in import make_stand_in
from ...encoders.luke_kind import Luke
from ...kb.knowledge_base import EntityKB
from ...model.linking import MATCH, PRIOR
from ...model.losses import candidate_cross_entropy
from ...model.transfer import to_device
from ..calibration import Calibrated
from ..factories import model_block, register
from ..mentions import SpanGroupGetter, WordRange
from ..thresholds import LINK_THRESHOLDS, best_by_score, best_link_threshold, best_nil_bias
from ..window_limits import checked_window
from .candidates import Found, find_candidates
from .checkpoint_table import table_vectors, with_table
from .decisions import LinkTask, decide
from .entity_table import EntityTable, NamedEntities
from .gold import (
    advice_on,
    check_learnable,
    count_links,
    gold_rows,
    learnable_links,
    survey_links,
    typed_candidates,
)
from .inputs import LinkInput, other_mentions, training_items
from .matching import Agreement, Labelled, Matcher, learn_types
from .outputs import Linked, Weights, write_links
from .prediction import AskedDoc, chunk_docs, score_candidates
from .records import write_records
from .settings import LinkerSettings
from .stores import KBComponent

LINKER_MODEL = model_block("spacy-luke.EntityLinker.v2")
_SCORES = {
    "links_accuracy": 1.0,
    "links_macro_accuracy": 0.0,
    "links_f": 0.0,
    "links_strict_f": 0.0,
    "links_candidate_recall": 0.0,
}


class LukeLinker(Calibrated, LinkerSettings, KBComponent):
    """Gives each mention the id of its entity (`ent.kb_id_`), and its candidates with prior and score, the best first,
    in `span._.luke_candidates`. A mention without candidates, or whose best score is below the threshold, gets "NIL".

    Gold: doc.ents with kb_id ("NIL" for none), or where mentions overlap doc.spans["luke_links"].
    """

    noun = "luke_linker"
    learned = ("type_agreement",)
    keeps_table = False  # whose rows are entities of a store
    make_batch = staticmethod(make_link_batch)

    def __init__(self, vocab: Vocab, model: LinkerModel, name: str = "luke_linker", **settings: Any):
        super().__init__(vocab, model, name, **{"type_agreement": {}, **settings})
        self._matcher: Matcher | None = None
        self.counts: Counter[str] = Counter()  # about what predictions have computed, see `decide`

    @property
    def type_agreement(self) -> Agreement:
        """How labels of mentions go with types of entities, learned at initialisation."""
        found: Agreement = self.cfg["type_agreement"]
        return found

    # ---- entities and candidates

    @property
    def nil(self) -> bool:
        """Whether NIL is a candidate of each mention."""
        return bool(self.model.attrs["nil"])

    def table(self) -> EntityTable:
        if not self.context:
            return NamedEntities(self.kb)
        return EntityTable(self.vectors, size=self.encoder.module.config.entity_size, kb=self.kb)

    def candidates(self, doc: Doc, mentions: Sequence[WordRange]) -> list[Found]:
        """Of each mention, words [start, end), the candidates that are scored, and how they agree with it."""
        if self.share_names and self.kb is None:
            raise ValueError(
                f"'{self.name}' has share_names = true, which needs a knowledge base that knows persons, but it has "
                f"none. Give one in [initialize.components.{self.name}.kb], or set share_names = false."
            )
        named = find_candidates(
            doc,
            mentions,
            kb=self.kb,
            most=self.max_candidates,
            use_given=self.use_given,
            share_names=self.share_names,
        )
        if not self.model.attrs["match"]:
            return [Found(x) for x in named]
        label_of = {(x.start, x.end): Labelled(x.start, x.end, x.label_, get_score(x)) for x in self.getter(doc)}
        asked = [label_of.get(x, Labelled(*x, "")) for x in mentions]
        return list(map(Found, named, self._match(doc, asked, named)))

    @property
    def _match(self) -> Matcher:
        old = self._matcher
        if old is None or old.kb is not self.kb or old.agreement is not self.type_agreement:
            old = self._matcher = Matcher(self.kb, self.type_agreement)
        return old

    def input(self) -> LinkInput:
        names = ("split", "overlap", "max_mentions", "others", "pseudo_prior", "masked_share", "learned_mentions")
        return LinkInput(
            tokenizer=self.tokenizer,
            room=checked_window(self.encoder, self.max_window, name=self.name) - 2,
            drop_gold=self.drop_gold if self.nil else 0.0,
            context=self.context,
            **({x: self.cfg[x] for x in names} | ({} if self.context else {"others": "masked", "masked_share": 1.0})),
        )

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[list[tuple[WordRange, Linked]]]:
        """For each Doc its mentions as words [start, end), and their candidates as (id, prior, score), the best
        first."""
        results: list[list[tuple[WordRange, Linked]]] = []
        with self.predicting():
            for chunk in chunk_docs(map(self._ask, docs)):
                for one, linked in zip(chunk, self._link(chunk), strict=True):
                    results.append(list(zip(one.mentions, linked, strict=True)))
        return results

    def _ask(self, doc: Doc) -> AskedDoc:
        mentions = list(dict.fromkeys((x.start, x.end) for x in self.getter(doc) if self._is_asked(x)))
        return AskedDoc(doc, mentions, self.candidates(doc, mentions))

    def check_mentions(self, examples: Sequence[Example]) -> None:
        """Raises ValueError where there is nothing to link in the predicted Docs, so that nothing can be tuned."""
        if not any(self._is_asked(span) for example in examples for span in self.getter(example.predicted)):
            raise ValueError(
                f"'{self.name}' cannot be tuned: the pipeline finds no mentions. Does a component before '{self.name}' "
                "find them? Or give the gold ones: --gold-mentions, without --precision."
            )

    def _is_asked(self, span: Span) -> bool:
        return (
            span.end > span.start
            and span.label_ not in self.labels_ignore
            and (self.overwrite or span.kb_id_ in ("", NIL))
        )

    def _link(self, chunk: Sequence[AskedDoc]) -> Iterable[list[Linked]]:
        if not any(one.mentions for one in chunk):
            return [[] for _ in chunk]
        return score_candidates(
            chunk,
            self.table(),
            self._decide,
            settings=self.input(),
            tokenizer=self.tokenizer,
            name=self.name,
            nil=self.nil,
            weights=self._weights() if self.explain else None,
        )

    def _weights(self) -> Weights:
        """Of what is known of candidates, by its name."""
        head = self.head.module
        weights = dict.fromkeys(PRIOR, 0.0)
        for names, part in ((PRIOR, head.prior), (MATCH, head.match)):
            if part is not None:
                weights.update(zip(names, part.weight[0].tolist()))
        return weights

    def _decide(self, tasks: list[LinkTask], vectors: LinkVectors) -> None:
        how = self.inference if self.others == "masked" and self.context else "local"
        options: dict[str, Any] = {"size": self.predicted_at_once, "sure": self.sure, "nil_bias": self.nil_bias}
        decide(self.model, tasks, vectors, inference=how, counts=self.counts, **options)

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[list[tuple[WordRange, Linked]]]) -> None:
        key = self.getter.key if isinstance(self.getter, SpanGroupGetter) else None
        for doc, found in zip(docs, predictions):
            links = [(mention, self._calibrated(linked)) for mention, linked in found]
            write_links(doc, links, threshold=self.threshold, key=key, explain=self.explain)
            write_records(doc, [mention for mention, _ in found], self.kb, ids=self.ids, key=key)

    def _calibrated(self, linked: Linked) -> Linked:
        scores = self.calibrated(np.array([one.score for one in linked]))
        return [one._replace(score=score) for one, score in zip(linked, scores.tolist(), strict=True)]

    # ---- training

    def batches(self, examples: list[Example]) -> Iterator[LinkBatch]:
        table, task = self.table(), self.input()
        items: list[LinkItem] = []
        for i, example in enumerate(examples):
            links, _ = learnable_links(example, table, self.candidates, nil=self.nil, ignore=self.labels_ignore)
            if links:
                document = read_document(example.predicted, self.tokenizer) if self.context else None
                asked = self._ask(example.predicted) if task.others == "pseudo" else None
                others = [] if asked is None else other_mentions(asked.mentions, asked.found, links, table)
                items += training_items(task, document, links, table, owner=i, others=others)
        return self.batched(items, vectors=table.vectors())

    def loss_weight(self, batch: LinkBatch) -> float:
        return float(len(batch.scored_S))

    def get_loss(self, batch: LinkBatch, scores_C: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        arrays = (batch.owner_C, batch.gold_C())
        owner_C, gold_S = to_device(tuple(map(torch.from_numpy, arrays)), scores_C.device)
        loss, gradient = candidate_cross_entropy(scores_C, owner_C, gold_S, nil=self.nil)
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
        spacy-luke.checkpoint.v1; a linker whose encoder is not run (`context` of its model) needs none. The head begins
        as the checkpoint's masked-entity head where it has one that fits, else fresh. seed: of the head's fresh
        parameters.
        """
        validate_get_examples(get_examples, "LukeLinker.initialize")
        if kb is not None and vectors is not None:
            raise ValueError(
                f"'{self.name}' was given a kb and vectors; a knowledge base has its own vectors: give one."
            )
        if not (weights or self.context or self.shared or self.encoder.ready):
            weights = make_stand_in
        checkpoint = self.load_weights(weights)
        if self.context:
            self.check_words(get_examples)
        self.open_entities(kb, vectors, checkpoint)
        create_candidate_head(self.model, seed=seed)
        if self.model.attrs["match"]:
            self.cfg["type_agreement"] = learn_types(
                row for x in get_examples() for row in typed_candidates(x, self.candidates, self._match, self.getter)
            )
        if checkpoint is not None and "entity_head.dense.weight" in checkpoint.tensors:
            fill_candidate_head(self.model, checkpoint.tensors)
        missing, total = survey_links(get_examples(), self.table(), self.candidates, ignore=self.labels_ignore)
        check_learnable(self.name, missing, total)
        self.warn_missing(missing, total, what="gold mentions", advice=advice_on(missing, nil=self.nil))

    def load_head(self, checkpoint: LukeCheckpoint) -> None:
        """Take over a disambiguation checkpoint's head, entity table and biases."""
        create_candidate_head(self.model)
        fill_candidate_head(self.model, checkpoint.tensors)
        self.kb, self._vectors = None, table_vectors(checkpoint)

    def to_checkpoint(self) -> LukeCheckpoint:
        """In the original's layout: the entities' vectors are the entity table. Raises ValueError for a head that has
        more than the original's has a place for."""
        head = self.head.module
        if found := [name for name in ("prior", "match", "nil") if self.model.attrs[name]]:
            raise ValueError(
                f"The head of '{self.name}' has learned {' and '.join(found)}, for which the original's layout has no "
                f"place. Train with {', '.join(f'{name} = false' for name in found)} in [components.luke_linker.model] "
                "to export it."
            )
        checkpoint = with_table(Luke().to_checkpoint(self.encoder, self.tokenizer), self.vectors)
        checkpoint.tensors.update({f"entity_head.{n}": x.detach().cpu() for n, x in head.state_dict().items()})
        checkpoint.task = "entity_disambiguation"
        return checkpoint

    def tune(
        self, examples: Sequence[Example], *, nlp: Language | None = None, gold_mentions: bool = False, least: int = 0
    ) -> dict[str, float]:
        """Set the threshold that is best on examples, dev data never trained on: for the mentions that the getter finds
        in the predicted Docs by the scorer's `links_strict_f`, for which a link of a mention that is none is wrong.

        gold_mentions: mentions are the gold ones, and most of them are to be linked as they should be, to their entity
        or to NIL. Where NIL is a candidate, it is not the threshold that is set then, but the `nil_bias`, see
        `best_nil_bias`. nlp: pipeline whose config gets what is set (see `settle`). RETURNS: it and what it gives; of
        equal thresholds the one that it has, or else the lowest. Raises ValueError for fewer than `least` gold mentions
        with an entity.
        """
        linked = count_links(examples, least, name=self.name, ignore=self.labels_ignore)
        setting, metric = "threshold", "links_accuracy" if gold_mentions else "links_strict_f"
        if not gold_mentions:
            value, reached = self._best_by_score(examples, linked)
        else:
            known: dict[str, Any] = {"ignore": self.labels_ignore, "kb": self.kb}
            rows = list(gold_rows(examples, self._link_mentions, above_nil=self.nil, **known))
            if self.nil:
                setting = "nil_bias"
                added, reached = best_nil_bias(rows)
                value = self.nil_bias + added
            else:
                value, reached = best_link_threshold(rows, before=self.threshold)
        self.settle(nlp, **{setting: value})
        return {setting: value, metric: reached}

    def _best_by_score(self, examples: Sequence[Example], linked: int) -> tuple[float, float]:
        """The threshold with the best end-to-end score (see `best_by_score`), and that score."""
        if self.scorer is None or not linked:
            missing = "a scorer" if self.scorer is None else "examples with linked mentions (kb_id)"
            raise ValueError(f"'{self.name}' needs {missing} to tune its threshold.")
        self.check_mentions(examples)
        examples = [Example(example.predicted.copy(), example.reference) for example in examples]
        found = self.predict(example.predicted for example in examples)
        return best_by_score(self, "threshold", LINK_THRESHOLDS, examples, found, metric="links_strict_f")

    def _link_mentions(self, doc: Doc, mentions: list[WordRange]) -> list[Linked]:
        """Scores are calibrated, unless the bias of NIL is chosen, which comes before."""
        asked = AskedDoc(doc, mentions, self.candidates(doc, mentions))
        with self.predicting():
            (linked,) = self._link([asked])
        return linked if self.nil else list(map(self._calibrated, linked))


make_luke_linker = register(
    "luke_linker",
    LukeLinker,
    model=LINKER_MODEL,
    requires=["doc.ents"],
    assigns=["doc.ents", "token.ent_kb_id", "span._.luke_candidates", "span._.luke_entity"],
    scores=_SCORES,
)
