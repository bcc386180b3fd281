"""Corpora for pretraining: linked text from dumps and documents, entity vocabularies, shards of examples."""
