"""Workers that stay on a Ray cluster: actors, each with a core or a GPU; one that dies is replaced."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from .workers import TICK, Death, Pool, Start, is_worn

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
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
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
    """An actor and what it has to do. kill: ends an actor; reference: what the actor does now."""

    def __init__(self, number: int, actor: Any, reference: Any, kill: Callable[[Any], None]) -> None:
        self.number, self.actor, self.reference = number, actor, reference
        self.ready = False
        self.task: Task | None = None
        self._kill = kill

    def give(self, task: Task) -> None:
        self.task = task
        if self.ready:
            self.reference = self.actor.run.remote(task)

    def end(self) -> None:
        self._kill(self.actor)


class RayPool(Pool[_Worker[Task], Task, Result], Generic[Settings, Task, Result]):
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
        super().__init__()
        self._ray = connect_ray(address)
        self._arguments = (start, settings)
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": dict(environment)}}
        self._class = self._ray.remote(**options, **({"num_gpus": gpus} if gpus else {}))(_Actor)

    def begin(self, number: int) -> _Worker[Task]:
        start, settings = self._arguments
        actor = self._class.remote()
        return _Worker(number, actor, actor.load.remote(start, number, settings), self._ray.kill)

    def wait(self) -> Iterator[tuple[Task, Result | Death]]:
        busy = {x.reference: x for x in self.busy()}
        ended, _ = self._ray.wait(list(busy), timeout=TICK)
        for reference in ended:
            worker = busy[reference]
            try:
                value = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.OutOfMemoryError) as error:
                yield from self.heard_death(worker, str(error).splitlines()[0])
                continue
            if not worker.ready:
                self.heard_ready(worker)
            else:
                result, last = value
                yield self.heard_result(worker, result, last=last)
