"""NER speed: words a second of luke_ner and its peers, one process, alternating, results compared before times.

    python benchmarks/speed.py                     # inference, then training: results/speed.json, results/speed.md
    python benchmarks/speed.py --smoke             # a tiny encoder, to see that everything works
    python benchmarks/speed.py --report            # results/speed.md from results/speed.json

docs/results/speed.md says what each system does and how its settings are chosen. With --threads 1 seconds are of
processor time.
"""

import argparse
import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from machine import describe_machine, instructions
from measuring import data_parser
from speed_report import make_report

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
SMALL = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
# Names of the systems, and whether each needs many seconds for a document.
SLOW = {
    "luke_full": True,
    "luke_one_way": False,
    "luke_one_way_sentence": False,
    "hf_luke": True,
    "hf_luke_sentence": True,
    "spacy_ner": False,
    "span_marker": True,
    "span_marker_document": True,
    "token_classifier": False,
    "luke_small": False,
    "spacy_cnn": False,
    "gliner2": True,
    "products": True,
}
FORMATS = ("float32", "bfloat16", "int8")  # in this order: what is made int8 stays so


def clock() -> float:
    """Seconds: of the processor where torch has one thread, so that what else the machine does counts little."""
    import torch

    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def main() -> None:
    options = read_options()
    RESULTS.mkdir(exist_ok=True)
    if not options.report:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        measure(options)
    text = make_report(json.loads((RESULTS / f"{options.name}.json").read_text(encoding="utf8")))
    (RESULTS / f"{options.name}.md").write_text(text, encoding="utf8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--systems", nargs="+", choices=SLOW, default=list(SLOW), help="default: all")
    parser.add_argument("--precisions", nargs="+", choices=FORMATS, help="default: of the first two what the chip has")
    parser.add_argument("--spans-per-word", type=float, default=0.5, help="that one-way attention encodes")
    parser.add_argument("--documents", type=int, default=10, help="of CoNLL's test file, for the fast systems")
    parser.add_argument("--skip", type=int, default=0, help="documents at the start of the file that are left out")
    parser.add_argument("--slow-documents", type=int, default=2, help="for systems with many seconds a document")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds; the median counts")
    parser.add_argument("--tune-sentences", type=int, default=8, help="of slow systems, to choose batch and threads")
    parser.add_argument(
        "--threads", type=int, help="of torch, for all; default: all, torch's own and 1, the best for each system"
    )
    parser.add_argument("--train-documents", type=int, default=2, help="a training step; 0: no training")
    parser.add_argument("--train-steps", type=int, default=2, help="timed steps in each round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="speed", help="of the files in results/")
    parser.add_argument("--smoke", action="store_true", help="a tiny encoder; writes results/speed_smoke.*")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    options = parser.parse_args()
    if options.smoke:
        options.name = "speed_smoke"
    return options


def measure(options: argparse.Namespace) -> None:
    import torch
    from speed_systems import write_checkpoints

    from spacy_luke.model.precision import has_bfloat16
    from spacy_luke.readers.conll import read_columns

    threads = (
        [options.threads]
        if options.threads
        else sorted({os.cpu_count() or 1, torch.get_num_threads(), 1}, reverse=True)
    )
    torch.set_num_threads(threads[0])
    precisions = sorted(options.precisions or [], key=FORMATS.index)
    precisions = precisions or ["float32", *(["bfloat16"] if has_bfloat16(torch.device("cpu")) else [])]
    path = options.data / "conll2003" / "eng.testb"
    if not path.exists():
        raise SystemExit(f"Expected CoNLL-2003's test file at {path}. Set --data or SPACY_LUKE_SHARED.")
    documents = list(islice(read_columns(path, format="conll2003"), options.skip, options.skip + options.documents))
    size = SMALL if options.smoke else BASE
    result: dict[str, Any] = {**describe_machine(), "size": size, "seed": options.seed, "inference": [], "notes": []}
    result |= {"instructions": instructions(), "spans_per_word": options.spans_per_word}
    result["training"] = []
    with tempfile.TemporaryDirectory() as folder:
        folders = write_checkpoints(
            Path(folder), options.data / "vocabularies" / "roberta", size=size, seed=options.seed
        )
        systems = build_systems(options, folders, documents, result["notes"])
        for precision in precisions:
            infer(options, systems, documents, precision, threads, result)
            save(options, result)
        del systems
        if options.train_documents:
            torch.set_num_threads(threads[0])
            for precision in precisions:
                train(options, folders, documents[: options.train_documents], precision, result)
                save(options, result)


def save(options: argparse.Namespace, result: dict[str, Any]) -> None:
    (RESULTS / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


# ---- inference


def build_systems(
    options: argparse.Namespace, folders: tuple[Path, Path], documents: Sequence[Any], notes: list[str]
) -> list[Any]:
    import hf_systems as h
    import speed_pipelines as p
    import speed_systems as s

    luke, roberta = folders

    def one_way() -> Any:
        return s.make_luke(luke, "one_way", spans_per_word=options.spans_per_word)

    builders: dict[str, Callable[[], Any]] = {
        "luke_full": lambda: s.luke_system("luke_full", s.make_luke(luke, "full"), context="document"),
        "luke_one_way": lambda: s.luke_system("luke_one_way", one_way(), context="document"),
        "luke_one_way_sentence": lambda: s.luke_system("luke_one_way_sentence", one_way(), context="sentence"),
        "hf_luke": lambda: h.hf_luke_system("hf_luke", luke, context="document"),
        "hf_luke_sentence": lambda: h.hf_luke_system("hf_luke_sentence", luke, context="sentence"),
        "spacy_ner": lambda: s.spacy_ner_system("spacy_ner", s.make_spacy_ner(roberta)),
        "span_marker": lambda: s.span_marker_system("span_marker", roberta, context="sentence"),
        "span_marker_document": lambda: s.span_marker_system("span_marker_document", roberta, context="document"),
        "token_classifier": lambda: h.token_classifier_system("token_classifier", roberta),
        "luke_small": lambda: p.small_luke_system("luke_small", spans_per_word=options.spans_per_word),
        "spacy_cnn": lambda: p.spacy_cnn_system("spacy_cnn"),
        "gliner2": lambda: p.gliner2_system("gliner2"),
        "products": lambda: products_system(luke),
    }
    systems = []
    for name in options.systems:
        try:
            systems.append(builders[name]())
        except ImportError as error:
            notes.append(f"{name} is left out: {error}.")
    return systems


def products_system(folder: Path) -> Any:
    import torch
    from hf_systems import LABELS, System
    from products import Products, shapes_of
    from speed_systems import make_doc, make_luke

    ner = make_luke(folder, "full")
    ready: dict[tuple[str, int], Products] = {}

    def run(documents: Sequence[Any], *, batch: int | None, precision: str, sentences: Any = None) -> list[set]:
        key = (precision, len(documents))
        if key not in ready:
            shapes = shapes_of(ner, [make_doc(ner.vocab, x) for x in documents])
            config = ner.encoder.module.config
            ready[key] = Products(config, shapes, n_labels=len(LABELS), dtype=getattr(torch, precision))
        ready[key].run()
        return [set() for _ in documents]

    return System("products", run)


def infer(
    options: argparse.Namespace,
    systems: Sequence[Any],
    documents: Sequence[Any],
    precision: str,
    threads: Sequence[int],
    result: dict[str, Any],
) -> None:
    """One untimed round whose results are compared, then timed rounds in which the systems alternate."""
    import torch

    rows: dict[str, dict[str, Any]] = {}
    answers: dict[str, Any] = {}
    for system in systems:
        if precision not in system.formats:
            continue
        own = documents[: options.slow_documents] if SLOW[system.name] else documents
        batch, n_threads = choose_settings(system, own, precision, threads, options.tune_sentences)
        torch.set_num_threads(n_threads)
        start = clock()
        answers[system.name] = system.run(own, batch=batch, precision=precision)
        rows[system.name] = {
            "system": system.name,
            "precision": precision,
            "documents": len(own),
            "words": sum(len(x.words) for x in own),
            "entities": sum(map(len, answers[system.name])),
            "batch": batch,
            "threads": n_threads,
            "seconds": [],
        }
        print(
            f"{precision} {system.name}: batch {batch}, threads {n_threads}, {clock() - start:.1f} s",
            flush=True,
        )
    compare(answers, precision, result)
    result["inference"] += list(rows.values())
    for _ in range(options.repeats):
        for system in systems:
            if system.name not in rows:
                continue
            row = rows[system.name]
            torch.set_num_threads(row["threads"])
            start = clock()
            system.run(documents[: row["documents"]], batch=row["batch"], precision=precision)
            row["seconds"].append(clock() - start)
            row["words_per_second"] = row["words"] / median(row["seconds"])


def choose_settings(
    system: Any, documents: Sequence[Any], precision: str, threads: Sequence[int], sentences: int
) -> tuple[int | None, int]:
    """The fastest batch and number of threads of a system; ours run with their default batches."""
    import torch

    if len(system.batches) == len(threads) == 1:
        return system.batches[0], threads[0]
    few = documents[:1] if SLOW[system.name] else documents[:5]
    times: dict[tuple[int | None, int], float] = {}
    system.run(few, batch=system.batches[0], precision=precision, sentences=sentences)
    for n_threads in threads:
        torch.set_num_threads(n_threads)
        batches = system.batches if n_threads == threads[0] else [min(times, key=lambda x: times[x])[0]]
        for batch in batches:
            start = clock()
            system.run(few, batch=batch, precision=precision, sentences=sentences)
            times[batch, n_threads] = clock() - start
            if times[batch, n_threads] < 5:  # again: a short time may be an accident
                start = clock()
                system.run(few, batch=batch, precision=precision, sentences=sentences)
                times[batch, n_threads] = min(times[batch, n_threads], clock() - start)
    return min(times, key=lambda x: times[x])


def compare(answers: dict[str, Any], precision: str, result: dict[str, Any]) -> None:
    """luke_full must find what Hugging Face LUKE finds; in float32 that is the claim, in bfloat16 a measurement."""
    if "luke_full" not in answers or "hf_luke" not in answers:
        return
    pairs = list(zip(answers["luke_full"], answers["hf_luke"]))
    equal, all_found = sum(len(a & b) for a, b in pairs), sum(len(a | b) for a, b in pairs)
    result.setdefault("equal", {})[precision] = [equal, all_found]
    print(f"{precision}: luke_full and hf_luke agree on {equal} of {all_found} entities", flush=True)
    if precision == "float32" and equal < 0.995 * all_found:
        raise SystemExit("The predictions differ, so the times would not be comparable.")


# ---- training


def train(
    options: argparse.Namespace,
    folders: tuple[Path, Path],
    documents: Sequence[Any],
    precision: str,
    result: dict[str, Any],
) -> None:
    """Whole steps (forward, backward, optimizer) on the same documents; the systems alternate."""
    import speed_systems as s
    from ner_systems import training_example
    from thinc.api import Adam

    from spacy_luke.bridge.optimizer import make_adamw

    steps: dict[str, Callable[[], None]] = {}

    def add(name: str, pipe: Any, optimizer: Any, **settings: Any) -> None:
        vocab = pipe.vocab
        examples = [training_example(vocab, x) for x in documents]
        if name != "spacy_ner":
            pipe.cfg.update(settings)
        steps[name] = lambda: pipe.update(
            [training_example(vocab, x) for x in documents] if name == "spacy_ner" else examples,
            sgd=optimizer,
            drop=0.1,
        )

    luke, roberta = folders
    for attention, context in (("one_way", "document"), ("one_way", "sentence"), ("full", "sentence")):
        ner = s.make_luke(luke, attention, train_precision=precision)
        add(f"luke_{attention}_{context}", ner, make_adamw(1e-5), context=context)
    if precision == "float32":
        add("spacy_ner", s.make_spacy_ner(roberta), Adam(1e-5))
    words = sum(len(x.words) for x in documents)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()  # the first makes the optimizer's moments
    for _ in range(options.repeats):
        for name, step in steps.items():
            start = clock()
            for _ in range(options.train_steps):
                step()
            seconds[name].append((clock() - start) / options.train_steps)
    result["training"] += [
        {"system": k, "precision": precision, "words": words, "seconds": v, "words_per_second": words / median(v)}
        for k, v in seconds.items()
    ]


if __name__ == "__main__":
    main()
