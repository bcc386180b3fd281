"""What a pretraining's config names, made by spaCy's registry: the one place of pretraining that knows spaCy."""

from typing import Any

from spacy.util import registry
from thinc.api import fix_random_seed


def make_parts(config: dict[str, Any], *, seed: int) -> dict[str, Any]:
    """What the sections of `config` name, by section. All random numbers from here on follow from `seed`."""
    fix_random_seed(seed)
    parts: dict[str, Any] = registry.resolve(config)
    return parts
