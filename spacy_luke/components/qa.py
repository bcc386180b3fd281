"""`luke_qa`: answers to questions, as spans of a Doc (LUKE, EMNLP 2020, section 4.5)."""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from torch import Tensor

from ..annotations import LINKS, QUESTIONS, Answer, Question, get_questions, read_question, set_rows
from ..architectures.extractive_qa import create_answer_head
from ..batch.passages import PassageBatch, PassageItem, best_spans, make_passage_batch
from ..checkpoint.contents import Checkpoint
from ..entity_vocab import EntityVocab
from ..model.losses import gold_answers, start_end_cross_entropy
from ..model.transfer import to_device
from .base import need_gold
from .factories import Function, Scorer, Setting, model_block, register
from .mentions import MentionGetter
from .questions.answers import FoundAnswers, Places, different, ranked
from .questions.component import AskedComponent
from .questions.qa_windows import (
    EntityPlace,
    QuestionInput,
    ReadDoc,
    advise,
    asked_questions,
    listed,
    question_items,
    read_doc,
)
from .thresholds import best_by_score, check_positives

QA_MODEL = model_block("spacy-luke.ExtractiveQA.v1")
_SCORES = {"qa_f": 1.0, "qa_em": 0.0} | dict.fromkeys(("qa_has_answer_f", "qa_has_answer_em", "qa_no_answer_accuracy"))
_THRESHOLDS = 50  # that `tune` compares


class LukeQA(AskedComponent[Question, FoundAnswers]):
    """Answers the questions of a Doc, `doc._.luke_questions`, by spans of it, in `doc._.luke_answers`.

    The scores of answers are probabilities among those that are given ("no answer" too, where it is allowed), by the
    sum of start and end logit. Gold: "answers" of the reference's questions, [] where there is none; of several the
    first one in a window is learned.
    """

    entities: Function[MentionGetter | None] = Function(
        {"@misc": "spacy-luke.span_group.v1", "key": LINKS},
        "the linked entities of a Doc, as spans whose `kb_id_` is a title of the entity vocabulary: the group "
        '`luke_links`. Those of a question are in its `"entities"`; `null`: neither are read',
    )
    entity_language: Setting[str | None] = Setting(
        None, "of their titles, where the vocabulary has several languages (mLUKE), such as `en`"
    )
    max_entities: Setting[int] = Setting(
        128,
        "linked entities that a window has at most, those of the question and the first of the passage; more are a "
        "warning",
        least=0,
    )
    window: Setting[int | None] = Setting(
        None,
        "pieces of a window, the question included; `null`: as many as the encoder reads. Small ones suit long Docs "
        "where training passages are short",
        least=1,
    )
    stride: Setting[int] = Setting(
        128, "pieces from the beginning of a window to that of the next one, where the Doc is longer than one", least=1
    )
    max_question_pieces: Setting[int | None] = Setting(
        64, "longest question; `null`: what leaves room for an answer", least=1
    )
    cut_questions: Setting[bool] = Setting(
        False,
        "whether a longer one is cut, with a warning, as the original code does; otherwise it is an error",
    )
    max_answer_pieces: Setting[int] = Setting(30, "longest answer", least=1)
    n_best: Setting[int] = Setting(20, "answers with different texts that are given", least=1)
    as_written: Setting[bool] = Setting(
        False,
        "whether passages and questions are read as they are written, as models are that were fine-tuned with "
        "transformers' own scripts; otherwise a blank is before each word, the first one too, as in the original code",
    )
    no_answer_threshold: Setting[float | None] = Setting(
        None,
        '"no answer" must be better than the best span by more than this, the original\'s 0.0 for SQuAD 2.0; `null`: '
        "there always is an answer. `spacy luke tune` finds the best on dev data",
    )
    scorer: Function[Scorer | None] = Function({"@scorers": "spacy-luke.qa_scorer.v1"}, "SQuAD's exact match and F1")

    noun, rows, asks, many = "luke_qa", QUESTIONS, "question", "questions"
    answers = 'with "answers" as characters ([] where there is no answer)'
    task = "question_answering"
    head_layer = "qa_outputs"
    make_batch = staticmethod(make_passage_batch)
    _vocabulary: tuple[str, EntityVocab, dict[int, int] | None] | None = None

    @property
    def every_row(self) -> bool:
        return True

    # ---- the encoder, whose entity table is known and stays as it is

    def load_encoder(self, checkpoint: Checkpoint) -> None:
        super().load_encoder(checkpoint)
        self._freeze_entities()

    def _restore(self, *args: Any, **kwargs: Any) -> None:
        super()._restore(*args, **kwargs)
        self._freeze_entities()

    def _freeze_entities(self) -> None:
        """As the original code does for this task: hardly any entity of the table occurs in the training data."""
        if not self.shared and self.encoder.ready:
            self.encoder.module.entities.table.weight.requires_grad_(False)

    def entity_row(self, title: str) -> int | None:
        """Row of an entity in the module's table; None where it is not known."""
        text, known = self.encoder.texts["entities"], self._vocabulary
        if known is None or known[0] is not text:
            rows, vocab = self.encoder.settings["special_rows"], EntityVocab.from_json(text)
            some = None if len(rows) == len(vocab) else {row: i for i, row in enumerate(rows)}
            known = self._vocabulary = (text, vocab, some)
        _, vocab, some = known
        row = vocab.row(title, language=self.entity_language)
        return row if some is None or row is None else some.get(row)

    def input(self) -> QuestionInput:
        config = self.encoder.module.config
        knows_entities = self.attention == "full" and self.entities is not None and self.max_entities > 0
        window = config.max_window if self.window is None else self.window
        if window > config.max_window:
            raise ValueError(
                f"'{self.name}' has window = {window}, but its encoder reads {config.max_window} pieces at once. Set "
                "it to at most that, or to null."
            )
        task = QuestionInput(
            self.tokenizer,
            config.token_types,
            window,
            self.stride,
            self.max_question_pieces,
            self.cut_questions,
            self.max_answer_pieces,
            self.max_entities,
            self.entity_row if knows_entities else lambda title: None,
            self.as_written,
        )
        if task.question_room < 1:
            raise ValueError(
                f"'{self.name}' needs a window of at least {self.max_answer_pieces + 5} pieces, for a question and an "
                f"answer of max_answer_pieces = {self.max_answer_pieces}, but it has {window}. Set a smaller "
                "max_answer_pieces" + (", or a larger window." if window < config.max_window else ".")
            )
        return task

    def linked(self, doc: Doc) -> list[Span]:
        return [] if self.entities is None else [span for span in self.entities(doc) if span.kb_id_]

    def links(self, doc: Doc, task: QuestionInput) -> list[EntityPlace]:
        """Linked entities of a Doc that are in the vocabulary."""
        spans = self.linked(doc)
        rows = [task.row_of(span.kb_id_) for span in spans]
        return [(span.start_char, span.end_char, row) for span, row in zip(spans, rows) if row is not None]

    def question_of(self, doc: Doc) -> Question:
        """A question that is a Doc, with its linked entities, as an item for `doc._.luke_questions`."""
        spans = self.linked(doc)
        return {"question": doc.text, "entities": [(span.start_char, span.end_char, span.kb_id_) for span in spans]}

    # ---- prediction

    def asked(self, doc: Doc) -> list[Question]:
        return get_questions(doc)

    def answer(self, doc: Doc, question: str | Question | Doc) -> Answer:
        """The answers to one question, which `doc._.luke_questions` need not have. question: a string, an item as
        there, or a Doc, whose linked entities are read too. Raises ValueError for what `doc._.luke_questions` would
        not take."""
        self.check_doc(doc)
        asked = read_question(doc, self.question_of(question) if isinstance(question, Doc) else question)
        return self.answer_to(doc, asked, asked["question"])

    def find(self, asked: Sequence[tuple[Doc, Question]]) -> list[FoundAnswers]:
        places: list[list[Places]] = [[] for _ in asked]
        nulls = np.full(len(asked), np.inf)
        reads: dict[int, ReadDoc] = {}
        items, docs = self._items(asked, reads), [doc for doc, _ in asked]
        for batch, logits_N2 in self.scored_batches(items, docs) if asked else ():
            for item, logits_L2 in zip(batch.items, np.split(logits_N2.numpy(), np.cumsum(batch.lengths)[:-1])):
                read = reads[id(asked[item.owner][0])]
                places[item.owner].append(self._window_places(read, item, logits_L2))
                nulls[item.owner] = min(nulls[item.owner], logits_L2[0].sum(dtype=np.float64))
        return [
            FoundAnswers(different(doc.text, some, self.n_best), float(null))
            for (doc, _), some, null in zip(asked, places, nulls)
        ]

    def ranked(self, found: FoundAnswers) -> list[list[Any]]:
        return ranked(found, most=self.n_best, threshold=self.no_answer_threshold)

    def _items(self, asked: Sequence[tuple[Doc, Question]], reads: dict[int, ReadDoc]) -> Iterator[PassageItem]:
        task = self.input()
        report: Counter[str] = Counter()
        for i, (doc, question) in enumerate(asked):
            if id(doc) not in reads:
                reads[id(doc)] = read_doc(task, doc, self.links(doc, task))
            yield from question_items(task, reads[id(doc)], question, owner=i, report=report)
        if report:
            warnings.warn(f"'{self.name}': {listed(report)}.", stacklevel=2)

    def _window_places(self, read: ReadDoc, item: PassageItem, logits_L2: np.ndarray) -> Places:
        """The best answers of a window, on word boundaries."""
        score_S, first_S, last_S = best_spans(item, logits_L2, most=self.n_best**2, max_pieces=self.max_answer_pieces)
        return Places(*read.characters(first_S, last_S), score_S).best()

    # ---- training

    def gold_items(self, owner: int, example: Example, report: Counter[str]) -> Iterator[PassageItem]:
        """Those with gold "no answer" too."""
        doc = example.predicted
        report["linked"] += len(self.linked(doc))
        questions = [question for question in asked_questions(example) if "answers" in question]
        if not questions:
            return
        self.check_text(example)
        task = self.input()
        links = self.links(doc, task)
        report["links"] += len(links)
        read = read_doc(task, doc, links)
        for question in questions:
            report["questions"] += 1
            report["questions without answer"] += not question["answers"]
            yield from question_items(task, read, question, owner=owner, learn=True, report=report)

    def loss_weight(self, batch: PassageBatch) -> float:
        return float(len(batch.lengths))

    def get_loss(self, batch: PassageBatch, logits_N2: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
        gold = to_device(gold_answers(need_gold(batch.gold_B2), batch.lengths), logits_N2.device)
        loss, gradient = start_end_cross_entropy(logits_N2, gold)
        return loss, (gradient,)

    # ---- the head

    def create_head(self, report: Counter[str] | None = None, *, seed: int = 0) -> None:
        create_answer_head(self.model, seed=seed)

    def fill_head(self, checkpoint: Checkpoint) -> None:
        names = ("qa_outputs.weight", "qa_outputs.bias")
        self.head.fill({name: checkpoint.tensors[f"head.{name}"] for name in names})

    def advice(self, report: Counter[str]) -> str:
        linked = report.pop("linked")
        linked = linked if self.attention == "full" else 0
        return ". And: ".join(advise(report, linked=linked, answers_all=self.no_answer_threshold is None))

    def tune(self, examples: Sequence[Example], *, nlp: Language | None = None, least: int = 0) -> dict[str, float]:
        """Set the no_answer_threshold that gives the best F1 on examples, dev data never trained on, some of whose
        questions have no answer.

        nlp: pipeline whose config gets it (see `settle`). RETURNS: it and the F1 that it gives; of equal ones the
        nearest to 0. Raises ValueError for fewer than `least` questions with an answer, or without one.
        """
        examples = [Example(example.predicted.copy(), example.reference) for example in examples]
        for example in examples:
            set_rows(example.predicted, QUESTIONS, asked_questions(example))
        if self.scorer is None or not any(get_questions(example.predicted) for example in examples):
            missing = "a scorer" if self.scorer is None else "questions in doc._.luke_questions of the examples"
            raise ValueError(f"'{self.name}' needs {missing} to tune its threshold.")
        self._check_questions(examples, least)
        found = self.predict(example.predicted for example in examples)
        differences = np.array([x.difference for some in found for x in some if x.answers])
        if not len(differences):
            raise ValueError(f"'{self.name}' cannot be tuned: the Docs of all questions are empty.")
        steps = np.quantile(differences, np.linspace(0, 1, _THRESHOLDS), method="nearest")
        thresholds = sorted({0.0, float(steps[0]) - 1.0, *steps.tolist()})
        best, f1 = best_by_score(self, "no_answer_threshold", thresholds, examples, found, metric="qa_f")
        self.settle(nlp, no_answer_threshold=best)
        return {"no_answer_threshold": best, "qa_f": f1}

    def _check_questions(self, examples: Sequence[Example], least: int) -> None:
        """The threshold is between questions with and without an answer: of each there must be enough."""
        gold = Counter(bool(x["answers"]) for one in examples for x in asked_questions(one) if "answers" in x)
        for answered, what in ((True, "questions with an answer"), (False, "questions without an answer")):
            check_positives(gold[answered], least, name=self.name, what=what)


make_luke_qa = register("luke_qa", LukeQA, model=QA_MODEL, assigns=["doc._.luke_answers"], scores=_SCORES)
