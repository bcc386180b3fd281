"""`spacy luke build-corpus`: paragraphs with linked entities, for pretraining, from Wikipedia dumps or Docs."""

from pathlib import Path
from time import perf_counter

import typer
from wasabi import msg

from ..corpus.from_docs import build_from_docs
from ..corpus.from_dumps import build_from_dumps
from ..corpus.linked_corpus import LinkedCorpus
from ..stores.opening import is_dump
from ..stores.parallel import Engine

ENGINE_HELP = "processes of this machine, or ray: a Ray cluster, whose machines see the same files (pip install ray)"
WORKERS_HELP = "Processes; default: one a core. Ray takes the cores of its cluster"
ADDRESS_HELP = "ray: address of the cluster; default: RAY_ADDRESS, or a new one on this machine"


def build_corpus_cli(
    sources: list[Path] = typer.Argument(
        ..., help="All parts of a Wikipedia dump (XML; plain, .bz2 or .gz), or .spacy files and folders of Docs"
    ),
    output: Path = typer.Argument(..., help="Folder of the new corpus; an older one there is replaced"),
    language: str | None = typer.Option(None, help="Code of the language; default: as the dump says, en for Docs"),
    spans_key: str | None = typer.Option(None, help="Docs: linked mentions are in doc.spans[KEY], not in doc.ents"),
    engine: str = typer.Option("processes", help=f"Where parts are made: {ENGINE_HELP}"),
    workers: int | None = typer.Option(None, min=1, help=WORKERS_HELP),
    address: str | None = typer.Option(None, help=ADDRESS_HELP),
) -> None:
    """Make a linked corpus: paragraphs, and where in them links lead, over redirects. A run that was stopped goes
    on."""
    start = perf_counter()
    where = Engine(engine, workers, address)
    if all(path.is_dir() or path.suffix == ".spacy" for path in sources):
        corpus = build_from_docs(
            sources, output, language=language or "en", spans_key=spans_key, engine=where, progress=True
        )
    else:
        corpus = _from_dumps(sources, output, language, spans_key, where)
    total = sum(path.stat().st_size for path in output.iterdir())
    msg.good(f"{output}: {total:,} bytes, language {corpus.language or 'unknown'}, in {perf_counter() - start:.0f} s")
    show_counts(corpus.manifest["counts"])


def show_counts(counts: dict[str, int]) -> None:
    """A table of what there is, and a line for each kind of what was left out."""
    there = [(what, f"{count:,}") for what, count in counts.items() if count and not what.endswith("left out")]
    msg.table(there, aligns=("l", "r"))
    for what, count in counts.items():
        if count and what.endswith("left out"):
            msg.text(f"Left out: {count:,} {what.removesuffix(', left out')}")


def _from_dumps(
    sources: list[Path], output: Path, language: str | None, spans_key: str | None, engine: Engine
) -> LinkedCorpus:
    if spans_key is not None:
        raise ValueError("spans_key is for Docs; a dump has no use for it.")
    for path in sources:
        if not is_dump(path):
            raise ValueError(f"Expected a Wikipedia dump, or all sources .spacy files, but {path} is neither.")
    return build_from_dumps(sources, output, language=language, engine=engine, progress=True)
