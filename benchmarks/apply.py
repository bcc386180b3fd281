"""`spacy luke apply` beside `nlp.pipe`, by workers, and over very many short documents with kills.

    python benchmarks/apply.py rate PIPELINE                      # a worker beside nlp.pipe, CPU seconds, same texts
    python benchmarks/apply.py workers PIPELINE                   # two workers beside one and beside two runs
    python benchmarks/apply.py many PIPELINE --documents 1000000  # a kill at every tenth part; goes on after a stop
    python benchmarks/apply.py table                              # results/apply.md of results/apply.json

Each adds its figures to results/apply.json. Texts are those of Re-DocRED, raw; the short documents are its sentences.
docs/results/stores.md says what is measured.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
import spacy
from machine import describe_machine

from spacy_luke.pipelines.annotation import Annotator, pipeline_name
from spacy_luke.readers.datasets.docred import read_docred
from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.annotating import PartMaker, PartTask, WorkerSettings
from spacy_luke.streams.cutting import PartLimits, cut_parts
from spacy_luke.streams.input_formats import InputFields
from spacy_luke.streams.inputs import find_inputs
from spacy_luke.streams.run import ApplySettings

RESULTS = Path(__file__).parent / "results"
SHARED = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
SHORT = 12  # words of a short document at most
KILL_EVERY = 10  # parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rate", "workers", "many", "table"])
    parser.add_argument("pipeline", nargs="?", help="folder or name of a pipeline")
    parser.add_argument("--words", type=int, default=40_000, help="of the texts for rate and workers, about")
    parser.add_argument("--rounds", type=int, default=3, help="of rate and workers, alternating; medians are reported")
    parser.add_argument("--documents", type=int, default=1_000_000, help="of many")
    parser.add_argument("--part-documents", type=int, default=10_000, help="of a part of many")
    parser.add_argument("--folder", type=Path, default=Path("output/apply"), help="for texts and what is found")
    parser.add_argument("--engine", default="processes", help="of workers: processes or ray")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.what != "table":
        measure: Callable[[argparse.Namespace], dict[str, Any]]
        measure = {"rate": measure_rate, "workers": measure_workers, "many": measure_many}[options.what]
        name = options.what if options.engine == "processes" else f"{options.what}, {options.engine}"
        add_result(options.results, name, measure(options))
    table = make_table(json.loads((options.results / "apply.json").read_text(encoding="utf8")))
    (options.results / "apply.md").write_text(table, encoding="utf8")
    print(table)


def add_result(results: Path, name: str, figures: dict[str, Any]) -> None:
    results.mkdir(parents=True, exist_ok=True)
    file = results / "apply.json"
    known = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    known[name] = {**figures, "date": time.strftime("%Y-%m-%d"), **describe_machine()}
    file.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf8")


def read_texts() -> Iterator[str]:
    for record in read_docred(SHARED / "data/redocred/dev_revised.json", mention_pairs="first"):
        yield record.text if record.text is not None else " ".join(record.words or [])


def short_texts() -> Iterator[str]:
    """Sentences of at most SHORT words, again and again."""
    sentences = [f"{x.strip()} ." for text in read_texts() for x in text.split(" . ") if 3 <= len(x.split()) < SHORT]
    return cycle(sentences)


def write_lines(path: Path, texts: Iterator[str]) -> None:
    with path.open("w", encoding="utf8") as lines:
        for number, text in enumerate(texts):
            lines.write(json.dumps({"id": f"d{number:07d}", "text": text}, ensure_ascii=False) + "\n")


def measure_rate(options: argparse.Namespace) -> dict[str, Any]:
    """One process, CPU seconds: nlp.pipe over the texts, and what a worker does with them, from the file of texts to
    the files of annotations. Texts of Re-DocRED, some 200 words each, and short documents."""
    nlp = spacy.load(options.pipeline)
    annotator = Annotator(nlp)
    long = []
    have = 0
    for text in read_texts():
        if have < options.words:
            long.append(text)
            have += len(text.split())
    kinds = {"documents of 200 words": long, "short documents": list(islice(short_texts(), options.words // 10))}
    rows = []
    for kind, texts in kinds.items():
        path = options.folder / "rate.jsonl"
        write_lines(path, iter(texts))
        list(nlp.pipe(texts[:50]))
        rounds = []
        for _ in range(options.rounds):
            pipe, worker = time_pipe(annotator, texts), time_worker(options, annotator, path)
            rounds.append((pipe, worker))
            worker, pipe = time_worker(options, annotator, path), time_pipe(annotator, texts)
            rounds.append((pipe, worker))
        words = sum(len(nlp.make_doc(text)) for text in texts)
        pipe, worker = (words / median(x) for x in zip(*rounds, strict=True))
        ratio = median(a / b for a, b in rounds)
        rows.append({"texts": kind, "words": words, "pipe": round(pipe), "worker": round(worker), "ratio": ratio})
    return {"pipeline": pipeline_name(nlp), "rows": rows}


def time_pipe(annotator: Annotator, texts: list[str]) -> float:
    begin = time.process_time()
    with annotator.nlp.memory_zone():
        for _ in annotator.nlp.pipe(texts):
            pass
    return time.process_time() - begin


def time_worker(options: argparse.Namespace, annotator: Annotator, path: Path) -> float:
    out = options.folder / "rate"
    out.mkdir(exist_ok=True)
    default = ApplySettings()
    settings = WorkerSettings("", None, (), str(out), str(out), "jsonl", default.batch_words, None, None)
    begin = time.process_time()
    make = PartMaker(annotator, settings)
    inputs = find_inputs([path], format=None, fields=InputFields())
    for part in cut_parts(inputs, PartLimits(default.part_words, default.part_documents)):
        make(PartTask(part))
    return time.process_time() - begin


def measure_workers(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the clock from when all workers have loaded to the end, of one, of two, and of two runs that know
    nothing of each other, with a worker each: what this machine can do. In turns."""
    path = options.folder / "workers.jsonl"
    write_lines(path, islice(cycle(read_texts()), options.words // 200))
    rates: dict[str, list[float]] = {"one": [], "two": [], "apart": []}
    loads = []
    for _ in range(options.rounds):
        for what, found in rates.items():
            outs = [options.folder / f"workers-{what}-{i}" for i in range(2 if what == "apart" else 1)]
            engine = "processes" if what == "apart" else options.engine
            limits = ["--part-words", str(max(1, options.words // 40)), "--threads", "1", "--engine", engine]
            runs = []
            for out in outs:
                shutil.rmtree(out, ignore_errors=True)
                command = [*COMMAND, options.pipeline, str(path), str(out), *limits]
                command += ["--workers", "2" if what == "two" else "1"]
                runs.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            if any(run.wait() for run in runs):
                raise SystemExit(f"{what}: a run failed")
            found.append(sum(map(rate_of, outs)))
            loads.append(round(os.getloadavg()[0], 1))
            print(what, found, loads, flush=True)
    one, two, apart = (median(x) for x in rates.values())
    digests = {folder_digest(options.folder / f"workers-{what}-0") for what in ("one", "two")}
    same = len(digests) == 1
    rates_of = {"one": one, "two": two, "apart": apart}
    return {**rates_of, "ratio": two / one, "same": same, "loads": loads, "engine": options.engine}


COMMAND = [sys.executable, "-m", "spacy", "luke", "apply"]


def rate_of(folder: Path) -> float:
    """Words a second of all parts after the first of each worker, by the times when they were finished."""
    times = sorted((path.stat().st_mtime, path.name) for path in folder.glob("part-*"))
    words = {x["name"]: x["words"] for x in AnnotatedParts.open(folder).parts}
    begin = times[1][0]  # both workers have loaded
    return sum(words[name.partition(".")[0]] for _, name in times[2:]) / (times[-1][0] - begin)


def measure_many(options: argparse.Namespace) -> dict[str, Any]:
    """Very many short documents: a run without a kill, whose memory is looked at, and one that is killed at every
    tenth part. What is there from an earlier measurement is kept."""
    path = options.folder / "many.jsonl"
    if not path.is_file():
        write_lines(path, islice(short_texts(), options.documents))
    whole, killed = options.folder / "many", options.folder / "many-killed"
    curve = run_watched(options, path, whole, kill=False, log=options.folder / "memory.tsv")
    kills = run_watched(options, path, killed, kill=True, log=options.folder / "kills.tsv")
    with path.open(encoding="utf8") as lines:
        given = (json.loads(line)["id"] for line in lines)
        found = (x.id for x in AnnotatedParts.open(killed).texts())
        once = all(a == b for a, b in zip(given, found, strict=True))
    parts = AnnotatedParts.open(killed)
    return {
        "documents": parts.documents,
        "parts": len(parts.parts),
        "words": sum(x["words"] for x in parts.parts),
        "kills": len(kills),
        "all ids once, in order": once,
        "same bytes": folder_digest(whole) == folder_digest(killed),
        "memory": thin_out(curve),
    }


def run_watched(options: argparse.Namespace, path: Path, out: Path, *, kill: bool, log: Path) -> list[list[float]]:
    """Runs until it is finished; with `kill` it is killed whenever KILL_EVERY more parts are there. Lines of the log:
    parts that are there, megabytes of the process, of its worker; with `kill` a line a kill."""
    command = [*COMMAND, options.pipeline, str(path), str(out), "--part-documents", str(options.part_documents)]
    while not (out / "manifest.json").is_file():
        before = count_parts(out)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.5)
            parts = count_parts(out)
            sizes = [memory_of(x) for x in (process.pid, *children_of(process.pid))]
            if not kill and len(sizes) > 1:
                append(log, [parts, sizes[0], max(sizes[1:])])
            if kill and parts >= before + KILL_EVERY and not (out / "manifest.json").is_file():
                process.kill()
                append(log, [parts, *sizes])
                break
        if process.wait() not in (0, -signal.SIGKILL):
            raise SystemExit(f"apply ended with {process.returncode}")
    return [[float(x) for x in line.split("\t")] for line in log.read_text(encoding="ascii").splitlines()]


def append(log: Path, row: list[float]) -> None:
    with log.open("a", encoding="ascii") as lines:
        lines.write("\t".join(f"{x:.0f}" for x in row) + "\n")


def count_parts(folder: Path) -> int:
    return sum(1 for _ in folder.glob("part-*"))


def children_of(pid: int) -> list[int]:
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def memory_of(pid: int) -> float:
    """Resident megabytes."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def thin_out(curve: list[list[float]], points: int = 20) -> list[list[float]]:
    """The largest of each stretch of parts."""
    last = max(row[0] for row in curve)
    stretches: dict[int, list[list[float]]] = {}
    for row in curve:
        stretches.setdefault(int(row[0] * points / (last + 1)), []).append(row)
    return [[max(column) for column in zip(*rows, strict=True)] for _, rows in sorted(stretches.items())]


def folder_digest(folder: Path) -> str:
    digest = blake2b()
    for path in sorted(x for x in folder.iterdir() if x.is_file()):
        digest.update(path.name.encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_table(results: dict[str, Any]) -> str:
    lines = ["# spacy luke apply", "", "Made by `python benchmarks/apply.py`; what is measured: its head.", ""]
    for name, result in results.items():
        versions = result["versions"]
        where = f"{result['chip']}, {result['threads']} thread(s) each, torch {versions['torch']}, {result['date']}"
        lines += [f"## {name}", "", f"{where}.", ""]
        if "rows" in result:
            lines += [
                "| texts | words | `nlp.pipe`, words/s | a worker, words/s | ratio |",
                "|---|---:|---:|---:|---:|",
            ]
            for x in result["rows"]:
                row = f"{x['words']:,} | {x['pipe']:,} | {x['worker']:,} | {x['ratio']:.3f}"
                lines.append(f"| {x['texts']} | {row} |")
            lines += ["", "Words a second of CPU time, in one process, in turns."]
        if "two" in result:
            apart = result.get("apart")
            lines += [
                "| one worker | two workers | ratio | two runs at once | two workers, of these | same bytes |",
                "|---:|---:|---:|---:|---:|---|",
            ]
            cells = [f"{result['one']:,.0f} words/s", f"{result['two']:,.0f} words/s", f"{result['ratio']:.2f}"]
            cells += [f"{apart:,.0f} words/s", f"{result['two'] / apart:.2f}"] if apart else ["", ""]
            lines += ["| " + " | ".join([*cells, "yes" if result["same"] else "no"]) + " |"]
            lines += ["", f"Seconds of the clock; load of the machine meanwhile: {result['loads']}."]
        if "memory" in result:
            lines += ["| documents | parts | kills | all ids once, in order | same bytes |", "|---:|---:|---:|---|---|"]
            told = ["yes" if result[x] else "no" for x in ("all ids once, in order", "same bytes")]
            counts = f"{result['documents']:,} | {result['parts']} | {result['kills']}"
            lines += [f"| {counts} | {' | '.join(told)} |", "", "Resident memory, the most of each stretch:", ""]
            lines += ["| parts that are there | process, MB | worker, MB |", "|---:|---:|---:|"]
            lines += [f"| {a:.0f} | {b:.0f} | {c:.0f} |" for a, b, c in result["memory"]]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
