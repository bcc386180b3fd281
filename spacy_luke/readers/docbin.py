"""Docs in spaCy's own format, which the stock reader `spacy.Corpus.v1` reads; and a reader that gives what a task
takes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus, Example
from spacy.util import registry
from spacy.vocab import Vocab

from ..annotations import (
    KNOWLEDGE,
    LINKS,
    MENTIONS,
    QUERIES,
    QUESTIONS,
    TYPES,
    get_candidates_given,
    get_pair_rows,
    get_rows,
    get_second,
    set_candidates_given,
    set_pair_rows,
    set_rows,
    set_second,
)
from ..stores.atomic import write_atomically, write_folder_atomically

Lengths = Callable[[Iterable[Doc]], Iterator[Doc]]  # gold documents, joined and cut (see `lengths`)


@registry.readers("spacy-luke.GoldCorpus.v1")
def make_gold_corpus(
    path: str | Path | None,
    limit: int | None = None,
    sentences: bool = True,
    entities: bool = False,
    mentions: bool = False,
    pairs: bool = False,
    questions: bool = False,
    knowledge: bool = True,
    links: bool = False,
    lengths: Lengths | None = None,
) -> Callable[[Language], Iterator[Example]]:
    """A corpus for `spacy train` from a .spacy file or a folder of them, whole documents.

    The pipeline is given the file's words, where `spacy.Corpus.v1` would give it the text alone, and of the annotation
    what a task takes as its input: see `copy_given`. limit: documents to read, from 1; None: all. lengths: what joins
    and cuts documents, such as spacy-luke.mixed_lengths.v1; None: as they are.
    """
    if path is None:
        raise ValueError("A corpus needs the path of its .spacy file, but it is None; set it, or give --paths.train.")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be a number of documents from 1, or None for all, but it is {limit}.")
    corpus = Corpus(path)

    def read_corpus(nlp: Language) -> Iterator[Example]:
        docs = (example.reference for example in islice(corpus(nlp), limit))
        for doc in docs if lengths is None else lengths(docs):
            given = copy_given(
                doc,
                nlp.vocab,
                sentences=sentences,
                entities=entities,
                mentions=mentions,
                pairs=pairs,
                questions=questions,
                knowledge=knowledge,
                links=links,
            )
            yield Example(given, doc)

    return read_corpus


def copy_words(doc: Doc, vocab: Vocab, *, sentences: bool) -> Doc:
    """A Doc of the same words without annotation, sentence boundaries apart where they are known and wanted."""
    spaces = None if doc.has_unknown_spaces else [bool(word.whitespace_) for word in doc]
    starts: list[bool | int | None] | None = [word.is_sent_start for word in doc] if sentences else None
    return Doc(vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)


def copy_given(
    doc: Doc,
    vocab: Vocab,
    *,
    sentences: bool = True,
    entities: bool = False,
    mentions: bool = False,
    pairs: bool = False,
    questions: bool = False,
    knowledge: bool = True,
    links: bool = False,
) -> Doc:
    """A Doc of the same words, with what a component may see of a gold Doc.

    sentences: sentence boundaries. entities: doc.ents with their labels. mentions: the extents of
    doc.spans["luke_types"], each once, as doc.spans["luke_mentions"], without labels. pairs: `luke_pairs`.
    questions: `luke_questions` and `luke_queries` without their answers; a query keeps its candidates.
    knowledge: `luke_knowledge`, the given entities, which are no gold of any task. links: the mentions of doc.ents with
    their labels, without the entity, and those of doc.spans["luke_links"] where a data set has mentions that overlap.
    `luke_second` and the given candidates of linking, `luke_candidates`, are always copied.
    """
    if entities and links:
        raise ValueError("entities and links both give doc.ents, with and without their ids: set one of them.")
    given = copy_words(doc, vocab, sentences=sentences)
    if entities and doc.has_annotation("ENT_IOB"):
        given.set_ents([Span(given, e.start, e.end, label=e.label_, kb_id=e.kb_id_) for e in doc.ents])
    if links:
        given.set_ents([Span(given, e.start, e.end, label=e.label_) for e in doc.ents], default="outside")
        if LINKS in doc.spans:
            places = sorted({(span.start, span.end, span.label_) for span in doc.spans[LINKS]})
            given.spans[LINKS] = [Span(given, start, end, label=label) for start, end, label in places]
    if mentions and TYPES in doc.spans:
        extents = sorted({(span.start, span.end) for span in doc.spans[TYPES]})
        given.spans[MENTIONS] = [Span(given, start, end) for start, end in extents]
    if pairs:
        set_pair_rows(given, get_pair_rows(doc))
    copy_asked(doc, given, questions=questions, knowledge=knowledge)
    return given


def copy_asked(doc: Doc, given: Doc, *, questions: bool = True, knowledge: bool = True) -> None:
    """Give a Doc of the same text, whatever its words are, what a gold Doc has beside gold: questions and queries
    without their answers, entities of a knowledge graph, candidates of linking, and where the second of two texts
    begins."""
    for name in (QUESTIONS, QUERIES):
        if questions and (rows := get_rows(doc, name)) is not None:
            set_rows(given, name, [{key: value for key, value in row.items() if key != "answers"} for row in rows])
    if knowledge:
        set_rows(given, KNOWLEDGE, get_rows(doc, KNOWLEDGE))
    set_candidates_given(given, get_candidates_given(doc))
    set_second(given, get_second(doc))


def write_docbin(docs: Iterable[Doc], path: str | Path, *, shard_words: int = 1_000_000) -> list[Path]:
    """Write `path`, and return the files that now hold the docs, in order.

    Up to `shard_words` words, `path` is one file. Above, it is a folder of files part-00001.spacy, part-00002.spacy
    and so on, each with whole docs: a DocBin keeps 13 numbers of 8 bytes a word in one message, which msgpack limits
    to 4 GiB, and it is read at once. `spacy.Corpus.v1` takes the file and the folder alike. About two shards are in
    memory at a time. The bytes depend on the docs alone; on any error what was there before stays whole.

    Raises ValueError where there are no docs, where the name does not end in ".spacy" (the reader would not find it),
    and where a folder would have to replace a file or the other way round.
    """
    path = Path(path)
    if path.suffix != ".spacy":
        raise ValueError(f"The name of a DocBin must end in '.spacy', or spacy.Corpus does not find it: {path}.")
    if shard_words < 1:
        raise ValueError(f"shard_words must be a number of words from 1, but it is {shard_words}.")
    shards = _fill_shards(docs, shard_words)
    first, second = next(shards, None), next(shards, None)
    if first is None:
        raise ValueError(f"Expected docs to write to {path}, but there are none.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if second is None:
        if path.is_dir():
            raise ValueError(f"The docs fit one file, but {path} is a folder: remove it first, or choose another name.")
        with write_atomically(path) as temporary:
            temporary.write_bytes(first.to_bytes())
        return [path]
    _check_replaceable(path)
    names = []
    with write_folder_atomically(path) as folder:
        for i, shard in enumerate(chain([first, second], shards), 1):
            names.append(f"part-{i:05}.spacy")
            (folder / names[-1]).write_bytes(shard.to_bytes())
    return [path / name for name in names]


def _fill_shards(docs: Iterable[Doc], shard_words: int) -> Iterator[DocBin]:
    shard, words = DocBin(store_user_data=True), 0
    for doc in docs:
        if len(shard) and words + len(doc) > shard_words:
            yield shard
            shard, words = DocBin(store_user_data=True), 0
        shard.add(doc)
        words += len(doc)
    if len(shard):
        yield shard


def _check_replaceable(path: Path) -> None:
    if path.is_file():
        raise ValueError(f"The docs need a folder of several files, but {path} is a file: remove it first.")
    if path.is_dir():
        others = sorted(p.name for p in path.iterdir() if not (p.name.startswith("part-") and p.suffix == ".spacy"))
        if others:
            raise ValueError(
                f"{path} would be replaced, but it holds other files too: {others[:5]}. Remove them first."
            )
