"""`spacy luke build-entity-vocab`: the entities that are linked most, as an entity vocabulary for pretraining."""

from pathlib import Path
from time import perf_counter

import typer
from wasabi import msg

from ..corpus.linked_corpus import LinkedCorpus
from ..corpus.vocabulary import build_entity_vocab, no_tsv, save_entity_vocab, work_plan
from ..corpus.white_list import read_white_list
from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from .build_corpus import ADDRESS_HELP, ENGINE_HELP, WORKERS_HELP, show_counts


def build_entity_vocab_cli(
    corpora: list[Path] = typer.Argument(..., help="Linked corpora, one a language (of build-corpus)"),
    output: Path = typer.Argument(..., help="Folder of the new vocabulary; an older one there is replaced"),
    size: int = typer.Option(
        500_000, min=4, help="Rows in all, [PAD], [UNK] and [MASK] among them; a longer white list is taken whole"
    ),
    min_count: int = typer.Option(0, min=0, help="Leave out entities with fewer links"),
    white_list: Path | None = typer.Option(None, help="File of titles that come first, one a line"),
    white_list_only: bool = typer.Option(False, "--white-list-only", help="Take no other entities"),
    pages_only: bool = typer.Option(False, "--pages-only", help="Only entities with a page in the corpus"),
    interwiki: list[Path] = typer.Option(
        [], help="Which pages are one entity, besides what the corpora say: .tsv (language, title, language, title) or "
        "a dump of Wikidata (.json), or a wiki's LANGwiki-DATE-langlinks.sql with LANGwiki-DATE-page.sql beside it"
    ),
    multilingual: bool | None = typer.Option(
        None, help="Names with their language, as mLUKE's; default: with several corpora or --interwiki"
    ),
    min_languages: int = typer.Option(1, min=1, help="Leave out entities of fewer languages"),
    engine: str = typer.Option("processes", help=f"Where links are counted: {ENGINE_HELP}"),
    workers: int | None = typer.Option(None, min=1, help=WORKERS_HELP),
    address: str | None = typer.Option(None, help=ADDRESS_HELP),
) -> None:  # fmt: skip
    """Count the links of corpora and write entity_vocab.jsonl, entity_vocab.tsv (where it can hold the titles) and, to
    be read by people, entities.tsv."""
    start = perf_counter()
    opened = [LinkedCorpus.open(path) for path in corpora]
    with WorkFolder(output, work_plan(opened)) as work:
        built = build_entity_vocab(
            opened,
            size=size,
            min_count=min_count,
            white_list=[] if white_list is None else read_white_list(white_list),
            white_list_only=white_list_only,
            pages_only=pages_only,
            interwiki=interwiki,
            multilingual=multilingual,
            min_languages=min_languages,
            engine=Engine(engine, workers, address),
            progress=True,
            work=work,
        )
        files = save_entity_vocab(built, output)
    names = ", ".join(path.name for path in files)
    msg.good(f"{output}: {len(built.vocab):,} rows in {perf_counter() - start:.0f} s ({names})")
    show_counts(built.counts)
    if (why := no_tsv(built)) is not None:
        msg.info(f"There is no entity_vocab.tsv: {why}.")
