"""`spacy luke annotate`: the entities of a text, as a table and as a displaCy page."""

from pathlib import Path
from typing import List, Optional, Tuple

import spacy
import typer
from spacy import displacy
from spacy.tokens import Doc
from wasabi import msg

from ..checkpoint.files import write_atomically
from ..components.base import find_component
from ..components.ner import LukeNER

COLORS = ["#7aecec", "#feca74", "#aa9cfc", "#bfe1d9", "#ffeb80", "#ff9561", "#9cc9cc", "#c887fb", "#bfeeb7", "#ff8197"]


def annotate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    text: Path = typer.Argument(..., exists=True, dir_okay=False, help="File with text, in UTF-8"),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="HTML page with the entities marked"),
    rows: int = typer.Option(30, min=0, help="Entities to list here; the page has all"),
    component: Optional[str] = typer.Option(None, help="Name of the luke_ner, where there are several"),
) -> None:
    """List the entities of a text with their probabilities, and mark them in a page for the browser."""
    try:
        nlp = spacy.load(pipeline)
        ner = find_component(nlp, LukeNER, component)
        with msg.loading(f"Reading {text} ..."):
            doc = nlp(text.read_text(encoding="utf8"))
    except (ValueError, OSError) as error:
        msg.fail("Nothing was annotated.", str(error), exits=1)
    found = entity_rows(doc, ner)
    msg.divider(f"{text}: {len(doc):,} words, {len(found):,} entities")
    if found[:rows]:
        msg.table(found[:rows], header=("entity", "label", "score"), aligns=("l", "l", "r"), divider=True, max_col=60)
    if len(found) > rows:
        msg.text(f"... and {len(found) - rows:,} more{'' if output is None else f' in {output}'}")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            temporary.write_text(page(doc, ner), encoding="utf8")
        msg.good(f"Open {output} in a browser to see them in the text")


def entity_rows(doc: Doc, ner: LukeNER) -> List[Tuple[str, str, str]]:
    """Text, label and probability of each entity, in order."""
    key = ner.cfg["spans_key"]
    if key is None:
        return [(" ".join(e.text.split()), e.label_, _score(e._.luke_score)) for e in doc.ents]
    spans = doc.spans[key]
    return [(" ".join(e.text.split()), e.label_, _score(p)) for e, p in zip(spans, spans.attrs["scores"], strict=True)]


def page(doc: Doc, ner: LukeNER) -> str:
    """A whole HTML page by displaCy."""
    colors = {label: COLORS[i % len(COLORS)] for i, label in enumerate(ner.labels)}
    key = ner.cfg["spans_key"]
    if key is None:
        return displacy.render(doc, style="ent", page=True, jupyter=False, options={"colors": colors})
    return displacy.render(doc, style="span", page=True, jupyter=False, options={"colors": colors, "spans_key": key})


def _score(probability: Optional[float]) -> str:
    return "" if probability is None else f"{probability:.3f}"
