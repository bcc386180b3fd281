"""entity_annotator with millions of names: time to open, memory, words a second; and spaCy's PhraseMatcher beside it.

    python benchmarks/annotator.py                        # results/annotator.json, results/annotator.md
    python benchmarks/annotator.py --names 200000         # another size

The names are those of a real dump sample and, up to the size wanted, runs of one to four words of its text, drawn as
often as they occur there, so that most words begin some name. The text is the sample's articles. Each system runs in a
process of its own; what both find, all places of all names, is compared first. Linux only.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import data_parser, mb, memory, write_report

DUMP = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


def main() -> None:
    options = read_options()
    if options.one:
        print(json.dumps(SYSTEMS[options.one](options)))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = {}
        for system in SYSTEMS:
            command = [sys.executable, __file__, "--one", system, "--folder", folder, "--data", str(options.data)]
            numbers = ["--names", str(options.names), "--words", str(options.words)]
            done = subprocess.run([*command, *numbers], check=True, stdout=subprocess.PIPE, text=True)
            rows[system] = json.loads(done.stdout.splitlines()[-1])
            print(system, rows[system], flush=True)
    found = [rows[system].pop("found") for system in ("entity_annotator", "phrase_matcher")]
    same = f"{len(set(map(tuple, found[0])) & set(map(tuple, found[1]))):,} of {len(found[0]):,} and {len(found[1]):,}"
    result = {**describe_machine(), "names": options.names, "same": same, "rows": rows}
    write_report("annotator", result, make_report(result))


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--names", type=int, default=2_000_000)
    parser.add_argument("--words", type=int, default=200_000, help="words of text to annotate")
    parser.add_argument("--folder", type=Path, help="where the parts hand over their files")
    parser.add_argument("--one", choices=list(SYSTEMS), help="measure one system in this process and print it")
    return parser.parse_args()


def build(options: argparse.Namespace) -> dict[str, Any]:
    """The store, and the names as a list for the other system."""
    from spacy_luke.aliases.counts import AliasCounts
    from spacy_luke.aliases.wikipedia import count_dumps
    from spacy_luke.wikipedia.dumps import read_pages
    from spacy_luke.wikipedia.wikitext import read_article

    dump = options.data / DUMP
    counts = AliasCounts("exact")
    count_dumps([dump], counts)
    texts = [read_article(page.text, page.wiki).text for page in read_pages(dump) if page.redirect is None]
    (options.folder / "texts.json").write_text(json.dumps(texts), encoding="utf8")
    often = Counter(word for text in texts for word in text.split() if word.isalpha())
    words, weights = list(often), list(often.values())
    rng = random.Random(0)
    while len(counts.names) < options.names:
        drawn = iter(rng.choices(words, weights, k=40_000))
        while len(counts.names) < options.names:
            size = rng.choice((1, 2, 2, 2, 3, 3, 4))
            if len(run := list(islice(drawn, size))) < size:
                break
            name = " ".join(run)
            number = counts.add_name(name)
            for k in range(rng.choice((1, 1, 1, 2, 3))):
                counts.add_link(number, f"{name} ({k})" if k else name, 5 - k)
            counts.add_total(number, total=9, linked=1, occurring=1000 if size == 1 else 50)
    start, before = time.process_time(), memory()["VmRSS"]
    store = counts.build()
    store.save(options.folder / "store")
    (options.folder / "names.json").write_text(json.dumps(list(counts.names)), encoding="utf8")
    size = (options.folder / "store").stat().st_size
    return {
        "names": len(store),
        "entities": store.header.entities,
        "candidates": store.header.candidates,
        "file_mb": mb(size),
        "bytes_per_name": round(size / len(store), 1),
        "packing_s": round(time.process_time() - start, 1),
        "counts_mb": mb(before),
        "peak_mb": mb(memory()["VmHWM"]),
    }


def annotate(options: argparse.Namespace) -> dict[str, Any]:
    from spacy_luke.aliases.match import Match, join_words, match_names
    from spacy_luke.aliases.store import AliasStore
    from spacy_luke.aliases.trie import new_trie

    new_trie()  # imports the library

    def all_places(doc: Any) -> list[Match]:
        words = join_words(((word.text, bool(word.whitespace_)) for word in doc), case="exact")
        return list(match_names(store, words, overlaps=True))

    nlp, docs = read_docs(options)
    annotator = nlp.add_pipe("entity_annotator")
    before = memory()
    start = time.perf_counter()
    store = AliasStore.open(options.folder / "store")
    opened = time.perf_counter() - start
    annotator.store = store
    after = memory()
    result = {
        "open_ms": round(1000 * opened, 2),
        "open_mb": mb(after["VmRSS"] - before["VmRSS"]),
        **speed(docs, annotator),
        "tokenizer_words_per_second": speed(docs, lambda doc: nlp.make_doc(doc.text))["words_per_second"],
        "found_in_text": sum(len(doc.spans["luke_links"]) for doc in docs),
        **{f"all_places_{key}": value for key, value in speed(docs, all_places).items()},
    }
    last = memory()
    return {
        **result,
        "used_mb": mb(last["RssAnon"] - before["RssAnon"]),
        "mapped_mb": mb(last["RssFile"] - before["RssFile"]),
        "found": sorted({(i, x.start, x.end) for i, doc in enumerate(docs) for x in all_places(doc)}),
    }


def match_phrases(options: argparse.Namespace) -> dict[str, Any]:
    from spacy.matcher import PhraseMatcher

    nlp, docs = read_docs(options)
    names = json.loads((options.folder / "names.json").read_text(encoding="utf8"))
    before = memory()
    start = time.process_time()
    matcher = PhraseMatcher(nlp.vocab)
    for i in range(0, len(names), 10_000):
        matcher.add("NAME", list(nlp.tokenizer.pipe(names[i : i + 10_000])))
    built = time.process_time() - start
    return {
        "open_ms": round(1000 * built),
        "used_mb": mb(memory()["RssAnon"] - before["RssAnon"]),
        **{f"all_places_{key}": value for key, value in speed(docs, matcher).items()},
        "found": sorted({(i, a, b) for i, doc in enumerate(docs) for _, a, b in matcher(doc)}),
    }


SYSTEMS = {"build": build, "entity_annotator": annotate, "phrase_matcher": match_phrases}


def read_docs(options: argparse.Namespace) -> Any:
    import spacy

    nlp = spacy.blank("en")
    docs: list[Any] = []
    while sum(map(len, docs)) < options.words:
        for text in json.loads((options.folder / "texts.json").read_text(encoding="utf8")):
            if sum(map(len, docs)) < options.words:
                docs.append(nlp.make_doc(" ".join(text.split())))
    return nlp, docs


def speed(docs: list[Any], system: Any) -> dict[str, int]:
    """Words a second of processor time: once untimed, then the median of five rounds."""
    words, rounds = sum(map(len, docs)), []
    for _ in range(6):
        start = time.process_time()
        for doc in docs:
            system(doc)
        rounds.append(words / (time.process_time() - start))
    return {"words_per_second": round(sorted(rounds[1:])[2])}


def make_report(result: dict[str, Any]) -> str:
    built, ours, theirs = (result["rows"][system] for system in SYSTEMS)
    return f"""# entity_annotator with {built["names"]:,} names

Written by `python benchmarks/annotator.py`. {result["chip"]}, one thread, processor time, spaCy {result["versions"]["spacy"]}.

{built["names"]:,} names, {built["entities"]:,} entities, {built["candidates"]:,} candidates: a file of {built["file_mb"]:,} MB,
{built["bytes_per_name"]} bytes a name. Writing it took {built["packing_s"]} s after counting; the counts took
{built["counts_mb"]:,} MB, the peak was {built["peak_mb"]:,} MB.

| | entity_annotator | spaCy's PhraseMatcher |
|---|---|---|
| until it can be used | {ours["open_ms"]} ms, from its file | {theirs["open_ms"] / 1000:,.0f} s, from the names |
| memory of its own, MB | {ours["used_mb"]:,} | {theirs["used_mb"]:,} |
| pages of the file that were read, shared by processes, MB | {ours["mapped_mb"]:,} | |
| all places of all names, words a second | {ours["all_places_words_per_second"]:,} | {theirs["all_places_words_per_second"]:,} |
| as a component (longest names at 1 % or more, spans written), words a second | {ours["words_per_second"]:,} | |
| spaCy's tokenizer, for comparison, words a second | {ours["tokenizer_words_per_second"]:,} | |

Opening took {ours["open_mb"]} MB. Found, places that both have: {result["same"]} (the tokenizer cuts some names
otherwise when they stand alone, as the PhraseMatcher is given them).
"""  # noqa: E501


if __name__ == "__main__":
    main()
