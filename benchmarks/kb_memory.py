"""What a knowledge base of ever more items takes of memory while it is built, and while its entities get vectors.

    python benchmarks/kb_memory.py                # results/kb_memory.json and .md; three minutes

Items of Wikidata's form with three names each, that are drawn. The memory is that of the process alone (`RssAnon` of
Linux): files that are mapped, whose pages the system takes back where it has no room, are left out. `most` of
`build_kb` says how many entities or names are sorted at once, and a trie is built of sixteen times as many: 131,072
here, so that these sizes have many, 8.4 million by default. Vectors of one number: no encoder's memory is in it.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from measuring import data_parser, write_report

SIZES = (100_000, 200_000, 400_000, 800_000)
MOST = 1 << 13
WIKIDATA = 118_000_000  # items, in 2026
SYLLABLES = [a + b for a in "bcdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ol")]


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", nargs=2, metavar=("COMMAND", "FOLDER"), help="measure in this process, and end")
    options = parser.parse_args()
    if options.one:
        print(measure_here(options.one[0], Path(options.one[1])))
        return
    rows = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_items(Path(folder) / "items.json", size)
            for command in ("build-kb", "embed-entities"):
                ran = [sys.executable, __file__, "--one", command, folder]
                told = subprocess.run(ran, check=True, capture_output=True, text=True).stdout
                rows.append({"command": command, "items": size, "megabytes": float(told)})
                print(rows[-1], flush=True)
    result = {"most": MOST, "rows": rows, **describe_machine()}
    write_report("kb_memory", result, make_table(result))


def write_items(file: Path, size: int) -> None:
    draw = random.Random(0)

    def word(syllables: int) -> str:
        return "".join(draw.choice(SYLLABLES) for _ in range(syllables)).title()

    def text(value: str) -> dict[str, str]:
        return {"language": "en", "value": value}

    with file.open("w", encoding="utf8") as output:
        for number in range(1, size + 1):
            first, last = word(3), word(4)
            labels, others = text(f"{first} {last}"), [text(word(4)), text(f"{last} {word(2)}")]
            item = {"id": f"Q{number}", "labels": {"en": labels}, "aliases": {"en": others}, "sitelinks": {}}
            output.write(json.dumps({**item, "descriptions": {"en": text(f"a {word(3)} of {word(2)}")}}) + "\n")


def measure_here(command: str, folder: Path) -> float:
    """MB that the process took more at most than at its beginning."""
    from spacy_luke.components.linker.embed_entities import embed_entities
    from spacy_luke.kb.build import build_kb
    from spacy_luke.kb.knowledge_base import EntityKB

    peak = start = read_memory()
    ended = False

    def watch() -> None:
        nonlocal peak
        while not ended:
            peak = max(peak, read_memory())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        if command == "build-kb":
            build_kb([folder / "items.json"], folder / "kb", most=MOST)
        else:
            embed_entities(EntityKB.open(folder / "kb"), NoEncoder())
    finally:
        ended = True
        watcher.join()
    return round((peak - start) / 1024, 1)


def read_memory() -> int:
    """KB of this process, without mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="utf8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class NoEncoder:
    """In place of a `TextEncoder`."""

    size = 1

    def fingerprint(self) -> str:
        return "none"

    def encode(self, texts: list[str], batch_size: int) -> np.ndarray:
        return np.ones((len(texts), self.size), np.float32)


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# Memory of building a knowledge base",
        "",
        "Written by `python benchmarks/kb_memory.py`; its head says what is measured. "
        f"Tries of {16 * result['most']:,} texts.",
        "",
        "| command | items | memory, MB |",
        "|---|---:|---:|",
    ]
    told = []
    for command in dict.fromkeys(row["command"] for row in result["rows"]):
        own = [row for row in result["rows"] if row["command"] == command]
        rate = (own[-1]["megabytes"] - own[0]["megabytes"]) * 2**20 / (own[-1]["items"] - own[0]["items"])
        told.append(f"{command} {rate:.0f} bytes, {WIKIDATA * rate / 1e9:.1f} GB")
        lines += [f"| {command} | {row['items']:,} | {row['megabytes']:.0f} |" for row in own]
    lines += ["", "For each further item, from the first size to the last, and so for all "]
    lines[-1] += f"{WIKIDATA:,} items of Wikidata: {'; '.join(told)}. Beside that is what a trie takes while it is "
    lines[-1] += "built (120 bytes a text, 1 GB by default) and what is sorted at once."
    return "\n".join([*lines, "", f"Machine: {result['chip']}, Python {result['versions']['python']}.", ""])


if __name__ == "__main__":
    main()
