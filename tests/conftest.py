import os
from pathlib import Path

import pytest
from hypothesis import settings

# A machine under load is slow: no example fails for its time. What an example may cost is what its test's counts allow.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

SHARED = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared():
    """Path of a file under ../shared (golden files, real data); skips where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"{path} is not there (reference data; set SPACY_LUKE_SHARED to its folder)")
        return path

    return find
