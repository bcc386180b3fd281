"""The tsv files of GLUE (Wang et al., ICLR 2019): one or two texts a line, and a label."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..lines import decode_line
from ..records import DAMAGED, Record, check_choice

_ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class GlueTask:
    """texts: names of the columns with one text or two; label: of that with the label, which test files have not;
    labels: {what stands there: the name of the category}, None: a score from 0 to 5."""

    texts: tuple[str, ...]
    label: str
    labels: dict[str, str] | None


def _named(*names: str) -> dict[str, str]:
    return {name: name for name in names}


# Categories have the names that the data sets' papers give to the numbers.
GLUE_TASKS = {
    "cola": GlueTask(("sentence",), "label", {"0": "unacceptable", "1": "acceptable"}),
    "mnli": GlueTask(("sentence1", "sentence2"), "gold_label", _named("entailment", "neutral", "contradiction")),
    "mrpc": GlueTask(("#1 String", "#2 String"), "Quality", {"0": "not_equivalent", "1": "equivalent"}),
    "qnli": GlueTask(("question", "sentence"), "label", _named(*_ENTAILMENT)),
    "qqp": GlueTask(("question1", "question2"), "is_duplicate", {"0": "not_duplicate", "1": "duplicate"}),
    "rte": GlueTask(("sentence1", "sentence2"), "label", _named(*_ENTAILMENT)),
    "sst2": GlueTask(("sentence",), "label", {"0": "negative", "1": "positive"}),
    "stsb": GlueTask(("sentence1", "sentence2"), "score", None),
    "wnli": GlueTask(("sentence1", "sentence2"), "label", {"0": "not_entailment", "1": "entailment"}),
}
_COLA_COLUMNS = ["source", "label", "judgment", "sentence"]  # its train.tsv and dev.tsv have no header
MOST_STARS = 5.0


def read_glue(path: str | Path, *, task: str | None = None, damaged: str = "error") -> Iterator[Record]:
    """A tsv file of a task: "cola", "sst2", "mrpc", "qqp", "stsb", "mnli" (matched and mismatched alike), "qnli",
    "rte", "wnli". Columns are found by their names in the first line; quotation marks are characters like others.

    A line becomes one Doc with its category in doc.cats; two texts stand in it with a blank between them, and
    `doc._.luke_second` says where the second begins. Blanks at the edges of a text are dropped. Files without the
    column of the labels (test.tsv) give Docs without categories. The score s of stsb, 0 to 5, becomes the categories
    "similar": s / 5 and "dissimilar": 1 - s / 5, as ERNIE's two outputs learn it.
    damaged: a line with another number of columns than the first is an "error", or is left out with a warning ("skip"):
    qqp has some.
    """
    if task not in GLUE_TASKS:
        raise ValueError(f"The format glue needs a task, one of {sorted(GLUE_TASKS)}, but it is {task!r}.")
    check_choice("damaged", damaged, DAMAGED)
    path, form = Path(path), GLUE_TASKS[task]
    columns: list[str] | None = None
    left_out: list[int] = []
    empty = True
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            where, cells = f"{path}, line {number}", decode_line(path, number, raw).split("\t")
            if columns is None:
                columns = _columns(where, cells, task)
                if columns is not _COLA_COLUMNS:
                    continue
            if len(cells) != len(columns) or cells == [""]:
                if damaged == "error":
                    raise ValueError(
                        f"{where}: expected {len(columns)} columns, {columns}, but got {len(cells)}: {cells!r:.120}. "
                        "Mend the line, or set damaged to 'skip'."
                    )
                left_out.append(number)
                continue
            empty = False
            yield _record(where, dict(zip(columns, cells, strict=True)), form)
    if empty:
        raise ValueError(f"{path}: expected lines of the GLUE task {task}, but the file holds none.")
    if left_out:
        warnings.warn(f"{path}: {len(left_out)} damaged lines are left out, the first is {left_out[0]}.", stacklevel=2)


def _columns(where: str, cells: list[str], task: str) -> list[str]:
    form = GLUE_TASKS[task]
    if task == "cola" and len(cells) == len(_COLA_COLUMNS) and cells[1] in (form.labels or ()):
        return _COLA_COLUMNS
    if missing := [name for name in form.texts if name not in cells]:
        raise ValueError(
            f"{where}: expected the columns of GLUE's {task}, among them {missing[0]!r}, but got {cells!r:.200}. Is "
            f"the task right?"
        )
    if len(set(cells)) < len(cells):
        raise ValueError(f"{where}: expected columns with different names, but got {cells!r:.200}.")
    return cells


def _record(where: str, row: dict[str, str], form: GlueTask) -> Record:
    texts = [row[name].strip() for name in form.texts]
    return Record(
        where,
        text=texts[0],
        second=texts[1] if len(texts) == 2 else None,
        has_entities=False,
        cats=_categories(where, row[form.label], form) if form.label in row else None,
    )


def _categories(where: str, value: str, form: GlueTask) -> dict[str, float]:
    if form.labels is not None:
        if value not in form.labels:
            raise ValueError(
                f"{where}: expected one of {sorted(form.labels)} under {form.label!r}, but got {value!r:.40}."
            )
        return {name: float(name == form.labels[value]) for name in form.labels.values()}
    try:
        score = float(value)
        good = 0.0 <= score <= MOST_STARS
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"{where}: expected a number from 0 to 5 under {form.label!r}, but got {value!r:.40}.")
    return {"similar": score / MOST_STARS, "dissimilar": 1 - score / MOST_STARS}
