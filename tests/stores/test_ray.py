"""Ray's workers give the order, errors and bytes of this process: a cluster of two machines in small is started."""

import os
import time
from pathlib import Path

import pytest

from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.linker.embed_entities import embed_entities
from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.stores.parallel import Engine
from tests.corpus.written import build_all
from tests.stores import tasks
from tests.tiny import make_checkpoint

SAMPLE = Path(__file__).parents[2] / "assets" / "wiki.xml"


@pytest.fixture
def ray_cluster():
    """Two workers, each with a core and a store of its own, as two machines would be."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'spacy-luke[ray]')")
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    for cores in (0, 1, 1):  # the head does no work
        cluster.add_node(num_cpus=cores, object_store_memory=100 << 20, include_dashboard=False)
    ray.init(address=cluster.address, log_to_driver=False)
    yield ray
    ray.shutdown()
    cluster.shutdown()


def everything(folder, engine):
    """All bytes of a corpus, its vocabulary and its shards, and of a knowledge base with vectors."""
    build_all(SAMPLE, folder, engine)
    kb = build_kb([SAMPLE], folder / "kb", settings=KBSettings(engine=engine)).kb
    embed_entities(kb, TextEncoder(make_checkpoint()), engine=engine)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.filterwarnings("ignore")
def test_two_ray_workers_give_the_same_bytes(ray_cluster, tmp_path):
    def node_of(number):  # functions of a function travel with the task: the workers know nothing of this file
        time.sleep(0.5)
        return number, ray_cluster.get_runtime_context().get_node_id()

    def fail(number):
        raise ValueError(f"Expected no number, but got {number}.")

    numbers, nodes = zip(*Engine("ray").run(node_of, range(6)))
    assert numbers == tuple(range(6))
    assert len(set(nodes)) == 2, "both workers have work"
    with pytest.raises(ValueError, match="Expected no number, but got 0"):
        list(Engine("ray").run(fail, range(3)))
    with pytest.raises(ValueError, match="a process of the Ray cluster died"):
        list(Engine("ray").run(lambda number: os._exit(9), range(1)))

    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(tasks)
    paths = [tmp_path / str(i) for i in range(3)]
    assert list(Engine("ray").run(tasks.die_first, paths)) == ["0", "1", "2"]
    assert [path.read_text() for path in paths] == ["xxx"] * 3, "killed by the system twice, and tried again"
    one, other = tmp_path / "processes", tmp_path / "ray"
    one.mkdir()
    other.mkdir()
    expected = everything(one, Engine(workers=1))
    assert len(expected) > 15
    assert everything(other, Engine("ray")) == expected
