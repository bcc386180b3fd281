"""`spacy luke evaluate`: scores of a pipeline, component by component and label by label, and its speed."""

from pathlib import Path

import spacy
import srsly
import typer
from wasabi import msg

from ..pages.style import save_page
from ..pipelines.evaluation import evaluate
from ..pipelines.gold import Given
from ..pipelines.loading import import_code, load_pipeline, use_gpu
from ..pipelines.score_tables import reliability_rows
from ..reports.logs import read_log
from ..reports.page import draw_page, pictures_of
from ..reports.pictures import save_pictures
from ..reports.report import make_report
from ..stores.atomic import write_atomically
from .configs import read_overrides
from .given import CODE, GOLD_ENTITIES, GOLD_LINKS, GOLD_MENTIONS, GOLD_PAIRS, GOLD_SENTENCES, read_entity_scope
from .outputs import check_targets
from .terminal import show_heading, show_table


def evaluate_cli(
    ctx: typer.Context,
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(..., exists=True, help="Gold documents: a .spacy file or a folder of them"),
    gold_sentences: bool = GOLD_SENTENCES,
    gold_entities: bool = GOLD_ENTITIES,
    gold_mentions: bool = GOLD_MENTIONS,
    gold_pairs: bool = GOLD_PAIRS,
    gold_links: bool = GOLD_LINKS,
    output: Path | None = typer.Option(None, "--output", "-o", dir_okay=False, help="JSON file for the scores"),
    component: str | None = typer.Option(None, help="Score this component only"),
    labels: str | None = typer.Option(
        None,
        help="What labels of the gold's entities mean in the pipeline: GOLD=OURS,... ; GOLD=A|B is one of several, "
        "GOLD= may be anything",
    ),
    annotates: str | None = typer.Option(
        None, help="The pipeline's labels that the gold annotates: LABEL,... ; entities with others are not counted"
    ),
    rows: int = typer.Option(50, min=0, help="Most labels of a table here; the JSON file has all"),
    html: Path | None = typer.Option(
        None,
        "--html",
        dir_okay=False,
        help="Report as one HTML file: intervals, confusion, thresholds, calibration, errors",
    ),
    against: str | None = typer.Option(None, help="Report: folder or name of a second pipeline, to be compared"),
    log: Path | None = typer.Option(
        None, exists=True, dir_okay=False, help="Report: log of the training (output_file of \\[training.logger])"
    ),
    pictures: Path | None = typer.Option(None, help="Report: folder for its charts as SVG and PNG"),
    code: Path | None = CODE,
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Score every LUKE component on gold documents, as its task's official script counts. Questions, queries, given
    candidates and given entities of the data are always given; everything else is found by the pipeline itself, unless
    an option gives it. Settings of components may be others than those that were saved: --components.luke_linker.split
    per_mention."""
    asked = {"--against": against, "--log": log, "--pictures": pictures}
    if useless := [name for name, value in asked.items() if value is not None and html is None]:
        raise ValueError(f"{useless[0]} is of the report: give --html REPORT.html too.")
    check_targets([output, html, pictures], [data, log])
    training = None if log is None else read_log(log)
    use_gpu(gpu_id)
    given = Given(gold_sentences, gold_entities, gold_mentions, gold_pairs, gold_links)
    scope = read_entity_scope(labels, annotates)
    import_code(code)
    first, others = load_pipeline(pipeline, read_overrides(ctx)), [spacy.load(against)] if against is not None else []
    found, *compared = (
        evaluate(nlp, data, given=given, component=component, entities=scope, beside=[first, *others], progress=True)
        for nlp in (first, *others)
    )
    show_heading(f"{data}: {found.documents:,} documents, {found.words:,} words")
    for one in found.components:
        if not one.table.totals:
            msg.warn(f"'{one.name}' is not scored: {data} has {one.missing}.")
            continue
        msg.text(f"\n{one.name}")
        show_table(one.table.header, one.table.rows(rows))
        for note in one.notes:
            msg.warn(note)
        if one.reliability is not None and one.reliability.n:
            show_table(("score", "mean", "right", "shown"), reliability_rows(one.reliability))
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            srsly.write_json(temporary, found.scores)
        msg.good(f"Saved the scores to {output}")
    if html is not None:
        names = [pipeline, *([] if against is None else [against])]
        report = make_report(names, str(data), [found, *compared], training=training)
        save_page(draw_page(report), html)
        msg.good(f"Open {html} in a browser to see the report")
        if pictures is not None:
            msg.good(f"{pictures}: {len(save_pictures(pictures_of(report), pictures))} pictures")
