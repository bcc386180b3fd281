"""Runs in small, and what they leave."""

from pathlib import Path

from spacy_luke.streams.input_formats import InputFields
from spacy_luke.streams.inputs import find_inputs
from spacy_luke.streams.run import ApplySettings

SMALL = ApplySettings(part_words=100, part_documents=7, batch_words=30)


def find(*paths, format=None, **fields):
    return find_inputs([str(x) for x in paths], format=format, fields=InputFields(**fields))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(x.relative_to(folder)): x.read_bytes() for x in sorted(folder.rglob("*")) if x.is_file()}
