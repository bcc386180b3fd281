"""`spacy luke embed-entities`: vectors of a knowledge base's entities from their titles and descriptions."""

from pathlib import Path

import typer
from wasabi import msg

from ..checkpoint.checkpoint import read_checkpoint
from ..checkpoint.sources import find_source
from ..checkpoint.text_encoder import TextEncoder
from ..components.linker.embed_entities import embed_entities
from ..kb.knowledge_base import EntityKB
from ..stores.parallel import Engine
from .build_corpus import ADDRESS_HELP, ENGINE_HELP


def embed_entities_cli(
    kb: Path = typer.Argument(..., help="Folder of a knowledge base (build-kb); its vectors go into it"),
    weights: str = typer.Option(..., help="Encoder: a folder, an archive, package:NAME/FOLDER, or a hub name"),
    normalise: bool = typer.Option(True, help="Vectors of length 1"),
    again: bool = typer.Option(False, "--again", help="Make the vectors that are there anew, too"),
    dtype: str = typer.Option("float32", help="Numbers of the store: float32, float16 or int8"),
    batch_size: int = typer.Option(4096, help="Pieces encoded at once"),
    engine: str = typer.Option("processes", help=f"Where vectors are made: {ENGINE_HELP}"),
    workers: int = typer.Option(1, min=1, help="Processes, each with an encoder and one core if there are several"),
    address: str | None = typer.Option(None, help=ADDRESS_HELP),
    gpu_id: int | None = typer.Option(
        None, "--gpu-id", "-g", help="GPU of all workers, or -1 for the CPU; by default a GPU where there is one"
    ),
) -> None:
    """Make a vector of each entity from its title and description: the mean of an encoder's last states.

    After entities were added (build-kb --add-to), only their vectors are made; a run that was stopped goes on. A linker
    that was trained with vectors of the same encoder needs no training for new ones.
    """
    checkpoint = read_checkpoint(find_source(weights), entities="special")
    encoder = TextEncoder(checkpoint, normalise=normalise, gpu_id=gpu_id)
    found, made = embed_entities(
        EntityKB.open(kb),
        encoder,
        again=again,
        dtype=dtype,
        batch_size=batch_size,
        engine=Engine(engine, workers, address),
        progress=True,
    )
    msg.good(f"Made {made:,} of {len(found):,} vectors of {encoder.size} numbers in {kb}")
