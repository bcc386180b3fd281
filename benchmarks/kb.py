"""The knowledge base at three sizes: building, size on the disk, opening, memory, look-ups; spaCy's InMemoryLookupKB
beside.

    python benchmarks/kb.py                                  # results/kb.json, results/kb.md
    python benchmarks/kb.py --entities 10000 --spacy 10000   # smaller
    python benchmarks/kb.py --folder /big/disk               # where the files are made and removed

Names are made up; their structure is that of a knowledge base of persons: an entity has a full name, one with an
initial and one in reverse order, which are its own, and a surname, which it shares with some 20 others. Each
measurement has a process of its own. Both knowledge bases are asked the same names, and answers are compared before
times. Linux only.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from kb_report import make_report
from machine import describe_machine
from measuring import forget, mb, memory, timed, write_report

SIZES = (0.1, 0.3, 1.0)  # of --entities
ASKED, REPEATS, SHARED = 20_000, 3, 20
FIRST = "a e i o u an el or is am".split()
MIDDLE = "b d f g k l m n p r s t v br st ch".split()


class Entity(NamedTuple):
    id: str
    names: list[str]
    count: int


def main() -> None:
    options = read_options()
    if options.one:
        step, _, size = options.one.partition(":")
        print(json.dumps(STEPS[step](options.folder, int(size))))
        return
    sizes = [int(options.entities * part) for part in SIZES]
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in sizes:
            rows[f"source:{size}"] = write_source(Path(folder), size)
            for step in ("build", "read", *(["spacy_build", "spacy_read"] if size <= options.spacy else [])):
                command = [sys.executable, __file__, "--one", f"{step}:{size}", "--folder", folder]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                rows[f"{step}:{size}"] = json.loads(done.stdout.splitlines()[-1])
                print(f"{step}:{size}", rows[f"{step}:{size}"], flush=True)
            check_answers(rows, size)
    load = "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
    result = {**describe_machine(), "load": load, "sizes": sizes, "asked": ASKED, "measured": rows}
    write_report("kb", result, make_report(result))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=1_000_000, help="of the largest knowledge base")
    parser.add_argument("--spacy", type=int, default=100_000, help="entities of spaCy's at most")
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the system's temporary folder")
    parser.add_argument("--one", help="one measurement in this process, printed")
    return parser.parse_args()


def make_entities(size: int) -> Iterator[Entity]:
    """The same for the same size. Names of entities 0, 1, ... are written in syllables, so that no two are equal."""
    rng = random.Random(0)
    surnames = max(size // SHARED, 1)
    for i in range(size):
        surname = word_of(7 * (i % surnames) + 11).title()
        first, middle = word_of(i // surnames).title(), word_of(i).title()
        names = [
            f"{first} {middle} {surname}",
            f"{first[0]}. {middle} {surname}",
            f"{surname}, {first} {middle}",
            surname,
        ]
        yield Entity(f"Q{31 + 7 * i}", names, int(rng.paretovariate(0.8)) % 100_000)


def word_of(number: int) -> str:
    parts = [FIRST[number % 10]]
    number //= 10
    while number or len(parts) < 3:
        parts.append(MIDDLE[number % 16] + FIRST[number // 16 % 10])
        number //= 160
    return "".join(parts)


def write_source(folder: Path, size: int) -> dict[str, Any]:
    path = folder / f"{size}.jsonl"
    with path.open("w", encoding="utf8") as file:
        for entity in make_entities(size):
            text = f"{entity.names[0]} is the person number {entity.id} of those that were made up."
            file.write(json.dumps({**entity._asdict(), "description": text}) + "\n")
    return {"mb": mb(path.stat().st_size)}


def asked_names(size: int) -> list[str]:
    """Names of the knowledge base in a random order: full names and, one in four, surnames."""
    rng, found = random.Random(1), []
    wanted = set(rng.sample(range(size), min(ASKED, size)))
    for i, entity in enumerate(make_entities(size)):
        if i in wanted:
            found.append(entity.names[i % 4])
    rng.shuffle(found)
    return found


def build(folder: Path, size: int) -> dict[str, Any]:
    from spacy_luke.kb.build import build_kb

    before, start, busy = memory(), time.perf_counter(), time.process_time()
    kb = build_kb([folder / f"{size}.jsonl"], folder / f"kb{size}").kb
    taken, busy = time.perf_counter() - start, time.process_time() - busy
    files = {path.name: mb(path.stat().st_size) for path in sorted(kb.path.rglob("*")) if path.is_file()}
    return {
        "build_s": round(taken, 1),
        "build_cpu_s": round(busy, 1),
        "peak_mb": mb(memory()["VmHWM"] - before["VmRSS"]),
        "kb_mb": round(sum(files.values()), 1),
        "files_mb": files,
        "entities": len(kb),
        "names": kb.n_names,
    }


def read(folder: Path, size: int) -> dict[str, Any]:
    from spacy_luke.kb.knowledge_base import EntityKB

    asked, path = asked_names(size), folder / f"kb{size}"
    forget(path)
    before = memory()
    kb, cold = timed(EntityKB.open, path)
    opened = memory()
    again = median(timed(EntityKB.open, path)[1] for _ in range(30))
    for name in asked:
        kb.candidates(name)
    after = memory()
    answers = [kb.candidates(name) for name in asked]
    capitals, unknown = [name.upper() for name in asked], [f"{name} of" for name in asked]
    assert [kb.candidates(name) for name in capitals[:1000]] == answers[:1000]
    assert not any(kb.candidates(name) for name in unknown[:1000])
    rows = [kb.row(candidate.entity) for found in answers[:1000] for candidate in found]
    return {
        "open_cold_ms": round(1000 * cold, 2),
        "open_ms": round(1000 * again, 2),
        "open_mb": mb(opened["VmRSS"] - before["VmRSS"]),
        "own_mb": mb(after["RssAnon"] - before["RssAnon"]),
        "mapped_mb": mb(after["RssFile"] - before["RssFile"]),
        "lookups_per_second": rate(kb.candidates, asked),
        "row_lookups_per_second": rate(kb.candidate_rows, asked),
        "capitals_per_second": rate(kb.candidates, capitals),
        "unknown_per_second": rate(kb.candidates, unknown),
        "descriptions_per_second": rate(kb.description, rows),
        "candidates_each": round(sum(map(len, answers)) / len(answers), 2),
        "answers": digest([[(c.entity, c.prior) for c in found] for found in answers]),
    }


def spacy_build(folder: Path, size: int) -> dict[str, Any]:
    """Entities, then names with their priors, which spaCy's user has to make; vectors of one number."""
    from spacy.kb import InMemoryLookupKB
    from spacy.vocab import Vocab

    before, start, busy = memory(), time.perf_counter(), time.process_time()
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
    weights: dict[str, dict[str, float]] = {}
    with (folder / f"{size}.jsonl").open(encoding="utf8") as file:
        for line in file:
            row = json.loads(line)
            kb.add_entity(row["id"], row["count"], [1.0])
            for name in row["names"]:
                weights.setdefault(name, {})[row["id"]] = max(row["count"], 1)
    for name, entities in weights.items():
        total = sum(entities.values())
        kb.add_alias(name, list(entities), [weight / total * (1 - 1e-9) for weight in entities.values()])
    kb.to_disk(folder / f"spacy{size}")
    kb.vocab.strings.to_disk(folder / f"strings{size}.json")
    taken, busy = time.perf_counter() - start, time.process_time() - busy
    files = [folder / f"spacy{size}", folder / f"strings{size}.json"]
    return {
        "build_s": round(taken, 1),
        "build_cpu_s": round(busy, 1),
        "peak_mb": mb(memory()["VmHWM"] - before["VmRSS"]),
        "kb_mb": mb(sum(path.stat().st_size for path in files)),
        "entities": kb.get_size_entities(),
        "names": kb.get_size_aliases(),
    }


def spacy_read(folder: Path, size: int) -> dict[str, Any]:
    from spacy.kb import InMemoryLookupKB
    from spacy.vocab import Vocab

    asked = asked_names(size)
    before, start = memory(), time.perf_counter()
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
    kb.vocab.strings.from_disk(folder / f"strings{size}.json")
    kb.from_disk(folder / f"spacy{size}")
    opened = time.perf_counter() - start

    def look_up(name: str) -> list[tuple[str, float]]:
        return [(c.entity_, c.prior_prob) for c in kb.get_alias_candidates(name)]

    for name in asked:
        look_up(name)
    after = memory()
    answers = [look_up(name) for name in asked]
    return {
        "open_ms": round(1000 * opened, 1),
        "own_mb": mb(after["RssAnon"] - before["RssAnon"]),
        "lookups_per_second": rate(look_up, asked),
        "answers": digest(answers),
    }


STEPS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "build": build,
    "read": read,
    "spacy_build": spacy_build,
    "spacy_read": spacy_read,
}


def digest(answers: list[list[tuple[str, float]]]) -> list[Any]:
    """What two knowledge bases must agree in: the entities asked for, and the sum of their priors' squares."""
    entities = sorted({entity for found in answers for entity, _ in found})
    squares = round(sum(prior * prior for found in answers for _, prior in found), 1)
    best = [max(prior for _, prior in found) for found in answers]
    return [len(entities), "".join(entities[:: max(len(entities) // 20, 1)]), squares, round(sum(best), 1)]


def check_answers(rows: dict[str, Any], size: int) -> None:
    if (other := rows.get(f"spacy_read:{size}")) is not None:
        assert rows[f"read:{size}"]["answers"] == other["answers"], (rows[f"read:{size}"]["answers"], other["answers"])


def rate(function: Callable[[Any], Any], items: list[Any]) -> int:
    """Calls a second of processor time."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for item in items:
            function(item)
        times.append(time.process_time() - start)
    return round(len(items) / median(times))


if __name__ == "__main__":
    main()
