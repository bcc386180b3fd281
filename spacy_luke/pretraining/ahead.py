"""Batches made ahead of the steps, in a process of their own: a step does not wait until its batch is read and masked.

Each batch comes with the position after it, so that a run that is resumed goes on after the last batch that it took,
whatever had been made beyond it.
"""

import io
import os
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import Empty, Queue
from typing import Any

import torch

from ..stores.workers import portable
from .stream import Position, Stream, TrainingBatch

Made = tuple[TrainingBatch, Position]
_DIED = (
    "The process that makes batches died (exit code {code}): it was killed, or the system ran out of memory (`dmesg` "
    "tells). Go on with --resume, with training.ahead = 0 if it happens again."
)


def can_fork() -> bool:
    """Elsewhere (Windows, macOS) batches are made in the training process."""
    return hasattr(os, "fork") and os.uname().sysname == "Linux"


class Ahead:
    """The batches of a stream from a position on; at most `size` wait, and one is being made. counts: of the stream's
    source, kept as they are where the last batch was taken."""

    def __init__(self, stream: Stream, position: Position, *, size: int, counts: Counter[str] | None = None):
        self.counts = Counter() if counts is None else counts
        self.ready: Queue[bytes | None] = Queue(size)
        self.closed = False
        context = get_context("fork")
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_make, args=(stream, position, sender, self.receiver, self.counts), daemon=True
        )
        self.process.start()
        sender.close()
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def __iter__(self) -> Iterator[Made]:
        return self

    def __next__(self) -> Made:
        data = self.ready.get()
        if data is None:
            self.process.join()
            raise ValueError(_DIED.format(code=self.process.exitcode))
        made, counts = pickle.loads(data)
        if isinstance(made, BaseException):
            raise made
        self.counts.clear()
        self.counts.update(counts)
        found: Made = made
        return found

    def close(self) -> None:
        """End the process; what was made ahead is dropped."""
        self.closed = True
        self.process.kill()
        self.process.join()
        while self.thread.is_alive():  # it may wait for room
            try:
                self.ready.get(timeout=0.01)
            except Empty:
                continue
        self.receiver.close()

    def _receive(self) -> None:
        while not self.closed:
            try:
                data = self.receiver.recv_bytes()
            except (EOFError, OSError):
                self.ready.put(None)
                return
            self.ready.put(data)


def _make(stream: Stream, position: Position, sender: Connection, receiver: Connection, counts: Counter[str]) -> None:
    """In the process: makes batches until nobody takes them any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the training, which ends this one
    receiver.close()  # so that writing fails when the training is gone
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # it would warn of the fork
    found: Any
    try:
        for found in stream(position):
            sender.send_bytes(_dump((found, dict(counts))))
    except BrokenPipeError:
        pass
    except Exception as error:
        sender.send_bytes(pickle.dumps((portable(error), {})))


class _Pickler(pickle.Pickler):
    """Tensors as arrays, which is much faster than torch's own way."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.from_numpy, (value.numpy(),)
        return NotImplemented


def _dump(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()
