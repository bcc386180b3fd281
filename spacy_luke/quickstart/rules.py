"""A config from a few facts: each line that differs from the defaults, with its reason.

The rules lie in rules.json, which the page docs/howto/init-config.md reads too, so that its form and this module write
the same config from the same facts; docs/quickstart.js is this module's twin.

rules.json: "encoders", by name; "entries", [section, setting, value, reason, when]. An entry holds where all facts in
`when` are as it says: a value, or {"min": number}. Names in braces are replaced by facts.
"""

import functools
import json
import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

Task = Literal["ner", "types", "relations", "questions", "cloze", "links"]
Fact = str | int | bool
QUICKSTART_TASKS: tuple[Task, ...] = ("ner", "types", "relations", "questions", "cloze", "links")
_COMPONENTS: dict[Task, str] = {
    "ner": "luke_ner",
    "types": "luke_typer",
    "relations": "luke_relation",
    "questions": "luke_qa",
    "cloze": "luke_cloze",
    "links": "luke_linker",
}
MACHINES = ("cpu", "gpu")
RULES = Path(__file__).with_name("rules.json")
_NAME = re.compile(r"\{(\w+)\}")

_FEWEST_STEPS = 400
_EVALUATIONS = 10
_LEAST_WORDS = 250
_SHORT_SPAN = 8  # words that 16 pieces, the default, have room for
_MOST_PIECES = 248  # of an entity; the widest window has room for twice as many
_WIDEST = 512  # pieces of a window
_GAP = 100  # words between the two of a pair, by the default of the suggester
_STEP_WORDS = {"cpu": 1000, "gpu": 2000}  # the most of a step, where there are enough data


class Shape(NamedTuple):
    """What the data are like: counts, and lengths in words.

    nested: whether entities lie inside or across others, and so in doc.spans[spans_key]. several: whether a pair has
    several relations; crossing: whether relations lead out of their sentence.
    """

    documents: int
    words: int
    mentions: int = 0
    ner_labels: int = 0
    longest_span: int = 0
    nested: bool = False
    spans_key: str = "sc"
    typed: int = 0
    type_labels: int = 0
    relations: int = 0
    relation_labels: int = 0
    pairs: int = 0
    several: bool = False
    crossing: bool = False
    longest_gap: int = 0
    questions: int = 0
    unanswerable: int = 0
    queries: int = 0
    linked: int = 0


class Wanted(NamedTuple):
    """What a user answers. encoder: of `encoders()`, or "other" with `weights`; rate: of "other", "" for the usual."""

    tasks: tuple[Task, ...]
    encoder: str = "small"
    machine: str = "cpu"
    lang: str = "en"
    train: str = "corpus/train.spacy"
    dev: str = "corpus/dev.spacy"
    weights: str = ""
    kb: str = ""
    vectors: bool = True


@functools.cache
def read_rules() -> dict[str, Any]:
    """rules.json."""
    rules: dict[str, Any] = json.loads(RULES.read_text(encoding="utf8"))
    return rules


def encoders() -> dict[str, dict[str, Any]]:
    """Encoders by name: weights, what they are, rate of learning, pieces of a window (0: as many as they read),
    millions of parameters besides the tables, and whether they are plain, without parameters of entities."""
    found: dict[str, dict[str, Any]] = read_rules()["encoders"]
    return found


def tasks_of(shape: Shape) -> tuple[Task, ...]:
    """Those that the data have gold of, links apart, which need a knowledge base, where there is anything else."""
    gold = (shape.mentions, shape.typed, shape.relations, shape.questions, shape.queries, shape.linked)
    found = tuple(task for task, n in zip(QUICKSTART_TASKS, gold, strict=True) if n)
    return found if found == ("links",) else tuple(task for task in found if task != "links")


def check_wanted(wanted: Wanted, shape: Shape) -> None:
    """ValueError where a task has no data, or where tasks cannot be trained together."""
    gold = (shape.mentions, shape.typed, shape.relations, shape.questions, shape.queries, shape.linked)
    have = dict(zip(QUICKSTART_TASKS, gold, strict=True))
    if not wanted.tasks:
        raise ValueError(f"Expected a task, of {', '.join(QUICKSTART_TASKS)}, but the data have gold of none.")
    for task in wanted.tasks:
        if not have[task]:
            known = ", ".join(name for name, n in have.items() if n) or "none"
            raise ValueError(f"The task {task} needs gold of it, but the training data have none; they have: {known}.")
    if "links" in wanted.tasks:
        if len(wanted.tasks) > 1:
            raise ValueError(
                "The task links is trained by itself, since it is given the mentions that others would find: leave out "
                "the other tasks, and put the two pipelines together with `spacy assemble` (configs/all_small.cfg)."
            )
        if not wanted.kb:
            raise ValueError("The task links needs a knowledge base: --kb FOLDER, made by `spacy luke build-kb`.")
    if shape.nested and "relations" in wanted.tasks and "ner" not in wanted.tasks and not shape.pairs:
        raise ValueError(
            f'The relations are between entities in doc.spans["{shape.spans_key}"], which a pipeline without ner is '
            "not given: add the task ner, or give the pairs in the data (doc._.luke_pairs)."
        )
    if wanted.encoder not in encoders():
        raise ValueError(f"encoder must be one of {', '.join(encoders())}, but it is {wanted.encoder!r}.")
    if wanted.machine not in MACHINES:
        raise ValueError(f"machine must be one of {', '.join(MACHINES)}, but it is {wanted.machine!r}.")


def facts_of(wanted: Wanted, shape: Shape) -> dict[str, Fact]:
    """What rules ask for and values are made of. The twin of `factsOf` in docs/quickstart.js."""
    encoder = encoders()[wanted.encoder]
    tasks = set(wanted.tasks)
    names = [_COMPONENTS[task] for task in QUICKSTART_TASKS if task in tasks]
    sentencizer = bool(tasks & {"ner", "relations"})
    shared = len(names) > 1
    pipeline = [*(["sentencizer"] if sentencizer else []), *(["luke_encoder"] if shared else []), *names]
    asked = bool(tasks & {"questions", "cloze"})
    most = _STEP_WORDS[wanted.machine]
    mean = ceil(shape.words / shape.documents)
    # Two documents, but no more words than memory likes; the more data, the larger.
    batch_words = max(_LEAST_WORDS, 10 * ceil(min(2 * mean, most) / 10), min(most, 50 * (shape.words // 3000)))
    per_epoch = max(1, min(shape.documents, ceil(shape.words / batch_words)))  # a longer document is a step
    epochs = max(3, min(20, ceil(_FEWEST_STEPS / per_epoch)))
    steps = epochs * per_epoch
    span_pieces = min(_MOST_PIECES, 8 * ceil(shape.longest_span * 2 / 8))
    wide = "ner" in tasks and shape.longest_span > _SHORT_SPAN and 2 * span_pieces + 4 > encoder["window"] > 0
    reach = max(_GAP, 10 * ceil(shape.longest_gap / 10))  # words between the two of a pair that is asked about
    far = "relations" in tasks and shape.crossing and not shape.pairs and 3 * reach > encoder["window"] > 0
    room = max(2 * span_pieces + 4 if wide else 0, 3 * reach if far else 0)  # pieces: two halves, 1.5 a word
    return {
        **shape._asdict(),
        **{"links": "links" in tasks, "ner": "ner" in tasks, "types": "types" in tasks, "cloze": "cloze" in tasks},
        "relations_task": "relations" in tasks,
        "questions_task": "questions" in tasks,
        "asked": asked,
        "given_entities": "relations" in tasks and "ner" not in tasks,
        "raw_dev": tasks <= {"ner", "types", "relations"}
        and "ner" in tasks
        and not ("relations" in tasks and shape.pairs),
        "mixed": "ner" in tasks and tasks <= {"ner", "types"},
        "sentencizer": sentencizer,
        "shared": shared,
        "components": len(names),
        "pipeline": json.dumps(pipeline, separators=(",", ":")),
        "first": "luke_encoder" if shared else (names or [""])[0],
        "machine": wanted.machine,
        "lang": wanted.lang,
        "train": json.dumps(wanted.train, ensure_ascii=False),
        "dev": json.dumps(wanted.dev, ensure_ascii=False),
        "kb": json.dumps(wanted.kb, ensure_ascii=False),
        "vectors": wanted.vectors,
        "weights": json.dumps(wanted.weights or encoder["weights"], ensure_ascii=False),
        "about": encoder["about"],
        "rate": encoder["rate"],
        "window": min(_WIDEST, 16 * ceil(room / 16)) if room else encoder["window"],
        "wide": wide,
        "far": far,
        "reach": reach,
        "plain": encoder["plain"],
        "span_pieces": span_pieces,
        "overlap": 2 * span_pieces,
        "batch_words": batch_words,
        "epochs": epochs,
        "steps": steps,
        "eval_frequency": max(5, ceil(steps / _EVALUATIONS)),
    }


def draft(wanted: Wanted, shape: Shape) -> str:
    """The text of a config that holds what differs from the defaults, each line with its reason.

    Raises ValueError where a task has no data, or where tasks cannot be trained together.
    """
    check_wanted(wanted, shape)
    facts = facts_of(wanted, shape)
    lines: list[str] = []
    opened: list[str] = []
    for section, setting, value, reason, when in read_rules()["entries"]:
        if not all(_holds(facts[name], condition) for name, condition in when.items()):
            continue
        section = fill(section, facts)
        parts = section.split(".")
        for name in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):
            if name not in opened:  # spaCy's parser wants those above, too
                lines += ["", f"[{name}]"]
                opened.append(name)
        if reason:
            lines.append(f"# {fill(reason, facts, shown=True)}")
        lines.append(f"{fill(setting, facts)} = {fill(value, facts)}")
    return "\n".join(lines[1:]) + "\n"


def fill(text: str, facts: Mapping[str, Fact], *, shown: bool = False) -> str:
    """The text with facts in the place of their names in braces; shown: numbers with commas. ${...} stay."""

    def found(match: re.Match[str]) -> str:
        fact = facts.get(match[1])
        if fact is None or text[match.start() - 1 : match.start()] == "$":
            return match[0]
        return f"{fact:,}" if shown and isinstance(fact, int) else str(fact)

    return _NAME.sub(found, text)


def _holds(fact: Fact, condition: Any) -> bool:
    if isinstance(condition, dict):
        return isinstance(fact, int) and fact >= condition["min"]
    return bool(fact == condition)
