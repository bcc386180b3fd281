"""`spacy luke build-shards`: examples for pretraining, of pieces and entities, from linked corpora."""

from pathlib import Path
from time import perf_counter

import typer
from wasabi import msg

from ..checkpoint.assemble import read_tokenizer
from ..checkpoint.sources import find_source
from ..corpus.build_shards import build_shards
from ..corpus.examples import UNKNOWN_PIECES, ExampleSettings
from ..corpus.linked_corpus import LinkedCorpus
from ..corpus.shards import Shards
from ..entity_vocab import EntityVocab
from ..readers.sentences import RuleSentences
from ..stores.parallel import Engine
from ..text.unknown import UnknownPieces
from .build_corpus import ADDRESS_HELP, ENGINE_HELP, WORKERS_HELP, show_counts
from .errors import failing_as


def build_shards_cli(
    corpora: list[Path] = typer.Argument(..., help="Linked corpora (of build-corpus)"),
    output: Path = typer.Argument(..., help="Folder of the new shards; older ones there are replaced"),
    encoder: str = typer.Option(
        ...,
        "--encoder",
        "-e",
        help="Whose tokenizer: a checkpoint folder, package:NAME/FOLDER, or an id of the Hugging Face hub",
    ),
    entity_vocab: Path = typer.Option(..., help="Folder of build-entity-vocab, or entity_vocab.json, .tsv or .jsonl"),
    lang: str | None = typer.Option(
        None, help="Whose rules split sentences; default: that of the first corpus; xx suits any language"
    ),
    max_pieces: int = typer.Option(512, min=3, help="Pieces of an example, two special ones included"),
    max_entities: int = typer.Option(128, min=1, help="Mentions of an example"),
    max_mention_pieces: int = typer.Option(30, min=1, help="Leave out longer mentions (their text stays)"),
    min_sentence_length: int = typer.Option(5, min=0, help="Leave out sentences of fewer pieces"),
    abstract_only: bool = typer.Option(False, "--abstract-only", help="Only what stands before a page's first heading"),
    include_sentences_without_entities: bool = typer.Option(
        False, "--include-sentences-without-entities", help="Examples without a mention, too"
    ),
    include_unk_entities: bool = typer.Option(
        False, "--include-unk-entities", help="Links to unknown entities are mentions of [UNK]"
    ),
    engine: str = typer.Option("processes", help=f"Where examples are made: {ENGINE_HELP}"),
    workers: int | None = typer.Option(None, min=1, help=WORKERS_HELP),
    address: str | None = typer.Option(None, help=ADDRESS_HELP),
    verify: bool = typer.Option(False, "--verify", help="Read the new shards again and compare the digests"),
) -> None:
    """Make shards of examples from linked corpora. A run that was stopped goes on."""
    start = perf_counter()
    settings = ExampleSettings(
        max_pieces,
        max_entities,
        max_mention_pieces,
        min_sentence_length,
        abstract_only,
        include_sentences_without_entities,
        include_unk_entities,
    )
    tokenizer = read_tokenizer(find_source(encoder, weights=False))
    if tokenizer is None:
        raise ValueError(f"Expected a checkpoint folder with the files of a tokenizer, but {encoder} has none.")
    opened = [LinkedCorpus.open(path) for path in corpora]
    shards = build_shards(
        opened,
        output,
        tokenizer=tokenizer,
        vocab=EntityVocab.from_file(entity_vocab),
        sentences=RuleSentences(lang or opened[0].language or "xx"),
        settings=settings,
        engine=Engine(engine, workers, address),
        progress=True,
    )
    if verify:
        with failing_as("The new shards are not as they were written."):
            Shards.open(output, verify=True, progress=True)
    total = sum(path.stat().st_size for path in output.iterdir())
    msg.good(f"{output}: {len(shards):,} examples, {total:,} bytes in {perf_counter() - start:.0f} s")
    counts = shards.manifest["counts"]
    show_counts(counts)
    unknown = UnknownPieces(counts["pieces"], counts.get(UNKNOWN_PIECES, 0))
    (msg.warn if unknown.many else msg.info)(str(unknown))
