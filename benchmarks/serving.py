"""The service under load: eight clients beside `nlp.pipe` on the same texts; results compared before times.

    python benchmarks/serving.py PIPELINE            # results/serving.json, results/serving.md
    python benchmarks/serving.py PIPELINE --requests 40 --rounds 1 --name smoke

Clients, service and pipeline share the machine's cores. docs/results/stores.md says what is measured.
"""

import argparse
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import spacy
from machine import describe_machine

from spacy_luke.pages.schema import AnnotatedText, as_form
from spacy_luke.pipelines.annotation import Annotator

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
CLIENTS = (1, 8)
CLOSE = 2e-3  # scores of one document in other batches: float32, and int8 by the rows of a batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="Folder or name of a pipeline")
    parser.add_argument("--requests", type=int, default=400, help="texts, one a request")
    parser.add_argument("--rounds", type=int, default=3, help="of all, alternating; medians are reported")
    parser.add_argument("--name", default="serving", help="of the files in results")
    options = parser.parse_args()
    texts = read_texts(options.requests)
    annotator = Annotator(spacy.load(options.pipeline))
    words = sum(len(annotator.nlp.make_doc(text)) for text in texts)
    wanted = [as_form(annotator.read(doc)) for doc in annotator.nlp.pipe(texts)]
    rounds: list[dict[str, Any]] = []
    with served(options.pipeline) as port:
        ask_all(port, texts[:16], 8)  # warm
        for _ in range(options.rounds):
            row: dict[str, Any] = {"nlp.pipe": time_pipe(annotator, texts, as_json=False)}
            row["nlp.pipe, as JSON"] = time_pipe(annotator, texts, as_json=True)
            for clients in CLIENTS:
                seconds, replies, latencies = ask_all(port, texts, clients)
                compare(replies, wanted)
                row[f"service, {clients}"] = {"seconds": seconds, "latencies": latencies}
            rounds.append(row)
            print(json.dumps(report(rounds, words, options.requests)["rows"], indent=1), flush=True)
        batches = batch_sizes(port)
    found = report(rounds, words, options.requests)
    found |= {"pipeline": annotator.name, "machine": describe_machine(), "batches": batches, "rounds": options.rounds}
    (RESULTS / f"{options.name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    (RESULTS / f"{options.name}.md").write_text(draw(found), encoding="utf8")


def read_texts(n: int) -> list[str]:
    """Paragraphs of the article and of the sample, again and again, with a number so that no two are one."""
    paragraphs = [x for x in (ROOT / "assets/article.txt").read_text(encoding="utf8").split("\n\n") if len(x) > 100]
    for path in sorted((ROOT / "assets/sample").glob("*.jsonl")):
        paragraphs += [json.loads(line)["text"] for line in path.read_text(encoding="utf8").splitlines() if line]
    return [f"{paragraphs[i % len(paragraphs)]} {i}" for i in range(n)]


def time_pipe(annotator: Annotator, texts: Sequence[str], *, as_json: bool) -> float:
    started = time.perf_counter()
    with annotator.nlp.memory_zone():
        for doc in annotator.nlp.pipe(texts, batch_size=32):
            if as_json:
                as_form(annotator.read(doc)).model_dump_json()
    return time.perf_counter() - started


@contextmanager
def served(pipeline: str) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "spacy", "luke", "serve", pipeline, "--port", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                get(port, "/health")
                break
            except ConnectionRefusedError:
                time.sleep(0.2)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def get(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse().read().decode("utf8")


def ask_all(port: int, texts: Sequence[str], clients: int) -> tuple[float, list[AnnotatedText], list[float]]:
    """Each client has one connection, and sends its next text when it has its reply. Returns seconds, replies in the
    order of the texts, and seconds of each."""
    replies: list[bytes] = [b""] * len(texts)
    latencies = [0.0] * len(texts)
    numbers = iter(range(len(texts)))
    lock = threading.Lock()

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            body = json.dumps({"documents": [{"text": texts[number], "id": str(number)}]})
            started = time.perf_counter()
            connection.request("POST", "/annotate", body, {"content-type": "application/json"})
            replies[number] = connection.getresponse().read()
            latencies[number] = time.perf_counter() - started

    threads = [threading.Thread(target=client) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    read = [AnnotatedText.model_validate(json.loads(x)["documents"][0]) for x in replies]
    assert [x.id for x in read] == [str(i) for i in range(len(texts))]
    return seconds, read, latencies


def compare(replies: Sequence[AnnotatedText], wanted: Sequence[AnnotatedText]) -> None:
    """Nothing is lost, and all is as `nlp.pipe` finds it."""
    for mine, theirs in zip(replies, wanted, strict=True):
        assert mine.text == theirs.text
        places = [[(x.start, x.end, x.label, x.link and x.link.id) for x in form.entities] for form in (mine, theirs)]
        assert places[0] == places[1], f"{mine.text!r}: {places}"
        assert [(x.head, x.label, x.tail) for x in mine.relations] == [
            (x.head, x.label, x.tail) for x in theirs.relations
        ]
        for a, b in zip(mine.entities, theirs.entities, strict=True):
            assert a.score is None or b.score is None or abs(a.score - b.score) < CLOSE, (a, b)


def batch_sizes(port: int) -> float:
    """Documents a batch, on average."""
    text = get(port, "/metrics")
    total, count = (
        float(re.findall(rf"^spacy_luke_batch_documents_{x} (\S+)", text, re.MULTILINE)[0]) for x in ("sum", "count")
    )
    return total / count


def report(rounds: Sequence[dict[str, Any]], words: int, requests: int) -> dict[str, Any]:
    rows = {}
    for name in rounds[0]:
        several = [x[name] for x in rounds]
        seconds = median(x["seconds"] if isinstance(x, dict) else x for x in several)
        row = {
            "seconds": round(seconds, 2),
            "documents_s": round(requests / seconds, 1),
            "words_s": round(words / seconds),
        }
        latencies = [y for x in several if isinstance(x, dict) for y in x["latencies"]]
        if latencies:
            cuts = quantiles(latencies, n=100)
            row |= {f"p{p}_ms": round(1000 * cuts[p - 1]) for p in (50, 95, 99)}
        rows[name] = row
    return {"requests": requests, "words": words, "rows": rows}


def draw(found: dict[str, Any]) -> str:
    base = found["rows"]["nlp.pipe"]["words_s"]
    lines = [
        "# The service under load",
        "",
        f"{found['requests']} requests of one text each, {found['words']:,} words in all, `{found['pipeline']}`;",
        f"medians of {found['rounds']} rounds, alternating. Written by `python benchmarks/serving.py PIPELINE`.",
        f"{found['machine']['chip']}, torch with {found['machine']['threads']} thread(s).",
        "Clients, service and pipeline share the cores. Every reply was compared with what `nlp.pipe` finds.",
        f"Batches of the service had {found['batches']:.1f} documents on average.",
        "",
        "| | documents a second | words a second | beside `nlp.pipe` | median, ms | 95 %, ms | 99 %, ms |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found["rows"].items():
        shown = name.replace("service, 1", "service, 1 client").replace("service, 8", "service, 8 clients")
        times = [str(row.get(f"p{p}_ms", "")) for p in (50, 95, 99)]
        share = f"{row['words_s'] / base:.2f}"
        numbers = [str(row["documents_s"]), f"{row['words_s']:,}", share, *times]
        lines.append(f"| {' | '.join([shown, *numbers])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
