"""Where tasks run: in this process, in processes of this machine, or on a Ray cluster. Results come in the order of the
tasks, whichever ends first, so that the same bytes come out of all of them.

A task is a function of a module and an argument that can be pickled, and reads and writes files; the machines of a Ray
cluster must see the same files under the same paths.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from .progress import ProgressBar
from .ray_workers import RayPool, cause_of, connect_ray
from .workers import Death, Pool, ProcessPool, Pull, Start, run_pool

_ENGINES = ("processes", "ray")
_TRIES = 3  # of a task whose process dies
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # variables that say how many there are
# torch and oneDNN keep what they have compiled for each shape, 1,024 of them, which for texts of ever other lengths is
# memory without use: 10 KB a short document until it is full. 32 of them are as fast (benchmarks/apply.py).
_SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32", "LRU_CACHE_CAPACITY": "32"}
Settings = TypeVar("Settings")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Engine:
    """name: processes or ray. workers: processes, None: one a core; ray takes the cluster's cores. address: of a Ray
    cluster, None: the one that is connected, that of RAY_ADDRESS, or a new one on this machine."""

    name: str = "processes"
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in _ENGINES:
            raise ValueError(f"engine must be one of {_ENGINES}, but it is {self.name!r}.")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be a number of processes from 1, but it is {self.workers}.")

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, progress: bool = False, task: str = "parts"
    ) -> Iterator[Result]:
        """function(task) of each task, in order. An error of a task is raised here, and no further task is begun. A
        task whose process dies is given to another one, as often as TRIES says; then ValueError."""
        with self._mapped(function, tasks) as results:
            yield from ProgressBar(results, task, total=len(tasks), show=progress)

    def stream(
        self,
        start: Start[Settings, Task, Result],
        settings: Settings,
        pull: Pull[Task],
        *,
        threads: int | None = None,
        gpus: int = 0,
        tick: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[Task, Result | Death]]:
        """As `workers.run_pool`, by workers that stay; None: one. threads: of each, None: OMP_NUM_THREADS, else the
        cores of this machine, divided among them, and one on Ray; gpus: that Ray gives each."""
        workers = self.workers or 1
        cores = 1 if self.name == "ray" else max(1, _cores() // workers)
        threads = threads or int(os.environ.get("OMP_NUM_THREADS") or cores)
        environment = {name: value for name, value in _SHAPES.items() if name not in os.environ}
        environment |= {name: str(threads) for name in _THREADS}
        pool: Pool[Any, Task, Result]
        if self.name == "ray":
            pool = RayPool(start, settings, environment, address=self.address, gpus=gpus)
        else:
            pool = ProcessPool(start, settings, environment)
        yield from run_pool(pool, pull, workers=workers, tick=tick)

    @contextmanager
    def _mapped(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Iterator[Result]]:
        workers = min(self.workers or _cores(), len(tasks))
        if self.name == "ray":
            yield _run_on_ray(function, tasks, self.address)
        elif workers <= 1:
            yield map(function, tasks)
        else:
            with closing(_run_here(function, tasks, workers)) as results:
                yield results


def _run_here(function: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Generator[Result, None, None]:
    waiting, tried = deque(range(len(tasks))), Counter[int]()
    done: dict[int, Result] = {}
    following = 0

    def pull() -> tuple[int, Task] | None:
        return (i := waiting.popleft(), tasks[i]) if waiting else None

    pool = ProcessPool(_start, function, {})
    ended = run_pool(pool, pull, workers=workers)
    with closing(cast(Generator[tuple[tuple[int, Task], Result | Death], None, None], ended)):
        for (i, _), result in ended:
            if isinstance(result, Death):
                tried[i] += 1
                if tried[i] == _TRIES:
                    raise ValueError(_died(f"{_TRIES} processes of this machine that worked on one", result.told))
                waiting.appendleft(i)
                continue
            done[i] = result
            while following in done:
                yield done.pop(following)
                following += 1


def _start(number: int, function: Callable[[Task], Result]) -> Callable[[tuple[int, Task]], Result]:
    """In a worker: what does a task with its number."""
    return lambda item: function(item[1])


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_on_ray(function: Callable[[Task], Result], tasks: Sequence[Task], address: str | None) -> Iterator[Result]:
    ray = connect_ray(address)
    remote = ray.remote(max_retries=_TRIES - 1)(function)
    waiting = [remote.remote(task) for task in tasks]
    try:
        while waiting:
            try:
                result = ray.get(waiting[0])
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                raise ValueError(_died("a process of the Ray cluster")) from error
            waiting.pop(0)  # and with it Ray's copy of the result
            yield result
    finally:
        for reference in waiting:
            ray.cancel(reference, force=False)


def _died(what: str, told: str = "killed, or the system ran out of memory (`dmesg` tells)") -> str:
    return (
        f"Expected all workers to finish their tasks, but {what} died: {told}. Use fewer workers (--workers 1 takes "
        "the least memory), or more memory, and run it again."
    )
