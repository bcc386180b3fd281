"""`spacy luke page-names`: names of entities by the page that links them, for SQuAD's passages (LUKE, appendix C)."""

from pathlib import Path
from urllib.parse import unquote

import srsly
import typer
from wasabi import msg

from ..aliases.store import AliasStore
from ..corpus.linked_corpus import LinkedCorpus
from ..corpus.page_names import page_names
from ..readers.datasets.linking import title_of
from ..readers.json_files import read_json, take
from ..stores.atomic import write_atomically


def page_names_cli(
    corpus: Path = typer.Argument(..., exists=True, file_okay=False, help="Linked corpus, by build-corpus"),
    mentions: Path = typer.Argument(
        ..., exists=True, dir_okay=False, help="Store of names, by build-mentions --case casefold"
    ),
    output: Path = typer.Argument(..., help="JSON file: {page: {name: entity}}"),
    squad: list[Path] = typer.Option(..., exists=True, dir_okay=False, help="SQuAD's files, whose articles are taken"),
    min_link_probability: float = typer.Option(0.01, min=0, max=1, help="Leave out names that are linked more rarely"),
) -> None:
    """Write the names on the pages of SQuAD's articles, for `corpus --format squad --mention-candidates`."""
    titles = {
        title_of(unquote(take(f"{path}, article {a}", article, "title", str)))
        for path in squad
        for a, article in enumerate(take(str(path), read_json(path), "data", list))
    }
    found = page_names(
        LinkedCorpus.open(corpus), AliasStore.open(mentions), titles=titles, min_link_probability=min_link_probability
    )
    if not found:
        raise ValueError(f"{corpus} has none of the {len(titles):,} pages, such as {min(titles)!r}: is it English?")
    output.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(output) as temporary:
        srsly.write_json(temporary, found)
    names, lost = sum(map(len, found.values())), sorted(titles - found.keys())
    msg.good(f"{output}: {names:,} names of {len(found):,} pages")
    if lost:
        msg.warn(f"{len(lost):,} pages are not there, so their passages get no entities: {', '.join(lost)}")
