"""The word states that components which share an encoder need of the same windows.

N packed pieces, D model width, H heads, K head width.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..bridge.wrapper import TorchShim
from ..model.luke import LukeEncoder, Windows, WordStates, make_windows, plan_words, planned
from ..model.packing import times_at_once
from ..model.transfer import to_device

Stamp = tuple[int, int, torch.dtype | None, bool]  # what states depend on beside the pieces, see `_stamp`


@dataclass(frozen=True)
class _Window:
    states_ND: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    rows_ND: Tensor | None


@dataclass(frozen=True, eq=False)
class _Batch:
    """Windows that were encoded together, by their pieces. They are views of the same tensors, which go when all go."""

    windows: dict[bytes, _Window]
    pieces: int


@dataclass(eq=False)
class _Held:
    """What one process holds, the batches in the order of their last use. Changed under the lock alone."""

    process: int
    stamp: "Stamp | None" = None
    batches: "OrderedDict[_Batch, None]" = field(default_factory=OrderedDict)
    places: dict[bytes, _Batch] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pieces(self) -> int:
        return sum(batch.pieces for batch in self.batches)

    def forget(self) -> None:
        self.batches.clear()
        self.places.clear()

    def drop_oldest(self) -> int:
        """RETURNS: pieces that are no longer held."""
        batch, _ = self.batches.popitem(last=False)
        for key in batch.windows:
            if self.places.get(key) is batch:  # another thread may have encoded the same window since
                del self.places[key]
        return batch.pieces


class WordCache:
    """Word states, keys and values of the windows that were encoded last, so that components which share an encoder
    read a window once. Only without gradients, and only while the encoder's parameters stay as they are.

    Threads may use it at once: what is held is looked up and changed under a lock, windows are encoded outside of it,
    so that two threads may encode the same one. A forked child begins with nothing.

    settings: of the component that stores the encoder, as they are at any time.
    """

    def __init__(self, settings: Mapping[str, Any]):
        self.settings = settings
        self.encoded = 0  # pieces, since the beginning
        self.reused = 0
        self._held = _Held(os.getpid())

    def __reduce__(self) -> "tuple[type[WordCache], tuple[Mapping[str, Any]]]":
        return WordCache, (self.settings,)

    @property
    def capacity(self) -> int:
        """Pieces that are held on a CPU, see `times_at_once`; 0: none."""
        pieces: int = self.settings["shared_pieces"]
        return pieces

    @property
    def held(self) -> int:
        """Pieces that are held now, counted from what is there."""
        mine = self._mine()
        with mine.lock:
            return mine.pieces

    def clear(self) -> None:
        self._held = _Held(os.getpid())  # what other threads are encoding goes to the old one, and with it

    def encode(self, shim: TorchShim[LukeEncoder], pieces_N: np.ndarray, windows: Windows) -> WordStates:
        """As the encoder's `encode_words`, but windows that are held are not encoded again. windows: planned;
        pieces_N: their pieces, on the host."""
        encoder, device, lengths = shim.module, shim.device, windows.lengths
        parts = np.split(pieces_N, np.cumsum(lengths)[:-1])
        keys = [part.tobytes() for part in parts]
        mine, stamp = self._mine(), _stamp(shim)
        found = self._find(mine, stamp, keys, lengths)
        missing = {key: part for key, part in zip(keys, parts) if key not in found}
        if missing:
            whole = len(missing) == len(keys)
            new_lengths = [len(part) for part in missing.values()]
            if not whole:
                new_N = np.concatenate(list(missing.values()))
                new = to_device(make_windows(new_N, new_lengths, device=device), device)
            words = encoder.encode_words(windows if whole else new)
            fresh = _split(list(missing), words, new_lengths)
            self._hold(mine, stamp, fresh, most=times_at_once(device) * self.capacity)
            if whole:
                return words
            found.update(fresh.windows)
        states = [found[key] for key in keys]
        layers = range(len(states[0].keys))
        rows = [window.rows_ND for window in states if window.rows_ND is not None]
        return WordStates(
            torch.cat([window.states_ND for window in states]),
            [torch.cat([window.keys[i] for window in states]) for i in layers],
            [torch.cat([window.values[i] for window in states]) for i in layers],
            planned(windows, lambda: plan_words(lengths, device=device)).packing,
            torch.cat(rows) if rows else None,
        )

    def _mine(self) -> _Held:
        """That of this process: a lock that another thread had when it was forked is never given back."""
        held = self._held
        if held.process != os.getpid():
            self._held = held = _Held(os.getpid())
        return held

    def _find(self, mine: _Held, stamp: Stamp, keys: Sequence[bytes], lengths: Sequence[int]) -> dict[bytes, _Window]:
        """The windows that are held. Forgets everything where the parameters or the number format have changed."""
        with mine.lock:
            if stamp != mine.stamp:
                mine.forget()
                mine.stamp = stamp
            batches = {key: mine.places[key] for key in keys if key in mine.places}
            for batch in batches.values():
                mine.batches.move_to_end(batch)
            new = sum({key: n for key, n in zip(keys, lengths) if key not in batches}.values())
            self.encoded += new
            self.reused += sum(lengths) - new
        return {key: batch.windows[key] for key, batch in batches.items()}

    def _hold(self, mine: _Held, stamp: Stamp, fresh: _Batch, *, most: int) -> None:
        if fresh.pieces > most:
            return
        with mine.lock:
            # Another thread may have seen other parameters or another format since, or have held the same windows.
            if stamp != mine.stamp or all(key in mine.places for key in fresh.windows):
                return
            mine.batches[fresh] = None
            mine.places.update(dict.fromkeys(fresh.windows, fresh))
            pieces = mine.pieces
            while pieces > most:
                pieces -= mine.drop_oldest()


def _stamp(shim: TorchShim[LukeEncoder]) -> Stamp:
    """What states depend on beside the pieces: the parameters as they are, and the number format."""
    device = shim.device.type
    format_ = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return (*shim.stamp, format_, torch.is_inference_mode_enabled())


def _split(keys: Sequence[bytes], words: WordStates, lengths: Sequence[int]) -> _Batch:
    states = words.states_ND.split(lengths)
    all_keys = list(zip(*(x.split(lengths) for x in words.keys)))
    all_values = list(zip(*(x.split(lengths) for x in words.values)))
    rows = [None] * len(keys) if words.rows_ND is None else words.rows_ND.split(lengths)
    windows = {key: _Window(states[i], list(all_keys[i]), list(all_values[i]), rows[i]) for i, key in enumerate(keys)}
    return _Batch(windows, sum(lengths))
