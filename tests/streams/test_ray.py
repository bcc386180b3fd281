"""`spacy luke apply` on Ray: two workers write the bytes that processes of this machine do."""

import pytest

from spacy_luke.stores.parallel import Engine
from spacy_luke.streams.run import apply_pipeline
from tests.streams.runs import SMALL, apply_to_poison, find, tree

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'spacy-luke[ray]')")
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_two_ray_workers_write_the_same(pipeline, lines, tmp_path):
    state = apply_pipeline(pipeline, find(lines), tmp_path / "ray", SMALL, engine=Engine("ray", 2))
    apply_pipeline(pipeline, find(lines), tmp_path / "here", SMALL)
    assert tree(tmp_path / "ray") == tree(tmp_path / "here")
    assert (state.documents, state.deaths) == (40, 0)


def test_a_document_that_kills_ray_workers_costs_no_other(pipeline, tmp_path):
    """Actors that the system ends are replaced, and the part is tried again."""
    (failed,) = apply_to_poison(pipeline, tmp_path, Engine("ray", 2))
    assert failed["message"].startswith("The worker died on it: ")
