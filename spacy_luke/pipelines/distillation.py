"""A small pipeline that learns from a large one: from what it says of texts without annotation, and from gold."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy
from confection import Config
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import resolve_dot_names

from ..components.base import LukeComponent
from ..readers.texts import read_texts
from ..training.configs import with_defaults
from ..training.loop import train
from ..training.resume import check_output
from .comparison import Measured, compare_speed, main_scores
from .gold import check_docs
from .teaching import Lesson, check_can_learn, teachers_of, write_lesson

_LESSON = "lesson"  # folder with what is learned from, in that of the training
_TAUGHT, _GOLD = "taught.spacy", "gold.spacy"


@dataclass(frozen=True)
class Distilled:
    """best: folder of the student. lesson: what the teacher said; None of a run that went on. gold: whether gold was
    learned from, too. teacher, student: on the dev data of the config. is_busy: see `Quantized`."""

    best: Path
    lesson: Lesson | None
    gold: bool
    teacher: Measured
    student: Measured
    is_busy: bool


def distill(
    teacher: str | Path,
    config: Config,
    texts: str | Path,
    output: str | Path,
    *,
    use_gpu: int = -1,
    start: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    tell: Callable[[Lesson], None] = lambda lesson: None,
) -> Distilled:
    """Train the pipeline of a config by what a trained pipeline says of texts, and by the config's training data, if it
    names any.

    teacher: a folder or a name. config: of the student, not interpolated; components of the teacher's names and kinds
    learn from it, and get its labels. texts: see `read_texts`. output: gets what `train` writes, and the lesson.
    start: a trained pipeline with whose weights the student begins; it was made with the same config. resume,
    overwrite: as of `train`. tell: is given the lesson before it is learned. Raises ValueError where no component can
    learn from the teacher.
    """
    output = Path(output)
    check_output(output, resume=resume, overwrite=overwrite)
    config = with_defaults(config)
    large = spacy.load(teacher)
    names = _learners(large, config)
    corpus, block = _training_corpus(config.interpolate())
    gold = Path(block["path"]) if block.get("path") is not None else None
    if gold is not None:
        check_docs(gold, f"corpora.{corpus}.path")
    folder, lesson = output / _LESSON, None
    if not (resume and (folder / _TAUGHT).exists()):
        shutil.rmtree(folder, ignore_errors=True)
        if gold is not None:  # first, as a lesson that is there is complete for --resume
            folder.mkdir(parents=True)
            (shutil.copytree if gold.is_dir() else shutil.copy)(gold, folder / _GOLD)
        lesson = write_lesson(
            large, read_texts(Path(texts), large), folder / _TAUGHT, components=names, progress=progress
        )
        tell(lesson)
    nlp = init_nlp(_for_student(config, large, names, corpus, folder), use_gpu=use_gpu)
    teachers = teachers_of(large)
    for name in names:
        check_can_learn(teachers[name], teachers_of(nlp)[name])
    if start is not None:
        _begin_as(nlp, Path(start))
    best = train(nlp, output, resume=resume, overwrite=overwrite)
    return _compare(large, spacy.load(best), nlp, best, lesson, gold is not None or bool(block.get("sources")))


def _begin_as(nlp: Language, start: Path) -> None:
    """Components get the weights of those of a saved pipeline, encoders before their heads."""
    own: dict[str, Any] = {name: proc for name, proc in nlp.pipeline if isinstance(proc, LukeComponent)}
    if missing := [name for name in own if not (start / name).is_dir()]:
        raise ValueError(f"The pipeline {start} that the student is to begin with has no {', '.join(missing)}.")
    for name, proc in own.items():
        labels = getattr(proc, "labels", None)
        proc.from_disk(start / name)
        if (found := getattr(proc, "labels", None)) != labels:
            raise ValueError(
                f"'{name}' of the pipeline {start} has the labels {found}, but the teacher's are {labels}: expected "
                "the same ones in the same order."
            )


def _learners(teacher: Language, config: Config) -> list[str]:
    """The student's components that learn from the teacher's."""
    kinds = {name: teacher.get_pipe_meta(name).factory for name in teachers_of(teacher)}
    own = {name: config["components"].get(name, {}).get("factory") for name in config["nlp"]["pipeline"]}
    names = [name for name in own if name in kinds and own[name] == kinds[name]]
    if not names:
        raise ValueError(
            f"No component can learn from the teacher, which has {kinds or 'none that teaches'}: the config has "
            f"{own}. Expected a luke_ner, luke_typer or luke_relation with the same name and factory in both."
        )
    return names


def _training_corpus(settings: Config) -> tuple[str, dict[str, Any]]:
    """Its name and its block. settings: the config, interpolated."""
    dotted: str = settings["training"]["train_corpus"]
    section, _, name = dotted.partition(".")
    block = settings.get("corpora", {}).get(name)
    if section != "corpora" or not isinstance(block, dict) or not {"path", "sources"} & set(block):
        raise ValueError(
            f"The training corpus of the config, {dotted}, must have a path, which is that of the lesson then, or "
            'sources, of which the lesson is one more: expected @readers = "spacy.Corpus.v1", '
            '"spacy-luke.GoldCorpus.v1" or "spacy-luke.JoinedCorpus.v1".'
        )
    return name, block


def _for_student(config: Config, teacher: Language, names: list[str], corpus: str, folder: Path) -> Config:
    """The config with the lesson as its training data, or as one source more of them, and the teacher's labels."""
    config = config.copy()
    if "sources" in config["corpora"][corpus]:
        config["corpora"][corpus]["sources"][_LESSON] = {"path": str(folder / _TAUGHT)}
    else:
        config["corpora"][corpus]["path"] = str(folder)
    teachers = teachers_of(teacher)
    for name in names:
        section: dict[str, Any] = config["initialize"].setdefault("components", {}).setdefault(name, {})
        section["labels"] = list(teachers[name].labels)
    return config


def _compare(
    large: Language, small: Language, nlp: Language, best: Path, lesson: Lesson | None, gold: bool
) -> Distilled:
    settings = nlp.config.interpolate()
    (dev,) = resolve_dot_names(settings, [settings["training"]["dev_corpus"]])
    scores = [main_scores(x, list(dev(x))) for x in (large, small)]
    speeds = compare_speed((large, small), lambda x: [example.predicted for example in dev(x)])
    teacher, student = (Measured(*pair) for pair in zip(scores, speeds.words_per_second, strict=True))
    return Distilled(best, lesson, gold, teacher, student, speeds.is_busy)
