"""`spacy luke dequantize`: an int8 pipeline in float again, to be trained further."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.loading import import_code
from ..pipelines.quantization import dequantize_pipeline
from .given import CODE


def dequantize_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a trained pipeline whose encoder is int8"),
    output: Path = typer.Argument(..., help="Folder of the new pipeline; an older one there is replaced"),
    code: Path | None = CODE,
) -> None:
    """Store the int8 encoders of a pipeline in float32, so that it can be trained further, and exported.

    The weights are those that int8 stood for. Predictions differ by what int8 rounds on the way.
    """
    import_code(code)
    dequantize_pipeline(pipeline, output)
    msg.good(f"Saved to {output}: it can be trained, and made int8 again by spacy luke quantize")
