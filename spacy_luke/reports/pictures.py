"""Charts of a report as files, for papers and slides: SVG, and PNG by resvg (the extra `report`)."""

from collections.abc import Iterable
from pathlib import Path

from ..stores.atomic import write_atomically
from .charts import WIDTH, standalone
from .page import Picture

_SCALE = 3  # dots of a PNG for each unit


def save_pictures(pictures: Iterable[Picture], folder: Path) -> list[Path]:
    """Write NAME.svg and NAME.png of each. ImportError where resvg_py is missing."""
    try:
        import resvg_py
    except ImportError as error:
        raise ImportError('PNG files need resvg: pip install "spacy-luke[report]".') from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, _, svg in pictures:
        text = standalone(svg)
        png = bytes(resvg_py.svg_to_bytes(svg_string=text, width=_SCALE * WIDTH))
        for suffix, data in ((".svg", text.encode("utf8")), (".png", png)):
            path = folder / f"{name}{suffix}"
            with write_atomically(path) as temporary:
                temporary.write_bytes(data)
            written.append(path)
    return written
