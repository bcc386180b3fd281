"""Checkpoints of others: reading, checking, writing."""

from .checkpoint import Checkpoint, read_checkpoint, write_huggingface

__all__ = ["Checkpoint", "read_checkpoint", "write_huggingface"]
