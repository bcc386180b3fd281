"""The spaCy components, one module each, and what they share: gold, settings, files, thresholds, units."""
