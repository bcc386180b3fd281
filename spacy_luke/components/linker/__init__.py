"""`luke_linker`, entity disambiguation: candidates, decisions, entity vectors; its knowledge bases for spaCy."""
