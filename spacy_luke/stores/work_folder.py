"""A folder of finished parts beside the one that is built, so that a killed build goes on where it was.

The folder is `.NAME.work`. It holds `plan.json`, all that decides the bytes that come out, and of each finished task
its files and then `TASK.json`, its result; what has no `TASK.json` is made again. A build holds it while it goes on, so
that another one of the same output is refused.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from .atomic import LOCK, hold, write_atomically
from .parallel import Engine

_PLAN = "plan.json"


class WorkTask(NamedTuple):
    """function(folder, name, argument): makes files in the folder whose names begin with `name`, and returns what json
    can hold. It is a function of a module, and so pickled by its name."""

    function: Callable[[Path, str, Any], Any]
    folder: Path
    name: str
    argument: Any


def run_work_task(task: WorkTask) -> Any:
    """The result of a task; where it was finished before, that of then."""
    done = task.folder / f"{task.name}.json"
    if not done.is_file():
        _write_json(done, task.function(task.folder, task.name, task.argument))
    return json.loads(done.read_text(encoding="utf8"))


def _write_json(path: Path, data: Any) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf8")


class WorkFolder:
    """The folder for what is built at `output`. Finished tasks of the same plan are kept, and those of another removed.

    A context: `with WorkFolder(output, plan) as work`. The folder goes where the block ends well, and stays after an
    error, so that the next run goes on. ValueError where another process, or another block, holds it.
    """

    def __init__(self, output: Path, plan: dict[str, Any]) -> None:
        self.output, self.plan = Path(output).resolve(), plan
        self.path = self.output.with_name(f".{self.output.name}.work")
        self._held = ExitStack()

    def __enter__(self) -> "WorkFolder":
        file = self.path / _PLAN
        if not file.is_file() and self.path.exists() and any(x.name[0] != "." for x in self.path.iterdir()):
            raise ValueError(f"{self.path} is in the way: it is no folder of work. Move it, or choose another output.")
        busy = f"Another process is building {self.output}, its work lies in {self.path}. Wait for it, or end it."
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / LOCK).touch()
        self._held.enter_context(hold(self.path / LOCK, busy=busy))
        try:
            if file.is_file() and json.loads(file.read_text(encoding="utf8")) != json.loads(json.dumps(self.plan)):
                self._clear()
            _write_json(file, self.plan)
        except BaseException:
            self._held.close()
            if not file.is_file():  # as on a full disk: what is left is no folder of work
                self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            if kind is None:
                self._clear()
        if kind is None:
            self._remove()

    def sweep(self) -> None:
        """Where the output is finished: remove what a build left that was killed after it had written the output."""
        if self.path.exists():
            with self:
                pass

    def _remove(self) -> None:
        (self.path / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # another build has begun in it
            self.path.rmdir()

    def run(
        self,
        function: Callable[[Path, str, Any], Any],
        arguments: Sequence[Any],
        *,
        name: str,
        engine: Engine,
        progress: bool = False,
    ) -> Iterator[Any]:
        """Results of tasks "NAME-00000", "NAME-00001", ... in order."""
        tasks = [WorkTask(function, self.path, f"{name}-{i:05d}", argument) for i, argument in enumerate(arguments)]
        return engine.run(run_work_task, tasks, progress=progress, task=f"{name}s")

    def run_one(self, function: Callable[[Path, str, Any], Any], argument: Any, *, name: str) -> Any:
        """A task in this process."""
        return run_work_task(WorkTask(function, self.path, name, argument))

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.path.glob(pattern))

    def _clear(self) -> None:
        """Killed anywhere, it leaves what the next run knows: results go before their files, `plan.json` goes last."""
        plan = self.path / _PLAN
        results = [path for path in self.path.glob("*.json") if path != plan]
        others = [path for path in self.path.iterdir() if path not in (plan, self.path / LOCK, *results)]
        for path in [*results, *others, plan]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
