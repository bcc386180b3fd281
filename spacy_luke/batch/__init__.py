"""From lengths and places to arrays: windows, mentions, candidate spans, batches without padding; NumPy only."""
