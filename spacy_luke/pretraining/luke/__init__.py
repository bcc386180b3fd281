"""Pretraining of LUKE (Yamada et al., EMNLP 2020): masked words and entities in windows of shards."""
