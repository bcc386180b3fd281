"""`spacy luke tune`: the threshold of a component, or its bias, that is best on dev data, and the calibration of its
scores, set in the saved pipeline."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.loading import import_code, use_gpu
from ..pipelines.tuning import LEAST, tune_pipeline
from .given import CODE, GOLD_SENTENCES


def tune_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(
        ..., exists=True, help="Gold documents that it was not trained on: .spacy, or a folder"
    ),
    component: str | None = typer.Option(None, help="Name of the component, where several have a threshold"),
    gold_sentences: bool = GOLD_SENTENCES,
    gold_mentions: bool = typer.Option(
        False,
        "--gold-mentions",
        "--gold-links",
        "--gold-pairs",
        help="Give types, relations and links their gold mentions, or pairs, not the found ones; one option, by any of "
        "the names that `evaluate` has for it",
    ),
    precision: float | None = typer.Option(
        None,
        min=0.0,
        max=1.0,
        help="Types, relations, links: the lowest threshold with this precision, not the best F1",
    ),
    calibrate: bool = typer.Option(True, help="Fit temperature and shift"),
    force: bool = typer.Option(False, "--force", help=f"Also where there are fewer than {LEAST} positives"),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="Folder of a new pipeline, an older one there is replaced; default: change this one",
    ),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Find the best threshold on dev data, of entities (none_bias, and proposal_threshold for speed), types, links
    (below it NIL; with --gold-mentions nil_bias, where NIL is a candidate), relations (with multi_label) or "no
    answer"; calibrate scores, so that of those of 0.8 four in five are right; and save both in the pipeline's config.

    Mentions are those that the pipeline finds, as `evaluate` measures; what it misses is missed at any threshold.
    """
    import_code(code)
    use_gpu(gpu_id)
    tuned = tune_pipeline(
        pipeline,
        data,
        component=component,
        gold_sentences=gold_sentences,
        gold_mentions=gold_mentions,
        least=0 if force else LEAST,
        precision=precision,
        calibrate=calibrate,
        output=output,
    )
    before = "null" if tuned.before is None else f"{tuned.before:g}"
    changed = f"{tuned.setting} = {tuned.value:g} (before: {before})"
    changed += "".join(f", {name} = {value:g}" for name, value in tuned.more.items())
    msg.good(f"'{tuned.component}': {changed}, saved in {output or pipeline}")
    for note in tuned.notes:
        msg.warn(note)
    for name, score in tuned.scores.items():
        msg.text(f"{name} on {data}, {'with gold mentions' if gold_mentions else 'end to end'}: {100 * score:.2f}")
