"""`python -m spacy luke corpus`: files with gold mentions, types, relations, links, questions or categories ->
DocBin."""

from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import Any

import typer
from wasabi import msg

from ..annotations import NIL, QUERIES, QUESTIONS
from ..pages.terminal import terminal_width
from ..readers.conversion import FORMAT_NAMES, convert_files
from ..readers.splits import PARTS
from .given import DELIMITER, DOCUMENTS, SCHEME, TAG_COLUMN, WORD_COLUMN, column_settings
from .outputs import check_targets

_LONGEST_LIST = 50  # labels
_GENERAL = ("inputs", "output", "format", "lang", "spans_key", "limit", "shard_words", "tag_column")  # of all formats


def corpus_cli(
    inputs: list[Path] = typer.Argument(..., help="Files, in this order; brat, litbank: folders too.", exists=True),
    output: Path = typer.Argument(..., help="The .spacy file (a folder of them above --shard-words)."),
    format: str = typer.Option(..., "--format", "-f", help=f"{', '.join(FORMAT_NAMES)}."),
    lang: str = typer.Option("en", help="Language of the tokenizer (of real text) and of the vocabulary."),
    spans_key: str | None = typer.Option(None, help="Entities go to doc.spans[KEY]; needed where they are nested."),
    limit: int | None = typer.Option(None, min=1, help="Documents to write in all."),
    shard_words: int = typer.Option(1_000_000, min=1, help="Words a file."),
    word_column: int | None = WORD_COLUMN,
    tag_column: list[int] | None = TAG_COLUMN,
    scheme: str | None = SCHEME,
    delimiter: str | None = DELIMITER,
    documents: str | None = DOCUMENTS,
    comments: str | None = typer.Option(None, help="What comment lines begin with."),
    id_column: int | None = typer.Option(None, help="Column of CoNLL-U ids."),
    misc_column: int | None = typer.Option(None, help="Column of CoNLL-U MISC."),
    align: str | None = typer.Option(
        None, help="Mentions of real text that are not whole words: strict (jsonl), expand, split the words (others)."
    ),
    overlaps: str | None = typer.Option(
        None, help="Entities without --spans-key: error, or outermost, which leaves out what lies inside."
    ),
    spans_field: str | None = typer.Option(None, help="jsonl: the field that has the mentions."),
    text: str | None = typer.Option(None, help="file, or paper: brackets and blanks as LUKE's code reads them."),
    mention_pairs: str | None = typer.Option(None, help="docred, pubtator: all pairs carry a relation, or the first."),
    peoples: str | None = typer.Option(None, help="docred: label of American and the like, there LOC; MISC elsewhere."),
    articles: str | None = typer.Option(
        None, help='docred: keep or drop a "the" that begins names; most data sets drop it.'
    ),
    pronouns: str | None = typer.Option(None, help="knowledge_net: leave out facts of he, she and the like, or keep."),
    gaps: str | None = typer.Option(None, help="brat: mentions with words between their parts: error, cover, skip."),
    kinds: str | None = typer.Option(None, help="litbank: all mentions, or only names."),
    task: str | None = typer.Option(None, help="glue: cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb or wnli."),
    damaged: str | None = typer.Option(None, help="glue, zelda: lines and mentions that are none: error, or skip."),
    tag_names: str | None = typer.Option(None, help="tokens: names of tags that are numbers: O,B-PER,I-PER."),
    part: str | None = typer.Option(
        None,
        help=f"{', '.join(PARTS)}, of data without parts of their own: the same shares of each relation; brat, docred, "
        "pubtator and others: by the documents' titles.",
    ),
    seed: int | None = typer.Option(None, help="What --part shuffles by, 0."),
    shares: str | None = typer.Option(None, help="Of the three parts, 0.8,0.1,0.1."),
    links: Path | None = typer.Option(None, help="aida: WNED's XML with the titles, e.g. aida-testb.xml."),
    candidates: Path | None = typer.Option(None, help="aida: PPRforNED's candidates, the folder or its archive."),
    mention_candidates: Path | None = typer.Option(
        None, exists=True, dir_okay=False, help="squad: names of entities by page, JSON (see page-names)."
    ),
    conll: Path | None = typer.Option(None, exists=True, dir_okay=False, help="deep_ed: the words, e.g. msnbc.conll."),
    persons: Path | None = typer.Option(
        None, exists=True, dir_okay=False, help="deep_ed: titles of persons, who lend parts of their names candidates."
    ),
    titles: Path | None = typer.Option(
        None, exists=True, dir_okay=False, help="deep_ed: titles of Wikipedia; mentions of others are left out."
    ),
    redirects: Path | None = typer.Option(None, exists=True, dir_okay=False, help="deep_ed: title, tab, title."),
    pair_ids: Path | None = typer.Option(
        None, dir_okay=False, help="A tsv file for head, tail and relation of all pairs with ids."
    ),
) -> None:
    """Convert files with gold annotation to the format of `spacy train`, and count what is in them."""
    settings: dict[str, Any] = {name: value for name, value in locals().items() if name not in _GENERAL}
    settings |= column_settings(word_column, tag_column, scheme, delimiter, documents)
    besides = [path for name, path in settings.items() if isinstance(path, Path) and name != "pair_ids"]
    check_targets([output, pair_ids], [*inputs, *besides])
    found = convert_files(
        inputs,
        output,
        format=format,
        lang=lang,
        spans_key=spans_key,
        limit=limit,
        shard_words=shard_words,
        settings=settings,
    )
    where = "" if len(found.files) == 1 else f" ({len(found.files)} files)"
    msg.good(f"{output}{where}: {found.counts['documents']:,} documents, {found.counts['words']:,} words")
    _report(found.counts, found.labels)
    if pair_ids is not None:
        msg.good(f"{pair_ids}: {found.pair_ids:,} pairs of ids")


def _report(counts: Counter[str], labels: dict[str, Counter[str]]) -> None:
    """What was found, a line for each kind and a table of its labels."""
    if counts["sentences"]:
        msg.text(f"{counts['sentences'] + counts['single words']:,} sentences")
    asked = counts[QUESTIONS] + counts[QUERIES]
    other = counts["typed"] or asked or labels["categories"] or counts["second texts"]
    besides = {
        "mentions": [
            (counts["left out"], "left out that lie inside or across others"),
            (counts["linked mentions inside or across others"], 'inside or across others, in doc.spans["luke_links"]'),
        ],
        "types": [
            (counts["typed"], "mentions with types or none"),
            (counts["without types"], "of them without any"),
            (counts["empty mentions"], "without a character, left out"),
        ],
        "relations": [
            (counts["pairs"], "given pairs"),
            (counts["equal relations"], "equal ones counted once"),
            (counts["equal records"], "equal records of the files taken once"),
        ],
        "categories": [(counts["second texts"], "documents with a second text")],
    }
    for name, found in labels.items():
        if found or any(n for n, _ in besides[name]) or (name == "mentions" and not other):
            rest = "".join(f", {n:,} {what}" for n, what in besides[name] if n)
            msg.text(f"{found.total():,} {name}{rest}")
            counted = ", ".join(f"{label} {n:,}" for label, n in found.most_common(_LONGEST_LIST))
            msg.text(fill(counted, width=terminal_width(), initial_indent="  ", subsequent_indent="  "))
            if len(found) > _LONGEST_LIST:
                msg.text(f"and {len(found) - _LONGEST_LIST:,} other labels")
    if counts["linked"] or counts["nil"]:
        msg.text(f"{counts['linked']:,} mentions of entities of a knowledge base, {counts['nil']:,} of others ({NIL})")
    for name, n in counts.items():
        if name.startswith("notes: ") and n:
            msg.text(f"{n:,} {name.removeprefix('notes: ')}")
    if counts["given entities"]:
        msg.text(f"{counts['given entities']:,} given entities")
    for key, name in ((QUESTIONS, "questions"), (QUERIES, "queries")):
        if counts[key]:
            unanswerable = counts[f"{key} unanswerable"]
            rest = f", {unanswerable:,} without an answer" if unanswerable else ""
            msg.text(f"{counts[key]:,} {name}{rest}")
