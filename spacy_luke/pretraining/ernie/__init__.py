"""Pretraining of ERNIE (Zhang et al., ACL 2019): documents with linked entities, corrupted and denoised."""
