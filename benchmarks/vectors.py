"""The store of entity vectors at the size of ERNIE's: building, opening, a batch's rows, names, memory; the original
beside.

    python benchmarks/vectors.py                         # results/vectors.json, results/vectors.md
    python benchmarks/vectors.py --rows 200000           # another size
    python benchmarks/vectors.py --folder /big/disk      # about 9 GB for 5 million rows, removed afterwards

The files are made up: entity2id.txt, entity2vec.vec (one block of 50,000 random rows, over and over) and entity_map.txt
in ERNIE's layout. The float32 store is built from them, the others from the float32 store's .npy. Each measurement has
a process of its own. Cold: the system was asked to forget the files before (POSIX_FADV_DONTNEED). Linux only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from machine import describe_machine
from measuring import forget, mb, memory, timed, write_report

SIZE, BATCH, REPEATS = 100, 2000, 30
SAMPLE = 50_000  # rows of one block of text, and of the original's loader
TITLES = 343_994  # as in the released entity_map.txt
DTYPES = ("float32", "float16", "int8")


def main() -> None:
    options = read_options()
    if options.one:
        step, _, dtype = options.one.partition(":")
        print(json.dumps(STEPS[step](options, dtype)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print("files", write_files(Path(folder), options.rows), flush=True)
        rows = {}
        for step in [f"{step}:{dtype}" for dtype in DTYPES for step in ("build", "read")] + ["original:"]:
            command = [sys.executable, __file__, "--one", step, "--folder", folder, "--rows", str(options.rows)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows[step] = json.loads(done.stdout.splitlines()[-1])
            print(step, rows[step], flush=True)
    load = "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
    result = {**describe_machine(), "load": load, "rows": options.rows, "size": SIZE, "batch": BATCH, "measured": rows}
    write_report("vectors", result, make_report(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the system's temporary folder")
    parser.add_argument("--one", help="one measurement in this process, printed")
    return parser.parse_args()


def write_files(folder: Path, rows: int) -> dict[str, Any]:
    values = np.random.default_rng(0).normal(scale=0.1, size=(min(SAMPLE, rows), SIZE))
    block = ["\t".join(f"{x:.6f}" for x in row) + "\n" for row in values.tolist()]
    with (folder / "entity2vec.vec").open("w", encoding="utf8") as file:
        for start in range(0, rows, len(block)):
            file.writelines(block[: rows - start])
    with (folder / "entity2id.txt").open("w", encoding="utf8") as file:
        file.write(f"{rows}\n")
        file.writelines(f"{name_of(row)}\t{row}\n" for row in range(rows))
    with (folder / "entity_map.txt").open("w", encoding="utf8") as file:
        file.writelines(f"Title of {row}\t{name_of(row)}\n" for row in range(0, rows, -(-rows // TITLES)))
    return {path.name: mb(path.stat().st_size) for path in sorted(folder.iterdir())}


def name_of(row: int) -> str:
    return f"Q{row * 7 + 31}"


def build(options: argparse.Namespace, dtype: str) -> dict[str, Any]:
    from spacy_luke.vectors.build import build_vectors

    before, start, busy = memory(), time.perf_counter(), time.process_time()
    source: dict[str, Any] = {"source": options.folder, "format": "ernie"}
    if dtype != "float32":
        folder = options.folder
        source = {"source": folder / "float32" / "vectors.npy", "names": folder / "entity2id.txt", "format": "numpy"}
        source["titles"] = folder / "entity_map.txt"
    store = build_vectors(**source, folder=options.folder / dtype, dtype=dtype).store
    taken, busy = time.perf_counter() - start, time.process_time() - busy
    files = {path.name: mb(path.stat().st_size) for path in sorted(store.path.iterdir())}
    after = memory()
    return {
        "build_s": round(taken, 1),
        "build_cpu_s": round(busy, 1),
        "peak_mb": mb(after["VmHWM"] - before["VmRSS"]),
        "store_mb": round(sum(files.values()), 1),
        "files_mb": files,
        "names": store.name_count,
    }


def read(options: argparse.Namespace, dtype: str) -> dict[str, Any]:
    from spacy_luke.vectors.store import EntityVectors

    folder, rng = options.folder / dtype, np.random.default_rng(1)
    drawn = rng.integers(0, options.rows, (3 * REPEATS + 1, BATCH))
    forget(folder)
    before = memory()
    store, opened = timed(EntityVectors.open, folder)
    open_mb = memory()["VmRSS"] - before["VmRSS"]
    again = median(timed(EntityVectors.open, folder)[1] for _ in range(REPEATS))
    cold = [timed(store.gather, rows)[1] for rows in drawn[:REPEATS]]
    for path in folder.iterdir():  # now the system keeps the files
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    store.gather(drawn[-1])
    held, busy = memory(), time.process_time()
    warm = [timed(store.gather, rows)[1] for rows in drawn[REPEATS : 2 * REPEATS]]
    gathered, busy = memory(), time.process_time() - busy
    batches = [[name_of(row) for row in rows] for rows in drawn[2 * REPEATS : -1].tolist()]
    names = [timed(store.rows, batch) for batch in batches]
    assert all((x[0] == rows).all() for x, rows in zip(names, drawn[2 * REPEATS : -1], strict=True))
    single = timed(lambda: [store.row(name) for name in batches[0]])[1]
    after = memory()
    return {
        "open_cold_ms": round(1000 * opened, 2),
        "open_ms": round(1000 * again, 2),
        "open_mb": mb(open_mb),
        "gather_cold_ms": ms(cold),
        "gather_cold_first_ms": round(1000 * cold[0], 2),
        "gather_warm_ms": ms(warm),
        "gather_warm_worst_ms": round(1000 * max(warm), 2),
        "gather_warm_cpu_ms": round(1000 * busy / REPEATS, 2),
        "gather_mb": mb(gathered["VmRSS"] - held["VmRSS"]),
        "rss_before_mb": mb(before["VmRSS"]),
        "rss_after_gather_mb": mb(gathered["VmRSS"]),
        "rss_after_names_mb": mb(after["VmRSS"]),
        "own_mb": mb(after["RssAnon"] - before["RssAnon"]),
        "mapped_mb": mb(after["RssFile"] - before["RssFile"]),
        "names_per_second": round(BATCH / median(x[1] for x in names)),
        "single_names_per_second": round(BATCH / single),
    }


def load_as_original(options: argparse.Namespace, _: str) -> dict[str, Any]:
    """What ERNIE's scripts do before training: lines to lists of numbers, all of them, then a tensor. On a sample."""
    import torch

    sample = min(SAMPLE, options.rows)
    before, start = memory(), time.process_time()
    numbers, vectors = {}, [[0.0] * SIZE]
    with (options.folder / "entity2id.txt").open() as file:
        file.readline()
        for line in islice(file, sample):
            name, number = line.strip().split("\t")
            numbers[name] = int(number)
    with (options.folder / "entity2vec.vec").open() as file:
        for line in islice(file, sample):
            vectors.append([float(x) for x in line.strip().split("\t")])
    table = torch.nn.Embedding.from_pretrained(torch.FloatTensor(vectors))
    taken, peak = time.process_time() - start, memory()["VmHWM"] - before["VmRSS"]
    assert len(table.weight) == sample + 1
    times = options.rows / sample
    return {
        "sample": sample,
        "sample_s": round(taken, 2),
        "sample_mb": mb(peak),
        "scaled_s": round(taken * times),
        "scaled_mb": mb(peak * times),
    }


STEPS: dict[str, Callable[[argparse.Namespace, str], dict[str, Any]]] = {
    "build": build,
    "read": read,
    "original": load_as_original,
}


def ms(seconds: list[float]) -> float:
    return round(1000 * median(seconds), 2)


LINES = {
    "build: wall-clock, processor, s": "{build_s:,}, {build_cpu_s:,}",
    "build, memory at its peak, MB": "{peak_mb:,}",
    "the folder, MB": "{store_mb:,}",
    "open, cold, ms": "{open_cold_ms}",
    "open, again, ms": "{open_ms}",
    "open, memory, MB": "{open_mb}",
    "rows of a batch, cold: the first, median, ms": "{gather_cold_first_ms}, {gather_cold_ms}",
    "rows of a batch, warm: median, worst, ms": "{gather_warm_ms}, {gather_warm_worst_ms}",
    "the same, processor time, ms": "{gather_warm_cpu_ms}",
    "30 other warm batches, memory, MB": "{gather_mb}",
    "process before opening, after the batches, MB": "{rss_before_mb}, {rss_after_gather_mb}",
    "the same after looking 62,000 names up, MB": "{rss_after_names_mb}",
    "of it its own, and mapped and shared by processes, MB": "{own_mb}, {mapped_mb}",
    "names a second, in batches": "{names_per_second:,}",
    "names a second, one by one": "{single_names_per_second:,}",
}


def make_report(result: dict[str, Any]) -> str:
    found, original = result["measured"], result["measured"]["original:"]
    columns = [{**found[f"build:{dtype}"], **found[f"read:{dtype}"]} for dtype in DTYPES]
    table = "\n".join(
        f"| {title} | " + " | ".join(line.format(**column) for column in columns) + " |"
        for title, line in LINES.items()
    )
    return f"""# {result["rows"]:,} entity vectors of {result["size"]} numbers

Written by `python benchmarks/vectors.py`. {result["chip"]}, one thread, {columns[0]["names"]:,} names. Wall-clock time where
nothing else is said; the machine had other work (load {result["load"]}).
A batch asks for {result["batch"]:,} random rows. float32 was built from text in ERNIE's layout, float16 and int8 from .npy.

| | {" | ".join(DTYPES)} |
|---|---|---|---|
{table}

The original reads all into lists, then makes a tensor: {original["sample_s"]} s (processor) and {original["sample_mb"]:,} MB for
{original["sample"]:,} rows, measured; {original["scaled_s"]:,} s and {original["scaled_mb"]:,} MB for {result["rows"]:,} rows,
scaled from that. It does so at each start; a store is built once.
"""  # noqa: E501


if __name__ == "__main__":
    main()
