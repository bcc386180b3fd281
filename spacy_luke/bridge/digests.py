"""Digests of weights, by which damage is found, and by which a component knows the encoder that it was saved with."""

import hashlib
import json
from typing import Any

import torch
from torch import Tensor, nn

from .wrapper import TorchShim


def digest_tensors(tensors: dict[str, Tensor], values: Any) -> str:
    """SHA-256, in hex, of tensors on the CPU (names, types, shapes and numbers) and of JSON values."""
    state = hashlib.sha256(digest_values(values).encode("ascii"))
    for name in sorted(tensors):
        x = tensors[name]
        state.update(json.dumps([name, str(x.dtype), list(x.shape)]).encode("utf8"))
        state.update(x.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()


def digest_values(values: Any) -> str:
    """SHA-256, in hex, of JSON values; it stays the same when they are written and read."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf8")).hexdigest()


def shim_digest(shim: TorchShim[nn.Module]) -> str:
    """Of all that a shim stores; computed anew only where its parameters have changed."""
    if shim.known is not None and shim.known[0] is None:  # it came from another process
        shim.known = (shim.stamp, shim.known[1])
    if shim.known is None or shim.known[0] != shim.stamp:
        return note_digest(shim, digest_tensors(*shim.stored()))
    return shim.known[1]


def note_digest(shim: TorchShim[nn.Module], digest: str, *, loaded: bool = False) -> str:
    """The digest of a shim as it is now. loaded: it was restored from a file with this digest."""
    stale = shim.known is not None and shim.known[0] not in (None, shim.stamp)
    shim.changed = not loaded and (shim.changed or stale)
    shim.known = (shim.stamp, digest)
    return digest


def check_digest(shim: TorchShim[nn.Module], expected: str | None) -> str | None:
    """The digest of a shim that is not the expected one, None where it is. Weights that were trained, or otherwise
    changed since they were loaded, are not checked."""
    if expected is None or not shim.ready or shim.changed:
        return None
    found = shim_digest(shim)
    return None if found == expected or shim.changed else found
