"""Scores of answers: exact match and F1 of words, as the official scripts of SQuAD 1.1, SQuAD 2.0 and ReCoRD count."""

import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations import QUERIES, QUESTIONS, Query, Question, ScoredPlace, get_found, get_queries, get_questions

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@registry.scorers("spacy-luke.qa_scorer.v1")
def make_qa_scorer() -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_qa`: `score_answers`."""
    return score_answers


@registry.scorers("spacy-luke.cloze_scorer.v1")
def make_cloze_scorer() -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_cloze`: `score_fillers`."""
    return score_fillers


def score_answers(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Exact match and F1 (0 to 1) of the best of `doc._.luke_answers` for each question that has gold "answers".

    The text of the answer, "" for "no answer", is compared with those of the gold, and the best counts. A gold answer
    of articles and punctuation alone is none, as in SQuAD 2.0's script (Rajpurkar et al., 2018), which agrees with that
    of 1.1 everywhere else. A question that is not answered at all has "".

    qa_em, qa_f: over all questions. Where some have no answer in the text: qa_has_answer_em, qa_has_answer_f over the
    others, and qa_no_answer_accuracy over these; else None. All None without questions. qa_not_asked: gold questions
    that the predicted Docs do not have, as after the stock `spacy evaluate`, which gives the pipeline the text alone;
    they are in no other score.
    """
    answered: list[tuple[float, float]] = []
    unanswerable: list[float] = []
    asked, missed = read_asked(examples, QUESTIONS)
    for prediction, golds in ((x.prediction, x.golds) for x in asked):
        kept = [gold for gold in golds if normalize_answer(gold)] or [""]
        pair = _best(prediction, kept, empty=1.0)
        if golds:
            answered.append(pair)
        else:
            unanswerable.append(pair[0])
    both = [*answered, *((em, em) for em in unanswerable)]
    scores: dict[str, Any] = {**_means("qa", both), "qa_has_answer_em": None, "qa_has_answer_f": None}
    scores["qa_no_answer_accuracy"] = None
    scores["qa_not_asked"] = missed or None
    if unanswerable:
        scores.update(_means("qa_has_answer", answered))
        scores["qa_no_answer_accuracy"] = sum(unanswerable) / len(unanswerable)
    return scores


def score_fillers(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Exact match and F1 (0 to 1) of the best of `doc._.luke_fillers` for each query that has gold "answers", as
    ReCoRD's script (Zhang et al., 2018) counts: by the text of the answers, whatever their places, and the best counts.

    Keys cloze_em and cloze_f, None without queries; and cloze_not_asked, see `score_answers`.
    """
    asked, missed = read_asked(examples, QUERIES)
    pairs = [_best(x.prediction, x.golds, empty=0.0) for x in asked if x.golds]
    return {**_means("cloze", pairs), "cloze_not_asked": missed or None}


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, English articles and superfluous blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_f1(prediction: str, gold: str, *, empty: float = 1.0) -> float:
    """F1 of the normalised words as bags. empty: that of two texts without any: 1 in SQuAD 2.0's script, 0 in
    ReCoRD's."""
    predicted, wanted = normalize_answer(prediction).split(), normalize_answer(gold).split()
    if not predicted or not wanted:
        return empty if predicted == wanted else 0.0
    same = (Counter(predicted) & Counter(wanted)).total()
    return 2 * same / (len(predicted) + len(wanted))


def _best(prediction: str, golds: list[str], *, empty: float) -> tuple[float, float]:
    exact = max(float(normalize_answer(prediction) == normalize_answer(gold)) for gold in golds)
    return exact, max(answer_f1(prediction, gold, empty=empty) for gold in golds)


def _means(name: str, pairs: list[tuple[float, float]]) -> dict[str, float | None]:
    if not pairs:
        return {f"{name}_em": None, f"{name}_f": None}
    return {f"{name}_em": sum(em for em, _ in pairs) / len(pairs), f"{name}_f": sum(f for _, f in pairs) / len(pairs)}


class AskedItem(NamedTuple):
    """A question or query whose gold is known. doc: number of the example; prediction: text of the best that is found,
    "" for "no answer", and its place; golds: texts of the gold answers, and their places in the gold Doc."""

    doc: int
    question: str
    prediction: str
    found: ScoredPlace | None
    golds: list[str]
    gold_places: list[tuple[int, int]]

    @property
    def is_exact(self) -> bool:
        """Whether the prediction is one of the gold answers."""
        return any(normalize_answer(self.prediction) == normalize_answer(gold) for gold in self.golds)


def read_asked(examples: Iterable[Example], asked: str) -> tuple[list[AskedItem], int]:
    """All questions, or queries, whose gold is known and that the pipeline was asked; and how many it was not, of which
    it warns."""
    items: list[AskedItem] = []
    missed = 0
    for number, example in enumerate(examples):
        doc, gold_doc = example.predicted, example.reference
        gold = [item for item in _get_asked(gold_doc, asked) if "answers" in item]
        if not gold:
            continue
        given = _get_asked(doc, asked)
        found = get_found(doc, asked) or [[] for _ in given]
        left: dict[str, list[list[ScoredPlace]]] = {}
        for item, rows in zip(given, found, strict=True):
            left.setdefault(_question(item), []).append(rows)
        for item in gold:
            if not left.get(_question(item)):
                missed += 1
                continue
            rows = left[_question(item)].pop(0)
            prediction = doc.text[rows[0].start : rows[0].end] if rows else ""
            places = [(start, end) for start, end in item["answers"]]
            golds = [gold_doc.text[start:end] for start, end in places]
            items.append(AskedItem(number, _question(item), prediction, rows[0] if rows else None, golds, places))
    if missed:
        warnings.warn(
            f"{missed} of {missed + len(items)} gold items of doc._.{asked} were not asked, and so are not scored: the "
            "Docs that the pipeline got do not have them. Use `spacy luke evaluate`, or for training read the data by "
            "spacy-luke.GoldCorpus.v1 with questions = true.",
            stacklevel=3,
        )
    return items, missed


def _get_asked(doc: Doc, asked: str) -> Sequence[Question | Query]:
    return get_questions(doc) if asked == QUESTIONS else get_queries(doc)


def _question(item: Question | Query) -> str:
    return item["query"] if "query" in item else item["question"]
