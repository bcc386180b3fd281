"""`spacy luke train`: as `spacy train`, with exact resume after a kill."""

from pathlib import Path

import typer
from spacy.training.initialize import init_nlp
from wasabi import msg

from ..distributed.processes import join_processes
from ..pipelines.gold import check_docs
from ..pipelines.loading import import_code, use_gpu
from ..training.configs import check_config_names, read_config, with_defaults
from ..training.loop import train
from ..training.resume import check_output
from .configs import read_overrides
from .given import CODE

_DOC_READERS = ("spacy.Corpus.v1", "spacy-luke.GoldCorpus.v1")
_BESIDE_ENTS = (  # whose gold is not in doc.ents
    *("luke_typer", "luke_relation", "luke_qa", "luke_cloze", "ernie_typer", "ernie_relation"),
)


def train_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(..., exists=True, dir_okay=False, help="Training config"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model-best, model-last and resume"),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU; with torchrun 0: each its own"),
    resume: bool = typer.Option(False, "--resume", help="Go on from OUTPUT/resume, if it is there"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an earlier run in OUTPUT"),
) -> None:
    """Train a pipeline; --resume goes on after a kill as if it had never happened. Overrides as in `spacy train`.

    Several processes, each with a share of every batch: torchrun --nproc-per-node 8 -m spacy luke train ...
    """
    import_code(code)
    config = read_config(config_path, read_overrides(ctx), interpolate=False)
    check_config_names(config)
    config = with_defaults(config)
    made = config.interpolate()
    learns_more = any(
        made.get("components", {}).get(x, {}).get("factory") in _BESIDE_ENTS for x in made["nlp"]["pipeline"]
    )
    for name, corpus in made["corpora"].items():
        if isinstance(corpus, dict) and corpus.get("@readers") in _DOC_READERS and corpus.get("path"):
            check_docs(Path(corpus["path"]), f"corpora.{name}.path")
            if learns_more and (corpus.get("max_length") or corpus.get("gold_preproc")):
                msg.warn(
                    f"corpora.{name}: max_length and gold_preproc of spacy.Corpus.v1 divide documents, and of their "
                    "parts nothing is in doc._ and doc.spans: relations, types, questions and queries are lost. "
                    "Use spacy-luke.GoldCorpus.v1, which divides by lengths and keeps them."
                )
    with join_processes(gpu=gpu_id >= 0) as processes:
        if processes.is_main:
            check_output(output, resume=resume, overwrite=overwrite)
        device = processes.gpu(gpu_id)
        use_gpu(device)
        nlp = init_nlp(config, use_gpu=device)
        best = train(nlp, output, resume=resume, overwrite=overwrite, processes=processes)
        if processes.is_main:
            msg.good(f"Saved the best pipeline to {best}")
