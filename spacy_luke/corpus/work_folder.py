"""A folder of finished parts beside the one that is built, so that a killed build goes on where it was.

The folder is `.NAME.work`. It holds `plan.json`, all that decides the bytes that come out, and of each finished task
its files and then `TASK.json`, its result; what has no `TASK.json` is made again.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..stores.atomic import write_atomically
from .parallel import Engine

PLAN = "plan.json"


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

    The folder stays after an error, so that the next run goes on; `remove` it when all is well.
    """

    def __init__(self, output: Path, plan: dict[str, Any]) -> None:
        output = Path(output).resolve()
        self.path = output.with_name(f".{output.name}.work")
        file = self.path / PLAN
        if file.is_file():
            if json.loads(file.read_text(encoding="utf8")) != json.loads(json.dumps(plan)):
                self.remove()
        elif self.path.exists() and any(not path.name.startswith(".") for path in self.path.iterdir()):
            raise ValueError(f"{self.path} is in the way: it is no folder of work. Move it, or choose another output.")
        self.path.mkdir(parents=True, exist_ok=True)
        _write_json(file, plan)

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

    def remove(self) -> None:
        """Killed anywhere, it leaves what the next run knows: results go before their files, `plan.json` goes last."""
        plan = self.path / PLAN
        results = [path for path in self.path.glob("*.json") if path != plan]
        others = [path for path in self.path.iterdir() if path != plan and path not in results]
        for path in [*results, *others, plan]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.path.rmdir()
