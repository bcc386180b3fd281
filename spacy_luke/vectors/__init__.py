"""The store of entity vectors, and the files of other programs from which it is built."""
