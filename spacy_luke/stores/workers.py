"""Processes that keep what they have loaded and are given one task after another; one that dies is replaced.

A task goes to a worker when it is free, and one more is made ahead, so that a stream of any length takes the memory of
its workers' tasks. What is to become of a task whose worker died, the caller decides.
"""

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Settings = TypeVar("Settings")
Task = TypeVar("Task")
Result = TypeVar("Result")
# start(number, settings), in the worker: loads what is needed, and returns what does a task (see `is_worn`)
Start = Callable[[int, Settings], Callable[[Task], Result]]
Pull = Callable[[], Task | None]  # the next task; None: there is none now, but a task that comes back may be next

_STARTS = 3  # workers that die before they are ready, one after another, until nothing more is tried
TICK = 1.0  # seconds
_PATIENCE = 5.0  # seconds until a worker that was asked to end is killed


class Death(NamedTuple):
    """In the place of a result: the worker died on the task. told: how it ended."""

    told: str


class Worker(Protocol[Task]):
    """number: from 0; task: None where it is free; ready: it has loaded."""

    number: int
    task: Task | None
    ready: bool

    def give(self, task: Task) -> None: ...

    def end(self) -> None: ...


AnyWorker = TypeVar("AnyWorker", bound=Worker[Any])


class Pool(Generic[AnyWorker, Task, Result]):
    """Workers. A kind of them says how one begins (`begin`), and how is heard what has ended (`wait`)."""

    def __init__(self) -> None:
        self.workers: list[AnyWorker] = []
        self.died = 0  # workers that died before they were ready, one after another

    def begin(self, number: int) -> AnyWorker:
        """A new worker, which loads."""
        raise NotImplementedError

    def wait(self) -> Iterator[tuple[Task, Result | Death]]:
        """What has ended, nothing where workers have become ready or a second is over."""
        raise NotImplementedError

    def take(self, task: Task, most: int) -> bool:
        """Whether a worker has the task now, a free one or a new one where there are fewer than `most`."""
        free = next((x for x in self.workers if x.task is None), None)
        if free is None:
            if len(self.workers) >= most:
                return False
            numbers = {x.number for x in self.workers}
            free = self._hire(next(i for i in range(most) if i not in numbers))
        free.give(task)
        return True

    def _hire(self, number: int) -> AnyWorker:
        worker = self.begin(number)
        self.workers.append(worker)
        return worker

    def busy(self) -> list[AnyWorker]:
        return [x for x in self.workers if x.task is not None]

    def heard_ready(self, worker: AnyWorker) -> None:
        worker.ready, self.died = True, 0
        worker.give(worker.task)

    def heard_result(self, worker: AnyWorker, result: Result, *, last: bool) -> tuple[Task, Result]:
        """last: the worker ends with it."""
        task: Any = worker.task
        worker.task = None
        if last:
            self.workers.remove(worker)
            worker.end()
        return task, result

    def heard_death(self, worker: AnyWorker, told: str) -> Iterator[tuple[Task, Death]]:
        """Its task comes back; where it died before it was ready, a new worker has it."""
        task: Any = worker.task
        self.workers.remove(worker)
        worker.end()
        if worker.ready:
            yield task, Death(told)
            return
        self.died += 1
        if self.died >= _STARTS:
            raise ValueError(
                f"Expected workers to start, but {self.died}, one after another, died before they were ready: {told}. "
                "Use fewer workers (--workers 1 takes the least memory), or more memory, and run it again."
            )
        self._hire(worker.number).give(task)

    def close(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()


def run_pool(
    pool: Pool[Any, Task, Result],
    pull: Pull[Task],
    *,
    workers: int,
    tick: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Task, Result | Death]]:
    """Tasks with their results, or deaths, as they end. An error of a task, or of `start`, is raised here.

    workers: at most: no more are started than there are tasks; tick: is called about once a second while all of them
    work. ValueError where workers die again and again before they are ready.
    """
    ahead: Task | None = None
    try:
        while True:
            while ahead is not None or (ahead := pull()) is not None:
                if not pool.take(ahead, workers):
                    break
                ahead = None
            if not pool.busy():
                return
            tick()
            yield from pool.wait()
    finally:
        pool.close()


class _Worker(Generic[Task]):
    """A process and what it has to do. ready: it has loaded; task: None where it is free."""

    def __init__(self, number: int, arguments: tuple[Any, ...], environment: Mapping[str, str]) -> None:
        context = get_context("spawn")
        self.number = number
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, number, *arguments), daemon=True)
        with _variables(environment):
            self.process.start()
        other.close()
        self.ready = False
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        if self.ready:
            with suppress(OSError):  # it has died: its end is told by `wait`
                self.connection.send(task)

    def end(self) -> None:
        self.connection.close()
        if self.task is not None:
            self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class ProcessPool(Pool[_Worker[Task], Task, Result], Generic[Settings, Task, Result]):
    """Processes of this machine. environment: variables of theirs."""

    def __init__(
        self, start: Start[Settings, Task, Result], settings: Settings, environment: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._arguments, self._environment = (start, settings), environment

    def begin(self, number: int) -> _Worker[Task]:
        return _Worker(number, self._arguments, self._environment)

    def wait(self) -> Iterator[tuple[Task, Result | Death]]:
        busy: dict[Connection, _Worker[Task]] = {x.connection: x for x in self.busy()}
        for connection in wait(list(busy), TICK):
            worker = busy[connection]  # type: ignore[index]  # of those that it was given
            try:
                kind, value = worker.connection.recv()
            except (EOFError, OSError):
                worker.process.join(_PATIENCE)
                yield from self.heard_death(worker, describe_end(worker.process.exitcode))
                continue
            if kind == "error":
                raise value
            if kind == "ready":
                self.heard_ready(worker)
            else:
                yield self.heard_result(worker, value, last=kind == "last")


def is_worn(function: Callable[[Any], Any]) -> bool:
    """Whether what does tasks asks to be made anew in another process, by its attribute `is_worn`."""
    return bool(getattr(function, "is_worn", False))


def describe_end(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        memory = ", as the system does when memory is short (`dmesg` tells)" if name == "SIGKILL" else ""
        return f"it was ended by {name}{memory}"
    return f"it ended with exit code {code}"


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _work(connection: Connection, number: int, start: Start[Any, Any, Any], settings: Any) -> None:
    """A worker's life: until the connection is closed, or the process that started it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it, which ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        try:
            function = start(number, settings)
        except Exception as error:
            connection.send(("error", portable(error)))
            return
        connection.send(("ready", None))
        while True:
            task = connection.recv()
            try:
                result = function(task)
                reply = ("last" if is_worn(function) else "done", result)
            except Exception as error:
                reply = ("error", portable(error))
            connection.send(reply)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def portable(error: Exception) -> Exception:
    """The error, or what it says where it cannot be pickled and read again."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
