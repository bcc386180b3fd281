"""`spacy luke convert`: a fine-tuned checkpoint becomes a ready pipeline."""

from pathlib import Path
from typing import Any, Dict

import spacy
import typer
from spacy.language import Language
from wasabi import msg

from ..checkpoint.checkpoint import Checkpoint, read_checkpoint
from ..checkpoint.files import write_folder_atomically
from ..checkpoint.sources import find_source
from ..components.ner import DEFAULT_MODEL

# What each kind of fine-tuned checkpoint becomes: the component, and the settings of the paper.
PAPER = {
    "span_classification": (
        "luke_ner",
        {
            "model": {**DEFAULT_MODEL, "attention": "full", "spans_per_word": None},
            "context": "document",
            "max_span_pieces": 16,
            "max_span_words": None,
        },
    )
}


def build_pipeline(checkpoint: Checkpoint, *, language: str = "en", config: Dict[str, Any] = {}) -> Language:  # noqa: B006
    """A pipeline that predicts what the checkpoint's own code predicts: sentence boundaries, then the task.

    config: settings of the component that differ from the paper's. Raises ValueError for a checkpoint without a head
    that this package knows.
    """
    if checkpoint.task not in PAPER:
        raise ValueError(
            f"Expected a checkpoint fine-tuned for one of {sorted(PAPER)}, but this one is for {checkpoint.task!r}. "
            "To train from it, name it in [initialize.components.NAME.weights] of a training config."
        )
    name, settings = PAPER[checkpoint.task]
    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    overlap = min(128, checkpoint.config.max_window // 2)  # some models read short texts only
    component: Any = nlp.add_pipe(name, config={**settings, "overlap": overlap, **config})
    component.load_encoder(checkpoint)
    component.load_head(checkpoint)
    return nlp


def convert_cli(
    source: str = typer.Argument(..., help="Folder, tar.gz or hub name of a fine-tuned checkpoint"),
    output: Path = typer.Argument(..., help="Folder of the new pipeline; it is replaced as a whole"),
    language: str = typer.Option("en", "--lang", "-l", help="Language of the pipeline's tokenizer, such as en, de, xx"),
    entities: str = typer.Option("all", help="Rows of the entity table to keep: all, or special (smaller)"),
    context: str = typer.Option("document", help="document, as in the paper, or sentence"),
) -> None:
    """Turn a fine-tuned LUKE checkpoint into a spaCy pipeline that predicts the same."""
    try:
        if output.exists() and not (output / "meta.json").is_file() and (output.is_file() or any(output.iterdir())):
            raise ValueError(
                f"{output} would be replaced as a whole, but it holds no pipeline (no meta.json). Choose a new or an "
                "empty folder."
            )
        with msg.loading(f"Reading {source} ..."):
            checkpoint = read_checkpoint(find_source(source), entities=entities)
            nlp = build_pipeline(checkpoint, language=language, config={"context": context})
            with write_folder_atomically(output) as folder:
                nlp.to_disk(folder)
    except (ValueError, ImportError, OSError) as error:
        msg.fail("Nothing was written.", str(error), exits=1)
    for line in checkpoint.report:
        msg.info(line)
    msg.good(
        f"Saved {' > '.join(nlp.pipe_names)} with labels {list(nlp.get_pipe(nlp.pipe_names[-1]).labels)} to {output}"
    )
    msg.text(f"Try it: python -c \"import spacy; print(spacy.load('{output}')('Ada Lovelace lived in London.').ents)\"")
