"""The card of a pipeline: what it finds, how well, of which data, under which licence. `spacy package` takes it along.

It is made of a description that its author writes (see `AboutPipeline`), of what the pipeline itself knows, and of
figures in JSON files that `spacy luke evaluate` and `benchmarks/ready.py` write. Nothing else is said of how good
it is.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.language import Language
from spacy.util import is_compatible_version

from ..components.base import LukeComponent
from ..components.linker.component import LukeLinker
from ..components.relation import LukeRelation
from ..stores.atomic import write_atomically, write_folder_atomically
from ..stores.plain_text import read_object
from ..text.spelling import shorten
from .figures import figure_tables, markdown_table
from .saving import check_replaceable

CARD, SOURCES, _META = "README.md", "LICENSES_SOURCES", "meta.json"
LEFT_OUT = "left_out"  # in meta.json: components that a pipeline might have, and why it has not


@dataclass(frozen=True)
class Source:
    """Data that a pipeline was trained on, tuned on, or contains."""

    name: str
    license: str
    url: str = ""
    used: str = ""  # which part, and for what


@dataclass(frozen=True)
class AboutPipeline:
    """What the author says of a pipeline. name: without the language; license: of the pipeline; text: an example;
    components: what those that it may have find, each told where the pipeline has it; spacy_version: versions of spaCy
    that it was tried with, "" for that which saved it and later ones; limits, making, cite: paragraphs of Markdown."""

    name: str
    version: str
    description: str
    license: str
    sources: Sequence[Source]
    author: str = ""
    url: str = ""
    why_license: str = ""
    text: str = ""
    components: Mapping[str, str] = field(default_factory=dict)
    spacy_version: str = ""
    limits: Sequence[str] = ()
    making: Sequence[str] = ()
    cite: Sequence[str] = ()


def read_about(path: Path) -> AboutPipeline:
    """An object with the fields of `AboutPipeline`. ValueError for anything else."""
    data = read_object(path)
    needed = [x.name for x in fields(AboutPipeline) if x.default is MISSING and x.default_factory is MISSING]
    if missing := [name for name in needed if name not in data]:
        raise ValueError(f"{path}: expected {', '.join(needed)}, but it has no {', '.join(missing)}.")
    try:
        sources = [Source(**source) for source in data.pop("sources")]
        about = AboutPipeline(**data, sources=sources)
    except TypeError as error:
        known = [*AboutPipeline.__dataclass_fields__]
        raise ValueError(
            f"{path}: expected 'name', 'version', 'description', 'license' and 'sources' (objects with 'name' and "
            f"'license'), and perhaps others of {known}, but reading them fails by {error!r}."
        ) from error
    if not f"x_{about.name}".isidentifier():
        raise ValueError(
            f"{path}: the name must be letters, digits and underscores, as it becomes that of a Python package, but it "
            f"is {about.name!r}."
        )
    if not is_compatible_version(about.version, ">=0"):
        raise ValueError(f"{path}: the version must be one of a Python package, as 1.0.2, but it is {about.version!r}.")
    return about


def write_card(folder: Path, about: AboutPipeline, metrics: Sequence[Path], *, output: Path | None = None) -> str:
    """Write README.md and LICENSES_SOURCES into the folder of a saved pipeline, and name, version, licence, author,
    address, description, sources, scores, and the library that a linker needs, into its meta.json. RETURNS: the card.

    metrics: JSON files with figures, in the order in which they are told; without any the scores there are kept.
    output: folder of a copy that is changed instead. Raises ValueError where the folder holds no pipeline, or a file
    none.
    """
    if not (folder / _META).is_file():
        raise ValueError(f"{folder} is no folder with a pipeline (no {_META}). Save one there first.")
    figures = {path.stem: read_object(path) for path in metrics}
    nlp = spacy.load(folder)
    nlp.meta["spacy_version"] = about.spacy_version or nlp.meta["spacy_version"]
    card = make_card(nlp, about, figures, size=_size(folder))
    meta = read_object(folder / _META)
    meta |= {
        "name": about.name,
        "version": about.version,
        "spacy_version": nlp.meta["spacy_version"],
        "description": _description(nlp, about),
        "license": about.license,
        "author": about.author or meta.get("author", ""),
        "url": about.url or meta.get("url", ""),
        "sources": [{"name": x.name, "url": x.url, "license": x.license, "author": ""} for x in about.sources],
        "performance": {name: _numbers(x) for name, x in figures.items()} or meta.get("performance", {}),
    }
    if output is not None:
        check_replaceable(output)
        with write_folder_atomically(output) as temporary:
            shutil.copytree(folder, temporary, dirs_exist_ok=True)
        folder = output
    texts = {CARD: card, SOURCES: _license_text(about), _META: srsly.json_dumps(meta, indent=2) + "\n"}
    for name, text in texts.items():
        with write_atomically(folder / name) as temporary:
            temporary.write_text(text, encoding="utf8")
    return card


def make_card(nlp: Language, about: AboutPipeline, figures: Mapping[str, Mapping[str, Any]], *, size: int) -> str:
    """figures: by the name of their file; size: of the pipeline's folder in bytes."""
    name = f"{nlp.meta['lang']}_{about.name}"
    parts = [
        f"# {name} {about.version}",
        _description(nlp, about),
        *_use(nlp, name, about.text),
        "## What it finds",
        markdown_table(("component", "finds", "least score"), list(_components(nlp))),
        f"{size / 1e6:.1f} MB on disk. It needs spaCy {nlp.meta['spacy_version']} and `spacy-luke`, and no network.",
    ]
    for title, tables in figure_tables(figures).items():
        parts += [f"## {title}", *tables]
    rows = [(f"[{x.name}]({x.url})" if x.url else x.name, x.license, x.used) for x in about.sources]
    licenses = [f"The pipeline: **{about.license}**. {about.why_license}".strip()]
    parts += ["## Data and licences", *licenses, markdown_table(("data", "licence", "used for"), rows)]
    left_out: Mapping[str, str] = nlp.meta.get(LEFT_OUT, {})
    limits = [*(f"Without `{name}`: {why}" for name, why in left_out.items()), *about.limits]
    for title, texts in (("Limits", limits), ("How it was made", about.making), ("How to cite", about.cite)):
        if texts:
            parts += [f"## {title}", *texts]
    return "\n\n".join(parts) + "\n"


def leave_out(nlp: Language, name: str, why: str) -> None:
    """Remove a component that is not good enough, if it is there; meta.json, and the card, say why it is not."""
    if name in nlp.component_names:
        nlp.remove_pipe(name)
    nlp.meta[LEFT_OUT] = {**nlp.meta.get(LEFT_OUT, {}), name: why}


def _description(nlp: Language, about: AboutPipeline) -> str:
    told = [text for name, text in about.components.items() if name in nlp.component_names]
    return " ".join([about.description, *told])


def _use(nlp: Language, name: str, text: str) -> Iterator[str]:
    if not text:
        return
    linked = any(isinstance(proc, LukeLinker) for _, proc in nlp.pipeline)
    lines = [
        "```python",
        "import spacy",
        "",
        f'nlp = spacy.load("{name}")',
        f'doc = nlp("{text}")',
        "for entity in doc.ents:",
        f"    print(entity.text, entity.label_, entity._.luke_score{', entity.kb_id_' if linked else ''})",
    ]
    if any(isinstance(proc, LukeRelation) for _, proc in nlp.pipeline):
        lines += [
            "for relation in doc._.luke_relations:",
            "    print(relation.head, relation.label, relation.tail, relation.score)",
        ]
    yield "## Use"
    yield "\n".join([*lines, "```"])


def _components(nlp: Language) -> Iterator[tuple[str, str, str]]:
    for name, component in nlp.pipeline:
        labels = [str(label) for label in getattr(component, "labels", ())]
        threshold = component.cfg.get("threshold") if isinstance(component, LukeComponent) else None
        least = "" if threshold is None or not labels else f"{threshold:.2g}"
        yield f"`{name}`", shorten(labels, 40), least


def _license_text(about: AboutPipeline) -> str:
    lines = [f"{x.name}: {x.license}{f' ({x.url})' if x.url else ''}" for x in about.sources]
    return "\n".join(["This pipeline was made of these data:", "", *lines, ""])


def _numbers(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers alone, as meta.json has them, also those of parts."""
    parts = {key: _numbers(value) for key, value in figure.items() if isinstance(value, Mapping)}
    numbers = {key: value for key, value in figure.items() if isinstance(value, int | float)}
    return numbers | {key: own for key, own in parts.items() if own}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
