"""`spacy luke build-mentions`: the names of entities, for `entity_annotator`, from a Wikipedia dump or a table."""

from pathlib import Path
from time import perf_counter

import typer
from wasabi import msg

from ..aliases.build import build_store
from ..aliases.counts import Limits
from ..aliases.file import check_store_output


def build_mentions_cli(
    sources: list[Path] = typer.Argument(
        ..., help="All parts of a Wikipedia dump (XML), or tables (.tsv, .csv, .jsonl); plain, .bz2 or .gz"
    ),
    output: Path = typer.Argument(..., help="File of the new store; an older store there is replaced"),
    case: str = typer.Option("exact", help="How names are compared: exact, or casefold"),
    min_count: float = typer.Option(0, min=0, help="Leave out entities of a name with fewer links"),
    min_link_probability: float = typer.Option(0.0, min=0, max=1, help="Leave out names that are linked more rarely"),
    max_candidates: int | None = typer.Option(None, min=1, help="Entities to keep for a name, the best; default: all"),
    max_words: int = typer.Option(20, min=1, help="Leave out names of more words, punctuation counted"),
    titles: bool = typer.Option(False, "--titles", help="Dumps: titles and redirects are names too, never linked ones"),
) -> None:
    """Build a store of names with their link probabilities and the entities that they may mean.

    A table has the columns name, entity, count (or probability), and occurrences or link_probability.
    """
    start = perf_counter()
    limits = Limits(min_count, min_link_probability, max_candidates, max_words)
    check_store_output(output)
    built = build_store(sources, case=case, limits=limits, titles=titles, progress=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    built.store.save(output)
    store = built.store
    msg.good(f"{output}: {output.stat().st_size:,} bytes in {perf_counter() - start:.0f} s")
    read = [(what, f"{count:,}") for what, count in store.info.items() if what != "sources"]
    held = [(what, f"{getattr(store.header, what):,}") for what in ("names", "entities", "candidates")]
    msg.table([*read, *held], aligns=("l", "r"))
    for line in built.left_out.lines():
        msg.text(f"Left out: {line}")
