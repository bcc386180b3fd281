"""Characters, words and pieces: the tokenizers of checkpoints, alignment, names in forms that can be compared."""
