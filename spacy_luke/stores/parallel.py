"""Where tasks run: in this process, in processes of this machine, or on a Ray cluster. Results come in the order of the
tasks, whichever ends first, so that the same bytes come out of all of them.

A task is a function of a module and an argument that can be pickled, and reads and writes files; the machines of a Ray
cluster must see the same files under the same paths.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

from tqdm import tqdm

from .ray_workers import RayPool, cause_of, connect_ray
from .workers import Death, Pool, ProcessPool, Pull, Start, run_pool

ENGINES = ("processes", "ray")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # variables that say how many there are
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
        if self.name not in ENGINES:
            raise ValueError(f"engine must be one of {ENGINES}, but it is {self.name!r}.")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be a number of processes from 1, but it is {self.workers}.")

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], *, progress: bool = False, task: str = "parts"
    ) -> Iterator[Result]:
        """function(task) of each task, in order. An error of a task is raised here, and no further task is begun.
        ValueError where a process died that worked on one."""
        with self._mapped(function, tasks) as results:
            yield from tqdm(results, total=len(tasks), desc=task, leave=False, disable=None if progress else True)

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
        environment = {name: str(threads) for name in THREADS}
        pool: Pool[Task, Result]
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
            executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
            try:
                yield executor.map(function, tasks)
            except BrokenProcessPool as error:
                raise ValueError(_died("a process of this machine")) from error
            finally:
                executor.shutdown(cancel_futures=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_on_ray(function: Callable[[Task], Result], tasks: Sequence[Task], address: str | None) -> Iterator[Result]:
    ray = connect_ray(address)
    remote = ray.remote(function)
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


def _died(what: str) -> str:
    return (
        f"Expected all workers to finish their tasks, but {what} died: it was killed, or the system ran out of memory "
        "(`dmesg` tells). Use fewer workers (--workers 1 takes the least memory), or more memory, and run it again."
    )
