"""`spacy luke pretrain-ernie`: masked words, next sentence and denoised entities, with exact resume after a kill."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.loading import import_code
from ..pretraining.ernie.instances import report_counts
from ..pretraining.ernie.job import pretrain_ernie
from ..training.configs import read_config
from .configs import read_overrides
from .given import CODE


def pretrain_ernie_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(
        ..., exists=True, dir_okay=False, help="Pretraining config, such as configs/ernie_pretrain.cfg"
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model, metrics.jsonl and resume"),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU; with torchrun 0: each its own"),
    resume: bool = typer.Option(False, "--resume", help="Go on from OUTPUT/resume, if it is there"),
) -> None:
    """Pretrain ERNIE on text with linked entities. OUTPUT/model is an ERNIE checkpoint.

    Several processes: torchrun --nproc-per-node 8 -m spacy luke pretrain-ernie ... Overrides as in `spacy train`.
    """
    import_code(code)
    config = read_config(config_path, read_overrides(ctx))
    checkpoint, source = pretrain_ernie(config, output, resume=resume, gpu_id=gpu_id, tell=msg.text)
    if checkpoint is not None:
        for line in report_counts(source.counts):
            msg.text(line)
        msg.good(f"Saved the checkpoint to {output / 'model'}, after {checkpoint.report[-1]}")
