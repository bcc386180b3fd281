"""Speed on a GPU: NER of base and large size, read and trained, beside peers, and a whole pipeline beside the CPU.

    python benchmarks/gpu_speed.py                   # results/gpu_speed.json, results/gpu_speed.md
    python benchmarks/gpu_speed.py --smoke           # a tiny encoder, on the CPU where there is no GPU
    python benchmarks/gpu_speed.py --report          # results/gpu_speed.md from results/gpu_speed.json

NER has random weights, as they take as long as learned ones, and reads CoNLL-2003's test documents; every system in one
process, one after another in each round. `one_way` encodes half a span a word, the most that it may; `full` and Hugging
Face's LUKE encode all spans of up to 16 pieces. Peers read with the batch that is fastest for them. TFLOP/s: of the
products of a pass, as torch counts them (`flop_registry`), beside those of one bfloat16 product of 8192 x 8192
matrices. The results are saved after each part, for a GPU that is lent for minutes.
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

import spacy
import torch
from gpu_report import make_gpu_table
from hf_systems import LABELS, System, hf_luke_system, sentences_of, token_classifier_system
from machine import describe_machine
from measuring import RESULTS, data_parser, title_of, write_report
from ner_systems import training_example
from speed_systems import luke_system, make_luke
from thinc.api import require_cpu, require_gpu, set_gpu_allocator
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
FORMATS = ("float32", "bfloat16")
PARTS = (("base", "bfloat16"), ("large", "bfloat16"), ("base", "float32"))  # in this order
PIECES = (4096, 16384)  # batch_size of ours, the default first; a GPU reads four times as many at once
ENTITIES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
SLOW = ("luke_full", "hf_luke")  # systems that encode each sentence's window for itself


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--documents", type=int, default=231, help="of CoNLL's test file, for the fast systems")
    parser.add_argument("--slow-documents", type=int, default=12, help="for those that read each sentence by itself")
    parser.add_argument(
        "--train-documents", type=int, default=16, help="of a training step; a quarter of them for full"
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS, help="default: both")
    parser.add_argument("--pipeline", default="en_luke_sm", help="a whole pipeline, a folder or a name; empty: none")
    parser.add_argument("--texts", type=int, default=200, help="copies of assets/article.txt that the pipeline reads")
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
    write_report(options.name, result, make_gpu_table(result))


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
    result["notes"] = []
    if options.pipeline:
        add(options, result, whole_pipeline(options, device))
    for size, precision in PARTS:
        if size not in options.sizes or precision not in options.formats:
            continue
        shape = TINY if options.smoke else SIZES[size]
        with tempfile.TemporaryDirectory() as folder:
            folders = write_encoders(Path(folder), options.data / "vocabularies/roberta", shape)
            for task in (read, train):
                rows = task(options, folders, documents, precision, device)
                add(options, result, [{"size": size, "precision": precision, **row} for row in rows])
    return result


def add(options: argparse.Namespace, result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    result["rows"] += rows
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{options.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    gc.collect()


def whole_pipeline(options: argparse.Namespace, device: str) -> list[dict[str, Any]]:
    """The same texts on the CPU, with 8 threads, and on the GPU."""
    text = (Path(__file__).parents[1] / "assets/article.txt").read_text(encoding="utf8")
    threads, rows = torch.get_num_threads(), []
    for where in dict.fromkeys(("cpu", device)):
        require_cpu() if where == "cpu" else require_gpu()
        torch.set_num_threads(min(8, threads))
        nlp = spacy.load(options.pipeline)
        texts = [text] * (options.texts if where == "cuda" else max(options.texts // 5, 1))
        list(nlp.pipe(texts[:8]))  # not counted
        with timer(where) as passed:
            words = sum(len(doc) for doc in nlp.pipe(texts))
        row = {"task": "pipeline", "system": title_of(nlp), "where": where, "words": words, "seconds": passed}
        rows.append({**row, "words_per_second": words / passed[0]})
    torch.set_num_threads(threads)
    return rows


def product_rates(device: str) -> dict[str, float]:
    """Operations a second of one product of large matrices."""
    n, rates = 8192 if device == "cuda" else 512, {}
    for name in FORMATS:
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
        return align_words(self.tokenizer, [word]).ids_N.tolist()

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
    options: argparse.Namespace, folders: tuple[Path, Path], documents: Sequence[Any], precision: str, device: str
) -> list[dict[str, Any]]:
    luke, roberta = folders
    tokens: Any = WholeWords(PieceTokenizer.from_folder(luke))
    ners = {f"luke_{x}": make_luke(luke, x) for x in ("one_way", "full")}
    more: dict[str, Any] = {"device": device, "batches": (64,)}
    systems = [
        *(luke_system(name, ner, context="document") for name, ner in ners.items()),
        hf_luke_system("hf_luke", luke, context="document", tokenizer=tokens, **more),
        token_classifier_system("token_classifier", roberta, device=device, batches=(64, 256)),
    ]
    runs: dict[str, Callable[[], Any]] = {}
    settings, words = {}, {}
    for system in systems:
        given = documents[: options.slow_documents] if system.name in SLOW else documents
        for size in PIECES if system.name in ners else system.batches:
            name = f"{system.name} {size}"
            runs[name] = runner(system, ners.get(system.name), given, size, precision)
            settings[name], words[name] = {"system": system.name, "batch": size}, sum(len(x.words) for x in given)
            runs[name]()  # the first one is not counted
    rows = rounds(runs, words, device, options.repeats)
    return [{"task": "read", **row, **settings[row["system"]]} for row in rows]


def runner(system: System, ner: Any, given: Sequence[Any], size: int | None, precision: str) -> Callable[[], Any]:
    def run() -> Any:
        if ner is not None:
            ner.cfg["batch_size"] = size
        return system.run(given, batch=size, precision=precision)

    return run


def train(
    options: argparse.Namespace, folders: tuple[Path, Path], documents: Sequence[Any], precision: str, device: str
) -> list[dict[str, Any]]:
    """Whole steps: forward, backward, optimizer."""
    luke, roberta = folders
    runs: dict[str, Callable[[], Any]] = {}
    words = {}
    for attention in ("one_way", "full"):
        given = documents[: options.train_documents // (1 if attention == "one_way" else 4)]
        ner = make_luke(luke, attention, train_precision=precision)
        ner.cfg.update(context="document", batch_size=PIECES[1])
        runs[f"luke_{attention}"] = stepper(ner, given)
        words[f"luke_{attention}"] = sum(len(x.words) for x in given)
    given = documents[: options.train_documents]
    runs["token_classifier"] = classifier_stepper(roberta, given, precision, device)
    words["token_classifier"] = sum(len(x.words) for x in given)
    for run in runs.values():
        run()  # makes the optimizer's moments
    return [{"task": "train", **row} for row in rounds(runs, words, device, options.repeats)]


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


if __name__ == "__main__":
    main()
