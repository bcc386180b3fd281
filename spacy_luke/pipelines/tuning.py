"""The threshold of a component, or its bias, that is best on dev data, and the calibration of its scores, set in the
saved pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example

from ..components.base import LukeComponent, find_component
from ..components.calibration import HIGHEST_TEMPERATURE, Calibrated
from ..components.linker.component import LukeLinker
from ..components.settings import changed_settings
from ..components.units.tuning import ThresholdClassifier
from ..stores.atomic import write_atomically
from ..text.spelling import shorten
from ..training.dev_gold import ClassifiesUnits, FindsSpans, listed_labels
from .gold import Given, luke_components, read_gold
from .link_tuning import tune_links
from .saving import check_replaceable, save
from .score_notes import count_labels, unknown_label_notes

LEAST = 50  # positives that a threshold is chosen from


@dataclass(frozen=True)
class Tuned:
    """component: its name; setting, value, before: what was changed; more: other settings that were, with their values,
    and those of the calibration; scores: what all of them give on the dev data; notes: what a reader of the scores
    should know."""

    component: str
    setting: str
    value: float
    before: float | None
    scores: dict[str, float]
    more: dict[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()


def tune_pipeline(
    pipeline: str | Path,
    data: str | Path,
    *,
    component: str | None = None,
    gold_sentences: bool = False,
    gold_mentions: bool = False,
    least: int = LEAST,
    precision: float | None = None,
    calibrate: bool = True,
    output: str | Path | None = None,
) -> Tuned:
    """Find the best threshold on dev data, of entities (none_bias), types, links (below it NIL), relations (with
    multi_label) or "no answer", calibrate the scores of all but answers, and save both in the pipeline's config.

    pipeline: a folder or a name. data: gold documents that it was not trained on. component: its name, where several
    have a threshold. gold_sentences: words and sentence boundaries are the file's; gold_mentions: so are mentions, or
    pairs. least: positives that are needed. precision: of types, relations and links the lowest threshold at which this
    share of what is found is right. calibrate: whether to. output: folder of a new pipeline, None: change this one.
    Raises ValueError before anything is written.
    """
    _check_output(pipeline, output)
    nlp = spacy.load(pipeline)
    proc = _find_tunable(nlp, component)
    if gold_mentions and not hasattr(proc, "getter"):
        raise ValueError(f"'{proc.name}' takes no mentions: leave --gold-mentions out.")
    links = isinstance(proc, LukeLinker) and not gold_mentions
    if precision is not None and not (links or (isinstance(proc, ThresholdClassifier) and proc.has_threshold)):
        raise ValueError(
            f"'{proc.name}' has no threshold that is chosen by precision: leave --precision out, or name a luke_typer, "
            "a luke_relation with multi_label, or a luke_linker without --gold-mentions, by --component."
        )
    before, on_file = dict(proc.cfg), changed_settings(proc.configured, proc.cfg)
    golds = read_gold(nlp, data, Given(sentences=gold_sentences))
    _check_known(proc, golds, least)
    examples = prepare_examples(nlp, proc, golds, gold_mentions=gold_mentions)
    found = _tune(
        nlp, proc, examples, gold_mentions=gold_mentions, least=least, precision=precision, calibrate=calibrate
    )
    settings = [key for key in found if key in before]
    if not settings:  # relations with one label each, of which there is no threshold
        raise ValueError(f"'{proc.name}' shows fewer than {least} relations: too few to calibrate their scores.")
    if output is not None:
        save(nlp, output)
    else:
        _change(nlp, proc, Path(pipeline), rewrite=bool(on_file))
    setting, *others = settings
    more = {key: found.pop(key) for key in others}
    notes = unknown_label_notes(proc, [example.reference for example in golds])
    if more.get("temperature", 1.0) >= HIGHEST_TEMPERATURE:
        notes.append(
            f"Higher scores of '{proc.name}' are no more often right in these data (temperature = "
            f"{HIGHEST_TEMPERATURE:g}, the highest): calibrated, all of them are nearly the same. Give more dev data, "
            "or leave the scores as they are: --no-calibrate."
        )
    return Tuned(proc.name, setting, found.pop(setting), before[setting], found, more, notes)


def _check_known(proc: LukeComponent, golds: Sequence[Example], least: int) -> None:
    """ValueError where the component knows too few of the gold's labels: all that it finds would count as wrong, and
    the best threshold would show nothing."""
    if not isinstance(proc, FindsSpans | ClassifiesUnits):
        return
    total, strange = count_labels(proc, [example.reference for example in golds])
    known = total - strange.total()
    if strange and known < max(least, 1):
        raise ValueError(
            f"'{proc.name}' knows the labels of {known} of the {total:,} gold ones, expected at "
            f"least {max(least, 1)}; it does not know {listed_labels(strange)}. Its labels are "
            f"{shorten(sorted(proc.labels), noun='labels')}: give the data these."
        )


def _tune(
    nlp: Language,
    proc: LukeComponent,
    examples: Sequence[Example],
    *,
    gold_mentions: bool,
    least: int,
    precision: float | None,
    calibrate: bool,
) -> dict[str, float]:
    options: dict[str, Any] = {"gold_mentions": True} if gold_mentions else {}
    if isinstance(proc, LukeLinker):
        if not gold_mentions:
            return tune_links(proc, examples, nlp=nlp, least=least, precision=precision, calibrate=calibrate)
    elif isinstance(proc, Calibrated):
        options |= {"calibrate": calibrate} | ({} if precision is None else {"precision": precision})
    tunable: Any = proc  # which has `tune`, see `_find_tunable`
    found: dict[str, float] = tunable.tune(examples, nlp=nlp, least=least, **options)
    return found


def prepare_examples(
    nlp: Language, proc: LukeComponent, examples: Sequence[Example], *, gold_mentions: bool
) -> list[Example]:
    """Run what comes before the component; with gold mentions only what is no LUKE task, such as a sentencizer."""
    names = [name for name, _ in nlp.pipeline]
    before = names[: names.index(proc.name)]
    if gold_mentions:
        before = [name for name in before if not isinstance(nlp.get_pipe(name), LukeComponent)]
    with nlp.select_pipes(enable=before):
        docs = list(nlp.pipe(example.predicted for example in examples))
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]


def _check_output(pipeline: str | Path, output: str | Path | None) -> None:
    if output is None and not (Path(pipeline) / "meta.json").is_file():
        raise ValueError(
            f"{pipeline} is no folder with a pipeline that could be changed; choose a new one with --output."
        )
    if output is not None:
        check_replaceable(output)


def _find_tunable(nlp: Language, name: str | None) -> LukeComponent:
    if name is not None:
        proc = find_component(nlp, LukeComponent, name)
        if not hasattr(proc, "tune"):
            raise ValueError(
                f"'{name}' has no threshold to tune; luke_linker, luke_ner, luke_typer, luke_relation and luke_qa have."
            )
        return proc
    found = [proc for proc in luke_components(nlp) if hasattr(proc, "tune") and not _has_one_label(proc)]
    if len(found) != 1:
        raise ValueError(
            f"The components with a threshold are {[proc.name for proc in found]}. Expected one (luke_ner, luke_typer, "
            "luke_qa, or luke_relation with multi_label), or --component to name it."
        )
    return found[0]


def _has_one_label(proc: LukeComponent) -> bool:
    return isinstance(proc, ThresholdClassifier) and not proc.has_threshold


def _change(nlp: Language, proc: LukeComponent, folder: Path, *, rewrite: bool) -> None:
    """The threshold is in config.cfg. rewrite: the component's file had another value, which `settle` has replaced."""
    with write_atomically(folder / "config.cfg") as temporary:
        nlp.config.to_disk(temporary)
    if rewrite:
        proc.to_disk(folder / proc.name)
