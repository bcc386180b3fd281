"""`spacy luke build-vectors`: vectors of entities, for the ERNIE components, from the files of other programs."""

from pathlib import Path
from time import perf_counter

import numpy as np
import typer
from wasabi import msg

from ..kge.state_dicts import STATE_DICTS, read_entity_table
from ..vectors.build import build_vectors
from ..vectors.sources import find_names_file
from .errors import failing_as


def build_vectors_cli(
    source: Path = typer.Argument(
        ..., help="Folder or file: kg_embed, OpenKE, PyKEEN, word2vec text, .npy, .safetensors, or a state of PyTorch"
    ),
    output: Path = typer.Argument(..., help="Folder of the new store; an older store there is replaced"),
    format: str = typer.Option("auto", help="auto, ernie, openke, pykeen, word2vec or numpy"),
    dtype: str = typer.Option("float32", help="How numbers are stored: float32, float16 or int8"),
    names: Path | None = typer.Option(None, help="File with the names of the rows, where it is not beside them"),
    map: Path | None = typer.Option(None, help="File of further names, `title TAB id` (ERNIE's entity_map.txt)"),
    size: int | None = typer.Option(None, min=1, help="Numbers in a vector, where most of the first rows do not tell"),
    on_damage: str = typer.Option(
        "error", help="Damaged entities: error, or drop, which leaves them out and lists them"
    ),
    verify: bool = typer.Option(False, "--verify", help="Read the new store again and compare the digests"),
) -> None:
    """Build a store of entity vectors that opens at once and is shared between processes."""
    start = perf_counter()
    matrix: Path | np.ndarray = source
    if source.suffix.lower() in STATE_DICTS:
        matrix, names = read_entity_table(source), names or find_names_file(source.parent)
    built = build_vectors(
        matrix, output, format=format, dtype=dtype, names=names, titles=map, size=size, on_damage=on_damage,
        progress=True,
    )  # fmt: skip
    store = built.store
    if verify:
        with failing_as("The new store is not as it was written."):
            store.verify(progress=True)
    total = sum(path.stat().st_size for path in output.iterdir())
    msg.good(f"{output}: {total:,} bytes in {perf_counter() - start:.0f} s")
    further = store.name_count - len(store)
    rows = [("entities", f"{len(store):,}"), ("numbers each", f"{store.size:,}"), ("further names", f"{further:,}")]
    msg.table([*rows, ("left out", f"{built.dropped:,}")], aligns=("l", "r"))
    for line in built.first:
        msg.text(f"Left out: {line}")
    if built.dropped:
        msg.text(f"All that was left out is in {output / 'dropped.tsv'}.")
