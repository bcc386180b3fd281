"""The ready pipeline as it lies in assets."""

import zipfile
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "assets"
WHEELS = sorted(ASSETS.glob("en_luke_sm-*.whl"))


def unpack_ready(folder: Path) -> Path:
    """The newest wheel, unpacked: in sys.path the folder is as good as `pip install`. RETURNS: the folder."""
    with zipfile.ZipFile(WHEELS[-1]) as file:
        file.extractall(folder)
    return folder
