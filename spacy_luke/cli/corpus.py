"""`python -m spacy luke corpus`: files with gold mentions, types, relations or questions -> DocBin."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

import spacy
import typer
from spacy.tokens import Doc
from wasabi import msg

from ..readers.columns import ColumnCorpus
from ..readers.datasets import DATASETS, dataset_docs
from ..readers.docbin import write_docbin
from ..readers.formats import FORMATS, layout_of
from ..readers.jsonl import JsonlCorpus

FORMAT_NAMES = sorted([*FORMATS, *DATASETS, "jsonl"])
LONGEST_TABLE = 50  # labels


def corpus_command(
    inputs: List[Path] = typer.Argument(..., help="Files to read, in this order.", exists=True, dir_okay=False),
    output: Path = typer.Argument(..., help="The .spacy file (a folder of them above --shard-words)."),
    format: str = typer.Option(..., "--format", "-f", help=f"{', '.join(FORMAT_NAMES)}."),
    lang: str = typer.Option("en", help="Language of the tokenizer (of real text) and of the vocabulary."),
    spans_key: Optional[str] = typer.Option(None, help="Entities go to doc.spans[KEY]; needed where they are nested."),
    limit: Optional[int] = typer.Option(None, min=1, help="Documents to write in all."),
    shard_words: int = typer.Option(1_000_000, min=1, help="Words a file."),
    word_column: Optional[int] = typer.Option(None, help="Column of the words, from 0."),
    tag_column: Optional[List[int]] = typer.Option(None, help="Column of tags; repeat it for layers of nested tags."),
    scheme: Optional[str] = typer.Option(None, help="auto, or a scheme to insist on: IOB1, IOB2, BIOES, BILOU."),
    delimiter: Optional[str] = typer.Option(None, help="What stands between columns; tab: \\t."),
    documents: Optional[str] = typer.Option(None, help="docstart, newdoc, file, or a number of sentences."),
    comments: Optional[str] = typer.Option(None, help="What comment lines begin with."),
    id_column: Optional[int] = typer.Option(None, help="Column of CoNLL-U ids."),
    misc_column: Optional[int] = typer.Option(None, help="Column of CoNLL-U MISC."),
    align: Optional[str] = typer.Option(
        None, help="Mentions of real text that are not whole words: strict (jsonl), expand, split the words (others)."
    ),
    overlaps: Optional[str] = typer.Option(
        None, help="Entities without --spans-key: error, or outermost, which leaves out what lies inside."
    ),
    spans_field: Optional[str] = typer.Option(None, help="jsonl: the field that has the mentions."),
    text: Optional[str] = typer.Option(
        None, help="file, or paper: brackets and blanks as the original LUKE code reads them."
    ),
    mention_pairs: Optional[str] = typer.Option(
        None, help="docred: all pairs of mentions carry a relation, or the first."
    ),
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
    }
    counts: Counter = Counter()
    labels: Dict[str, Counter] = {name: Counter() for name in ("mentions", "types", "relations")}
    try:
        settings = _used_settings(format, layout, other)
        docs = _read_docs(inputs, format, lang=lang, spans_key=spans_key, settings=settings, counts=counts)
        files = write_docbin(_count(islice(docs, limit), counts, labels, spans_key), output, shard_words=shard_words)
    except (ValueError, OSError) as error:
        msg.fail("Nothing was written.", str(error), exits=1)
    where = "" if len(files) == 1 else f" ({len(files)} files)"
    msg.good(f"{output}{where}: {counts['documents']:,} documents, {counts['words']:,} words")
    _report(counts, labels)


def _used_settings(format: str, layout: Dict[str, Any], other: Dict[str, Any]) -> Dict[str, Any]:
    """Those that are given; ValueError for one that the format has no use for."""
    if format not in FORMAT_NAMES:
        raise ValueError(f"format must be one of {FORMAT_NAMES}, but it is {format!r}.")
    if format in FORMATS:
        useful = set(layout)
    elif format == "jsonl":
        useful = {"align", "overlaps", "spans_field"}
    else:
        useful = {"overlaps", *DATASETS[format].settings, *(["align"] if DATASETS[format].has_text else [])}
    given = {name: value for name, value in {**layout, **other}.items() if value is not None}
    if useless := [name for name in given if name not in useful]:
        raise ValueError(f"The format {format} has no use for {', '.join(useless)}.")
    return given


def _read_docs(
    inputs: List[Path],
    format: str,
    *,
    lang: str,
    spans_key: Optional[str],
    settings: Dict[str, Any],
    counts: Counter,
) -> Iterator[Doc]:
    nlp = spacy.blank(lang)
    for path in inputs:
        if format == "jsonl":
            yield from JsonlCorpus(path, spans_key=spans_key, counts=counts, **settings).docs(nlp)
        elif format in DATASETS:
            yield from dataset_docs(nlp, path, format=format, spans_key=spans_key, counts=counts, **settings)
        else:
            columns = ColumnCorpus(path, layout=layout_of(format, **settings), spans_key=spans_key)
            yield from columns.docs(nlp.vocab)


def _count(docs: Iterable[Doc], counts: Counter, labels: Dict[str, Counter], spans_key: Optional[str]) -> Iterator[Doc]:
    for doc in docs:
        counts["documents"] += 1
        counts["words"] += len(doc)
        counts["sentences"] += sum(1 for _ in doc.sents) if doc.has_annotation("SENT_START") else 0
        entities = doc.ents if spans_key is None else doc.spans.get(spans_key, [])
        labels["mentions"].update(span.label_ for span in entities)
        if "luke_types" in doc.spans:
            typed = list(doc.spans["luke_types"])
            counts["typed"] += len({(span.start, span.end) for span in typed})
            counts["without types"] += sum(not span.label_ for span in typed)
            labels["types"].update(span.label_ for span in typed if span.label_)
        labels["relations"].update(row[4] for row in doc.user_data.get("luke_relations", []))
        counts["pairs"] += len(doc.user_data.get("luke_pairs", []))
        for name in ("luke_questions", "luke_queries"):
            counts[name] += len(doc.user_data.get(name, []))
            counts[f"{name} unanswerable"] += sum(
                item.get("answers") in ([], ()) for item in doc.user_data.get(name, [])
            )
        yield doc


def _report(counts: Counter, labels: Dict[str, Counter]) -> None:
    """What was found, a line for each kind and a table of its labels."""
    if counts["sentences"]:
        msg.text(f"{counts['sentences']:,} sentences")
    asked = counts["luke_questions"] + counts["luke_queries"]
    besides = {
        "mentions": [(counts["left out"], "left out that lie inside or across others")],
        "types": [(counts["typed"], "mentions with types or none"), (counts["without types"], "of them without any")],
        "relations": [(counts["pairs"], "given pairs"), (counts["equal relations"], "equal ones counted once")],
    }
    for name, found in labels.items():
        if found or any(n for n, _ in besides[name]) or (name == "mentions" and not counts["typed"] and not asked):
            rest = "".join(f", {n:,} {what}" for n, what in besides[name] if n)
            msg.text(f"{found.total():,} {name}{rest}")
            msg.table([(label, f"{n:,}") for label, n in found.most_common(LONGEST_TABLE)], aligns=("l", "r"))
            if len(found) > LONGEST_TABLE:
                msg.text(f"and {len(found) - LONGEST_TABLE:,} other labels")
    for key, name in (("luke_questions", "questions"), ("luke_queries", "queries")):
        if counts[key]:
            unanswerable = counts[f"{key} unanswerable"]
            rest = f", {unanswerable:,} without an answer" if unanswerable else ""
            msg.text(f"{counts[key]:,} {name}{rest}")


def _number_or_name(documents: Optional[str]) -> Union[str, int, None]:
    return int(documents) if documents and documents.isdecimal() else documents
