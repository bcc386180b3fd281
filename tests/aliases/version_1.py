"""Stores of names as version 1 wrote them, without digests."""

import json
import sys

from spacy_luke.aliases.file import ALIGNMENT, SECTIONS, UNCHECKED, read_header


def as_version_1(data):
    """The file as version 1 wrote it."""
    sizes, places = read_header(memoryview(data), "the bytes", vouched=True)
    header = {"byteorder": sys.byteorder, **sizes._asdict()}
    start = -(-(len(UNCHECKED) + len(json.dumps(header)) + 100 * len(SECTIONS)) // ALIGNMENT) * ALIGNMENT
    sections, body = {}, b""
    for name in SECTIONS:
        body += bytes(-len(body) % ALIGNMENT)
        sections[name] = [start + len(body), places[name].size]
        body += data[places[name].start : places[name].end]
    line = json.dumps({**header, "sections": sections}).encode()
    return UNCHECKED + line.ljust(start - len(UNCHECKED) - 1) + b"\n" + body
