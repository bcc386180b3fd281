"""`spacy luke serve`: a pipeline behind HTTP, with a page for typed texts."""

from pathlib import Path

import spacy
import typer
from wasabi import msg

from ..pipelines.annotation import Annotator
from ..pipelines.loading import import_code, use_gpu
from ..service.app import make_app, run_app
from ..service.forms import RequestLimits
from .given import CODE


def serve_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    host: str = typer.Option("127.0.0.1", help="Address to listen at; 0.0.0.0 for all of the machine"),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen at"),
    characters: int = typer.Option(RequestLimits.characters, min=1, help="Longest text, in characters"),
    documents: int = typer.Option(RequestLimits.documents, min=1, help="Most documents of a request"),
    waiting: int = typer.Option(RequestLimits.waiting, min=1, help="Documents that may wait; more are refused"),
    seconds: float = typer.Option(RequestLimits.seconds, min=0.001, help="Time that a request may take"),
    component: str | None = typer.Option(None, help="Name of the luke_ner, where there are several"),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Serve a pipeline: POST /annotate takes texts and gives what is found as JSON, / is a page for typed texts,
    /openapi.json says what is sent and what comes back, /health and /metrics are for who watches it."""
    import_code(code)
    use_gpu(gpu_id)
    limits = RequestLimits(
        characters=characters,
        documents=documents,
        waiting=waiting,
        seconds=seconds,
        request=max(RequestLimits.request, 4 * characters),
    )
    app = make_app(Annotator(spacy.load(pipeline), component), limits)

    def tell() -> None:
        msg.good(f"{pipeline} answers at http://{host}:{port}", "Ctrl-C ends it, after what was asked is answered.")

    run_app(app, host=host, port=port, grace=seconds, listening=tell)
