"""Corpora of paragraphs that are given, and shards of pages that are given."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from spacy_luke.corpus.build_shards import build_shards
from spacy_luke.corpus.examples import ExampleSettings
from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.corpus.linked_corpus import (
    LINKED_CORPUS,
    PART_CHARS,
    LinkedCorpus,
    Paragraph,
    counted,
    digest_sources,
    finish_corpus,
    group_pages,
    write_part,
)
from spacy_luke.corpus.shard_writer import ShardWriter, make_block
from spacy_luke.corpus.shards import PageExamples, Shards
from spacy_luke.corpus.vocabulary import build_entity_vocab, save_entity_vocab
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.readers.sentences import RuleSentences
from spacy_luke.stores.atomic import write_folder_atomically
from spacy_luke.stores.parallel import Engine
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import make_wordpiece


def write_corpus(
    paragraphs: Callable[[Counter[str]], Iterable[Paragraph]],
    output: Path,
    *,
    language: str | None,
    sources: Sequence[Path] = (),
    part_chars: int = PART_CHARS,
) -> LinkedCorpus:
    """A corpus of paragraphs, which come page after page.

    paragraphs(counts): what is left out goes to `counts`; paragraphs, links and pages are counted here. Nothing is
    written where it fails. ValueError for a link outside of its text, and where there is no paragraph.
    """
    LINKED_CORPUS.check_replaceable(Path(output))
    counts: Counter[str] = Counter(pages=0, paragraphs=0, links=0)
    with write_folder_atomically(Path(output)) as folder:
        part: list[Paragraph] = []
        size = number = 0
        for _, page in group_pages(counted(paragraphs(counts), counts)):
            counts["pages"] += 1
            part += page
            size += sum(len(paragraph.text) for paragraph in page)
            if size >= part_chars:
                write_part(folder / f"part-{number:05d}.jsonl.gz", part)
                part, size, number = [], 0, number + 1
        if part:
            write_part(folder / f"part-{number:05d}.jsonl.gz", part)
        finish_corpus(folder, language=language, sources=digest_sources(sources), counts=dict(counts))
    return LinkedCorpus.open(output)


def write_shards(
    pages: Iterable[PageExamples],
    output: Path,
    *,
    tokenizer: PieceTokenizer,
    vocab: EntityVocab,
    max_pieces: int = 512,
    max_entities: int = 128,
    max_mention_pieces: int = 30,
) -> Shards:
    """Shards of pages in memory; for those of a corpus see `corpus.build_shards`. The page numbers are set here."""
    limits = {"max_pieces": max_pieces, "max_entities": max_entities, "max_mention_pieces": max_mention_pieces}
    with ShardWriter(output, tokenizer=tokenizer, vocab=vocab, limits=limits) as writer:
        for page in pages:
            writer.write(make_block([example._replace(page=0) for example in page.examples]), [page[:2]])
        writer.finish(counts={}, info={})
    return Shards.open(output)


def build_all(dump: Path, folder: Path, engine: Engine, *, corpus: str = "corpus", shards: str = "shards") -> None:
    """A corpus of a dump, its vocabulary and its shards, in a folder; corpus, shards: their names there."""
    linked = build_from_dumps([dump], folder / corpus, part_chars=900, engine=engine)
    built = build_entity_vocab([linked], engine=engine)
    save_entity_vocab(built, folder / "vocab")
    build_shards(
        [linked],
        folder / shards,
        tokenizer=make_wordpiece(),
        vocab=built.vocab,
        sentences=RuleSentences("en"),
        settings=ExampleSettings(max_pieces=64),
        engine=engine,
    )
