"""Questions on texts: SQuAD 1.1 and 2.0, and triples without offsets."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...annotations import Question
from ..json_files import read_json, read_json_list, take
from ..records import Record
from .page_names import Names, PageNames, find_names
from .places import unique


def read_squad(path: str | Path, *, mention_candidates: str | Path | None = None) -> Iterator[Record]:
    """SQuAD 1.1 (Rajpurkar et al., 2016), 2.0 (2018) and others in its format, such as XQuAD; a paragraph is a
    document.

    A question has the places of its answers, equal ones once; none where it has no answer in the text ("answers" is
    empty); and nothing is said where "answers" is missing. "plausible_answers" are no answers and not read.

    mention_candidates: names of entities by the article's title (see `page_names`). Those in a paragraph are its given
    entities, and those in a question its "entities": LUKE's input (appendix C).
    """
    pages = None if mention_candidates is None else PageNames.read(mention_candidates)
    for a, article in enumerate(take(str(path), read_json(path), "data", list)):
        names = None if pages is None else pages.of(take(f"{path}, article {a}", article, "title", str))
        for p, paragraph in enumerate(take(f"{path}, article {a}", article, "paragraphs", list)):
            where = f"{path}, article {a}, paragraph {p}"
            context = take(where, paragraph, "context", str)
            questions: list[Question] = []
            for q, item in enumerate(take(where, paragraph, "qas", list)):
                at = f"{where}, question {q}"
                text = take(at, item, "question", str).strip()
                question = Question(id=str(q if item.get("id") is None else item["id"]), question=text)
                if "answers" in item:
                    question["answers"] = _squad_answers(at, context, item)
                if pages is not None:
                    question["entities"] = find_names(text, names or {})
                questions.append(question)
            record = Record(where, text=context, has_entities=False, questions=questions)
            yield record if pages is None else _with_names(record, context, names)


def _with_names(record: Record, context: str, names: Names | None) -> Record:
    """names: of the page; None of one that the file does not know, which is counted."""
    found = [(start, end, entity, 1.0) for start, end, entity in find_names(context, names or {})]
    notes = {} if names is not None else {"paragraphs of pages without names": 1}
    return replace(record, knowledge=found, notes=notes)


def _squad_answers(where: str, context: str, item: dict[str, Any]) -> list[list[int]]:
    places = []
    for i, answer in enumerate(take(where, item, "answers", list)):
        at = f"{where}, answer {i}"
        text, start = take(at, answer, "text", str), take(at, answer, "answer_start", int)
        end = start + len(text)
        if not text.strip() or start < 0 or context[start:end] != text:
            raise ValueError(
                f"{at}: expected {text!r:.80} at character {start} of the context, but there is "
                f"{context[max(start, 0) : max(end, 0)]!r:.80}."
            )
        places.append([start, end])
    if item.get("is_impossible") and places:
        raise ValueError(
            f"{where}: it has 'is_impossible', so that 'answers' must be empty, but there are {len(places)}."
        )
    return unique(places)


def read_squad_triples(path: str | Path) -> Iterator[Record]:
    """A JSON list of objects with "context", "question" and "answer", strings without offsets: the answer is where its
    text stands first. Equal contexts are one document with several questions."""
    asked: dict[str, list[Question]] = {}
    first: dict[str, str] = {}
    for i, (where, item) in enumerate(read_json_list(path)):
        context, question, answer = (take(where, item, name, str) for name in ("context", "question", "answer"))
        start = context.find(answer) if answer.strip() else -1
        if start < 0:
            raise ValueError(f"{where}: expected an answer that stands in the context, but it is {answer!r:.80}.")
        first.setdefault(context, where)
        asked.setdefault(context, []).append(
            {"id": str(i), "question": question.strip(), "answers": [[start, start + len(answer)]]}
        )
    for context, questions in asked.items():
        yield Record(first[context], text=context, has_entities=False, questions=questions)
