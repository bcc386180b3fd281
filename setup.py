from setuptools import setup

setup()  # all metadata is in pyproject.toml
