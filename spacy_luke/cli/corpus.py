"""`python -m spacy luke corpus`: files with words and mentions -> DocBin."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Union

import spacy
import typer
from spacy.tokens import Doc
from wasabi import msg

from ..readers.columns import ColumnCorpus
from ..readers.docbin import write_docbin
from ..readers.formats import FORMATS, layout_of
from ..readers.jsonl import JsonlCorpus

FORMAT_NAMES = sorted([*FORMATS, "jsonl"])


def corpus_command(
    inputs: List[Path] = typer.Argument(..., help="Files to read, in this order.", exists=True, dir_okay=False),
    output: Path = typer.Argument(..., help="The .spacy file (a folder of them above --shard-words)."),
    format: str = typer.Option(..., "--format", "-f", help=f"{', '.join(FORMAT_NAMES)}."),
    lang: str = typer.Option("en", help="Language of the tokenizer (jsonl) and of the vocabulary."),
    spans_key: Optional[str] = typer.Option(None, help="Mentions go to doc.spans[KEY]; needed where they are nested."),
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
    align: str = typer.Option("strict", help="jsonl: strict, or expand mentions to whole words."),
    overlaps: Optional[str] = typer.Option(
        None, help="jsonl without --spans-key: error, or outermost, which leaves out what lies inside."
    ),
    spans_field: Optional[str] = typer.Option(None, help="jsonl: the field that has the mentions."),
) -> None:
    """Convert files with gold mentions to the format of `spacy train`, and count what is in them."""
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
    jsonl = {"align": None if align == "strict" else align, "overlaps": overlaps, "spans_field": spans_field}
    try:
        if format not in FORMAT_NAMES:
            raise ValueError(f"format must be one of {FORMAT_NAMES}, but it is {format!r}.")
        unused = layout if format == "jsonl" else jsonl
        if given := [name for name, value in unused.items() if value is not None]:
            raise ValueError(f"The format {format} has no use for {', '.join(given)}.")
        counts: Counter = Counter()
        docs = _read_docs(inputs, format, lang=lang, spans_key=spans_key, layout=layout, jsonl=jsonl, counts=counts)
        labels: Counter = Counter()
        counted = _count(islice(docs, limit), counts, labels, spans_key)
        files = write_docbin(counted, output, shard_words=shard_words)
    except (ValueError, OSError) as error:
        msg.fail("Nothing was written.", str(error), exits=1)
    where = "" if len(files) == 1 else f" ({len(files)} files)"
    msg.good(f"{output}{where}: {counts['documents']:,} documents, {counts['words']:,} words")
    if counts["sentences"]:
        msg.text(f"{counts['sentences']:,} sentences")
    without = f", {counts['left out']:,} left out that lie inside or across others" if counts["left out"] else ""
    msg.text(f"{sum(labels.values()):,} mentions{without}")
    msg.table([(label, f"{count:,}") for label, count in labels.most_common()], aligns=("l", "r"))


def _read_docs(
    inputs: List[Path], format: str, *, lang: str, spans_key: Optional[str], layout: dict, jsonl: dict, counts: Counter
) -> Iterator[Doc]:
    nlp = spacy.blank(lang)
    for path in inputs:
        if format == "jsonl":
            settings = {name: value for name, value in jsonl.items() if value is not None}
            corpus = JsonlCorpus(path, spans_key=spans_key, **settings)
            before = counts["left out"]
            for doc in corpus.docs(nlp):
                counts["left out"] = before + corpus.left_out
                yield doc
        else:
            columns = ColumnCorpus(path, layout=layout_of(format, **layout), spans_key=spans_key)
            yield from columns.docs(nlp.vocab)


def _count(docs: Iterable[Doc], counts: Counter, labels: Counter, spans_key: Optional[str]) -> Iterator[Doc]:
    for doc in docs:
        counts["documents"] += 1
        counts["words"] += len(doc)
        counts["sentences"] += sum(1 for _ in doc.sents) if doc.has_annotation("SENT_START") else 0
        labels.update(span.label_ for span in (doc.ents if spans_key is None else doc.spans[spans_key]))
        yield doc


def _number_or_name(documents: Optional[str]) -> Union[str, int, None]:
    return int(documents) if documents and documents.isdecimal() else documents
