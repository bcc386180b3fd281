"""Workers on a Ray cluster, in small: the same as processes of this machine."""

import os

import pytest

from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.workers import Death

pytest.importorskip("ray", reason="Ray is not installed (pip install 'spacy-luke[ray]')")


@pytest.fixture(scope="module")
def ray():
    import ray

    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def start_squares():
    """Functions of a function travel with the task: the workers know nothing of this file."""

    def start(number, settings):
        def square(task):
            if task < 0:
                raise ValueError(f"Expected a number from 0, but got {task}.")
            if task == 13:
                os._exit(9)
            return task * task, number, os.getpid(), os.environ.get("OMP_NUM_THREADS")

        return square

    return start


def start_failing(number, settings):
    raise ValueError("Expected a pipeline.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_actors_do_as_processes_do(ray):
    again = list(range(8))
    pull = lambda: again.pop(0) if again else None  # noqa: E731
    found = dict(Engine("ray", 2).stream(start_squares(), None, pull, threads=3))
    assert {task: x[0] for task, x in found.items()} == {i: i * i for i in range(8)}
    assert {x[3] for x in found.values()} == {"3"}
    assert len({x[2] for x in found.values()}) <= 2
    again[:] = [13, 2]
    found = list(Engine("ray", 1).stream(start_squares(), None, pull))
    assert [task for task, _ in found] == [13, 2]
    assert isinstance(found[0][1], Death)
    assert found[1][1][0] == 4
    again[:] = [-1]
    with pytest.raises(ValueError, match="Expected a number from 0, but got -1"):
        list(Engine("ray", 1).stream(start_squares(), None, pull))
    again[:] = [1]
    import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["x"]))
    with pytest.raises(ValueError, match="Expected a pipeline"):
        list(Engine("ray", 1).stream(start_failing, None, pull))
