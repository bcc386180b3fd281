"""LUKE and its relatives as spaCy components. Importing spaCy is enough: every part is found by entry points."""

from importlib.metadata import version

from .pipelines.saving import save as save

__version__ = version("spacy-luke")
