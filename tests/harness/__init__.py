"""Attacks on the whole package: random documents, threads, kills, flipped bits, hostile files, full disks.

`python -m tests.harness` (or `make harness`) runs them and writes benchmarks/results/harness.md; each kind of attack is
a `Kind` (runner.py), whose cases are numbered, and what a case does follows from the seed and its number alone. A share
of a few minutes runs with the tests (test_harness.py).
"""
