"""What quality_tasks.py and readout.py compare: tasks with their files, and systems by their settings."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Task:
    """Files of the parts (of the train part the first `train` records, of the test part the first `test`, None: all; a
    part of the train file, DEV records, serves as dev where there is none), and which score counts."""

    format: str
    files: tuple[str, str | None, str]
    train: int
    test: int | None
    score: str
    batch: int = 16  # records a step
    epochs: int = 3
    seeds: int = 3


TASKS = {
    "open_entity": Task(
        "open_entity",
        ("open_entity_ernie/train.json", "open_entity_ernie/dev.json", "open_entity_ernie/test.json"),
        1000,
        None,
        "types_micro_f",
        seeds=5,
    ),
    "semeval": Task(
        "semeval2010",
        (
            "semeval2010_task8/SemEval2010_task8_training/TRAIN_FILE.TXT",
            None,
            "semeval2010_task8/SemEval2010_task8_testing_keys/TEST_FILE_FULL.TXT",
        ),
        2000,
        None,
        "relations_semeval_f",
        seeds=5,
    ),
    "conll04": Task(
        "conll04",
        ("conll04/conll04_train.json", "conll04/conll04_dev.json", "conll04/conll04_test.json"),
        400,
        288,
        "relations_strict_f",
        batch=4,
    ),
    "scierc": Task(
        "scierc", ("scierc/train.json", "scierc/dev.json", "scierc/test.json"), 100, None, "relations_f", batch=1
    ),
}
TASKS |= {f"{name}_gold": replace(TASKS[name], score="relations_f") for name in ("conll04", "scierc")}


@dataclass(frozen=True)
class System:
    """attention and features of the typer or relation component, entity-aware queries or not; ner: the features of
    luke_ner, which is one-way in all, where entities must be found first; start: how entity tokens begin."""

    attention: str
    features: str
    entity_aware: bool
    ner: str
    shared: bool = False
    start: str = "words"  # entity_start


SYSTEMS = {
    "luke": System("full", "entity", True, "all"),  # the paper's input
    "luke_plain": System("full", "entity", False, "all"),  # ordinary attention (table 7)
    "luke_mention": System("full", "entity", True, "all", start="mention"),  # [MASK] is its mention's pieces
    "luke_all": System("full", "all", True, "all"),  # and the states of the mention's first and last piece
    "one_way": System("one_way", "all", True, "all"),
    "one_way_mention": System("one_way", "all", True, "all", start="mention"),
    "markers": System("full", "words", False, "words"),  # the baseline: no entity tokens
    "joint": System("one_way", "all", True, "all", shared=True),  # one encoder for all components
}
