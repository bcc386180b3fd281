"""`spacy luke annotate`: what a pipeline finds in a text, as tables and as a page for the browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from ..annotations import register_extensions, set_queries, set_questions
from ..components.base import LukeComponent, find_component
from ..components.cloze import LukeCloze
from ..components.ner import LukeNER
from ..components.qa import LukeQA
from ..components.typer import LukeTyper
from ..stores.atomic import write_atomically
from ..stores.plain_text import read_text
from .page import Findings, one_line, probability, read_findings, render_page, type_list


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
    register_extensions()
    nlp = spacy.load(pipeline)
    ner = _find_ner(nlp, component)
    doc = _make_doc(nlp, read_text(text), question, query)
    doc = nlp(doc)
    found = _read(nlp, doc, ner)
    msg.divider(f"{text}: {', '.join(found.counts())}")
    _print_tables(found, rows)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            temporary.write_text(render_page(found, title=text.name), encoding="utf8")
        msg.good(f"Open {output} in a browser to see them in the text")


def _find_ner(nlp: Language, name: str | None) -> LukeNER | None:
    """The luke_ner whose entities are shown; None where there is none, as other components may have set entities."""
    if not _of_kind(nlp, LukeComponent):
        raise ValueError(
            f"Expected a pipeline with a component of spacy_luke, such as luke_ner, but it has {nlp.pipe_names}."
        )
    if name is None and not _of_kind(nlp, LukeNER):
        return None
    return find_component(nlp, LukeNER, name)


def _of_kind(nlp: Language, kind: type) -> list[Any]:
    return [component for _, component in nlp.pipeline if isinstance(component, kind)]


def _make_doc(nlp: Language, text: str, questions: list[str], queries: list[str]) -> Doc:
    doc = nlp.make_doc(text)
    asked = ((questions, LukeQA, "--question"), (queries, LukeCloze, "--query"))
    for given, kind, option in asked:
        if given and not _of_kind(nlp, kind):
            raise ValueError(f"{option} needs a {kind.noun} in the pipeline, but it has {nlp.pipe_names}.")
    if questions:
        set_questions(doc, questions)
    if queries:
        set_queries(doc, queries)
    return doc


def _read(nlp: Language, doc: Doc, ner: LukeNER | None) -> Findings:
    typed = [span for component in _of_kind(nlp, LukeTyper) for span in component.getter(doc)]
    return read_findings(
        doc,
        spans_key=None if ner is None else ner.cfg["spans_key"],
        typed=typed,
        labels=[] if ner is None else ner.labels,
    )


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
