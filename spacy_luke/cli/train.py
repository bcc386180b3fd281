"""`spacy luke train`: as `spacy train`, with exact resume after a kill."""

from pathlib import Path

import typer
from spacy.training.initialize import init_nlp
from wasabi import msg

from ..pipelines.gold import check_docs
from ..training.loop import train
from ..training.resume import check_output
from .configs import check_names, read_config
from .errors import use_gpu

DOC_READERS = ("spacy.Corpus.v1", "spacy-luke.GoldCorpus.v1")


def train_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(..., exists=True, help="Training config"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model-best, model-last and resume"),
    code: Path | None = typer.Option(None, "--code", "-c", help="Python file with registered functions"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    resume: bool = typer.Option(False, "--resume", help="Go on from OUTPUT/resume"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier run in OUTPUT"),
) -> None:
    """Train a pipeline; --resume goes on after a kill as if it had never happened. Overrides as in `spacy train`."""
    config = read_config(config_path, ctx, code=code, interpolate=False)
    check_names(config)
    check_output(output, resume=resume, overwrite=overwrite)
    for name, corpus in config.interpolate()["corpora"].items():
        if isinstance(corpus, dict) and corpus.get("@readers") in DOC_READERS and corpus.get("path"):
            check_docs(Path(corpus["path"]), f"corpora.{name}.path")
    use_gpu(gpu_id)
    nlp = init_nlp(config, use_gpu=gpu_id)
    best = train(nlp, output, resume=resume, overwrite=overwrite)
    msg.good(f"Saved the best pipeline to {best}")
