"""The open data of `make train`, assets/open: a part of WikiGold, WNUT-17 and Re-DocRED, as they were published.

    python scripts/open_slice.py assets/ready assets/open

Documents of WikiGold and Re-DocRED are those of the parts that the workflow `ready` makes of them (a hash of the title,
or of the first sentence), so that what one tests the other has not trained on; WNUT-17 has parts of its own. Of a part
come the first so many; of Re-DocRED's documents what the reader needs.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from spacy_luke.readers.splits import PARTS, part_of_title

T = TypeVar("T")
WNUT = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
DOCUMENTS = {  # sentences, of WNUT-17
    "wikigold": {"train": 60, "dev": 10, "test": 20},
    "wnut17": {"train": 600, "dev": 120, "test": 250},
    "redocred": {"train": 50, "dev": 8, "test": 12},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="folder of the files")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        chosen = {
            "wikigold.{}.conll": "".join(take(wikigold(options.data, part), DOCUMENTS["wikigold"][part])),
            "wnut17.{}.conll": "".join(take(wnut(options.data, part), DOCUMENTS["wnut17"][part])),
            "redocred.{}.json": as_lines(take(redocred(options.data, part), DOCUMENTS["redocred"][part])),
        }
        for name, text in chosen.items():
            (options.output / name.format(part)).write_text(text, encoding="utf8")


def take(items: Iterable[T], most: int) -> list[T]:
    return [item for _, item in zip(range(most), items)]


def wikigold(data: Path, part: str) -> Iterable[str]:
    """Documents, each after its line of a document's start."""
    text = (data / "wikigold/CONLL-format/data/wikigold.conll.txt").read_text(encoding="utf8")
    for document in text.split("-DOCSTART- O\n"):
        first = document.strip("\n").split("\n\n")[0]
        words = [line.split()[0] for line in first.splitlines()]
        if words and part_of_title(" ".join(words)) == part:
            yield f"-DOCSTART- O\n\n{document.strip()}\n\n"


def wnut(data: Path, part: str) -> Iterable[str]:
    """Sentences; a line of blanks parts them."""
    lines: list[str] = []
    for line in (data / "wnut17" / WNUT[part]).read_text(encoding="utf8").splitlines():
        if line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join([*lines, "\n"])
            lines = []


def redocred(data: Path, part: str) -> Iterable[dict[str, Any]]:
    for item in json.loads((data / "redocred/dev_revised.json").read_text(encoding="utf8")):
        if part_of_title(item["title"]) == part:
            yield {
                "title": item["title"],
                "sents": item["sents"],
                "vertexSet": [
                    [{key: mention[key] for key in ("name", "sent_id", "pos", "type")} for mention in entity]
                    for entity in item["vertexSet"]
                ],
                "labels": [{key: label[key] for key in ("h", "t", "r")} for label in item["labels"]],
            }


def as_lines(items: Iterable[dict[str, Any]]) -> str:
    """A JSON list, a document a line."""
    lines = ",\n".join(json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    main()
