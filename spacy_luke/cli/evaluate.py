"""`spacy luke evaluate`: scores of a pipeline, component by component and label by label, and its speed."""

from pathlib import Path

import spacy
import srsly
import typer
from wasabi import msg

from ..pipelines.evaluation import evaluate
from ..pipelines.gold import Given
from ..pipelines.score_tables import reliability_rows
from ..stores.atomic import write_atomically
from .errors import use_gpu
from .given import GOLD_ENTITIES, GOLD_LINKS, GOLD_MENTIONS, GOLD_PAIRS, GOLD_SENTENCES


def evaluate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(..., exists=True, help="Gold documents: a .spacy file or a folder of them"),
    gold_sentences: bool = GOLD_SENTENCES,
    gold_entities: bool = GOLD_ENTITIES,
    gold_mentions: bool = GOLD_MENTIONS,
    gold_pairs: bool = GOLD_PAIRS,
    gold_links: bool = GOLD_LINKS,
    output: Path | None = typer.Option(None, "--output", "-o", help="JSON file for the scores"),
    component: str | None = typer.Option(None, help="Score this component only"),
    rows: int = typer.Option(50, min=0, help="Most labels of a table here; the JSON file has all"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Score every LUKE component on gold documents, as its task's official script counts. Questions are always given;
    everything else is found by the pipeline itself, unless an option gives it."""
    use_gpu(gpu_id)
    given = Given(gold_sentences, gold_entities, gold_mentions, gold_pairs, gold_links)
    found = evaluate(spacy.load(pipeline), data, given=given, component=component, progress=True)
    msg.divider(f"{data}: {found.documents:,} documents, {found.words:,} words")
    for one in found.components:
        if not one.table.totals:
            msg.warn(f"'{one.name}' is not scored: {data} has {one.missing}.")
            continue
        msg.text(f"\n{one.name}")
        header = one.table.header
        msg.table(one.table.rows(rows), header=header, aligns=("l", *"r" * (len(header) - 1)), divider=True)
        if one.reliability is not None and one.reliability.n:
            header = ("score", "mean", "right", "shown")
            msg.table(reliability_rows(one.reliability), header=header, aligns=("l", "r", "r", "r"), divider=True)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            srsly.write_json(temporary, found.scores)
        msg.good(f"Saved the scores to {output}")
