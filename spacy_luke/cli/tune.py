"""`spacy luke tune`: the threshold of a component, or its bias, that is best on dev data, set in the saved pipeline."""

from pathlib import Path
from typing import Any

import spacy
import typer
from spacy.language import Language
from spacy.training import Example
from wasabi import msg

from ..components.base import LukeComponent, find_component
from ..components.relation import LukeRelation
from ..components.settings import changed_settings
from ..saving import check_replaceable, save
from ..stores.atomic import write_atomically
from .errors import use_gpu
from .gold import luke_components, read_gold

LEAST = 50  # positives that a threshold is chosen from


def tune_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(
        ..., exists=True, help="Gold documents that it was not trained on: .spacy, or a folder"
    ),
    component: str | None = typer.Option(None, help="Name of the component, where several have a threshold"),
    gold_sentences: bool = typer.Option(
        False, "--gold-sentences", help="Give the file's words and sentence boundaries"
    ),
    gold_mentions: bool = typer.Option(
        False,
        "--gold-mentions",
        help="Give types, relations and links their gold mentions, or pairs, not the found ones",
    ),
    force: bool = typer.Option(False, "--force", help=f"Also where there are fewer than {LEAST} positives"),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Folder of a new pipeline; default: change this one"
    ),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Find the best threshold on dev data, of entities (none_bias), types, links (below it NIL), relations (with
    multi_label) or "no answer", and save it in the pipeline's config.

    Mentions are those that the pipeline finds, as `evaluate` measures; what it misses is missed at any threshold.
    """
    use_gpu(gpu_id)
    _check_output(pipeline, output)
    nlp = spacy.load(pipeline)
    proc = _find_tunable(nlp, component)
    if gold_mentions and not hasattr(proc, "getter"):
        raise ValueError(f"'{proc.name}' takes no mentions: leave --gold-mentions out.")
    before, on_file = dict(proc.cfg), changed_settings(proc.configured, proc.cfg)
    examples = _prepare(nlp, proc, read_gold(nlp, data, sentences=gold_sentences), gold_mentions=gold_mentions)
    options = {"gold_mentions": True} if gold_mentions else {}
    found = proc.tune(examples, nlp=nlp, least=0 if force else LEAST, **options)
    if output is not None:
        save(nlp, output)
    else:
        _change(nlp, proc, Path(pipeline), rewrite=bool(on_file))
    for key, value in found.items():
        if key in before:
            msg.good(f"'{proc.name}': {key} = {value:g} (before: {_shown(before[key])}), saved in {output or pipeline}")
        else:
            msg.text(f"{key} on {data}, {'with gold mentions' if gold_mentions else 'end to end'}: {100 * value:.2f}")


def _shown(value: float | None) -> str:
    return "null" if value is None else f"{value:g}"


def _check_output(pipeline: str, output: Path | None) -> None:
    if output is None and not (Path(pipeline) / "meta.json").is_file():
        raise ValueError(
            f"{pipeline} is no folder with a pipeline that could be changed; choose a new one with --output."
        )
    if output is not None:
        check_replaceable(output)


def _find_tunable(nlp: Language, name: str | None) -> Any:
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
    return isinstance(proc, LukeRelation) and not proc.cfg["multi_label"]


def _prepare(nlp: Language, proc: LukeComponent, examples: list[Example], *, gold_mentions: bool) -> list[Example]:
    """Run what comes before the component; with gold mentions only what is no LUKE task, such as a sentencizer."""
    names = [name for name, _ in nlp.pipeline]
    before = names[: names.index(proc.name)]
    if gold_mentions:
        before = [name for name in before if not isinstance(nlp.get_pipe(name), LukeComponent)]
    with nlp.select_pipes(enable=before):
        docs = list(nlp.pipe(example.predicted for example in examples))
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]


def _change(nlp: Language, proc: LukeComponent, folder: Path, *, rewrite: bool) -> None:
    """The threshold is in config.cfg. rewrite: the component's file had another value, which `settle` has replaced."""
    with write_atomically(folder / "config.cfg") as temporary:
        nlp.config.to_disk(temporary)
    if rewrite:
        proc.to_disk(folder / proc.name)
