import pytest

from tests.components import known
from tests.components.linker import linked


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return linked.make_store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    return known.make_vectors(tmp_path_factory.mktemp("kg"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """torch says once that it makes a thread's context itself, which Thinc's GPU lets it do."""
    for item in items:
        if "gpu" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"))
