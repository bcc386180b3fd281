"""Embeddings of knowledge graphs: triples in, TransE vectors, link-prediction figures and a store of vectors out."""
