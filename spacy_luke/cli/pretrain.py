"""`spacy luke pretrain`: masked words and entities in stages, in one process or many, with exact resume after a
kill."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.loading import import_code
from ..pretraining.luke.job import pretrain_luke
from ..training.configs import read_config
from .configs import read_overrides
from .given import CODE


def pretrain_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(
        ..., exists=True, dir_okay=False, help="Pretraining config, such as configs/pretrain_small.cfg"
    ),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model, and a folder a stage"),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU; with torchrun 0: each its own"),
    resume: bool = typer.Option(False, "--resume", help="Go on from where OUTPUT was left, if it was begun"),
) -> None:
    """Pretrain LUKE on shards (`spacy luke build-shards`). OUTPUT/model is a checkpoint in Hugging Face's layout.

    Several processes: torchrun --nproc-per-node 8 -m spacy luke pretrain ... Overrides as in `spacy train`.
    """
    import_code(code)
    config = read_config(config_path, read_overrides(ctx))
    trained = pretrain_luke(config, output, resume=resume, gpu_id=gpu_id)
    if trained is not None:
        for line in trained.report:
            msg.text(line)
        msg.good(f"Saved the checkpoint to {output / 'model'}")
