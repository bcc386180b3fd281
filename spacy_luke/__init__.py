"""LUKE and its relatives as spaCy components. Importing spaCy is enough: every part is found by entry points."""

from importlib.metadata import version

__version__ = version("spacy-luke")
