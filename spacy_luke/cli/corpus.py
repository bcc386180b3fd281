"""`python -m spacy luke corpus`: files with gold mentions, types, relations, links, questions or categories ->
DocBin."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import spacy
import typer
from spacy.tokens import Doc
from wasabi import msg

from ..annotations import (
    LINKS,
    NIL,
    QUERIES,
    QUESTIONS,
    TYPES,
    UNLINKED,
    get_knowledge,
    get_pair_rows,
    get_relation_rows,
    get_rows,
    get_second,
)
from ..readers.column_layouts import FORMATS, layout_of
from ..readers.conll import ColumnCorpus
from ..readers.datasets.table import DATASETS, read_dataset
from ..readers.docbin import write_docbin
from ..readers.jsonl import JsonlCorpus
from ..readers.records import Record, make_doc
from ..readers.splits import PARTS, SHARES, divide_records, write_pair_ids

FORMAT_NAMES = sorted([*FORMATS, *DATASETS, "jsonl"])
LONGEST_TABLE = 50  # labels
DOC_SETTINGS = ("align", "overlaps")  # of a data set's Docs; others are of its file


def corpus_command(
    inputs: list[Path] = typer.Argument(..., help="Files to read, in this order.", exists=True, dir_okay=False),
    output: Path = typer.Argument(..., help="The .spacy file (a folder of them above --shard-words)."),
    format: str = typer.Option(..., "--format", "-f", help=f"{', '.join(FORMAT_NAMES)}."),
    lang: str = typer.Option("en", help="Language of the tokenizer (of real text) and of the vocabulary."),
    spans_key: str | None = typer.Option(None, help="Entities go to doc.spans[KEY]; needed where they are nested."),
    limit: int | None = typer.Option(None, min=1, help="Documents to write in all."),
    shard_words: int = typer.Option(1_000_000, min=1, help="Words a file."),
    word_column: int | None = typer.Option(None, help="Column of the words, from 0."),
    tag_column: list[int] | None = typer.Option(None, help="Column of tags; repeat it for layers of nested tags."),
    scheme: str | None = typer.Option(None, help="auto, or a scheme to insist on: IOB1, IOB2, BIOES, BILOU."),
    delimiter: str | None = typer.Option(None, help="What stands between columns; tab: \\t."),
    documents: str | None = typer.Option(None, help="docstart, newdoc, file, or a number of sentences."),
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
    text: str | None = typer.Option(
        None, help="file, or paper: brackets and blanks as the original LUKE code reads them."
    ),
    mention_pairs: str | None = typer.Option(
        None, help="docred: all pairs of mentions carry a relation, or the first."
    ),
    task: str | None = typer.Option(None, help="glue: cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb or wnli."),
    damaged: str | None = typer.Option(None, help="glue: lines that are no lines: error, or skip with a warning."),
    part: str | None = typer.Option(
        None, help=f"Of relations without parts of their own: {', '.join(PARTS)}, the same shares of each relation."
    ),
    seed: int | None = typer.Option(None, help="What --part shuffles by, 0."),
    shares: str | None = typer.Option(None, help="Of the three parts, 0.8,0.1,0.1."),
    links: Path | None = typer.Option(None, help="aida: WNED's XML with the titles, e.g. aida-testb.xml."),
    candidates: Path | None = typer.Option(None, help="aida: PPRforNED's candidates, the folder or its archive."),
    pair_ids: Path | None = typer.Option(None, help="A tsv file for head, tail and relation of all pairs with ids."),
) -> None:
    """Convert files with gold annotation to the format of `spacy train`, and count what is in them."""
    layout = {
        "word_column": word_column,
        "tag_columns": tag_column or None,
        "scheme": scheme,
        "delimiter": delimiter and delimiter.replace("\\t", "\t"),
        "documents": _number_or_name(documents),
        "comments": comments,
        "id_column": id_column,
        "misc_column": misc_column,
    }
    other = {
        "align": align,
        "overlaps": overlaps,
        "spans_field": spans_field,
        "text": text,
        "mention_pairs": mention_pairs,
        "task": task,
        "damaged": damaged,
        "links": links,
        "candidates": candidates,
        "part": part,
        "seed": seed,
        "shares": shares,
        "pair_ids": pair_ids,
    }
    written: list[Record] = []
    counts: Counter[str] = Counter()
    labels: dict[str, Counter[str]] = {name: Counter() for name in ("mentions", "types", "relations", "categories")}
    settings = _used_settings(format, layout, other)
    docs = _read_docs(
        inputs,
        format,
        lang=lang,
        spans_key=spans_key,
        settings=settings,
        counts=counts,
        written=None if pair_ids is None else written,
    )
    files = write_docbin(_count(islice(docs, limit), counts, labels, spans_key), output, shard_words=shard_words)
    n_pairs = 0 if pair_ids is None else write_pair_ids(written, pair_ids)
    where = "" if len(files) == 1 else f" ({len(files)} files)"
    msg.good(f"{output}{where}: {counts['documents']:,} documents, {counts['words']:,} words")
    _report(counts, labels)
    if pair_ids is not None:
        msg.good(f"{pair_ids}: {n_pairs:,} pairs of ids")


def _used_settings(format: str, layout: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Those that are given; ValueError for one that the format has no use for."""
    if format not in FORMAT_NAMES:
        raise ValueError(f"format must be one of {FORMAT_NAMES}, but it is {format!r}.")
    if format in FORMATS:
        useful = set(layout)
    elif format == "jsonl":
        useful = {"align", "overlaps", "spans_field"}
    else:
        useful = {"overlaps", *DATASETS[format].settings, *(["align"] if DATASETS[format].has_text else [])}
        useful |= {"part", "pair_ids"} | ({"seed", "shares"} if other["part"] else set())
    given = {name: value for name, value in {**layout, **other}.items() if value is not None}
    if useless := [name for name in given if name not in useful]:
        without = " without part" if {"seed", "shares"} & set(useless) and "part" in useful else ""
        raise ValueError(f"The format {format} has no use for {', '.join(useless)}{without}.")
    return given


def _read_docs(
    inputs: list[Path],
    format: str,
    *,
    lang: str,
    spans_key: str | None,
    settings: dict[str, Any],
    counts: Counter[str],
    written: list[Record] | None,
) -> Iterator[Doc]:
    """Docs of all inputs. written: gets the records of a data set whose Docs are taken."""
    nlp = spacy.blank(lang)
    if format in DATASETS:
        own = {name: settings[name] for name in DOC_SETTINGS if name in settings}
        for record in _records(inputs, format, settings, counts):
            doc = make_doc(nlp, record, spans_key=spans_key, counts=counts, **own)
            if written is not None:
                written.append(record)
            yield doc
        return
    for path in inputs:
        if format == "jsonl":
            yield from JsonlCorpus(path, spans_key=spans_key, counts=counts, **settings).docs(nlp)
        else:
            columns = ColumnCorpus(path, layout=layout_of(format, **settings), spans_key=spans_key)
            yield from columns.docs(nlp.vocab)


def _records(inputs: list[Path], format: str, settings: dict[str, Any], counts: Counter[str]) -> Iterable[Record]:
    """Those of all inputs, or of the part that is asked for."""
    own = {name: settings[name] for name in DATASETS[format].settings if name in settings}
    records = chain.from_iterable(read_dataset(path, format=format, **own) for path in inputs)
    if "part" not in settings:
        return records
    return divide_records(
        records,
        part=settings["part"],
        seed=settings.get("seed", 0),
        shares=_numbers(settings["shares"]) if "shares" in settings else SHARES,
        counts=counts,
    )


def _numbers(shares: str) -> list[float]:
    try:
        return [float(share) for share in shares.split(",")]
    except ValueError:
        raise ValueError(
            f"shares must be three numbers with commas, such as 0.8,0.1,0.1, but it is {shares!r}."
        ) from None


def _count(
    docs: Iterable[Doc], counts: Counter[str], labels: dict[str, Counter[str]], spans_key: str | None
) -> Iterator[Doc]:
    for doc in docs:
        counts["documents"] += 1
        counts["words"] += len(doc)
        counts["sentences"] += sum(1 for _ in doc.sents) if doc.has_annotation("SENT_START") else 0
        entities = doc.ents if spans_key is None else doc.spans.get(spans_key, [])
        labels["mentions"].update(span.label_ for span in entities)
        linked = doc.spans[LINKS] if LINKS in doc.spans else entities
        counts["linked"] += sum(span.kb_id_ not in UNLINKED for span in linked)
        counts["nil"] += sum(span.kb_id_ == NIL for span in linked)
        if TYPES in doc.spans:
            typed = list(doc.spans[TYPES])
            counts["typed"] += len({(span.start, span.end) for span in typed})
            counts["without types"] += sum(not span.label_ for span in typed)
            labels["types"].update(span.label_ for span in typed if span.label_)
        if doc.cats:
            labels["categories"].update([max(doc.cats, key=doc.cats.__getitem__)])
        counts["second texts"] += get_second(doc) is not None
        counts["given entities"] += len(get_knowledge(doc))
        labels["relations"].update(row.label for row in get_relation_rows(doc) or [])
        counts["pairs"] += len(get_pair_rows(doc) or [])
        for name in (QUESTIONS, QUERIES):
            asked = get_rows(doc, name) or []
            counts[name] += len(asked)
            counts[f"{name} unanswerable"] += sum(item.get("answers") == [] for item in asked)
        yield doc


def _report(counts: Counter[str], labels: dict[str, Counter[str]]) -> None:
    """What was found, a line for each kind and a table of its labels."""
    if counts["sentences"]:
        msg.text(f"{counts['sentences']:,} sentences")
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
            msg.table([(label, f"{n:,}") for label, n in found.most_common(LONGEST_TABLE)], aligns=("l", "r"))
            if len(found) > LONGEST_TABLE:
                msg.text(f"and {len(found) - LONGEST_TABLE:,} other labels")
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


def _number_or_name(documents: str | None) -> str | int | None:
    return int(documents) if documents and documents.isdecimal() else documents
