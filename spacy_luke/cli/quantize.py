"""`spacy luke quantize`: a trained pipeline with encoders in int8, for predictions on CPUs, unless it loses by it."""

from pathlib import Path

import typer
from wasabi import msg

from ..model.int8 import LARGEST
from ..pipelines.gold import Given
from ..pipelines.loading import import_code
from ..pipelines.quantization import MOST_LOSS, quantize_pipeline
from .given import CODE, GOLD_ENTITIES, GOLD_LINKS, GOLD_MENTIONS, GOLD_PAIRS, GOLD_SENTENCES
from .terminal import show_table


def quantize_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a trained pipeline"),
    output: Path = typer.Argument(..., help="Folder of the new pipeline; an older one there is replaced"),
    data: Path = typer.Option(
        ..., "--data", exists=True, help="Gold documents that both are scored on: .spacy, or a folder"
    ),
    max_loss: float = typer.Option(MOST_LOSS, min=0, help="Points that the score of a component may fall by"),
    piece_steps: int = typer.Option(
        LARGEST,
        min=1,
        max=LARGEST,
        help="Steps from 0 to the largest number of a row of the table of pieces; with 20 or 31 a wheel is smaller",
    ),
    gold_sentences: bool = GOLD_SENTENCES,
    gold_entities: bool = GOLD_ENTITIES,
    gold_mentions: bool = GOLD_MENTIONS,
    gold_pairs: bool = GOLD_PAIRS,
    gold_links: bool = GOLD_LINKS,
    code: Path | None = CODE,
) -> None:
    """Store the encoders of a pipeline as int8: nearly four times smaller, and faster on CPUs with VNNI instructions.

    Weights have one scale for each output, activations one for each piece. The result predicts; it cannot be trained
    or exported. It is scored on the data beside the old one, and not written where a component loses too much.
    """
    import_code(code)
    given = Given(gold_sentences, gold_entities, gold_mentions, gold_pairs, gold_links)
    made = quantize_pipeline(pipeline, data, output, given=given, max_loss=max_loss, piece_steps=piece_steps)
    rows = [
        (name, f"{before:.2f}", f"{made.after.scores[name]:.2f}", f"{made.after.scores[name] - before:+.2f}")
        for name, before in made.before.scores.items()
    ]
    show_table(("score", "float", "int8", "change"), rows)
    if made.empty:
        msg.warn(f"The score of {made.empty} is 0 before: these data cannot show what int8 costs there.")
    before, after = made.before.speed, made.after.speed
    msg.text(f"Words a second, in turns: {before:,.0f}, in int8 {after:,.0f} ({after / before:.2f} times)")
    if made.is_busy:
        msg.warn("Other programs had much of the processor meanwhile: on a quiet machine the speeds are others.")
    if made.lost:
        raise ValueError(
            f"In int8 the score of {made.lost} falls by more than {max_loss:g} points, which --max-loss allows (the "
            'table above). Keep the pipeline as it is, set predict_precision = "auto" (bfloat16 where that is faster), '
            "or give a larger --max-loss."
        )
    msg.good(f"Saved to {output}: {made.bytes_after / 1e6:,.1f} MB in the place of {made.bytes_before / 1e6:,.1f}")
