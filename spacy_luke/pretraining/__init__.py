"""Pretraining of any task: the loop, streams of data, the optimizer, saving, several processes."""
