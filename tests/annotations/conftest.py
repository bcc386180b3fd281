import pytest

from spacy_luke.annotations import register_extensions


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()
