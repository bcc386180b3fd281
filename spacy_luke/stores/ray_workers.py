"""Workers that stay on a Ray cluster: actors, each with a core or a GPU; one that dies is replaced."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from .workers import STARTS, TICK, Death, Start, died_again, is_worn

Settings = TypeVar("Settings")
Task = TypeVar("Task")
Result = TypeVar("Result")


def connect_ray(address: str | None) -> Any:
    """The package, connected. address: of the cluster, None: the one that is connected, that of RAY_ADDRESS, or a new
    one on this machine. ImportError where it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("The engine ray needs the package ray: pip install 'spacy-luke[ray]'.") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    return ray


def cause_of(error: Any) -> Exception:
    """The error of a task, as it was raised there."""
    return error.cause if isinstance(error.cause, Exception) else error


class _Actor:
    """A worker, on its machine."""

    def load(self, start: Start[Any, Any, Any], number: int, settings: Any) -> None:
        self.function: Callable[[Any], Any] = start(number, settings)

    def run(self, task: Any) -> tuple[Any, bool]:
        """The result, and whether it is the last."""
        result = self.function(task)
        return result, is_worn(self.function)


class _Worker(Generic[Task]):
    """number: from 0; reference: what its actor does now; task: None where it is free; ready: it has loaded."""

    def __init__(self, number: int, actor: Any, reference: Any) -> None:
        self.number, self.actor, self.reference = number, actor, reference
        self.ready = False
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        if self.ready:
            self.reference = self.actor.run.remote(task)


class RayPool(Generic[Settings, Task, Result]):
    """As `workers.ProcessPool`, with actors. gpus: of each actor, 0: it has a core."""

    def __init__(
        self,
        start: Start[Settings, Task, Result],
        settings: Settings,
        environment: Mapping[str, str],
        *,
        address: str | None,
        gpus: int = 0,
    ) -> None:
        self._ray = connect_ray(address)
        self._arguments = (start, settings)
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": dict(environment)}}
        self._class = self._ray.remote(**options, **({"num_gpus": gpus} if gpus else {}))(_Actor)
        self._workers: list[_Worker[Task]] = []
        self._died = 0

    def take(self, task: Task, most: int) -> bool:
        free = next((x for x in self._workers if x.task is None), None)
        if free is None:
            if len(self._workers) >= most:
                return False
            numbers = {x.number for x in self._workers}
            free = self._begin(next(i for i in range(most) if i not in numbers))
        free.give(task)
        return True

    def is_busy(self) -> bool:
        return any(x.task is not None for x in self._workers)

    def wait(self) -> Iterator[tuple[Task, Result | Death]]:
        busy = {x.reference: x for x in self._workers if x.task is not None}
        ended, _ = self._ray.wait(list(busy), timeout=TICK)
        for reference in ended:
            worker = busy[reference]
            try:
                value = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.OutOfMemoryError) as error:
                yield from self._bury(worker, str(error).splitlines()[0])
                continue
            task = worker.task
            assert task is not None
            if not worker.ready:
                worker.ready, self._died = True, 0
                worker.give(task)
                continue
            worker.task = None
            result, last = value
            if last:
                self._workers.remove(worker)
                self._ray.kill(worker.actor)
            yield task, result

    def close(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker.actor)
        self._workers.clear()

    def _begin(self, number: int) -> _Worker[Task]:
        start, settings = self._arguments
        actor = self._class.remote()
        worker: _Worker[Task] = _Worker(number, actor, actor.load.remote(start, number, settings))
        self._workers.append(worker)
        return worker

    def _bury(self, worker: _Worker[Task], told: str) -> Iterator[tuple[Task, Death]]:
        task = worker.task
        assert task is not None
        self._workers.remove(worker)
        if worker.ready:
            yield task, Death(told)
            return
        self._died += 1
        if self._died >= STARTS:
            raise died_again(self._died, told)
        self._begin(worker.number).give(task)
