"""Families of encoders (LUKE, ERNIE) as nodes of Thinc models; how components share one; spaCy's listeners on it."""
