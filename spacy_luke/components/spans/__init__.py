"""Spans of words that `luke_ner` classifies: what is gold of them, what is found, and how many can be learned."""
