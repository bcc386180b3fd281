"""Checkpoints of others: reading, checking, writing."""

from .checkpoint import read_checkpoint, write_huggingface
from .contents import Checkpoint, ErnieCheckpoint, LukeCheckpoint

__all__ = ["Checkpoint", "ErnieCheckpoint", "LukeCheckpoint", "read_checkpoint", "write_huggingface"]
