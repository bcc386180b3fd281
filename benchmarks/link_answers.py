"""What the benchmarks of linking share: links are judged, their answers kept, and systems named."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from paired import Answers, Floats, count, keep, score

EPOCHS = 3  # which is not named


def judge(examples: Sequence[Any], link: Callable[[Iterator[Any]], Iterable[Any]]) -> dict[str, Any]:
    """link: takes Docs and yields the same with links. RETURNS: scores, seconds, and "answers" (`answers_of_links`)."""
    from spacy_luke.scorers.linking import score_links

    start = time.perf_counter()
    for example, doc in zip(examples, list(link(x.predicted for x in examples)), strict=True):
        example.predicted = doc
    spent = time.perf_counter() - start
    scores, answers = score_links(examples), answers_of_links(examples)
    accuracy = float(score(count_links(answers).sum(0)))
    if abs(accuracy - 100 * scores["links_accuracy"]) > 1e-6:
        raise RuntimeError(
            f"The answers have {accuracy} % right, their scorer found {100 * scores['links_accuracy']} %."
        )
    return {
        "accuracy": round(accuracy, 2),
        "scores": {k: round(100 * v, 2) for k, v in scores.items() if v is not None},
        "spent": round(spent, 2),
        "mentions_per_second": round(sum(len(x.reference.ents) for x in examples) / spent, 1),
        "answers": answers,
    }


def answers_of_links(examples: Iterable[Any]) -> list[Answers]:
    """Of each document the gold mentions with their entities, "NIL" for none, and the same mentions with those that
    were found. A mention whose gold says nothing of an entity is left out."""
    answers = []
    for example in examples:
        found = {(x.start, x.end): x.kb_id_ or "NIL" for x in example.predicted.ents}
        gold = [x for x in example.reference.ents if x.kb_id_]
        places = [f"{x.start_char}-{x.end_char}" for x in gold]
        entities = [x.kb_id_ for x in gold], [found.get((x.start, x.end), "NIL") for x in gold]
        answers.append(tuple([f"{a} {b}" for a, b in zip(places, some, strict=True)] for some in entities))
    return answers


def count_links(documents: Sequence[Answers]) -> Floats:
    """As `count`, of what `answers_of_links` found: of the mentions with an entity alone, each of which has an answer,
    so that F1 is the share that is right."""
    known = [[(a, b) for a, b in zip(*document, strict=True) if not a.endswith(" NIL")] for document in documents]
    return count([([a for a, _ in some], [b for _, b in some]) for some in known])


def keep_links(
    line: dict[str, Any], part: str, way: str, answers: Sequence[Answers], *, folder: str = "linking"
) -> str | None:
    """The path of the predictions of a line of results; None of a smoke run."""
    name = f"{part}-{name_of_system(line['system'], line['settings'])}-{way}-{line['seed']}"
    return None if line["settings"]["limit"] else keep(f"{folder}/{name}.jsonl", answers)


def name_of_system(system: str, settings: dict[str, Any]) -> str:
    """With what is not usual of its settings."""
    for name in ("masked_share", "drop_gold"):
        if name in settings:
            system += f", {name.replace('_', ' ')} {settings[name]}"
    if settings.get("epochs", EPOCHS) != EPOCHS:
        system += f", {settings['epochs']} epoch{'s' if settings['epochs'] > 1 else ''}"
    return system
