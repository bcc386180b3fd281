"""`evaluate --html`: per label with intervals, confusion, thresholds, calibration, worst examples, two pipelines"""
