"""Files with a word a line and its tags in columns: CoNLL-2003, WNUT, nested GENIA, CoNLL-U, GUM.

`read_columns` gives whole documents in plain Python; the corpus `spacy-luke.ColumnCorpus.v1` gives them to
`spacy train`. The words of the file are kept, so predictions and gold have the same words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, Span
from spacy.util import registry
from spacy.vocab import Vocab

from ..stores.plain_text import check_line_end
from ..text.scripts import judged_blanks
from .column_layouts import ColumnLayout, layout_of
from .corpora import GoldDocs, corpus
from .given import copy_words
from .lines import decode_line
from .schemes import TagError, WordMention, decode_brackets, decode_tags

_BLANKS = re.compile("[ \t]+")
_MULTIWORD_ID = re.compile(r"\d+-(\d+)")
_EMPTY_WORD_ID = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class ColumnDocument:
    """One document. Mentions count words of the document, not of the sentence."""

    words: list[str]
    sentence_starts: list[int]  # first word of each sentence
    layers: list[list[WordMention]]  # one a tag column; mentions of one layer from tags never overlap
    spaces: list[bool] | None = None  # whether a blank follows each word; None: unknown


@dataclass
class Sentence:
    """Rows as they stand in the file."""

    opens_document: bool = False  # a document mark stands before it
    entity_fields: list[str] | None = None  # the last `# global.Entity` before it
    words: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # line number of each word, from 1
    tags: list[list[str]] = field(default_factory=list)  # a list of cells for each word
    spaces: list[bool] = field(default_factory=list)


def read_columns(path: str | Path, *, format: str = "columns", **settings: Any) -> Iterator[ColumnDocument]:
    """Documents of a file, one after another; only one is in memory.

    settings: the fields of `ColumnLayout`, where they differ from those of the format.

    Blank lines end sentences, `-DOCSTART-` lines never count as words. With documents = n, every n sentences are a
    document, and none crosses a mark. Raises ValueError, naming the line, for a row with other columns than the
    first one, an empty word, a tag that cannot be read, bytes that are not UTF-8, a carriage return without a line
    feed, and for a file without words or without the document marks that it should have.
    """
    return _read_documents(Path(path), layout_of(format, **settings))


@registry.readers("spacy-luke.ColumnCorpus.v1")
@corpus(noun="documents")
def make_column_corpus(
    path: str | Path | None,
    format: str = "columns",
    spans_key: str | None = None,
    word_column: int | None = None,
    tag_columns: list[int] | None = None,
    scheme: str | None = None,
    delimiter: str | None = None,
    documents: int | str | None = None,
    comments: str | None = None,
    id_column: int | None = None,
    misc_column: int | None = None,
    gold_sentences: bool = False,
) -> GoldDocs:
    """A corpus for `spacy train` from a file with columns.

    path: the file.
    format: conll2003, wnut, genia, conllu, gum, or columns with settings of your own.
    spans_key: the mentions go to doc.spans[spans_key]; None: to doc.ents, which cannot hold nested ones.
    gold_sentences: whether the pipeline is given the file's sentence boundaries too, as in the papers.
    word_column: the column of the words. Columns count from 0, negative ones from the end; None: as in the format.
    tag_columns: those of the tags; several are layers of nested mentions.
    scheme: of the tags: auto, IOB1, IOB2, BIOES or BILOU; those that are named demand valid sequences.
    delimiter: what stands between columns; None: as in the format, mostly runs of blanks and tabs.
    documents: what begins a document: "docstart", "newdoc" (a comment), a number of sentences; "file": there is one.
    comments: what comment lines begin with.
    id_column: of CoNLL-U's ids: 3-4 (a multiword token) and 8.1 (an empty word) are not words.
    misc_column: of CoNLL-U's MISC, for SpaceAfter=No; without it nobody knows where blanks stood.
    """
    if path is None:
        raise ValueError("A column corpus needs the path of its file, but it is None; set it, or give --paths.train.")
    layout = layout_of(
        format,
        word_column=word_column,
        tag_columns=tag_columns,
        scheme=scheme,
        delimiter=delimiter,
        documents=documents,
        comments=comments,
        id_column=id_column,
        misc_column=misc_column,
    )
    check_nested(layout, spans_key)
    return GoldDocs(
        lambda nlp: column_docs(nlp.vocab, path, layout, spans_key=spans_key),
        lambda gold, nlp: copy_words(gold, nlp.vocab, sentences=gold_sentences),
    )


def make_column_doc(vocab: Vocab, document: ColumnDocument, *, spans_key: str | None = None) -> Doc:
    """The document with its sentence starts and its gold mentions: in doc.spans[spans_key], or in doc.ents.

    In doc.spans a mention stands once, also where two layers give the same words the same label.
    """
    starts = set(document.sentence_starts)
    is_start_W: list[bool | int | None] = [i in starts for i in range(len(document.words))]
    doc = Doc(vocab, words=document.words, spaces=document.spaces, sent_starts=is_start_W)
    mentions = sorted({mention for layer in document.layers for mention in layer})
    spans = [Span(doc, start, end, label=label) for start, end, label in mentions]
    if spans_key is None:
        doc.set_ents(spans)
    else:
        doc.spans[spans_key] = spans
    return doc


def column_docs(vocab: Vocab, path: str | Path, layout: ColumnLayout, *, spans_key: str | None = None) -> Iterator[Doc]:
    """Whole documents of a file. Raises ValueError for nested mentions that shall go to doc.ents."""
    check_nested(layout, spans_key)
    for document in _read_documents(Path(path), layout):
        yield make_column_doc(vocab, document, spans_key=spans_key)


def check_nested(layout: ColumnLayout, spans_key: str | None) -> None:
    if layout.nested and spans_key is None:
        raise ValueError(
            "Nested mentions (several tag columns, or brackets) do not fit doc.ents: set spans_key, e.g. to 'sc'."
        )


def _read_documents(path: Path, layout: ColumnLayout) -> Iterator[ColumnDocument]:
    sentences: list[Sentence] = []
    marks = words = 0
    for sentence in _read_sentences(path, layout):
        marks += sentence.opens_document
        words += len(sentence.words)
        full = isinstance(layout.documents, int) and len(sentences) == layout.documents
        if sentences and (full or (sentence.opens_document and layout.documents != "file")):
            yield _make_document(path, sentences, layout)
            sentences = []
        if sentence.words:
            sentences.append(sentence)
    if not words:
        raise ValueError(f"{path}: expected words, but the file holds none.")
    if layout.documents in ("docstart", "newdoc") and not marks:
        mark = "-DOCSTART- lines" if layout.documents == "docstart" else "# newdoc comments"
        raise ValueError(
            f"{path}: expected {mark} between the documents, but found none; set documents (of commands: "
            f"--documents) to 1 for a document a sentence, to a number of sentences, or to 'file'."
        )
    if sentences:
        yield _make_document(path, sentences, layout)


def _make_document(path: Path, sentences: Sequence[Sentence], layout: ColumnLayout) -> ColumnDocument:
    layers: list[list[WordMention]] = [[] for _ in sentences[0].tags[0]]
    words: list[str] = []
    starts: list[int] = []
    for sentence in sentences:
        starts.append(len(words))
        if not layout.brackets:
            for layer, tags in zip(layers, zip(*sentence.tags, strict=True), strict=True):
                try:
                    mentions = decode_tags(tags, scheme=layout.scheme)
                except TagError as error:
                    raise ValueError(f"{path}, line {sentence.lines[error.index]}: {error}.") from None
                layer.extend((start + len(words), end + len(words), label) for start, end, label in mentions)
        words.extend(sentence.words)
    if layout.brackets:
        try:
            cells = [_misc_value(misc, "Entity") for sentence in sentences for (misc,) in sentence.tags]
            layers = [decode_brackets(cells, fields=sentences[0].entity_fields)]
        except TagError as error:
            lines = [line for sentence in sentences for line in sentence.lines]
            raise ValueError(f"{path}, line {lines[error.index]}: {error}.") from None
    given = None
    if layout.misc_column is not None:
        given = [space for sentence in sentences for space in sentence.spaces]
    # a document without any SpaceAfter=No does not say where blanks stood
    spaces = given if given is not None and not all(given) else judged_blanks(words) or given
    return ColumnDocument(words, starts, layers, spaces)


def _read_sentences(path: Path, layout: ColumnLayout) -> Iterator[Sentence]:
    """Sentences in order; the last one has no words, and carries a document mark at the end of the file."""
    sentence = Sentence()
    n_columns = n_tabs = first_row = 0
    multiword_end, multiword_space = "", True
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = decode_line(path, number, raw)
            check_line_end(path, number, line)
            is_docstart = line.startswith("-DOCSTART-")
            is_comment = layout.comments is not None and line.startswith(layout.comments)
            if is_docstart or is_comment or not line.strip(" \t"):
                if sentence.words and not is_comment:
                    multiword_end = ""
                    yield sentence
                    sentence = Sentence(entity_fields=sentence.entity_fields)
                comment = line[len(layout.comments or "") :].strip() if is_comment else ""
                sentence.opens_document |= is_docstart or comment.partition(" ")[0] == "newdoc"
                if comment.startswith("global.Entity"):
                    sentence.entity_fields = comment.partition("=")[2].strip().split("-")
                continue
            cells = line.split(layout.delimiter) if layout.delimiter else _BLANKS.split(line.strip(" \t"))
            if not first_row:
                first_row, n_columns, n_tabs = number, len(cells), line.count("\t")
            if len(cells) != n_columns:
                tabs_agree = not layout.delimiter and line.count("\t") == n_tabs > 0
                raise ValueError(
                    f"{path}, line {number}: expected {n_columns} columns as in line {first_row}, but got "
                    f"{len(cells)}: {line!r}.{_tabs_alone(n_tabs + 1) if tabs_agree else ''}"
                )
            misc = "" if layout.misc_column is None else _cell(path, number, cells, layout.misc_column)
            space = _misc_value(misc, "SpaceAfter") != "No"
            if layout.id_column is not None:
                word_id = _cell(path, number, cells, layout.id_column)
                if multiword := _MULTIWORD_ID.fullmatch(word_id):
                    multiword_end, multiword_space = multiword[1], space
                    continue
                if _EMPTY_WORD_ID.fullmatch(word_id):
                    continue
                if multiword_end:
                    space = multiword_space if word_id == multiword_end else False
                    multiword_end = "" if word_id == multiword_end else multiword_end
            word = _cell(path, number, cells, layout.word_column)
            if not word.strip():
                raise ValueError(f"{path}, line {number}: expected a word, but its column is empty: {line!r}.")
            sentence.words.append(word)
            sentence.lines.append(number)
            tags = [misc] if layout.brackets else [_cell(path, number, cells, place) for place in layout.tag_columns]
            sentence.tags.append(tags)
            sentence.spaces.append(space)
    if sentence.words:
        yield sentence
        sentence = Sentence()
    yield Sentence(opens_document=sentence.opens_document)


def _tabs_alone(n_columns: int) -> str:
    return (
        f" Both lines have {n_columns} columns where only tabs divide them, and blanks do not: set delimiter (of "
        r"commands: --delimiter) to '\t'."
    )


def _cell(path: Path, number: int, cells: Sequence[str], column: int) -> str:
    try:
        return cells[column]
    except IndexError:
        raise ValueError(
            f"{path}, line {number}: expected a column {column}, but the row has {len(cells)} columns: {list(cells)}."
        ) from None


def _misc_value(misc: str, key: str) -> str:
    """Value of `key` in a CoNLL-U MISC cell such as "Entity=(1-person)|SpaceAfter=No"; "" without it."""
    for part in misc.split("|"):
        name, _, value = part.partition("=")
        if name == key:
            return value
    return ""
