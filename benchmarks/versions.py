"""Whether this version is as fast as another one: `luke_ner` of both takes turns on the same documents.

    git worktree add ../old COMMIT
    python benchmarks/versions.py ../old               # results/versions.json, results/versions.md

Each version runs in a process of its own, on one thread, on MiniLM with a head of noise and CoNLL-2003 test documents;
what counts is the processor time of the fastest turn. Words that a version has read before are not held.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import data_parser, write_report

HERE = Path(__file__).parents[1]
CASES = [("one_way", "float32"), ("one_way", "bfloat16"), ("full", "float32")]


def main() -> None:
    options = read_options()
    if options.worker:
        work(options)
        return
    rows = [measure(options, attention, precision) for attention, precision in CASES]
    result = {**describe_machine(), "old": options.name or describe(options.old), "rows": rows}
    write_report("versions", result, make_report(result))


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("old", type=Path, help="checkout of the other version")
    parser.add_argument("--name", help="of the other version, where its folder does not say it")
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def describe(folder: Path) -> str:
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or folder.name


def measure(options: argparse.Namespace, attention: str, precision: str) -> dict[str, Any]:
    documents = options.documents if attention == "one_way" else 1
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    workers = {}
    for name, folder in (("old", options.old), ("new", HERE)):
        command = [sys.executable, __file__, str(folder), "--data", str(options.data), "--documents", str(documents)]
        environment = {**os.environ, "PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": "1"}
        workers[name] = subprocess.Popen(
            [*command, "--worker", attention, precision],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    words = {int(ask(worker)["words"]) for worker in workers.values()}
    for turn in range(options.turns + 1):
        for name, worker in workers.items():
            took = float(ask(worker)["seconds"])
            if turn:
                seconds[name].append(took)
    for worker in workers.values():
        worker.communicate()
    (total,) = words
    best = {name: total / min(x) for name, x in seconds.items()}
    return {"attention": attention, "precision": precision, "words": total, **best}


def ask(worker: "subprocess.Popen[str]") -> dict[str, Any]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
    raise SystemExit("A version failed; see above.")


def work(options: argparse.Namespace) -> None:
    """Answer each line of the input by the seconds of a turn, the first one by the number of words."""
    import logging
    import warnings
    from itertools import islice

    import torch
    from int8 import make_pipeline
    from spacy.tokens import Doc

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    attention, precision = options.worker
    nlp = make_pipeline(attention)
    for node in nlp.get_pipe("luke_ner").model.walk():
        if "predict_precision" in node.attrs:
            node.attrs["predict_precision"] = precision
    data = list(islice(read_documents(options.data / "conll2003" / "eng.testb"), options.documents))
    for turn, _ in enumerate(sys.stdin):
        docs = [Doc(nlp.vocab, words=words, sent_starts=starts) for words, starts in data]
        start = time.process_time()
        if turn:
            for _ in nlp.pipe(docs, batch_size=64):
                pass
        print(json.dumps({"words": sum(map(len, docs)), "seconds": time.process_time() - start}), flush=True)


def read_documents(path: Path) -> Iterator[tuple[list[str], list[bool]]]:
    """Words, and whether they begin a sentence; by itself, as versions have other readers."""
    for part in path.read_text(encoding="utf8").split("-DOCSTART-")[1:]:
        sentences = [block.splitlines() for block in part.split("\n\n")[1:] if block.strip()]
        words = [line.split()[0] for block in sentences for line in block]
        yield words, [i == 0 for block in sentences for i in range(len(block))]


def make_report(result: dict[str, Any]) -> str:
    lines = [
        "# This version beside an older one",
        "",
        f"{result['chip']}, one thread; `python benchmarks/versions.py`, the older one is {result['old']}. Words a "
        "second of processor time, the fastest of the turns that both take.",
        "",
        "| attention | precision | words | older | now | now / older |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["rows"]:
        cells = [row["attention"], row["precision"], f"{row['words']:,}", f"{row['old']:,.0f}", f"{row['new']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} | {row['new'] / row['old']:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
