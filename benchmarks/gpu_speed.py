"""NER on a GPU: words a second, memory and the share of the chip's products, of base and large, read and trained.

    python benchmarks/gpu_speed.py                   # results/gpu_speed.json, results/gpu_speed.md
    python benchmarks/gpu_speed.py --smoke           # a tiny encoder, on the CPU where there is no GPU
    python benchmarks/gpu_speed.py --report          # results/gpu_speed.md from results/gpu_speed.json

Random weights, as they take as long as learned ones, and CoNLL-2003's test documents; every system in one process, one
after another in each round. `one_way` encodes half a span a word, the most that it may; `full` and Hugging Face's LUKE
encode all spans of up to 16 pieces. Peers read with the batch that is fastest for them. Products: of a pass, as torch
counts them (`flop_registry`), in a second, beside those of one bfloat16 product of 8192 x 8192 matrices here.
"""

import argparse
import gc
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch
from hf_systems import LABELS, System, hf_luke_system, sentences_of, token_classifier_system
from machine import describe_machine
from measuring import RESULTS, data_parser, write_report
from ner_systems import training_example
from thinc.api import require_gpu, set_gpu_allocator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.contents import LukeCheckpoint
from spacy_luke.checkpoint.export import write_huggingface
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.luke import LukeEncoder
from spacy_luke.readers.conll import read_columns
from spacy_luke.text.align import align_words
from spacy_luke.text.tokenizer import PieceTokenizer

SIZES = {
    "base": {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "intermediate_size": 4096},
}
TINY = {"hidden_size": 48, "num_layers": 2, "num_heads": 4, "intermediate_size": 96}
FORMATS = {"base": ("float32", "bfloat16"), "large": ("bfloat16",)}
PIECES = (4096, 16384)  # batch_size of ours, the default first; a GPU reads four times as many at once
ENTITIES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
# Documents of a round: of systems that encode each sentence's window for itself, and of the others.
SLOW = ("luke_full", "hf_luke")


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--documents", type=int, default=231, help="of CoNLL's test file, for the fast systems")
    parser.add_argument("--slow-documents", type=int, default=12, help="for those that read each sentence by itself")
    parser.add_argument(
        "--train-documents", type=int, default=16, help="of a training step; a quarter of them for full"
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--formats", nargs="+", choices=FORMATS["base"], default=FORMATS["base"], help="default: all")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds; the median counts")
    parser.add_argument("--name", default="gpu_speed", help="of the files in results/")
    parser.add_argument("--smoke", action="store_true", help="a tiny encoder; writes results/gpu_speed_smoke.*")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.name += "_smoke" if options.smoke else ""
    if options.report:
        result = json.loads((RESULTS / f"{options.name}.json").read_text(encoding="utf8"))
    else:
        result = measure(options)
    write_report(options.name, result, make_table(result))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Saved after each part."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        set_gpu_allocator("pytorch")
        require_gpu()
    elif not options.smoke:
        raise SystemExit("Expected a GPU that torch and CuPy see, but there is none: --smoke runs on the CPU.")
    documents = list(islice(read_columns(options.data / "conll2003/eng.testb", format="conll2003"), options.documents))
    gpu = torch.cuda.get_device_name(0) if device == "cuda" else "none"
    result: dict[str, Any] = {**describe_machine(), "gpu": gpu, "products": product_rates(device), "rows": []}
    for size in options.sizes:
        options.precisions = [x for x in FORMATS[size] if x in options.formats]
        shape = TINY if options.smoke else SIZES[size]
        with tempfile.TemporaryDirectory() as folder:
            folders = write_encoders(Path(folder), options.data / "vocabularies/roberta", shape)
            for task in (train, read):
                result["rows"] += [{"size": size, **row} for row in task(options, folders, documents, device)]
                (RESULTS / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
                gc.collect()
    return result


def product_rates(device: str) -> dict[str, float]:
    """Operations a second of one product of large matrices."""
    n, rates = 8192 if device == "cuda" else 512, {}
    for name in FORMATS["base"]:
        a, b = (torch.randn(n, n, device=device).to(getattr(torch, name)) for _ in range(2))
        seconds = []
        for _ in range(8):
            with timer(device) as passed:
                torch.mm(a, b)
            seconds += passed
        rates[name] = 2 * n**3 / median(seconds[3:])
    return rates


def write_encoders(folder: Path, vocabulary: Path, size: dict[str, int]) -> tuple[Path, Path]:
    """Random encoders of a size, with RoBERTa's pieces: folders for LUKE and for RoBERTa."""
    from transformers import RobertaConfig, RobertaModel

    tokenizer = PieceTokenizer.from_folder(vocabulary)
    for piece in ("<ent>", "<ent2>"):
        tokenizer.add_special_piece(piece)
    config = LukeConfig(len(tokenizer), len(ENTITIES), entity_size=256, max_positions=514, **size)
    torch.manual_seed(0)
    noise = {f"encoder.{name}": x for name, x in LukeEncoder(config).state_dict().items()}
    noise["head.classifier.weight"] = torch.empty(len(LABELS), 3 * config.hidden_size)
    noise["head.classifier.bias"] = torch.empty(len(LABELS))
    for name, x in noise.items():  # larger matrices would make all spans alike, a small head all labels
        x.normal_(std=0.5 if name.startswith("head") else 0.02).add_(1.0 if name.endswith("norm.weight") else 0.0)
    entities, source = EntityVocab(ENTITIES.items()), {"kind": "huggingface", "pad_token_id": tokenizer.pad_id}
    parts = {"labels": LABELS, "task": "span_classification", "source": source}
    write_huggingface(LukeCheckpoint(config, noise, tokenizer=tokenizer, entities=entities, **parts), folder / "luke")
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    sizes = {names.get(key, key): x for key, x in size.items()}
    RobertaModel(
        RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=514, type_vocab_size=1, **sizes)
    ).save_pretrained(folder / "roberta")
    for path in vocabulary.iterdir():
        (folder / "roberta" / path.name).write_bytes(path.read_bytes())
    return folder / "luke", folder / "roberta"


class WholeWords:
    """What hf_luke_system asks a tokenizer of Hugging Face, of ours."""

    def __init__(self, tokenizer: PieceTokenizer):
        self.tokenizer, self.cls_token_id, self.sep_token_id = tokenizer, tokenizer.cls_id, tokenizer.sep_id

    def tokenize(self, word: str, *, add_prefix_space: bool = False) -> list[int]:
        return align_words(self.tokenizer, ["." if add_prefix_space else "", word][-1:]).ids_N.tolist()

    def convert_tokens_to_ids(self, pieces: list[int]) -> list[int]:
        return pieces


# ---- measures


@contextmanager
def timer(device: str) -> Iterator[list[float]]:
    """Gets the seconds until all is done."""
    found: list[float] = []
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    yield found
    if device == "cuda":
        torch.cuda.synchronize()
    found.append(time.perf_counter() - start)


class Operations(TorchDispatchMode):
    """Counts operations of products. torch's own mode for it (`FlopCounterMode`) fails in inference mode."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kind, given = func._overloadpacket, kwargs or {}
        if kind not in flop_registry:
            with self:
                found = func.decompose(*args, **given)
            if found is not NotImplemented:
                return found
        found = func(*args, **given)
        if kind in flop_registry:
            self.total += flop_registry[kind](*args, **given, out_val=found)
        return found


def measure_once(run: Callable[[], Any], device: str) -> dict[str, Any]:
    """Operations of products, bytes of the GPU at most, and the share of the time in which it computes."""
    with Operations() as operations:
        run()
    found: dict[str, Any] = {"flops": operations.total}
    if device != "cuda":
        return found
    torch.cuda.reset_peak_memory_stats()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler, timer(device) as passed:
        run()
    busy = sum(x.self_device_time_total for x in profiler.key_averages()) / 1e6
    return {**found, "bytes": torch.cuda.max_memory_allocated(), "busy": round(busy / passed[0], 3)}


def rounds(
    runs: dict[str, Callable[[], Any]], words: dict[str, int], device: str, repeats: int
) -> list[dict[str, Any]]:
    rows = {name: {"system": name, "words": words[name], **measure_once(run, device)} for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            with timer(device) as passed:
                run()
            seconds[name] += passed
    for name, row in rows.items():
        row |= {"seconds": seconds[name], "words_per_second": row["words"] / median(seconds[name])}
        print({key: x for key, x in row.items() if key != "seconds"}, flush=True)
    return list(rows.values())


def read(
    options: argparse.Namespace, folders: tuple[Path, Path], documents: Sequence[Any], device: str
) -> list[dict[str, Any]]:
    import speed_systems as s

    luke, roberta = folders
    tokens: Any = WholeWords(PieceTokenizer.from_folder(luke))
    ners = {f"luke_{x}": s.make_luke(luke, x) for x in ("one_way", "full")}
    more: dict[str, Any] = {"device": device, "batches": (64,)}
    systems = [
        *(s.luke_system(name, ner, context="document") for name, ner in ners.items()),
        hf_luke_system("hf_luke", luke, context="document", tokenizer=tokens, **more),
        token_classifier_system("token_classifier", roberta, device=device, batches=(64, 256)),
    ]
    found = []
    for precision in options.precisions:
        runs: dict[str, Callable[[], Any]] = {}
        settings, words = {}, {}
        for system in systems:
            given = documents[: options.slow_documents] if system.name in SLOW else documents
            sizes = PIECES if system.name in ners else system.batches
            for size in sizes:
                name = f"{system.name} {size}"
                runs[name] = runner(system, ners.get(system.name), given, size, precision)
                settings[name], words[name] = (system.name, size), sum(len(x.words) for x in given)
                runs[name]()  # the first one is not counted
        for row in rounds(runs, words, device, options.repeats):
            name, size = settings[row["system"]]
            found.append({"task": "read", "precision": precision, **row, "system": name, "batch": size})
    return found


def runner(system: System, ner: Any, given: Sequence[Any], size: int | None, precision: str) -> Callable[[], Any]:
    def run() -> Any:
        if ner is not None:
            ner.cfg["batch_size"] = size
        return system.run(given, batch=size, precision=precision)

    return run


def train(
    options: argparse.Namespace, folders: tuple[Path, Path], documents: Sequence[Any], device: str
) -> list[dict[str, Any]]:
    """Whole steps: forward, backward, optimizer."""
    import speed_systems as s

    luke, roberta = folders
    found = []
    for precision in options.precisions:
        runs: dict[str, Callable[[], Any]] = {}
        words = {}
        for attention in ("one_way", "full"):
            given = documents[: options.train_documents // (1 if attention == "one_way" else 4)]
            ner = s.make_luke(luke, attention, train_precision=precision)
            ner.cfg.update(context="document", batch_size=PIECES[1])
            runs[f"luke_{attention}"] = stepper(ner, given)
            words[f"luke_{attention}"] = sum(len(x.words) for x in given)
        given = documents[: options.train_documents]
        runs["token_classifier"] = classifier_stepper(roberta, given, precision, device)
        words["token_classifier"] = sum(len(x.words) for x in given)
        for run in runs.values():
            run()  # makes the optimizer's moments
        found += [{"task": "train", "precision": precision, **x} for x in rounds(runs, words, device, options.repeats)]
    return found


def stepper(ner: Any, given: Sequence[Any]) -> Callable[[], Any]:
    examples, optimizer = [training_example(ner.vocab, x) for x in given], make_adamw(1e-5)
    return lambda: ner.update(examples, sgd=optimizer, drop=0.1)


def classifier_stepper(folder: Path, given: Sequence[Any], precision: str, device: str) -> Callable[[], Any]:
    """A token classifier of Hugging Face: sentences by length, 64 at once, one step of torch's AdamW."""
    from transformers import RobertaForTokenClassification

    model = RobertaForTokenClassification.from_pretrained(folder, num_labels=9, attn_implementation="sdpa")
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokenizer = PieceTokenizer.from_folder(folder)
    sentences = [align_words(tokenizer, words).ids_N for document in given for _, words in sentences_of(document)]
    sentences.sort(key=len)

    def step() -> float:
        losses = []
        for first in range(0, len(sentences), 64):
            part = [[tokenizer.cls_id, *x.tolist(), tokenizer.sep_id] for x in sentences[first : first + 64]]
            longest = max(map(len, part))
            ids_BL = torch.tensor([x + [tokenizer.pad_id] * (longest - len(x)) for x in part], device="cpu").to(device)
            labels_BL = torch.where(ids_BL == tokenizer.pad_id, -100, ids_BL % 9)
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16"):
                loss = model(ids_BL, attention_mask=(ids_BL != tokenizer.pad_id).long(), labels=labels_BL).loss
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        return float(torch.stack(losses).sum())

    return step


# ---- the report


def make_table(result: dict[str, Any]) -> str:
    best = result["products"]["bfloat16"]
    lines = [
        "# NER on a GPU",
        "",
        "Written by `python benchmarks/gpu_speed.py`; its head says what is measured. Random weights, CoNLL-2003.",
        f"{result['gpu']}, host {result['chip']}; "
        + ", ".join(f"{name} {x}" for name, x in result["versions"].items())
        + f". One product of 8192 x 8192 matrices: {best / 1e12:,.0f} TFLOP/s in bfloat16, "
        f"{result['products']['float32'] / 1e12:,.0f} in float32.",
    ]
    for task, title in (("read", "Reading"), ("train", "Training steps")):
        lines += [
            "",
            f"## {title}",
            "",
            "| size | system | numbers | batch | words/s | TFLOP/s | of one bfloat16 product | GPU busy | GB |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for row in result["rows"]:
            if row["task"] != task:
                continue
            rate = row["flops"] / median(row["seconds"])
            cells = [
                row["size"],
                f"`{row['system']}`",
                row["precision"],
                f"{row.get('batch', ''):,}" if row.get("batch") else "",
            ]
            cells += [f"{row['words_per_second']:,.0f}", f"{rate / 1e12:,.1f}", f"{rate / best:.1%}"]
            cells += [f"{row['busy']:.0%}", f"{row['bytes'] / 1e9:.1f}"] if "busy" in row else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
