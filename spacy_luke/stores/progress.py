"""How far something is, as a bar in a terminal, and elsewhere as a line a minute.

A tqdm that shows nothing still starts a thread and makes a lock, which processes that are forked share: one that is
killed while it holds the lock leaves the others waiting for ever. So there is a tqdm only where a bar is shown.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import IO, Generic, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
PAUSE = 60.0  # seconds between two lines that say how far something is


class ProgressBar(Generic[Item]):
    """The items of a loop, or what `update` counts, with a bar while they last in a terminal.

    items: None: `update` counts. task: what is done. total: of the count, None: len(items), or unknown. unit: of the
    count; scaled: as "12.3k". done: counted before. show: False: nothing. stream: None: sys.stderr. form: of the line,
    as tqdm's bar_format. keep: the bar stays when it is done. lines: where the stream is no terminal, a line a minute.
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
        lines: bool = True,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        self.is_shown = show and is_terminal(stream)
        self._items: Iterable[Item] = () if items is None else items
        self._bar: tqdm[Item] | None = None
        self._lines = stream if show and lines and stream is not None and not self.is_shown else None
        self._task, self._unit, self._done = task or "at work", unit.strip(), done
        self._total = len(items) if total is None and isinstance(items, Sized) else total
        self._next = time.monotonic() + PAUSE
        if self.is_shown:
            self._bar = tqdm(
                items, task or None, total, unit=unit, unit_scale=scaled, initial=done, leave=keep, file=stream,
                bar_format=form,
            )  # fmt: skip

    def __iter__(self) -> Iterator[Item]:
        if self._lines is None:
            yield from self._items if self._bar is None else self._bar
            return
        for item in self._items:
            yield item
            self.update()

    def __enter__(self) -> "ProgressBar[Item]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.update(count)
        self._done += count
        if self._lines is not None and (now := time.monotonic()) >= self._next:
            whole = "" if self._total is None else f" of {self._total:,}"
            print(f"{self._task}: {self._done:,}{whole} {self._unit}".rstrip(), file=self._lines, flush=True)
            self._next = now + PAUSE

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
