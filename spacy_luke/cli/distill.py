"""`spacy luke distill`: a small pipeline learns from a large one, on texts without annotation."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.distillation import distill
from ..pipelines.loading import import_code, use_gpu
from ..pipelines.teaching import Lesson
from ..training.configs import check_config_names, read_config
from .configs import read_overrides
from .given import CODE


def distill_cli(
    ctx: typer.Context,
    teacher: str = typer.Argument(..., help="Folder or name of the trained pipeline that teaches"),
    config_path: Path = typer.Argument(..., exists=True, dir_okay=False, help="Training config of the student"),
    texts: Path = typer.Option(
        ..., "--texts", exists=True, help="Texts: .txt with one a line, .jsonl, .spacy, or a folder of these"
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model-best, model-last, resume and lesson"),
    start: Path | None = typer.Option(
        None, "--start", exists=True, help="Trained pipeline of this config, whose weights the student begins with"
    ),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    resume: bool = typer.Option(False, "--resume", help="Go on from OUTPUT/resume, if it is there"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier run in OUTPUT"),
) -> None:
    """Train a smaller pipeline by the probabilities that a trained one gives to spans, types and relations of texts
    without annotation, and by the training data of the config, unless these are null (--paths.train null).

    Components with the same names in both learn. Overrides as in `spacy train`; fewer layers:
    --initialize.components.luke_encoder.weights.layers 3.
    """
    import_code(code)
    config = read_config(config_path, read_overrides(ctx), interpolate=False)
    check_config_names(config)
    use_gpu(gpu_id)
    msg.info(f"The teacher {teacher} reads {texts}")
    made = distill(
        teacher,
        config,
        texts,
        output,
        start=start,
        use_gpu=gpu_id,
        resume=resume,
        overwrite=overwrite,
        progress=True,
        tell=_tell,
    )
    rows = [
        (name, f"{score:.2f}", f"{made.student.scores[name]:.2f}")
        for name, score in made.teacher.scores.items()
        if name in made.student.scores
    ]
    rows.append(("words a second", f"{made.teacher.speed:,.0f}", f"{made.student.speed:,.0f}"))
    msg.table(rows, header=("dev data", "teacher", "student"), aligns=("l", "r", "r"), divider=True)
    if made.is_busy:
        msg.warn("Other programs had much of the processor meanwhile: on a quiet machine the speeds are others.")
    msg.good(f"Saved the best student to {made.best}")


def _tell(lesson: Lesson) -> None:
    places = ", ".join(f"{n:,} places by {name}" for name, n in lesson.places.items())
    msg.info(f"It has read {lesson.words:,} words of {lesson.texts:,} texts; with probabilities: {places}")
