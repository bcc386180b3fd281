"""The page of `spacy luke probe`: the entities that masked mentions are taken for, and their neighbours."""

from html import escape

from ..pretraining.luke.probe import Answers, Ranked
from .style import COLORS, PAGE, probability


def render_probe(answers: Answers, *, title: str, hide: bool) -> str:
    """A whole HTML page, in the style of `spacy luke annotate`. hide: whether the mentions' words were masked."""
    text, found = answers.text, answers.predictions
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
    for name, ranked in answers.neighbours.items():
        parts += [f"<h2>Near {escape(name)}</h2>", _table(ranked, "cosine")]
    hidden = ", whose words are hidden" if hide else ""
    mentions = f"{len(found)} masked mention{'s' if len(found) != 1 else ''}{hidden}"
    counts = f"{mentions} · {answers.entities:,} entities"
    return PAGE.format(lang="", direction="auto", title=escape(title), counts=counts, content="\n".join(parts))


def _table(ranked: Ranked, number: str) -> str:
    rows = "\n".join(
        f'<tr><td>{escape(name)}</td><td class="number">{probability(value)}</td></tr>' for name, value in ranked
    )
    return f"<table>\n<tr><th>entity</th><th>{number}</th></tr>\n{rows}\n</table>"
