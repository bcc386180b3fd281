"""Data sets in, Docs out: published formats, JSON lines, columns, .spacy files; the corpora that configs name."""
