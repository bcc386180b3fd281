"""`spacy luke convert`: a fine-tuned checkpoint becomes a ready pipeline."""

from pathlib import Path

import typer
from wasabi import msg

from ..checkpoint.contents import Checkpoint
from ..pipelines.conversion import convert


def convert_cli(
    source: str = typer.Argument(..., help="Folder, tar.gz, .bin or hub name of a fine-tuned checkpoint"),
    output: Path = typer.Argument(..., help="Folder of the new pipeline; it is replaced as a whole"),
    language: str = typer.Option("en", "--lang", "-l", help="Language of the pipeline's tokenizer, such as en, de, xx"),
    entities: str = typer.Option("all", help="Rows of the entity table to keep: all, or special (smaller)"),
    context: str | None = typer.Option(None, help="document, as in the paper (the default), or sentence"),
    labels: str | None = typer.Option(None, help="Labels in order, a,b,c or a file, where the checkpoint has none"),
    base: str | None = typer.Option(
        None, help="What fine-tuning began with, for weights alone and for AllenNLP models"
    ),
    tokenizer: str | None = typer.Option(
        None, help="Folder or hub name of the tokenizer and entity vocabulary, where there is none"
    ),
    vectors: Path | None = typer.Option(None, help="Folder of entity vectors (build-vectors), of an ERNIE"),
    layers: int | None = typer.Option(None, help="Layers to keep, the first ones, to train the pipeline further"),
    link: bool = typer.Option(
        False, "--link", help="A checkpoint that was pretrained on masked entities and not fine-tuned becomes a linker"
    ),
) -> None:
    """Turn a fine-tuned LUKE or ERNIE checkpoint into a spaCy pipeline that predicts the same."""
    msg.text(f"Reading {source} ...")  # msg.loading would start a process, which outlives a killed one
    nlp, checkpoint, use = convert(
        source,
        output,
        language=language,
        entities=entities,
        context=context,
        labels=labels,
        base=base,
        tokenizer=tokenizer,
        vectors=vectors,
        layers=layers,
        link=link,
    )
    for line in checkpoint.report:
        msg.info(line)
    msg.good(f"Saved {' > '.join(nlp.pipe_names)}{_with_labels(checkpoint)} to {output}")
    msg.text(f"{use} python -c \"import spacy; nlp = spacy.load('{output}')\"")


def _with_labels(checkpoint: Checkpoint, *, most: int = 50) -> str:
    labels = checkpoint.labels or []
    if checkpoint.task in ("span_classification", "entity_pair_classification"):
        labels = labels[1:]
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return f" with labels {labels[:most]}{more}" if labels else ""
