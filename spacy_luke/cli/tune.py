"""`spacy luke tune`: the threshold of a component, or its bias, that is best on dev data, set in the saved pipeline."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import spacy
import typer
from spacy.language import Language
from spacy.training import Example
from wasabi import msg

from ..atomic import write_atomically, write_folder_atomically
from ..components.base import LukeComponent, find_component
from ..components.relation import LukeRelation
from .errors import use_gpu
from .gold import luke_components, read_gold


def tune_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(
        ..., exists=True, help="Gold documents that it was not trained on: .spacy, or a folder"
    ),
    component: Optional[str] = typer.Option(None, help="Name of the component, where several have a threshold"),
    gold_sentences: bool = typer.Option(
        False, "--gold-sentences", help="Give the file's words and sentence boundaries"
    ),
    output: Optional[Path] = typer.Option(
        None, "--output", "-o", help="Folder of a new pipeline; default: change this one"
    ),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Find the best threshold on dev data, of entities (none_bias), types, links (below it NIL), relations (with multi_label)
    or "no answer", and save it.

    Mentions and pairs are the gold ones; only the threshold changes.
    """
    use_gpu(gpu_id)
    _check_output(pipeline, output)
    nlp = spacy.load(pipeline)
    proc = _find_tunable(nlp, component)
    before = dict(proc.cfg)
    found = proc.tune(_prepare(nlp, proc, read_gold(nlp, data, sentences=gold_sentences)))
    changed = {key: value for key, value in found.items() if key in before}
    _save(nlp, proc, changed, Path(pipeline), output)
    for key, value in changed.items():
        msg.good(f"'{proc.name}': {key} = {value:g} (before: {_shown(before[key])}), saved in {output or pipeline}")
    for key, value in found.items():
        if key not in changed:
            msg.text(f"{key} on {data} with gold mentions: {100 * value:.2f}")


def _shown(value: Optional[float]) -> str:
    return "null" if value is None else f"{value:g}"


def _check_output(pipeline: str, output: Optional[Path]) -> None:
    if output is None and not (Path(pipeline) / "meta.json").is_file():
        raise ValueError(
            f"{pipeline} is no folder with a pipeline that could be changed; choose a new one with --output."
        )
    if output is not None and output.exists() and not (output / "meta.json").is_file():
        if output.is_file() or any(output.iterdir()):
            raise ValueError(f"{output} would be replaced as a whole, but it holds no pipeline. Choose a new folder.")


def _find_tunable(nlp: Language, name: Optional[str]) -> Any:
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


def _prepare(nlp: Language, proc: LukeComponent, examples: List[Example]) -> List[Example]:
    """Run what comes before the component and is no LUKE task, such as sentencizer and entity_annotator."""
    names = [name for name, _ in nlp.pipeline]
    before = names[: names.index(proc.name)]
    wanted = [name for name in before if not isinstance(nlp.get_pipe(name), LukeComponent)]
    with nlp.select_pipes(enable=wanted):
        docs = list(nlp.pipe(example.predicted for example in examples))
    return [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]


def _save(nlp: Language, proc: LukeComponent, changed: Dict[str, float], folder: Path, output: Optional[Path]) -> None:
    """The threshold is in the component's file, and in config.cfg, where people look."""
    nlp.get_pipe_config(proc.name).update(changed)
    if output is not None:
        with write_folder_atomically(output) as new:
            nlp.to_disk(new)
        return
    proc.to_disk(folder / proc.name)
    with write_atomically(folder / "config.cfg") as temporary:
        nlp.config.to_disk(temporary)
