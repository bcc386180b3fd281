"""How far something is, as a bar in a terminal.

A tqdm that shows nothing still starts a thread and makes a lock, which processes that are forked share: one that is
killed while it holds the lock leaves the others waiting for ever. So there is a tqdm only where a bar is shown.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import IO, Generic, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


class ProgressBar(Generic[Item]):
    """The items of a loop, or what `update` counts, with a bar while they last. It is shown in a terminal alone.

    items: None: `update` counts. task: what is done. total: of the count, None: len(items), or unknown. unit: of the
    count; scaled: as "12.3k". done: counted before. show: False: never. stream: None: sys.stderr. form: of the line, as
    tqdm's bar_format. keep: the bar stays when it is done.
    """

    def __init__(
        self,
        items: Iterable[Item] | None = None,
        task: str = "",
        *,
        total: int | None = None,
        unit: str = "it",
        scaled: bool = False,
        done: int = 0,
        show: bool = True,
        stream: IO[str] | None = None,
        form: str | None = None,
        keep: bool = False,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        self.is_shown = show and is_terminal(stream)
        self._items: Iterable[Item] = () if items is None else items
        self._bar: tqdm[Item] | None = None
        if self.is_shown:
            self._bar = tqdm(
                items, task or None, total, unit=unit, unit_scale=scaled, initial=done, leave=keep, file=stream,
                bar_format=form,
            )  # fmt: skip

    def __iter__(self) -> Iterator[Item]:
        yield from self._items if self._bar is None else self._bar

    def __enter__(self) -> "ProgressBar[Item]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def describe(self, text: str) -> None:
        """Another text in the place of the task."""
        if self._bar is not None:
            self._bar.set_description_str(text)

    def write(self, line: str) -> None:
        """A line on standard output, above the bar."""
        if self._bar is None:
            print(line, flush=True)
        else:
            self._bar.write(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether lines that change can be seen there; False of None, as Windows has it without a console."""
    return stream is not None and stream.isatty()
