"""Workers that stay: tasks as they are asked for, errors that come up, deaths that are told, and nobody left over."""

import os
import signal
import time
from pathlib import Path

import pytest

from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.workers import Death, ProcessPool, describe_end, run_pool


def start_squares(number, settings):
    """Loads once: the file has a line for each worker that did."""
    with Path(settings).open("a", encoding="utf8") as file:
        file.write(f"{number} {os.getpid()} {os.environ.get('OMP_NUM_THREADS')}\n")

    def square(task):
        if task < 0:
            raise ValueError(f"Expected a number from 0, but got {task}.")
        if task == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        if task == 14:
            os._exit(7)
        return task * task

    return square


def start_dying(number, settings):
    os._exit(3)


def start_failing(number, settings):
    raise ValueError("Expected a pipeline.")


def pulling(tasks):
    """What gives tasks one after another, and how many it has given."""
    left = list(tasks)
    return lambda: left.pop(0) if left else None


def run_in_processes(start, settings, pull, *, workers, environment=None):
    return run_pool(ProcessPool(start, settings, environment or {}), pull, workers=workers)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


def test_each_task_is_done_once_by_workers_that_stay(log):
    found = dict(
        run_in_processes(start_squares, log, pulling(range(12)), workers=2, environment={"OMP_NUM_THREADS": "7"})
    )
    assert found == {i: i * i for i in range(12)}
    loaded = [line.split() for line in Path(log).read_text(encoding="utf8").splitlines()]
    assert sorted(x[0] for x in loaded) == ["0", "1"]
    assert {x[2] for x in loaded} == {"7"}
    assert os.environ.get("OMP_NUM_THREADS") != "7"
    assert os.getpid() not in {int(x[1]) for x in loaded}


def test_no_worker_without_a_task(log):
    assert list(run_in_processes(start_squares, log, pulling([]), workers=2)) == []
    assert not Path(log).exists()
    assert list(run_in_processes(start_squares, log, pulling([3]), workers=2)) == [(3, 9)]
    assert len(Path(log).read_text(encoding="utf8").splitlines()) == 1


class Worn:
    """Asks to be replaced after two tasks."""

    def __init__(self, number, settings):
        self.left = 2
        start_squares(number, settings)

    @property
    def is_worn(self):
        return self.left == 0

    def __call__(self, task):
        self.left -= 1
        return task + 1


@pytest.mark.slow
def test_a_worker_that_is_worn_is_replaced(log):
    found = list(run_in_processes(Worn, log, pulling(range(5)), workers=1))
    assert found == [(i, i + 1) for i in range(5)]
    assert len(Path(log).read_text(encoding="utf8").splitlines()) == 3


def test_one_task_is_made_ahead_and_no_more(log):
    """A stream of any length is not read before it is needed."""
    given = []

    def pull():
        given.append(len(given))
        return given[-1] if len(given) <= 9 else None

    for done, _ in enumerate(run_in_processes(start_squares, log, pull, workers=1), 1):
        assert len(given) <= done + 1


def test_deaths_are_told_and_the_worker_replaced(log):
    """A task may come again: here a number that does not kill."""
    again = [1, 13, 2, 14, 3]
    found = []
    for task, result in run_in_processes(start_squares, log, lambda: again.pop(0) if again else None, workers=1):
        found.append((task, result))
        if isinstance(result, Death):
            again.append(task + 7)
    assert [x for x in found if not isinstance(x[1], Death)] == [(1, 1), (2, 4), (3, 9), (20, 400), (21, 441)]
    told = {task: result.told for task, result in found if isinstance(result, Death)}
    assert told == {13: describe_end(-9), 14: "it ended with exit code 7"}
    assert "SIGKILL, as the system does when memory is short" in told[13]
    assert len(Path(log).read_text(encoding="utf8").splitlines()) == 3


@pytest.mark.slow
def test_errors_come_up_and_nobody_is_left(log):
    with pytest.raises(ValueError, match="Expected a number from 0, but got -1"):
        list(run_in_processes(start_squares, log, pulling([1, -1, 2]), workers=1))
    with pytest.raises(ValueError, match="Expected a pipeline"):
        list(run_in_processes(start_failing, log, pulling([1]), workers=1))
    with pytest.raises(ValueError, match="one after another, died before they were ready: it ended with exit code 3"):
        list(run_in_processes(start_dying, log, pulling([1]), workers=1))
    results = Engine(workers=1).stream(start_squares, log, pulling(range(3)))
    next(results)
    results.close()
    for line in Path(log).read_text(encoding="utf8").splitlines():
        assert has_ended(int(line.split()[1]))


def has_ended(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
