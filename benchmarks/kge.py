"""TransE by `spacy luke train-kge`: link prediction beside published figures, and steps at up to 5 million entities
beside PyKEEN's.

    python benchmarks/kge.py                                  # results/kge.json and .md; what is there is not run again
    python benchmarks/kge.py --only fb15k237 --again          # one part of it
    python benchmarks/kge.py --only codex-m-fewrel --keep out # and keep its folder: vectors for the ERNIE benchmarks

Each run of link prediction is the command that stands in the results. Settings were chosen on validation triples alone;
the test triples are scored once, with the epoch of the best validation MRR. For the rows of PyKEEN: pip install pykeen.
Linux only (memory).
"""

import json
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import data_parser, memory

RESULTS = Path(__file__).parent / "results"
CODEX = "codex/triples/codex-{}/{}.txt"
RECIPES: dict[str, list[str]] = {  # chosen on validation triples; what is not named has the command's default
    "codex-s": "--reciprocal --epochs 40 --batch-size 128 --negatives 128 --learning-rate 0.3".split(),
    "codex-s-512": "--size 512 --reciprocal --epochs 25 --every 5 --batch-size 128 --negatives 128 --learning-rate "
    "0.1".split(),
    "fb15k237": "--epochs 10 --every 5".split(),
    "codex-m": "--reciprocal --every 5".split(),
    "codex-m-fewrel": "--every 5".split(),
}
RECIPES.update(  # other losses, and PyKEEN
    {
        "codex-s-nssa": [*RECIPES["codex-s"], "--loss", "nssa", "--margin", "6"],
        "codex-s-margin": [*RECIPES["codex-s"], "--loss", "margin", "--margin", "2"],
        "codex-s-margin-unit": [
            *RECIPES["codex-s"],
            *"--loss margin --margin 1 --normalize --learning-rate 0.1".split(),
        ],
        "codex-s-pykeen": [*RECIPES["codex-s"], *"--engine pykeen --negatives 32 --epochs 20 --every 5".split()],
    }
)
UNTESTED = ("codex-s-margin", "codex-s-margin-unit", "codex-s-pykeen")
COMPARED = ("codex-s", "codex-s-nssa", *UNTESTED)  # losses and engines, a table of their own, validation triples
PUBLISHED = {
    "codex-s": [
        ("Safavi and Koutra 2020 (github.com/tsafavi/codex), 512 numbers, reciprocal", 0.354, 0.219, None, 0.634)
    ],
    "codex-m": [
        ("Safavi and Koutra 2020 (github.com/tsafavi/codex), 512 numbers, reciprocal", 0.303, 0.223, None, 0.454)
    ],
    "fb15k237": [
        ("Nguyen et al. 2018, as quoted by Sun et al. 2019 (RotatE)", 0.294, None, None, 0.465),
        ("LibKGE's README (Ruffinelli et al. 2020)", 0.313, 0.221, 0.347, 0.497),
    ],
}
SIZES = (200_000, 1_000_000, 5_000_000)
SYSTEMS: dict[str, dict[str, Any]] = {
    "sparse": {"engine": "sparse"},
    "sparse, margin, 64 negatives": {"engine": "sparse", "loss": "margin", "normalize": True, "batch_size": 8192, "negatives": 64},  # noqa: E501
    "PyKEEN, margin, 1 negative": {"engine": "pykeen", "loss": "margin", "normalize": True, "batch_size": 8192, "negatives": 1},  # noqa: E501
}  # fmt: skip
TABLES_IN_MEMORY = 5  # what a dense step of PyKEEN holds: table, gradient, Adagrad's sums, temporary ones


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--only", choices=[*RECIPES, "scale"], help="one part")
    parser.add_argument("--again", action="store_true", help="run what has a result already")
    parser.add_argument("--keep", type=Path, help="folder for what the runs write; default: a temporary one")
    parser.add_argument(
        "--one", nargs=2, metavar=("SYSTEM", "ENTITIES"), help="measure steps in this process, print them"
    )
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure_steps(options.one[0], int(options.one[1]))))
        return
    for part in [options.only] if options.only else [*RECIPES, "scale"]:
        done = read_results()["scale"] if part == "scale" else part in read_results()["quality"]
        if done and not options.again:
            continue
        if part == "scale":
            found: dict[str, Any] = {"scale": measure_scale()}
        else:
            with tempfile.TemporaryDirectory() as folder:
                measured = run_command(part, options.data, Path(folder), options.keep or Path(folder))
            found = {"quality": {**read_results()["quality"], part: measured}}
        result = {**read_results(), **describe_machine(), **found}
        (RESULTS / "kge.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    result = read_results()
    (RESULTS / "kge.md").write_text(make_report(result), encoding="utf8")
    print(make_report(result))


def read_results() -> dict[str, Any]:
    path = RESULTS / "kge.json"
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {"quality": {}, "scale": []}


def run_command(part: str, data: Path, temporary: Path, keep: Path) -> dict[str, Any]:
    """One run of the command; returns its metrics.json but for the history, and the command, with short paths."""
    if part == "fb15k237":
        with tarfile.open(data / "fb15k237" / "FB15k-237.tar.gz") as archive:
            archive.extractall(temporary, filter="data")
        files = {split: temporary / f"{split}.txt" for split in ("train", "valid", "test")}
    else:
        files = {split: data / CODEX.format(part[6], split) for split in ("train", "valid", "test")}
    options = [*RECIPES[part]]
    if part.endswith("-fewrel"):
        options += ["--exclude", str(write_fewrel_pairs(data / "fewrel", temporary / "fewrel_pairs.tsv"))]
    keep.mkdir(parents=True, exist_ok=True)
    output = keep / part
    held = ["--valid", str(files["valid"]), "--test", str(files["test"])]
    arguments = ["luke", "train-kge", str(files["train"]), str(output), *held, *options]
    subprocess.run([sys.executable, "-m", "spacy", *arguments], check=True)
    metrics = json.loads((output / "metrics.json").read_text(encoding="utf8"))
    metrics["test"] = None if part in UNTESTED else metrics["test"]
    short = [x.replace(f"{data}/", "").replace(f"{temporary}/", "").replace(f"{keep}/", "") for x in arguments]
    return {
        "command": " ".join(["spacy", *short]),
        **{key: value for key, value in metrics.items() if key != "history"},
    }


def write_fewrel_pairs(folder: Path, path: Path) -> Path:
    """Heads and tails of all examples of all files of FewRel, so that none of its facts is in the graph."""
    pairs = set()
    for file in sorted(folder.rglob("*.json")):
        found = json.loads(file.read_text(encoding="utf8"))
        examples = [x for group in found.values() for x in group] if isinstance(found, dict) else found
        pairs.update((x["h"][1], x["t"][1]) for x in examples if isinstance(x, dict) and x["h"][1] and x["t"][1])
    path.write_text("".join(f"{head}\t{tail}\n" for head, tail in sorted(pairs)), encoding="utf8")
    return path


def measure_scale() -> list[dict[str, Any]]:
    rows = []
    for system, settings in SYSTEMS.items():
        for size in SIZES:
            row: dict[str, Any] = {"system": system, "entities": size}
            needed = TABLES_IN_MEMORY * size * 400 if settings["engine"] == "pykeen" else 2 * size * 400
            if settings["engine"] == "pykeen" and find_spec("pykeen") is None:
                row["not_run"] = "PyKEEN is not installed"
            elif needed > available_memory() / 2:
                row["not_run"] = f"needs about {needed / 1e9:.0f} GB"
            else:
                command = [sys.executable, __file__, "--one", system, str(size)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                row.update(json.loads(done.stdout.splitlines()[-1]))
            rows.append(row)
            print(row, flush=True)
    return rows


def measure_steps(system: str, num_entities: int) -> dict[str, Any]:
    """Processor time of steps on random triples, one thread, after a first step; and the peak of memory."""
    import numpy as np
    import torch

    from spacy_luke.kge.engines import make_engine
    from spacy_luke.kge.settings import TransESettings
    from spacy_luke.kge.triples import Graph

    torch.set_num_threads(1)
    settings = TransESettings(**SYSTEMS[system], epochs=1000)
    before = memory()["VmRSS"]
    random = np.random.default_rng(0)

    def make_graph(steps: int) -> Graph:
        size = steps * settings.batch_size
        columns = [random.integers(n, size=size, dtype=np.int32) for n in (num_entities, 900, num_entities)]
        nothing = np.empty((0, 3), np.int32)
        triples = {"train": np.stack(columns, axis=1), "valid": nothing, "test": nothing}
        return Graph([""] * num_entities, [""] * 900, triples)

    steps = 3 if settings.engine == "pykeen" else 200
    engine = make_engine(make_graph(steps), settings)
    engine.train_epoch(0, None)
    start = time.process_time()
    engine.train_epoch(1, None)
    seconds = (time.process_time() - start) / steps
    return {
        "seconds_per_step": round(seconds, 5),
        "triples_per_second": round(settings.batch_size / seconds),
        "memory_gb": round((memory()["VmHWM"] - before) / 1e9, 2),
    }


def available_memory() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="utf8").splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith("MemAvailable"))


def make_report(result: dict[str, Any]) -> str:
    quality = {part: result["quality"][part] for part in RECIPES if part in result["quality"]}
    names = ("mrr", "hits@1", "hits@3", "hits@10")
    lines = [
        "# TransE for entity vectors",
        "",
        f"Written by `python benchmarks/kge.py`. {result['chip']}, torch {result['versions']['torch']}, one thread.",
        "",
        "## Link prediction",
        "",
        "Filtered, tails and heads, all entities; ours: 100 numbers a vector (codex-s-512: 512, as published), the "
        "test triples",
        "once, with the epoch of the best validation MRR. codex-m-fewrel: without the triples of all pairs of FewRel's "
        "files.",
        "",
        "| graph | | MRR | hits@1 | hits@3 | hits@10 | MRR, valid | minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for part, found in quality.items():
        if found["test"]:
            test = " | ".join(f"{found['test'][name]:.3f}" for name in names)
            minutes = f"{found['seconds'] / 60:.1f}"
            lines.append(f"| {part} | `train-kge` | {test} | {found['valid']['mrr']:.3f} | {minutes} |")
            for source, *figures in PUBLISHED.get(part, []):
                shown = " | ".join("" if figure is None else f"{figure:.3f}" for figure in figures)
                lines.append(f"| | published: {source} | {shown} | | |")
    lines += ["", "Losses and engines on CoDEx-S, validation triples:", ""]
    lines += ["| run | MRR | hits@1 | hits@3 | hits@10 | triples a second |", "|---|---|---|---|---|---|"]
    for part in COMPARED:
        if part in quality:
            valid = " | ".join(f"{quality[part]['valid'][name]:.3f}" for name in names)
            lines.append(f"| {part} | {valid} | {quality[part]['triples_per_second']:,} |")
    lines += [
        "",
        "Minutes and speed are of training alone, by the clock, on a machine that was shared with other work.",
        "",
        "```",
    ]
    lines += [found["command"] for found in quality.values()]
    lines += ["```", ""]
    if "codex-m-fewrel" in quality:
        removed = quality["codex-m-fewrel"]["excluded"]
        lines += [
            f"FewRel has {removed['pairs']:,} pairs, of {removed['pairs_of_entities_in_graph']:,} both entities are in",
            f"CoDEx-M; removed: {removed['train']:,} training, {removed['valid']:,} validation, {removed['test']:,} "
            f"test triples.",
            "",
        ]
    lines += [
        "## Many entities",
        "",
        "Random triples, 900 relations, 100 numbers a vector; processor time of a step, one thread, and the peak of "
        "memory",
        "beyond what the process had before. sparse: the command's defaults (softmax, 512 triples and 512 negatives a "
        "step); the",
        "others: margin loss, vectors of length 1, 8,192 triples a step, negatives shared (sparse) or for each triple "
        "(PyKEEN).",
        "",
        "| engine | entities | seconds a step | triples a second | GB | hours for 24.3 million triples |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["scale"]:
        start, how = f"| {row['system']} | {row['entities']:,} |", ""
        if "not_run" in row:
            smaller = [x for x in result["scale"] if x["system"] == row["system"] and "memory_gb" in x][-2:]
            if len(smaller) < 2:
                lines.append(f"{start} not run: {row['not_run']} | | | |")
                continue
            row, how = extrapolate(smaller, row["entities"]), " (not run: a line through the two above)"
        hours = 24.3e6 / row["triples_per_second"] / 3600
        numbers = (
            f"{row['seconds_per_step']:.3f}{how} | {row['triples_per_second']:,} | {row['memory_gb']:.1f} | {hours:.2f}"
        )
        lines.append(f"{start} {numbers} |")
    return "\n".join(lines) + "\n"


def extrapolate(rows: list[dict[str, Any]], num_entities: int) -> dict[str, Any]:
    """What a dense step would take: time and memory grow in a line with the table."""
    first, second = rows
    share = (num_entities - second["entities"]) / (second["entities"] - first["entities"])
    found = {key: second[key] + share * (second[key] - first[key]) for key in ("seconds_per_step", "memory_gb")}
    step = second["triples_per_second"] * second["seconds_per_step"]
    return {**found, "triples_per_second": round(step / found["seconds_per_step"])}


if __name__ == "__main__":
    main()
