"""The word states that components which share an encoder need of the same windows.

N packed pieces, D model width, H heads, K head width.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from ..model.luke import LukeEncoder, Windows, WordStates
from ..model.packing import pack
from .wrapper import TorchShim, to_tensor


@dataclass(frozen=True)
class _Window:
    states_ND: Tensor
    keys: List[Tensor]
    values: List[Tensor]


class WordCache:
    """Word states, keys and values of the windows that were encoded last, so that components which share an encoder
    read a window once. Only without gradients, and only while the encoder's parameters stay as they are.

    capacity: pieces that are held; 0: none.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.windows: OrderedDict[bytes, _Window] = OrderedDict()
        self.held = 0
        self.encoded = 0  # pieces, since the beginning
        self.reused = 0
        self._stamp: Optional[Tuple[Any, ...]] = None

    def __reduce__(self) -> Tuple[Any, ...]:
        return WordCache, (self.capacity,)

    def __deepcopy__(self, memo: Dict[int, Any]) -> "WordCache":
        return WordCache(self.capacity)

    def clear(self) -> None:
        self.windows.clear()
        self.held = 0

    def encode(self, encoder: LukeEncoder, pieces_N: np.ndarray, lengths: Sequence[int]) -> WordStates:
        """As `encoder.encode_words`, but windows that are held are not encoded again."""
        self._check(encoder)
        device = encoder.words.piece.weight.device
        parts = np.split(pieces_N, np.cumsum(lengths)[:-1])
        keys = [part.tobytes() for part in parts]
        held = {key: self.windows[key] for key in keys if key in self.windows}
        missing = {key: part for key, part in zip(keys, parts) if key not in held}
        new_lengths = [len(part) for part in missing.values()]
        self.encoded += sum(new_lengths)
        self.reused += sum(lengths) - sum(new_lengths)
        if missing:
            words = encoder.encode_words(
                Windows(to_tensor(np.concatenate(list(missing.values())), device), new_lengths)
            )
            fresh = self._hold(list(missing), words, new_lengths)
            if len(missing) == len(keys):
                return words
            held.update(fresh)
        found = [held[key] for key in keys]
        for key in keys:
            if key in self.windows:
                self.windows.move_to_end(key)
        layers = range(len(found[0].keys))
        return WordStates(
            torch.cat([window.states_ND for window in found]),
            [torch.cat([window.keys[i] for window in found]) for i in layers],
            [torch.cat([window.values[i] for window in found]) for i in layers],
            pack(lengths, device=device),
        )

    def _check(self, encoder: LukeEncoder) -> None:
        """Forget everything where the parameters or the number format have changed."""
        device = encoder.words.piece.weight.device.type
        format_ = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        versions = sum(p._version for p in encoder.parameters())
        stamp = (id(encoder), versions, format_, torch.is_inference_mode_enabled())
        if stamp != self._stamp:
            self.clear()
            self._stamp = stamp

    def _hold(self, keys: Sequence[bytes], words: WordStates, lengths: Sequence[int]) -> Dict[bytes, _Window]:
        states = words.states_ND.split(lengths)
        all_keys = list(zip(*(x.split(lengths) for x in words.keys)))
        all_values = list(zip(*(x.split(lengths) for x in words.values)))
        fresh = {key: _Window(states[i], list(all_keys[i]), list(all_values[i])) for i, key in enumerate(keys)}
        if sum(lengths) <= self.capacity:
            self.windows.update(fresh)
            self.held += sum(lengths)
            self._forget()
        return fresh

    def _forget(self) -> None:
        while self.held > self.capacity:
            _, window = self.windows.popitem(last=False)
            self.held -= len(window.states_ND)


def encode_words(
    shim: TorchShim, pieces_N: np.ndarray, lengths: Sequence[int], types_N: Optional[np.ndarray] = None
) -> WordStates:
    """The word pass of one-way attention. Where components share the encoder, a window that another one has read lately
    is not read again. types_N: token types; zeros where None."""
    if shim.cache is not None and types_N is None and not torch.is_grad_enabled():
        return shim.cache.encode(shim.module, pieces_N, lengths)
    types = to_tensor(types_N, shim.device)
    return shim.module.encode_words(Windows(to_tensor(pieces_N, shim.device), lengths, types))
