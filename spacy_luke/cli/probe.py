"""`spacy luke probe`: which entities a pretrained checkpoint takes a masked mention for, and what is near an entity."""

from html import escape
from pathlib import Path

import typer
from wasabi import msg

from ..checkpoint.checkpoint import read_checkpoint
from ..checkpoint.sources import find_source
from ..pretraining.luke.probe import Prediction, Probe, Ranked, find_mentions
from ..stores.atomic import write_atomically
from .page import COLORS, PAGE, probability


def probe_cli(
    checkpoint: str = typer.Argument(..., help="A folder, an archive, package:NAME/FOLDER, or a hub name"),
    text: str = typer.Argument(..., help="A text with a mention in brackets: 'She was born in [Paris].'"),
    near: list[str] = typer.Option([], help="Show the neighbours of this entity; default: of each mention's first one"),
    top: int = typer.Option(10, min=1, help="Entities in a list"),
    hide: bool = typer.Option(False, "--hide", help="Mask the words of the mentions, too"),
    output: Path | None = typer.Option(None, "--output", "-o", help="HTML page that shows the same"),
) -> None:
    """Predict the entities of masked mentions, and list the nearest entities in the table."""
    probe = Probe(read_checkpoint(find_source(checkpoint)))
    plain, places = find_mentions(text)
    found = probe.predict(plain, places, top=top, hide=hide)
    asked = near or list(dict.fromkeys(x.entities[0][0] for x in found))
    neighbours = {title: probe.nearest(title, top=top) for title in asked}
    for prediction in found:
        _print(f"[{plain[prediction.start : prediction.end]}]", prediction.entities, "probability")
    for title, ranked in neighbours.items():
        _print(f"near {title}", ranked, "cosine")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        page = render_probe(plain, found, neighbours, title=checkpoint, entities=len(probe.titles), hide=hide)
        with write_atomically(output) as temporary:
            temporary.write_text(page, encoding="utf8")
        msg.good(f"Open {output} in a browser to see them beside the text")


def _print(title: str, ranked: Ranked, number: str) -> None:
    msg.divider(title)
    rows = [(name, probability(value)) for name, value in ranked]
    msg.table(rows, header=("entity", number), aligns=("l", "r"), divider=True, max_col=60)


def render_probe(
    text: str, found: list[Prediction], neighbours: dict[str, Ranked], *, title: str, entities: int, hide: bool
) -> str:
    """A whole HTML page, in the style of `spacy luke annotate`."""
    marked, at = "", 0
    for i, x in enumerate(found):
        color, best = COLORS[i % len(COLORS)], x.entities[0][0]
        mark = f'<mark class="entity" style="background: {color}" title="{escape(best)}">'
        marked += escape(text[at : x.start]) + mark + escape(text[x.start : x.end])
        marked += f'<span class="label">{escape(best)}</span></mark>'
        at = x.end
    marked += escape(text[at:])
    parts = ["<h2>Text</h2>", f'<div class="entities">{marked}</div>']
    for x in found:
        parts += [f"<h2>{escape(text[x.start : x.end])}</h2>", _table(x.entities, "probability")]
    for name, ranked in neighbours.items():
        parts += [f"<h2>Near {escape(name)}</h2>", _table(ranked, "cosine")]
    hidden = ", whose words are hidden" if hide else ""
    mentions = f"{len(found)} masked mention{'s' if len(found) != 1 else ''}{hidden}"
    counts = f"{mentions} · {entities:,} entities"
    return PAGE.format(lang="", direction="auto", title=escape(title), counts=counts, content="\n".join(parts))


def _table(ranked: Ranked, number: str) -> str:
    rows = "\n".join(
        f'<tr><td>{escape(name)}</td><td class="number">{probability(value)}</td></tr>' for name, value in ranked
    )
    return f"<table>\n<tr><th>entity</th><th>{number}</th></tr>\n{rows}\n</table>"
