"""What ERNIE's section 4.1 begins with, from public dumps: a graph of Wikidata, and text whose links are its entities.

    python scripts/ernie_corpus.py graph WIKIDATA.json.bz2 TRIPLES.tsv TITLES.tsv
    python scripts/ernie_corpus.py documents LINKED_CORPUS TITLES.tsv DOCUMENTS.jsonl DEV.jsonl

TITLES has the title of a page of the English Wikipedia and the id of its item, tab between; TRIPLES head, relation and
tail. DOCUMENTS and DEV, which gets each thousandth page, have {"text", "entities": [[start, end, id], ...]} a line.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_luke.corpus.linked_corpus import LinkedCorpus, Paragraph, group_pages
from spacy_luke.stores.atomic import write_atomically
from spacy_luke.wikipedia.wikidata import id_of_claim, read_items

HELD_OUT = 1000
MIN_CHARS = 100  # of a page: as --min_text_length of the original's call of WikiExtractor
SITE = "enwiki"


def write_graph(dump: Path, triples: Path, titles: Path, *, site: str = SITE, progress: bool = False) -> Counter[str]:
    """The facts among items that have a page. One pass over the dump, and one over what it gave."""
    counts: Counter[str] = Counter()
    known: set[str] = set()
    every = triples.with_name(triples.name + ".all")
    triples.parent.mkdir(parents=True, exist_ok=True)
    titles.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(titles) as path, path.open("w", encoding="utf8") as pages, every.open("w") as facts:
        for _, item in read_items(dump, progress):
            page = ((item.get("sitelinks") or {}).get(site) or {}).get("title")
            if page is None or not str(item.get("id", "")).startswith("Q"):
                continue
            known.add(item["id"])
            pages.write(f"{page}\t{item['id']}\n")
            for relation, tail in facts_of(item):
                facts.write(f"{item['id']}\t{relation}\t{tail}\n")
    with write_atomically(triples) as path, path.open("w") as kept, every.open() as facts:
        for line in facts:
            if line.rstrip("\n").rpartition("\t")[2] in known:
                kept.write(line)
                counts["facts"] += 1
    every.unlink()
    counts["items"] = len(known)
    if not counts["facts"]:
        raise ValueError(f"{dump}: expected facts between items with a page of {site}, but there is none.")
    return counts


def facts_of(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Relations and tails of an item's truthy facts: of each relation the preferred ones, or where none is the normal
    ones; each once, and none whose value is no item."""
    for relation, claims in (item.get("claims") or {}).items():
        ranks = {claim.get("rank", "normal") for claim in claims}
        best = "preferred" if "preferred" in ranks else "normal"
        tails = [id_of_claim(claim) for claim in claims if claim.get("rank", "normal") == best]
        yield from ((relation, tail) for tail in dict.fromkeys(tails) if tail is not None and tail.startswith("Q"))


def read_titles(path: Path) -> dict[str, str]:
    with path.open(encoding="utf8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


def write_documents(corpus: Path, titles: Path, output: Path, dev: Path, *, progress: bool = False) -> Counter[str]:
    """A page a line, its paragraphs on lines of their own; links to pages without an item are no entities. Pages of
    fewer than 100 characters are left out."""
    counts: Counter[str] = Counter()
    ids = read_titles(titles)
    for path in (output, dev):
        path.parent.mkdir(parents=True, exist_ok=True)
    with (
        write_atomically(output) as first,
        write_atomically(dev) as second,
        first.open("w", encoding="utf8") as train,
        second.open("w", encoding="utf8") as held_out,
    ):
        for _, page in group_pages(LinkedCorpus.open(corpus).paragraphs(progress=progress)):
            if sum(len(paragraph.text) for paragraph in page) < MIN_CHARS:
                counts["pages too short, left out"] += 1
                continue
            document = document_of(page, ids, counts)
            file = train if counts["pages"] % HELD_OUT else held_out
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
            counts["pages"] += 1
    if not counts["entities"]:
        raise ValueError(f"{corpus} has no link to a page of {titles}: are both of one language?")
    return counts


def document_of(page: list[Paragraph], ids: dict[str, str], counts: Counter[str]) -> dict[str, Any]:
    text, entities = "", []
    for paragraph in page:
        shift = len(text)
        for start, end, title in paragraph.links:
            counts["entities" if title in ids else "links to pages without an item"] += 1
            if title in ids:
                entities.append([start + shift, end + shift, ids[title]])
        text += paragraph.text + "\n"
    return {"text": text.rstrip("\n"), "entities": entities}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("graph", "documents"))
    parser.add_argument("paths", nargs="+", type=Path)
    told = parser.parse_args()
    expected = 3 if told.what == "graph" else 4
    if len(told.paths) != expected:
        parser.error(f"{told.what} takes {expected} paths, but got {len(told.paths)}")
    make = write_graph if told.what == "graph" else write_documents
    try:
        counts = make(*told.paths, progress=True)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print(", ".join(f"{n:,} {name}" for name, n in counts.items()))


if __name__ == "__main__":
    main()
