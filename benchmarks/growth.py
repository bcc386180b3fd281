"""How luke_ner grows with the length of one Doc: words a second and memory, a small random encoder, one_way.

    python benchmarks/growth.py                          # results/growth.json, results/growth.md
    python benchmarks/growth.py --words 1000 10000       # other lengths

Each length runs in a process of its own. Memory is the process's peak while the component predicts, less what it held
before: the Doc itself and the model are not in it, the predictions are. Linux only.
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import data_parser, write_report

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
SIZE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
ENTITIES_PER_WORD = 0.12  # as in CoNLL-2003; a random head would find entities everywhere


def main() -> None:
    options = read_options()
    if options.one:
        print(json.dumps(measure(options.data, options.one, options.context)))
        return
    rows: list[dict[str, Any]] = []
    for words in options.words:
        command = [
            sys.executable,
            __file__,
            "--one",
            str(words),
            "--context",
            options.context,
            "--data",
            str(options.data),
        ]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    result = {**describe_machine(), "size": SIZE, "context": options.context, "rows": rows}
    write_report("growth", result, make_report(result))


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--words", nargs="+", type=int, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--context", choices=("document", "sentence"), default="document")
    parser.add_argument("--one", type=int, help="measure one length in this process and print it")
    return parser.parse_args()


def measure(data: Path, n_words: int, context: str) -> dict[str, Any]:
    import torch
    from spacy.tokens import Doc
    from speed_systems import make_luke, write_checkpoints

    from spacy_luke.readers.conll import read_columns

    with tempfile.TemporaryDirectory() as folder:
        luke, _ = write_checkpoints(Path(folder), data / "vocabularies" / "roberta", size=SIZE, seed=0)
        ner = make_luke(luke, "one_way")
    ner.cfg["context"] = context
    words: list[str] = []
    starts: list[bool] = []
    while len(words) < n_words:
        for document in islice(read_columns(data / "conll2003" / "eng.testb", format="conll2003"), 1 + n_words // 100):
            own = set(document.sentence_starts)
            words += document.words
            starts += [i in own for i in range(len(document.words))]
    small = Doc(ner.vocab, words=words[:1000], sent_starts=[True, *starts[1:1000]][: len(words[:1000])])
    calibrate(ner, small)
    ner(small)  # warm-up
    before_doc = settle()
    doc = Doc(ner.vocab, words=words[:n_words], sent_starts=[True, *starts[1:n_words]])
    del words, starts
    held = settle()
    Path("/proc/self/clear_refs").write_text("5", encoding="utf8")  # the peak starts anew
    start = time.perf_counter()
    predictions = ner.predict([doc])
    seconds = time.perf_counter() - start
    predicting = peak() - held
    ner.set_annotations([doc], predictions)
    return {
        "words": len(doc),
        "words_per_second": round(len(doc) / seconds),
        "words_per_second_with_annotations": round(len(doc) / (time.perf_counter() - start)),
        "entities": len(doc.ents),
        "doc_mb": round((held - before_doc) / 1e6, 1),
        "extra_mb": round(predicting / 1e6, 1),
        "extra_mb_with_annotations": round((peak() - held) / 1e6, 1),
        "threads": torch.get_num_threads(),
    }


def calibrate(ner: Any, doc: Any) -> None:
    """Lower the labels' biases until the random head finds as many entities as real text has."""
    import torch

    bias = ner.model.shims[0].module.classifier.bias
    low, high = -50.0, 50.0
    for _ in range(20):
        with torch.no_grad():
            bias[0] = (low + high) / 2
        found = len(ner.predict([doc])[0].start_E)
        low, high = (bias[0].item(), high) if found > ENTITIES_PER_WORD * len(doc) else (low, bias[0].item())


def settle() -> int:
    """Bytes in memory after what is free went back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    """Bytes, as Linux tells them."""
    lines = Path("/proc/self/status").read_text(encoding="utf8").splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith(name))


def make_report(result: dict[str, Any]) -> str:
    size = ", ".join(f"{k} {v}" for k, v in result["size"].items())
    lines = [
        "# Growth with the length of one Doc",
        "",
        "Written by `python benchmarks/growth.py`. `luke_ner`, one_way, "
        f"{result['context']} context, random encoder ({size}).",
        f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}.",
        "",
        "Memory is the peak of the process while predicting, beyond what it held with the Doc; predictions are in it.",
        "",
        "| words | words/s | with doc.ents | entities | Doc MB | memory beyond the Doc, MB | with doc.ents, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in result["rows"]:
        keys = ("words_per_second", "words_per_second_with_annotations", "entities", "doc_mb", "extra_mb")
        cells = [f"{x['words']:,}", *(f"{x[k]:,}" for k in (*keys, "extra_mb_with_annotations"))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
