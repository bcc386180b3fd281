"""Names that were not found: which one may be meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence on a wrong name: what may be meant, or what there is."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=1)
    return f". Is {near[0]} meant?" if near else f"; there are {', '.join(known)}."
