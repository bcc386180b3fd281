"""Files with gold annotation of any known format become .spacy files, and what is in them is counted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc

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
from ..stores.opening import find_files
from .column_layouts import COLUMN_LAYOUTS, ColumnLayout, layout_of
from .conll import column_docs
from .datasets.table import DATASETS, read_dataset
from .docbin import write_docbin
from .jsonl import jsonl_docs
from .records import Record, make_doc
from .splits import SHARES, choose_by_title, divide_records, write_pair_ids

FORMAT_NAMES = sorted([*COLUMN_LAYOUTS, *DATASETS, "jsonl"])
_NOTES = "notes: "  # what counts of a reader begin with that are for the user
_TEXT = ".txt"  # of what `Dataset.suffix` lies beside
_DOC_SETTINGS = ("align", "overlaps")  # of a data set's Docs; others are of its file


@dataclass
class ConversionReport:
    """files: that were written; pair_ids: lines of the file of pairs with ids; counts: of documents, words, mentions
    and so on, by what they are; labels: of mentions, types, relations and categories."""

    files: Sequence[Path] = ()
    pair_ids: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("mentions", "types", "relations", "categories")}
    )


def convert_files(
    inputs: Sequence[Path],
    output: Path,
    *,
    format: str,
    lang: str = "en",
    spans_key: str | None = None,
    limit: int | None = None,
    shard_words: int = 1_000_000,
    settings: Mapping[str, Any] = {},
) -> ConversionReport:
    """Convert files, in this order, to one .spacy file, or a folder of them above `shard_words` words.

    inputs: of formats with a file a document also folders: all such files below them, by their names.
    format: of FORMAT_NAMES. lang: of the tokenizer. spans_key: entities go to this group, not to doc.ents. limit:
    documents to write. settings: of the format, "pair_ids" a file to write among them; None is as if it was not given.
    Raises ValueError for a setting that the format has no use for, and where there are no documents.
    """
    used = _used_settings(format, settings)
    found = ConversionReport()
    pair_ids: Path | None = used.get("pair_ids")
    written: list[Record] | None = None if pair_ids is None else []
    docs = _read_docs(
        _files(inputs, format, found.counts),
        format,
        lang=lang,
        spans_key=spans_key,
        settings=used,
        counts=found.counts,
        written=written,
    )
    counted = _count(islice(docs, limit), found.counts, found.labels, spans_key)
    found.files = write_docbin(counted, output, shard_words=shard_words)
    if pair_ids is not None and written is not None:
        found.pair_ids = write_pair_ids(written, pair_ids)
    return found


def _files(inputs: Sequence[Path], format: str, counts: Counter[str]) -> list[Path]:
    """Each folder in the place of the files that are read of it; hidden ones are not. counts: gets its texts that have
    no such file under "notes: ..."."""
    suffix = DATASETS[format].suffix if format in DATASETS else ""
    files = []
    for path in inputs:
        if not path.is_dir():
            files.append(path)
        elif not suffix:
            raise ValueError(f"{path}: expected files of the format {format}, but this is a folder: give its files.")
        elif found := find_files(path, suffix):
            files += found
            bare = {x.with_suffix(suffix) for x in find_files(path, _TEXT)} - set(found)
            counts.update({f"{_NOTES}texts without their file {suffix}, left out": len(bare)} if bare else {})
        else:
            raise ValueError(f"{path}: expected files *{suffix} in the folder, but it has none.")
    return files


def _used_settings(format: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are given; ValueError for one that the format has no use for."""
    if format not in FORMAT_NAMES:
        raise ValueError(f"format must be one of {FORMAT_NAMES}, but it is {format!r}.")
    if format in COLUMN_LAYOUTS:
        useful = {x.name for x in fields(ColumnLayout)}
    elif format == "jsonl":
        useful = {"align", "overlaps", "spans_field"}
    else:
        useful = {"overlaps", *DATASETS[format].settings, *(["align"] if DATASETS[format].has_text else [])}
        by_seed = settings.get("part") and not DATASETS[format].titled
        useful |= {"part", "pair_ids"} | ({"seed", "shares"} if by_seed else set())
    given = {name: value for name, value in settings.items() if value is not None}
    if useless := [name for name in given if name not in useful]:
        divided = {"seed", "shares"} & set(useless) and "part" in useful
        without = " without part" if divided and not DATASETS[format].titled else ""
        raise ValueError(f"The format {format} has no use for {', '.join(useless)}{without}.")
    return given


def _read_docs(
    inputs: Sequence[Path],
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
        own = {name: settings[name] for name in _DOC_SETTINGS if name in settings}
        for record in _records(inputs, format, settings, counts):
            doc = make_doc(nlp, record, spans_key=spans_key, counts=counts, **own)
            if written is not None:
                written.append(record)
            yield doc
        return
    for path in inputs:
        if format == "jsonl":
            yield from jsonl_docs(nlp, path, spans_key=spans_key, counts=counts, **settings)
        else:
            yield from column_docs(nlp.vocab, path, layout_of(format, **settings), spans_key=spans_key)


def _records(inputs: Sequence[Path], format: str, settings: dict[str, Any], counts: Counter[str]) -> Iterable[Record]:
    """Those of all inputs, or of the part that is asked for."""
    own = {name: settings[name] for name in DATASETS[format].settings if name in settings}
    records = chain.from_iterable(read_dataset(path, format=format, **own) for path in inputs)
    if "part" not in settings:
        return records
    if DATASETS[format].titled:
        return choose_by_title(records, part=settings["part"])
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
        if doc.has_annotation("SENT_START"):  # which spaCy says of each Doc of one word
            counts["sentences" if len(doc) > 1 else "single words"] += sum(1 for _ in doc.sents)
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
    if not counts["documents"]:
        notes = [f"{n:,} {name.removeprefix(_NOTES)}" for name, n in counts.items() if name.startswith(_NOTES) and n]
        raise ValueError(f"Expected documents, but there are none{': ' if notes else ''}{'; '.join(notes)}.")
