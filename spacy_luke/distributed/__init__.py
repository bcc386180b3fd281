"""Several processes that train together, as `torchrun` starts them: which this one is, and what they share."""
