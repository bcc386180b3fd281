"""How the commands that read dumps grow: hours, memory and disk by the size of what they read.

    python benchmarks/building.py                  # 10, 100, 1,000 MB: results/building.json and .md; an hour
    python benchmarks/building.py --sizes 10       # a minute

Wikipedia: the pages of an English dump's beginning (wiki_gensim), again and again, each time with other titles, also in
links: entities and names grow as the text does, which is more than they do in a dump. Wikidata: items of the slice
(wikidata_slice) in the form of its dump, with labels in 40 languages and 20 statements, 13 KB each, as the mean of the
dump. One worker; seconds are of the processor; memory is that of the largest process, disk the most that the command
had at once. The entity vocabulary has 50,000 rows: each takes 2 KB of memory, however much is read.
"""

import argparse
import bz2
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import MINILM, RESULTS, data_parser, write_report

SAMPLE = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
ITEMS = "wikidata_slice/wikidata-slice.tsv"
LANGUAGES = [f"{a}{b}" for a in "abcd" for b in "acegikmoqs"]  # codes of two letters
LINK = re.compile(r"\[\[([^\[\]|#:]+)(\|[^\[\]]*)?\]\]")
TITLES = (1_000_000, 4_000_000, 16_000_000)  # of vocabularies whose memory is looked at
# What whole dumps of 2026 have: MB unpacked, and things that memory grows with: titles that are linked, or items.
WHOLE = {
    "English Wikipedia": (100_000, 15_000_000),
    "Wikidata": (1_700_000, 118_000_000),
    "100 Wikipedias": (330_000, 100_000_000),
}
THINGS = {"Wikipedia": 1_100, "Wikidata": 76}  # of an MB of what is made here
OF_WIKIPEDIA = ("build-corpus", "build-entity-vocab", "build-shards")
COMMANDS = {
    "English Wikipedia": (*OF_WIKIPEDIA, "build-kb, Wikipedia"),
    "Wikidata": ("build-kb, Wikidata", "embed-entities, MiniLM"),
    "100 Wikipedias": OF_WIKIPEDIA,
}


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--titles", type=int, help="print the memory of a vocabulary of so many titles, and end")
    parser.add_argument("--sizes", default="10,100,1000", help="MB of a source, unpacked")
    parser.add_argument(
        "--commands", help="with | between them, and those whose output they read; others' results stay"
    )
    options = parser.parse_args()
    if options.titles:
        print(memory_of_titles(options.titles))
        return
    rows = []
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            for row in run_all(options, Path(folder), size):
                print(json.dumps(row), flush=True)
                rows.append(row)
    if options.commands:
        known = json.loads((RESULTS / "building.json").read_text(encoding="utf8"))["rows"]
        rows = [*(row for row in known if row["command"] not in {x["command"] for x in rows}), *rows]
    titles = {n: float(_python(__file__, "--titles", str(n))) for n in TITLES}
    result = {"rows": rows, "titles": titles, **describe_machine()}
    write_report("building", result, make_table(result))


def memory_of_titles(n: int) -> float:
    """MB of a process that makes a vocabulary of so many titles, which are counted already."""
    from types import SimpleNamespace

    from spacy_luke.corpus import vocabulary
    from spacy_luke.stores.parallel import Engine

    def count(part: int) -> tuple[dict[str, int], list[str]]:
        return {f"Some title of an entity {part * 1000 + i}": 1 + i % 7 for i in range(1000)}, []

    vocabulary.count_part = count  # type: ignore[assignment]
    corpus: Any = SimpleNamespace(path=Path("made"), parts=range(n // 1000), language="en", interwiki=None)
    vocabulary.build_entity_vocab([corpus], size=50_000, engine=Engine(workers=1))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def run_all(options: argparse.Namespace, folder: Path, size: int) -> Iterator[dict[str, Any]]:
    dump, items = folder / "enwiki-made-pages-articles.xml", folder / "wikidata.json"
    text, entities, kb, items_kb = (folder / name for name in ("text", "entities", "kb", "items"))
    shards = ["--encoder", MINILM, "--entity-vocab", entities]
    for name, source, arguments, output in (
        ("build-corpus", dump, ["build-corpus", dump, text, "--workers", "1"], text),
        (
            "build-entity-vocab",
            dump,
            ["build-entity-vocab", text, entities, "--size", "50000", "--workers", "1"],
            entities,
        ),
        ("build-shards", dump, ["build-shards", text, folder / "shards", *shards, "--workers", "1"], folder / "shards"),
        ("build-kb, Wikipedia", dump, ["build-kb", dump, kb, "--unknown", "add"], kb),
        ("build-kb, Wikidata", items, ["build-kb", items, items_kb], items_kb),
        ("embed-entities, MiniLM", items, ["embed-entities", items_kb, "--weights", MINILM], items_kb),
    ):
        if options.commands and name not in options.commands.split("|"):
            continue
        if not source.exists():
            write_dump(options.data / SAMPLE, dump, size) if source == dump else write_items(
                options.data / ITEMS, items, size
            )
        megabytes = source.stat().st_size / 1e6
        seconds, memory, disk = run(["-m", "spacy", "luke", *map(str, arguments)], output)
        yield {
            "command": name,
            "size": size,
            "read_mb": round(megabytes, 1),
            "seconds": round(seconds, 1),
            "memory_mb": round(memory, 1),
            "disk_mb": round(disk, 1),
        }


def run(arguments: list[str], output: Path) -> tuple[float, float, float]:
    """Processor's seconds, MB of the largest process, and the most MB that output (and what is beside it) had."""
    done, most = threading.Event(), [0]

    def watch() -> None:
        while not done.wait(0.2):
            most[0] = max(most[0], _size_of(output))

    said = output.parent / "said.txt"
    watcher = threading.Thread(target=watch)
    watcher.start()
    with said.open("wb") as file:
        process = subprocess.Popen([sys.executable, *arguments], stdout=file, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    done.set()
    watcher.join()
    if status:
        raise SystemExit(f"{' '.join(arguments)}\n{said.read_text(encoding='utf8')}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, max(most[0], _size_of(output)) / 1e6


def _size_of(folder: Path) -> int:
    """Bytes of a folder and of what a command writes beside it until it is done."""
    size = 0
    for path in {*folder.parent.glob(f"*{folder.name}*"), *folder.parent.glob(f".*{folder.name}*")}:
        for place, _, names in os.walk(path):  # which skips what has gone meanwhile
            for name in names:
                with suppress(FileNotFoundError):
                    size += (Path(place) / name).stat().st_size
    return size


def write_dump(sample: Path, path: Path, size: int) -> None:
    """`size` MB of the sample's pages."""
    text = bz2.decompress(sample.read_bytes()).decode("utf8")
    head, rest = text[: text.index("<page>")], text[text.index("<page>") : text.rindex("</page>") + len("</page>")]
    with path.open("w", encoding="utf8") as file:
        file.write(head)
        copy = 0
        while file.tell() < size * 1_000_000:
            mark = f" {copy}" if copy else ""
            made = LINK.sub(lambda x: f"[[{x[1]}{mark}{x[2] or '|' + x[1]}]]", rest)  # noqa: B023
            file.write(re.sub(r"<title>([^<]*)</title>", rf"<title>\1{mark}</title>", made) + "\n")
            copy += 1
        file.write("</mediawiki>\n")


def write_items(table: Path, path: Path, size: int) -> None:
    """`size` MB of items in the form of Wikidata's dump."""
    with table.open(encoding="utf8", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) >= 4]
    written, number = 0, 0
    with path.open("w", encoding="utf8") as file:
        file.write("[\n")
        while written < size * 1_000_000:
            row, number = rows[number % len(rows)], number + 1
            line = json.dumps(make_item(number, row[3], row[4:5]), ensure_ascii=False)
            file.write(("" if number == 1 else ",\n") + line)
            written += len(line.encode()) + 2
        file.write("\n]\n")


def make_item(number: int, name: str, aliases: list[str]) -> dict[str, Any]:
    own = f"{name} {number}"
    texts = {code: {"language": code, "value": f"{own} ({code})"} for code in LANGUAGES}
    also = [{"language": "en", "value": f"{x} {number}"} for x in "|".join(aliases).split("|") if x]
    value = {"value": {"entity-type": "item", "numeric-id": 5, "id": "Q5"}, "type": "wikibase-entityid"}
    claims = {
        f"P{31 + i}": [
            {
                "mainsnak": {"snaktype": "value", "property": f"P{31 + i}", "datavalue": value, "datatype": "item"},
                "type": "statement",
                "id": f"Q{number}$0F2A7C52-6C67-4F42-A1D6-{i:012d}",
                "rank": "normal",
                "references": [{"hash": f"{i:040x}", "snaks": {}, "snaks-order": []}],
            }
        ]
        for i in range(20)
    }
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {"en": {"language": "en", "value": own}, **texts},
        "descriptions": {"en": {"language": "en", "value": f"what is called {name}"}, **texts},
        "aliases": {"en": also},
        "claims": claims,
        "sitelinks": {"enwiki": {"site": "enwiki", "title": own, "badges": []}},
    }


def make_table(result: dict[str, Any]) -> str:
    """Markdown: what was measured, and what it means for whole dumps."""
    rows = result["rows"]
    lines = [
        "# Building from dumps, by size",
        "",
        "Written by `python benchmarks/building.py`; its head says what is read. One worker; seconds of the processor, "
        "memory of the",
        "largest process, disk as the most that the command had at once; the last columns: MB read in a second, and by "
        "how much memory",
        "grows with ten times as much to read.",
        "",
        "| command | MB read | s | memory, MB | disk, MB | MB/s | memory, times |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    before: dict[str, float] = {}
    for name in dict.fromkeys(row["command"] for row in rows):
        for row in (x for x in rows if x["command"] == name):
            times = f"{row['memory_mb'] / before[name]:.2f}" if name in before else ""
            before[name] = row["memory_mb"]
            cells = [name, f"{row['read_mb']:,.0f}", f"{row['seconds']:,.1f}", f"{row['memory_mb']:,.0f}"]
            cells += [f"{row['disk_mb']:,.0f}", f"{row['read_mb'] / row['seconds']:.1f}", times]
            lines.append("| " + " | ".join(cells) + " |")
    titles = {int(n): mb for n, mb in result["titles"].items()}
    (few, less), (many, more) = list(titles.items())[-2:]
    each = (more - less) * 1e6 / (many - few)
    lines += [
        "",
        "## A vocabulary of ever more titles",
        "",
        f"Of 50,000 rows, whose titles are counted already; {each:.0f} bytes a title.",
        "",
        "| titles | memory, MB |",
        "|---:|---:|",
        *(f"| {n:,} | {mb:,.0f} |" for n, mb in titles.items()),
        "",
        "## Whole dumps, by these rates",
        "",
        "Hours of one core and disk by the largest size that was read; memory by how it grew with titles or items. "
        "Taken for whole dumps:",
        "; ".join(f"{name}: {mb:,} MB unpacked, {n:,} titles or items" for name, (mb, n) in WHOLE.items()) + ".",
        "",
        "| | command | hours of a core | memory, GB | disk, GB |",
        "|---|---|---:|---:|---:|",
    ]
    for whole, names in COMMANDS.items():
        for name in names:
            own = [row for row in rows if row["command"] == name]
            per_title = each if name == "build-entity-vocab" else None
            hours, memory, disk = extrapolate(own, *WHOLE[whole], THINGS.get(whole, THINGS["Wikipedia"]), per_title)
            lines.append(f"| {whole} | {name} | {hours:,.1f} | {memory:,.1f} | {disk:,.0f} |")
    versions = result["versions"]
    machine = f"{result['chip']}, Python {versions['python']}, spacy-luke {versions['spacy-luke']}"
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


def extrapolate(
    rows: list[dict[str, Any]], megabytes: int, things: int, of_a_megabyte: int, each: float | None
) -> tuple[float, float, float]:
    """Hours, GB of memory and GB of disk for so much, with so many titles or items. each: bytes of memory a thing,
    None: as memory grew between the last two sizes."""
    before, last = rows[-2:]
    if each is None:
        grown = (last["memory_mb"] - before["memory_mb"]) * 1e6
        each = max(0.0, grown / ((last["read_mb"] - before["read_mb"]) * of_a_megabyte))
    factor, more = megabytes / last["read_mb"], things - last["read_mb"] * of_a_megabyte
    return last["seconds"] * factor / 3600, last["memory_mb"] / 1e3 + each * more / 1e9, last["disk_mb"] * factor / 1e3


if __name__ == "__main__":
    main()
