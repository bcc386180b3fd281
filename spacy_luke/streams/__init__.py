"""A pipeline over streams of texts: files in, annotations in parts out, over many processes, and on after a kill."""
