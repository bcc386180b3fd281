"""Reading Wikipedia dumps: this package beside wikipedia2vec's reader (LUKE's own) and gensim's, on the same files.

    pip install gensim wikipedia2vec
    python benchmarks/corpus.py          # results/corpus.json and results/corpus.md

All systems run in one process, one after the other, `--rounds` times; medians of CPU seconds count, so that other work
on the machine does not. MB are of the unpacked XML.
"""

import argparse
import bz2
import json
import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import chip_name

HERE = Path(__file__).parent
DATA = Path(os.environ.get("SPACY_LUKE_SHARED", HERE.parents[1] / "shared")) / "data"
DUMPS = {
    "English, 106 long articles": "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    "Latgalian, 2,004 short pages": "wiki_ltg_smallwiki/smallwiki-latest-pages-articles.xml",
}
HOLDS = {
    "spacy_luke, reading": "paragraphs, links with places, titles as in the text, leads",
    "spacy_luke, build-corpus": "the same with redirects resolved, in packed files with checksums",
    "wikipedia2vec": "sections, links with places, titles as in the text, leads; packed in memory",
    "gensim, segment_wiki": "sections of plain text; links without places",
    "gensim, WikiCorpus": "words in small letters, no links",
}
COUNTED: dict[Path, dict[str, int]] = {}  # what wikipedia2vec found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "corpus.json")
    options = parser.parse_args()
    results = {name: measure(options.data / path, options.rounds) for name, path in DUMPS.items()}
    peers = {name: version(name) for name in ("gensim", "wikipedia2vec", "mwparserfromhell")}
    data = {"chip": chip_name(), "rounds": options.rounds, "peers": peers, "dumps": results}
    options.output.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    options.output.with_suffix(".md").write_text(make_table(data), encoding="utf8")
    print(make_table(data))


def measure(dump: Path, rounds: int) -> dict[str, Any]:
    """CPU seconds of each system in each round, and what it found."""
    systems: dict[str, Callable[[Path], dict[str, int]]] = {
        "spacy_luke, reading": read_ours,
        "spacy_luke, build-corpus": build_ours,
        "wikipedia2vec": read_wikipedia2vec,
        "gensim, segment_wiki": read_gensim_sections,
        "gensim, WikiCorpus": read_gensim_words,
    }
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    found: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "dump.xml.bz2"  # which all of them read
        data = dump.read_bytes()
        packed.write_bytes(data if dump.suffix == ".bz2" else bz2.compress(data))
        size = len(bz2.decompress(packed.read_bytes())) / 1e6
        for _ in range(rounds):
            for name, system in systems.items():
                start = time.process_time()
                found[name] = system(packed)
                seconds[name].append(round(time.process_time() - start, 3))
    rates = {name: round(size / statistics.median(values), 2) for name, values in seconds.items()}
    return {"mb": round(size, 2), "seconds": seconds, "mb_per_second": rates, "found": found}


def read_ours(path: Path) -> dict[str, int]:
    from spacy_luke.corpus.from_dumps import read_paragraphs
    from spacy_luke.wikipedia.dumps import read_pages
    from spacy_luke.wikipedia.wikitext import read_article

    counts: Counter = Counter(links=0)
    for page in read_pages(path):
        if page.redirect is None:
            counts["pages"] += 1
            article = read_article(page.text, page.wiki)
            for paragraph in read_paragraphs(page.title, article, follow=lambda title, _: title, counts=counts):
                counts["characters"] += len(paragraph.text)
    return {name: counts[name] for name in ("pages", "paragraphs", "links", "characters")}


def build_ours(path: Path) -> dict[str, int]:
    from spacy_luke.corpus.from_dumps import build_from_dumps
    from spacy_luke.stores.parallel import Engine

    output = path.parent / "corpus"
    shutil.rmtree(output, ignore_errors=True)
    counts = build_from_dumps([path], output, engine=Engine(workers=1)).manifest["counts"]
    return {name: counts[name] for name in ("pages", "paragraphs", "links")}


def read_wikipedia2vec(path: Path) -> dict[str, int]:
    import pickle
    import zlib

    from wikipedia2vec.dump_db import _parse_page
    from wikipedia2vec.utils.wiki_dump_reader import WikiDumpReader

    counts: Counter = Counter()
    pages = []
    for page in WikiDumpReader(str(path)):
        kind, parsed = _parse_page(page, None) or ("failed", None)
        counts[kind] += 1
        if kind == "page":
            pages.append(parsed[1])
    if path not in COUNTED:  # once, in the first round
        for data in pages:
            for text, links, _ in pickle.loads(zlib.decompress(data))[0]:
                counts.update({"sections": 1, "links": len(links), "characters": len(text)})
        COUNTED[path] = {{"page": "pages", "redirect": "redirects"}.get(name, name): n for name, n in counts.items()}
    return COUNTED[path]


def read_gensim_sections(path: Path) -> dict[str, int]:
    from gensim.scripts.segment_wiki import extract_page_xmls, segment

    counts: Counter = Counter()
    with bz2.open(path) as file:
        for xml in extract_page_xmls(file):
            if b"<text" in xml or b":text" in xml:
                _, sections, links = segment(xml, include_interlinks=True)
                characters = sum(len(text) for _, text in sections)
                counts.update({"pages": bool(sections), "sections": len(sections), "links": len(links)})
                counts["characters"] += characters
    return dict(counts)


def read_gensim_words(path: Path) -> dict[str, int]:
    counts: Counter = Counter()
    for words in _gensim_words(path):
        counts.update({"pages": 1, "words": len(words)})
    return dict(counts)


def _gensim_words(path: Path) -> Iterator[list[str]]:
    """What `WikiCorpus.get_texts` does, without its processes."""
    from gensim.corpora.wikicorpus import extract_pages, process_article, tokenize

    with bz2.open(path) as file:
        for title, text, page_id in extract_pages(file, ("0",)):
            yield process_article((text, title, page_id), tokenize, 2, 15, True)[0]


def make_table(data: dict[str, Any]) -> str:
    names = list(HOLDS)
    peers = ", ".join(f"{name} {number}" for name, number in data["peers"].items())
    lines = [
        "# Reading Wikipedia dumps",
        "",
        f"MB of XML a second on one core, median of {data['rounds']} rounds of CPU time. {data['chip']}. {peers}.",
        "",
        f"| system | {' | '.join(data['dumps'])} | what comes out |",
        f"|---|{'---:|' * len(data['dumps'])}---|",
    ]
    for name in names:
        rates = " | ".join(f"{result['mb_per_second'][name]:.1f}" for result in data["dumps"].values())
        lines.append(f"| {name} | {rates} | {HOLDS[name]} |")
    lines += ["", "What each found:", ""]
    for dump, result in data["dumps"].items():
        for name in names:
            found: list[tuple[str, int]] = sorted(result["found"][name].items())
            lines.append(f"- {dump}, {name}: {', '.join(f'{count:,} {what}' for what, count in found)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
