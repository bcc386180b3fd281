"""Predictions and gold in, scores out: entities, types, relations, links and answers, as official scripts count."""
