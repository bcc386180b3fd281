import pytest

from tests.components import known
from tests.components.linker import linked


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return linked.make_store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    return known.make_vectors(tmp_path_factory.mktemp("kg"))
