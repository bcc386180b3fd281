"""Where tasks run makes no difference: order and errors. No torch here: each process that is started would load it."""

import os
import time

import pytest

from spacy_luke.stores.parallel import Engine
from tests.stores.tasks import die_first

ENGINES = [Engine(workers=1), Engine(workers=2)]


def slow_first(number):
    time.sleep(0.2 if number == 0 else 0)
    if number == 7:
        raise ValueError(f"Expected a number below 7, but got {number}.")
    return number * number


def process_of(number):
    return os.getpid()


@pytest.mark.parametrize("engine", ENGINES)
def test_results_come_in_order(engine):
    assert list(engine.run(slow_first, range(5))) == [0, 1, 4, 9, 16]
    assert list(engine.run(slow_first, [])) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_of_a_task_comes_up(engine):
    with pytest.raises(ValueError, match="Expected a number below 7, but got 7"):
        list(engine.run(slow_first, range(9)))


def die(number):
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_dies_is_told_in_words():
    with pytest.raises(ValueError, match="3 processes of this machine that worked on one died: it ended with "):
        list(Engine(workers=2).run(die, range(3)))


def test_a_task_whose_worker_was_killed_is_done_by_another(tmp_path):
    paths = [tmp_path / str(i) for i in range(2)]
    assert list(Engine(workers=2).run(die_first, paths)) == ["0", "1"]
    assert [path.read_text() for path in paths] == ["xxx", "xxx"]


def test_processes():
    assert set(Engine(workers=1).run(process_of, range(3))) == {os.getpid()}
    assert os.getpid() not in set(Engine(workers=2).run(process_of, range(3)))


def test_wrong_engines():
    with pytest.raises(ValueError, match=r"engine must be one of \('processes', 'ray'\), but it is 'spark'"):
        Engine("spark")
    with pytest.raises(ValueError, match="workers must be a number of processes from 1, but it is 0"):
        Engine(workers=0)


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-luke\[ray\]'"):
        list(Engine("ray").run(process_of, [1]))
