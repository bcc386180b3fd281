"""`spacy luke annotate`: what a pipeline finds in a text, as tables and as a page for the browser."""

from collections.abc import Sequence
from pathlib import Path

import spacy
import typer
from wasabi import msg

from ..pages.answer_key import Judgement, read_answer_key
from ..pages.findings import Findings, Link
from ..pages.page import render_page
from ..pages.rows import shown_entities, shown_relations
from ..pages.style import one_line, probability, save_page
from ..pages.terminal import draw_table, terminal_width
from ..pipelines.annotation import annotate_file, pipeline_name
from ..pipelines.loading import import_code
from ..stores.plain_text import STANDARD_INPUT, printable_name, read_text
from ..streams.inputs import SUFFIXES
from .given import CODE
from .outputs import check_targets
from .terminal import show_heading


def annotate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    text: Path = typer.Argument(..., help="File with text, in UTF-8; - for standard input"),
    output: Path | None = typer.Option(
        None, "--output", "-o", dir_okay=False, help="HTML page that shows all in the text"
    ),
    question: list[str] = typer.Option([], "--question", "-q", help="A question for luke_qa; may be repeated"),
    query: list[str] = typer.Option([], "--query", help="A sentence with @placeholder for luke_cloze; may be repeated"),
    rows: int = typer.Option(30, min=0, help="Rows of a table here; the page has all"),
    component: str | None = typer.Option(None, help="Name of the luke_ner, where there are several"),
    key: Path | None = typer.Option(None, exists=True, dir_okay=False, help="JSON file with what is true of the text"),
    code: Path | None = CODE,
) -> None:
    """List the entities of a text with their types and links, its relations, and the answers to questions about it,
    each with its probability, and show them in a page for the browser. With a key, say how many are right."""
    if text != STANDARD_INPUT and not text.is_file():
        came = f"{printable_name(text)} is a folder" if text.is_dir() else f"there is no file {printable_name(text)}"
        raise ValueError(f"Expected a file with text, or - for standard input, but {came}.")
    if (format := SUFFIXES.get(text.suffix.lower(), "text")) != "text":
        raise ValueError(
            f"{printable_name(text)} holds many texts, in {format}: spacy luke apply annotates all of them."
        )
    if key is not None and text == STANDARD_INPUT:
        raise ValueError("A key is of a text in a file: give its name in the place of -.")
    check_targets([output], [text, key])
    answers = None if key is None else read_answer_key(key, read_text(text))
    import_code(code)
    nlp = spacy.load(pipeline)
    found = annotate_file(nlp, text, questions=question, queries=query, component=component)
    judged = None if answers is None else answers.judge(found)
    standard = "standard input" if text == STANDARD_INPUT else ""
    show_heading(f"{standard or printable_name(text)}: {', '.join(found.counts())}")
    _print_tables(found, judged, rows)
    if judged is not None and key is not None:
        typer.echo(f"\nBy what is true of it ({printable_name(key)}):")
        for kind, verdict in judged.verdict():
            typer.echo(f"  {kind:<9}  {verdict}")
    if output is not None:
        page = render_page(
            found, title=standard or printable_name(Path(text.name)), judged=judged, pipeline=pipeline_name(nlp)
        )
        save_page(page, output)
        msg.good(f"Open {printable_name(output)} in a browser to see them in the text")


def _print_tables(found: Findings, judged: Judgement | None, rows: int) -> None:
    entities = [
        (x.name, x.label, _times(x.count), probability(x.score), x.types, *_link(x.link), _right(x.right))
        for x in shown_entities(found, judged)
    ]
    header = ("entity", "label", "times", "score", "types", "link", "of it", "what it is", "")
    _print_table(entities, header, rows)
    relations = [
        (x.head, x.label, x.tail, x.id, _times(x.count), probability(x.score), _right(x.right))
        for x in shown_relations(found, judged)
    ]
    _print_table(relations, ("head", "relation", "tail", "property", "times", "score", ""), rows)
    answers = [
        (one_line(x.question), one_line(x.text) or ("no answer" if x.spans else ""), probability(x.score))
        for x in found.answers
    ]
    _print_table(answers, ("question", "answer", "score"), rows)


def _link(link: Link | None) -> tuple[str, str, str]:
    if link is None:
        return "", "", ""
    title = link.title if link.title != link.id else ""
    return link.id, probability(link.score), one_line(": ".join(filter(None, [title, link.description])))


def _times(count: int) -> str:
    return f"{count:,}" if count > 1 else ""


def _right(right: bool | None) -> str:
    return "wrong" if right is False else ""


def _print_table(data: Sequence[Sequence[str]], header: Sequence[str], rows: int) -> None:
    if data[:rows]:
        typer.echo()
        typer.echo(draw_table(header, data[:rows], width=terminal_width(), numbers=("times", "score", "of it")))
    if len(data) > rows:
        msg.text(f"... and {len(data) - rows:,} more")
