"""Whole pipelines: made of a checkpoint, saved, scored, tuned on dev data, run over a text."""
