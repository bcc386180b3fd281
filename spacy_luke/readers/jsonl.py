"""JSON lines: a text and the character offsets of its mentions, as annotation tools write them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import filter_spans, registry

SPANS_FIELDS = ("spans", "entities", "label", "labels")  # Prodigy; doccano with and without relations
ALIGN = ("strict", "expand")
OVERLAPS = ("error", "outermost")


@dataclass(frozen=True)
class JsonlRecord:
    """One line of the file."""

    line: int  # from 1
    text: str
    spans: List[Tuple[int, int, str]]  # characters [start, end) of the text, and the label


def read_jsonl(path: Union[str, Path], *, spans_field: Optional[str] = None) -> Iterator[JsonlRecord]:
    """Records of a file, one after another.

    A line is an object with "text" and a list of mentions, each `[start, end, label]` or an object with "start",
    "end" (or "start_offset", "end_offset") and "label". The list stands under `spans_field`, or under the one of
    "spans", "entities", "label" and "labels" that is there. Other fields are not read.

    Raises ValueError, naming the line, for a line that is not such an object, and for offsets outside the text.
    """
    path = Path(path)
    n_records = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.strip():
                n_records += 1
                yield _parse_line(f"{path}, line {number}", number, raw, spans_field)
    if not n_records:
        raise ValueError(f"{path}: expected JSON lines, but the file holds none.")


@registry.readers("spacy-luke.JsonlCorpus.v1")
def make_jsonl_corpus(
    path: Optional[Union[str, Path]],
    spans_key: Optional[str] = None,
    spans_field: Optional[str] = None,
    align: str = "strict",
    overlaps: str = "error",
    limit: Optional[int] = None,
) -> Callable[[Language], Iterator[Example]]:
    """A corpus for `spacy train` from JSON lines; a line is a Doc.

    spans_key: the mentions go to doc.spans[spans_key]; None: to doc.ents, which cannot hold overlapping ones.
    spans_field: where a line has its mentions; None: see `read_jsonl`.
    align: "strict": a mention that does not begin and end with a word is an error; "expand": it grows to whole words.
    overlaps: where mentions overlap and go to doc.ents, "error", or "outermost": the longest is kept, then the first.
    limit: lines to read, from 1; None: all.
    """
    if path is None:
        raise ValueError("A JSONL corpus needs the path of its file, but it is None; set it, or give --paths.train.")
    return JsonlCorpus(
        path, spans_key=spans_key, spans_field=spans_field, align=align, overlaps=overlaps, limit=limit
    )


def make_doc(
    nlp: Language,
    record: JsonlRecord,
    *,
    spans_key: Optional[str] = None,
    align: str = "strict",
    overlaps: str = "error",
    source: str = "JSONL",
) -> Doc:
    """The text in the pipeline's words, with its gold mentions in doc.spans[spans_key] or in doc.ents.

    Raises ValueError, naming line, text and offsets, for a mention that does not align (see `make_jsonl_corpus`),
    and for overlapping mentions where they go to doc.ents and overlaps is "error". Equal mentions count once.
    """
    doc = nlp.make_doc(record.text)
    spans = [_align_span(doc, span, record, align=align, source=source) for span in sorted(set(record.spans))]
    spans = sorted(set(spans), key=lambda span: (span.start, span.end, span.label_))
    if spans_key is not None:
        doc.spans[spans_key] = spans
        return doc
    kept = filter_spans(spans)
    if len(kept) < len(spans) and overlaps == "error":
        lost = next(span for span in spans if span not in kept)
        other = next(span for span in kept if span.start < lost.end and lost.start < span.end)
        raise ValueError(
            f"{source}, line {record.line}: mentions {_describe(other)} and {_describe(lost)} overlap, which doc.ents "
            f"cannot hold; set spans_key, e.g. to 'sc', to keep all in doc.spans, or overlaps to 'outermost'."
        )
    doc.set_ents(kept)
    return doc


class JsonlCorpus:
    """Examples of one JSONL file for `spacy train`."""

    def __init__(
        self,
        path: Union[str, Path],
        *,
        spans_key: Optional[str] = None,
        spans_field: Optional[str] = None,
        align: str = "strict",
        overlaps: str = "error",
        limit: Optional[int] = None,
    ) -> None:
        if align not in ALIGN:
            raise ValueError(f"align must be one of {ALIGN}, but it is {align!r}.")
        if overlaps not in OVERLAPS:
            raise ValueError(f"overlaps must be one of {OVERLAPS}, but it is {overlaps!r}.")
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be a number of lines from 1, or None for all, but it is {limit}.")
        self.path = Path(path)
        self.spans_key = spans_key
        self.spans_field = spans_field
        self.align = align
        self.overlaps = overlaps
        self.left_out = 0  # mentions that overlaps = "outermost" has left out so far
        self.limit = limit

    def docs(self, nlp: Language) -> Iterator[Doc]:
        for n_read, record in enumerate(read_jsonl(self.path, spans_field=self.spans_field), 1):
            doc = make_doc(
                nlp,
                record,
                spans_key=self.spans_key,
                align=self.align,
                overlaps=self.overlaps,
                source=str(self.path),
            )
            if self.spans_key is None:
                self.left_out += len(set(record.spans)) - len(doc.ents)
            yield doc
            if n_read == self.limit:
                return

    def __call__(self, nlp: Language) -> Iterator[Example]:
        for gold in self.docs(nlp):
            yield Example(nlp.make_doc(gold.text), gold)


def _parse_line(where: str, number: int, raw: bytes, spans_field: Optional[str]) -> JsonlRecord:
    try:
        data = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except ValueError as error:
        raise ValueError(f"{where}: expected a JSON object in UTF-8, but got {raw[:80]!r} ({error}).") from None
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise ValueError(f"{where}: expected an object with a string under 'text', but got {str(data)[:80]!r}.")
    wanted = SPANS_FIELDS if spans_field is None else (spans_field,)
    there = [name for name in wanted if isinstance(data.get(name), list)]
    if len(there) != 1:
        raise ValueError(
            f"{where}: expected one list of mentions under {' or '.join(map(repr, wanted))} (empty for a text without "
            f"any), but found {there or 'none'} among {sorted(data)}; set spans_field to the one to read."
        )
    text = data["text"]
    return JsonlRecord(number, text, [_parse_span(where, text, item) for item in data[there[0]]])


def _parse_span(where: str, text: str, item: Any) -> Tuple[int, int, str]:
    parts = item
    if isinstance(item, dict):
        start, end = (item.get(name, item.get(f"{name}_offset")) for name in ("start", "end"))
        parts = [start, end, item.get("label")]
    is_triple = isinstance(parts, list) and len(parts) == 3
    if not is_triple or [type(part) for part in parts] != [int, int, str] or not parts[2]:
        raise ValueError(
            f"{where}: expected a mention as [start, end, label] or an object with these, but got {item!r}."
        )
    start, end, label = parts
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise ValueError(
            f"{where}: mention {item!r} must hold characters of the text, which has {len(text)} of them, and not blanks "
            f"alone."
        )
    return start, end, label


def _align_span(doc: Doc, span: Tuple[int, int, str], record: JsonlRecord, *, align: str, source: str) -> Span:
    start, end, label = span
    if align == "expand":  # blanks at the edges belong to no mention, and would pull in the next word
        piece = record.text[start:end]
        start, end = start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
    aligned = doc.char_span(start, end, label=label, alignment_mode=align)
    if aligned is None:
        near = doc.char_span(start, end, alignment_mode="expand")
        raise ValueError(
            f"{source}, line {record.line}: mention [{start}, {end}, {label!r}] is {record.text[start:end]!r}, which does "
            f"not begin and end with a word; the words there are {[word.text for word in near or ()]}. Mend the offsets, or "
            f"set align to 'expand'."
        )
    return aligned


def _describe(span: Span) -> str:
    return f"[{span.start_char}, {span.end_char}, {span.label_!r}] {span.text!r}"
