"""What `luke_qa` encodes: from a Doc and a question to windows, and from pieces back to words.

P pieces of a passage, W words, E linked entities.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import Question, get_questions
from ...batch.passages import PassageItem, best_context, make_frame, stride_windows
from ...bridge.documents import word_edges
from ...text.passages import Passage, encode_as_written, encode_passage, encode_question
from ...text.tokenizer import PieceTokenizer

EntityPlace = tuple[int, int, int]  # characters [start, end) and row of the entity


_COUNTED = ("links", "questions", "answers", "questions without answer")  # in a report beside what is lost


@dataclass(frozen=True)
class QuestionInput:
    """What windows are made by. window: pieces of one, all included; row_of: of an entity, None of an unknown one;
    as_written: without blanks that the text has not."""

    tokenizer: PieceTokenizer
    token_types: int
    window: int
    stride: int
    max_question_pieces: int | None
    cut_questions: bool
    max_answer_pieces: int
    max_entities: int
    row_of: Callable[[str], int | None]
    as_written: bool

    @property
    def question_room(self) -> int:
        """Pieces of a question that leave room for an answer, [CLS] and three [SEP]."""
        return self.window - self.max_answer_pieces - 4


@dataclass(frozen=True)
class ReadDoc:
    """A Doc as a passage. length: characters of its text; starts_W, ends_W: those of its words; rows_E, first_E,
    last_E: rows and pieces [first, last) of its links."""

    passage: Passage
    length: int
    starts_W: np.ndarray
    ends_W: np.ndarray
    rows_E: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray

    def words_around(self, start_S: np.ndarray, end_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Characters of the words that hold the characters [start, end) of S spans."""
        first_S = np.maximum(np.searchsorted(self.starts_W, start_S, side="right") - 1, 0)
        last_S = np.maximum(np.searchsorted(self.starts_W, end_S - 1, side="right") - 1, first_S)
        return self.starts_W[first_S], self.ends_W[last_S]

    def holds_words(self, start: int, end: int) -> bool:
        """Whether the characters [start, end) are whole words."""
        (begin,), (stop,) = self.words_around(np.array([start]), np.array([end]))
        return bool(begin == start and stop == end)

    def characters(self, first_S: np.ndarray, last_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Characters of the words around pieces [first, last) of S spans; empty where the pieces hold none."""
        start_S, end_S = self.passage.starts_N[first_S], self.passage.ends_N[last_S - 1]
        empty_S = end_S <= start_S
        begin_S, stop_S = self.words_around(start_S, end_S)
        return np.where(empty_S, start_S, begin_S), np.where(empty_S, start_S, stop_S)


def asked_questions(example: Example) -> list[Question]:
    """The questions of the reference, with the entities that earlier components found in those of the prediction."""
    questions, given = get_questions(example.reference), get_questions(example.predicted)
    if [x["question"] for x in questions] != [x["question"] for x in given]:
        return questions
    return [
        question if new.get("entities") is None else {**question, "entities": new["entities"]}
        for question, new in zip(questions, given)
    ]


def read_doc(task: QuestionInput, doc: Doc, links: Iterable[EntityPlace]) -> ReadDoc:
    passage = (encode_as_written if task.as_written else encode_passage)(task.tokenizer, doc.text)
    starts_W, ends_W = word_edges(doc)
    return ReadDoc(passage, len(doc.text), starts_W, ends_W, *_place_links(passage, links))


def _place_links(passage: Passage, links: Iterable[EntityPlace]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, and pieces [first, last), of links that have pieces, in order of their places."""
    placed = [(*passage.place(start, end), row) for start, end, row in links]
    table = np.array(sorted(x for x in placed if x[0] < x[1]), dtype=np.int64).reshape(-1, 3)
    return table[:, 2], table[:, 0], table[:, 1]


def question_items(
    task: QuestionInput,
    read: ReadDoc,
    question: Question,
    *,
    owner: int,
    learn: bool = False,
    report: Counter[str] | None = None,
) -> list[PassageItem]:
    """The windows of a question; none where the Doc has no pieces.

    learn: with the places of the answers, which the question must have then ([] where there is none). report: counts
    what is wrong with question and answers. Raises ValueError for a question that is too long.
    """
    report = Counter() if report is None else report
    asked, entities = _read_question(task, question, report)
    frame = make_frame(
        asked.ids_N,
        cls_id=task.tokenizer.cls_id,
        sep_id=task.tokenizer.sep_id,
        double=task.tokenizer.doubles_sep,
        token_types=task.token_types,
    )
    ids, offset = read.passage.ids_N, len(frame.head)
    windows = stride_windows(len(ids), room=task.window - offset - 1, stride=task.stride)
    context_P = best_context(windows, len(ids))
    answers = _find_answers(task, read, question, windows, report) if learn else None
    items = []
    for b, (first, last) in enumerate(windows):
        pieces, types = frame.window(ids[first:last])
        inside = np.flatnonzero((read.first_E >= first) & (read.last_E <= last))
        shift = offset - first
        rows_E = np.concatenate([entities[0], read.rows_E[inside]])
        first_E = np.concatenate([entities[1] + 1, read.first_E[inside] + shift])
        last_E = np.concatenate([entities[2], read.last_E[inside] + shift - 1])
        if len(rows_E) > task.max_entities:
            report["windows have more linked entities than max_entities"] += 1
        most = slice(task.max_entities)
        gold = None
        if answers is not None:
            held = [(a + shift, z + shift - 1) for a, z in answers if first <= a and z <= last]
            gold = held[0] if held else (0, 0)
        starts_here = context_P[first:last] == b
        items.append(
            PassageItem(
                owner, pieces, types, offset, first, starts_here, rows_E[most], first_E[most], last_E[most], gold
            )
        )
    return items


def _read_question(
    task: QuestionInput, question: Question, report: Counter[str]
) -> tuple[Passage, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pieces of a question, and rows and pieces [first, last) of its linked entities."""
    text = question["question"]
    asked = (encode_as_written if task.as_written else encode_question)(task.tokenizer, text)
    room = task.question_room
    most = room if task.max_question_pieces is None else min(room, task.max_question_pieces)
    if len(asked.ids_N) > most and not task.cut_questions:
        limit = f"max_question_pieces is {task.max_question_pieces}"
        if most == room:
            limit = (
                f"a window of {task.window} with answers of max_answer_pieces = {task.max_answer_pieces} leaves {most}"
            )
        raise ValueError(
            f"The question {question.get('id', '')!r}, {text[:80]!r}, has {len(asked.ids_N)} pieces, but {limit}. "
            "Shorten it, raise that setting where it can be raised, or set cut_questions = true to read only its "
            "beginning."
        )
    if len(asked.ids_N) > most:
        report["questions are cut"] += 1
        asked = replace(asked, ids_N=asked.ids_N[:most], starts_N=asked.starts_N[:most], ends_N=asked.ends_N[:most])
    links = []
    for i, (start, end, title) in enumerate(question.get("entities") or []):
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"Entity {i} of the question {text[:80]!r} must have characters [start, end) of its {len(text)}, but "
                f"it has [{start}, {end})."
            )
        if (row := task.row_of(title)) is not None:
            links.append((start, end, row))
    return asked, _place_links(asked, links)


def _find_answers(
    task: QuestionInput, read: ReadDoc, question: Question, windows: Sequence[tuple[int, int]], report: Counter[str]
) -> list[tuple[int, int]]:
    """Pieces [first, last) of a question's answers; counts those that are not found as they stand."""
    places = []
    for start, end in question["answers"]:
        if not 0 <= start < end <= read.length:
            raise ValueError(
                f"An answer of the question {question['question'][:80]!r} must be characters [start, end) of the Doc's "
                f"{read.length}, but it is [{start}, {end})."
            )
        first, last = read.passage.place(start, end)
        report["answers"] += 1
        if first == last:
            report["answers hold nothing that the encoder sees"] += 1
            continue
        if not any(a <= first and last <= z for a, z in windows):
            report["answers are in no window"] += 1
            continue
        if last - first > task.max_answer_pieces:
            report["answers are longer than max_answer_pieces"] += 1
        elif not read.holds_words(start, end):
            report["answers do not begin and end with a word"] += 1
        places.append((first, last))
    return places


def listed(report: Counter[str]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in report.items())


def advise(report: Counter[str], *, linked: int, answers_all: bool) -> list[str]:
    """What of the training data is lost, and what to do about it. linked: linked entities, where these are read;
    answers_all: whether "no answer" is never given."""
    lost = +(report - Counter({name: report[name] for name in _COUNTED}))
    advice = []
    if lost:
        advice.append(
            f"of {report['answers']} answers of the training data, {listed(lost)}; these cannot be found as they are"
        )
    if report["questions without answer"] and answers_all:
        advice.append(
            f"{report['questions without answer']} questions have no answer, but no_answer_threshold = null always "
            "gives one; set it to 0.0"
        )
    if linked and not report["links"]:
        advice.append(
            f"none of {linked} linked entities is in the entity table, so they are not read; load the checkpoint with "
            'entities = "all" (and luke_encoder with entity_rows = "all"), and set entity_language where its titles '
            "have languages"
        )
    return advice
