"""`spacy luke annotate`: what a pipeline finds in a text, as tables and as a page for the browser."""

from collections.abc import Sequence
from pathlib import Path

import spacy
import typer
from wasabi import msg

from ..pages.findings import Findings, type_list
from ..pages.page import render_page
from ..pages.style import one_line, probability, save_page
from ..pipelines.annotation import annotate_file


def annotate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    text: Path = typer.Argument(..., exists=True, dir_okay=False, help="File with text, in UTF-8"),
    output: Path | None = typer.Option(None, "--output", "-o", help="HTML page that shows all in the text"),
    question: list[str] = typer.Option([], "--question", "-q", help="A question for luke_qa; may be repeated"),
    query: list[str] = typer.Option([], "--query", help="A sentence with @placeholder for luke_cloze; may be repeated"),
    rows: int = typer.Option(30, min=0, help="Rows of a table here; the page has all"),
    component: str | None = typer.Option(None, help="Name of the luke_ner, where there are several"),
) -> None:
    """List the entities of a text with their types, its relations, and the answers to questions about it, each with its
    probability, and show them in a page for the browser."""
    found = annotate_file(spacy.load(pipeline), text, questions=question, queries=query, component=component)
    msg.divider(f"{text}: {', '.join(found.counts())}")
    _print_tables(found, rows)
    if output is not None:
        save_page(render_page(found, title=text.name), output)
        msg.good(f"Open {output} in a browser to see them in the text")


def _print_tables(found: Findings, rows: int) -> None:
    entities = [(one_line(x.text), x.label_, probability(score), type_list(x)) for x, score in found.mentions]
    width = 4 if any(row[3] for row in entities) else 3
    _print_table([row[:width] for row in entities], ("entity", "label", "score", "types")[:width], rows, "llrl"[:width])
    relations = [(one_line(r.head.text), r.label, one_line(r.tail.text), probability(r.score)) for r in found.relations]
    _print_table(relations, ("head", "relation", "tail", "score"), rows, "lllr")
    answers = [
        (one_line(x.question), one_line(x.text) or ("no answer" if x.spans else ""), probability(x.score))
        for x in found.answers
    ]
    _print_table(answers, ("question", "answer", "score"), rows, "llr")


def _print_table(data: Sequence[tuple[str, ...]], header: tuple[str, ...], rows: int, aligns: str) -> None:
    if data[:rows]:
        msg.table(data[:rows], header=header, aligns=tuple(aligns), divider=True, max_col=50)
    if len(data) > rows:
        msg.text(f"... and {len(data) - rows:,} more")
