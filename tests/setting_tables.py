"""The tables of settings in README.md, drawn from the classes of the components: defaults, and what settings mean.

`python -m tests.setting_tables` draws them anew; tests/test_readme.py says when they are old. Which rows there
are, their order, and what stands in the row of `model` are the README's own.
"""

import json
import re
from pathlib import Path
from typing import Any

from spacy.language import Language

from spacy_luke.components.cloze import LukeCloze
from spacy_luke.components.encoder import LukeEncoderOwner
from spacy_luke.components.entity_annotator import EntityAnnotator
from spacy_luke.components.ernie import ErnieEncoderOwner, ErnieRelation, ErnieTyper
from spacy_luke.components.factories import settings_of
from spacy_luke.components.linker.component import LukeLinker
from spacy_luke.components.ner import LukeNER
from spacy_luke.components.qa import LukeQA
from spacy_luke.components.relation import LukeRelation
from spacy_luke.components.typer import LukeTyper

README = Path(__file__).parents[1] / "README.md"
TABLES = {
    "Settings of the component": ("luke_ner", LukeNER),
    "Settings of `luke_typer`": ("luke_typer", LukeTyper),
    "Settings of `luke_relation`": ("luke_relation", LukeRelation),
    "Settings of `luke_qa`": ("luke_qa", LukeQA),
    "Settings of `luke_cloze`": ("luke_cloze", LukeCloze),
    "Settings of `luke_linker`": ("luke_linker", LukeLinker),
    "Settings of `luke_encoder`": ("luke_encoder", LukeEncoderOwner),
    "Settings of `ernie_typer`": ("ernie_typer", ErnieTyper),
    "Settings of `ernie_relation`": ("ernie_relation", ErnieRelation),
    "Settings of `ernie_encoder`": ("ernie_encoder", ErnieEncoderOwner),
    "Settings of `entity_annotator`": ("entity_annotator", EntityAnnotator),
}


def shown(default: Any) -> str:
    """A value as a config has it; of what a function makes, the name of the function."""
    if isinstance(default, dict):
        return next(value for key, value in default.items() if key.startswith("@"))
    return json.dumps(default, ensure_ascii=False)


def draw_rows(name: str, component: type) -> dict[str, str]:
    """The row of each setting."""
    defaults = Language.get_factory_meta(name).default_config
    settings = settings_of(component)
    return {
        key: f"| `{key}` | `{shown(defaults[key])}` | {x.about} |" for key, x in settings.items() if key in defaults
    }


def with_tables(readme: str) -> str:
    """The README with all rows of settings drawn anew."""
    for title, (name, component) in TABLES.items():
        before, heading, rest = readme.partition(f"### {title}\n")
        section, end, after = rest.partition("\n###")
        rows = draw_rows(name, component)
        lines = [(re.match(r"\| `(\w+)` \|", line), line) for line in section.split("\n")]
        drawn = [rows.get(found[1], line) if found else line for found, line in lines]
        readme = before + heading + "\n".join(drawn) + end + after
    return readme


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf8")), encoding="utf8")
