"""`spacy luke apply` on Ray: two workers write the bytes that processes of this machine do."""

import pytest

from spacy_luke.stores.parallel import Engine
from spacy_luke.streams.run import apply_pipeline
from tests.streams.runs import SMALL, find, tree


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_ray_workers_write_the_same(pipeline, lines, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'spacy-luke[ray]')")
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
    try:
        state = apply_pipeline(pipeline, find(lines), tmp_path / "ray", SMALL, engine=Engine("ray", 2))
    finally:
        ray.shutdown()
    apply_pipeline(pipeline, find(lines), tmp_path / "here", SMALL)
    assert tree(tmp_path / "ray") == tree(tmp_path / "here")
    assert (state.documents, state.deaths) == (40, 0)
