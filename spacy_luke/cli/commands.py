"""A group of commands, each of which is made, and its module imported, when it is first asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup


class _Commands(Mapping[str, Any]):
    """By their names; making one imports what it needs."""

    def __init__(self, names: Sequence[str], make: Callable[[str], typer.Typer]):
        self._make = make
        self._made: dict[str, Any] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Any:
        if self._made[name] is None:
            self._made[name] = typer.main.get_command(self._make(name))
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class CommandGroup(TyperGroup):
    """names: of the commands, in the order of the help. make: an app with the one command of a name."""

    names: Sequence[str]
    make: Callable[[str], typer.Typer]

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.commands: Any = _Commands(self.names, self.make)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.names)
