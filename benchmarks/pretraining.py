"""Speed of a step of LUKE's pretraining, beside the same matrix products alone.

    python benchmarks/pretraining.py                 # MiniLM's size on the CPU: results/pretraining.json and .md
    python benchmarks/pretraining.py --size base --device cuda --precision bfloat16

A step: masks, forward, backward and AdamW, all entities in the softmax. The products: those of its linear layers,
attention and heads, forward and backward, of random numbers in buffers that exist beforehand. Both alternate; medians
count. On a GPU the share of what the chip can compute (MFU) stands beside.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from machine import describe_machine
from products import Products, Shapes

from spacy_luke.bridge.freed_memory import keep_freed_memory
from spacy_luke.corpus.shards import Example
from spacy_luke.model.compiled import compile_layers
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.fresh import initialize
from spacy_luke.model.transfer import to_device
from spacy_luke.pretraining.luke.masking import MaskingSettings
from spacy_luke.pretraining.luke.task import LukePretraining
from spacy_luke.pretraining.luke.windows import Drawn, LukeWindows
from spacy_luke.pretraining.optimizer import OptimizerSettings, make_stepper
from spacy_luke.text.tokenizer import PieceTokenizer

RESULTS = Path(__file__).parent / "results"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64, "entity_size": 16},
    "minilm": {"hidden_size": 384, "num_layers": 6, "num_heads": 12, "intermediate_size": 1536, "entity_size": 384},
    "base": {},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "intermediate_size": 4096},
}
UNTIMED = 3  # first steps, which take memory from the system that later ones have already
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # bfloat16, dense; of the makers' sheets


class StepProducts(Products):
    """Products of steps: each of a linear layer with the two of its gradients."""

    def __init__(
        self,
        config: LukeConfig,
        shapes: Sequence[Shapes],
        asked: Sequence[dict[str, int]],
        *,
        entities: int,
        dtype: torch.dtype,
    ):
        super().__init__(config, shapes, n_labels=1, dtype=dtype)
        self.asked = asked
        d, e = config.hidden_size, config.entity_size
        sizes = {
            "word dense": (d, d),
            "words": (config.vocab_size, d),
            "entity dense": (e, d),
            "entities": (entities, e),
        }
        self.heads = {name: torch.randn(size).to(dtype) for name, size in sizes.items()}
        self.input = torch.randn(d, e).to(dtype)

    def run(self) -> None:
        self.flops = 0
        with torch.inference_mode():
            for batch, asked in zip(self.shapes, self.asked, strict=True):
                rows = batch.words + batch.entities
                if self.config.entity_size != self.config.hidden_size:
                    self._mm(batch.entities, self.input)
                for weights in self.weights:
                    for i in range(4):  # query, key, value, output
                        self._mm(rows, weights["square"][i])
                    self._mm(rows, weights["up"])
                    self._mm(rows, weights["down"])
                    for n_words, n_entities in batch.windows:
                        self._attend(n_words + n_entities)
                for name, task in (("word dense", "words"), ("words", "words"), ("entity dense", "entities")):
                    self._mm(asked[task], self.heads[name])
                self._mm(asked["entities"], self.heads["entities"])

    def _mm(self, rows: int, weight: torch.Tensor) -> None:
        super()._mm(rows, weight)
        if rows:
            out, inside = weight.shape
            x, y = self._buffer("in", rows, inside), self._buffer("out", rows, out)
            torch.mm(y, weight, out=self._buffer("gradient", rows, inside))
            torch.mm(y.t(), x, out=self._buffer("weight", out, inside))
            self.flops += 4 * rows * inside * out

    def _attend(self, n: int) -> None:
        heads, width = self.config.num_heads, self.config.hidden_size // self.config.num_heads
        x, scores = self._buffer("q", heads, n, width), self._buffer("scores", heads, n, n)
        out = self._buffer("attended", heads, n, width)
        for _ in range(3):  # scores; the gradients of what attends and of the weights
            torch.bmm(x, x.transpose(1, 2), out=scores)
            torch.bmm(scores, x, out=out)
        self.flops += 12 * heads * n * n * width


def main() -> None:
    options = read_options()
    result = measure(options)
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "pretraining.json"
    known = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    known[f"{options.size} {options.device} {options.precision}{' compiled' if options.compile else ''}"] = result
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf8")
    path.with_suffix(".md").write_text(make_table(known), encoding="utf8")
    print(path.with_suffix(".md").read_text(encoding="utf8"))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="minilm")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--windows", type=int, default=16, help="of a step")
    parser.add_argument("--pieces", type=int, default=128, help="of a window, with [CLS] and [SEP]")
    parser.add_argument("--mentions", type=int, default=8, help="of a window")
    parser.add_argument("--vocabulary", type=int, default=30_522, help="pieces")
    parser.add_argument("--entities", type=int, default=17_000, help="rows of the entity table")
    parser.add_argument("--dropout", type=float, default=0.0, help="of all layers")
    parser.add_argument("--compile", action="store_true", help="layers, by torch.compile")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args()


def make_tokenizer(size: int) -> PieceTokenizer:
    from tokenizers import Tokenizer, models

    special = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
    pieces = [*special, *(str(i) for i in range(size - len(special)))]
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    return PieceTokenizer(Tokenizer(model), special=special)


def make_windows(options: argparse.Namespace) -> LukeWindows:
    """Windows of random pieces; they differ in length by up to a tenth."""
    rng = np.random.default_rng(0)
    examples: list[Example] = []
    for _ in range(options.windows * options.repeats):
        n = options.pieces - 2 - int(rng.integers(options.pieces // 10 + 1))
        starts = np.sort(rng.choice(n - 2, size=options.mentions, replace=False)).astype(np.int32)
        rows = rng.integers(3, options.entities, size=options.mentions).astype(np.int32)
        pieces = rng.integers(5, options.vocabulary, size=n).astype(np.int32)
        examples.append(Example(pieces, rng.random(n) < 0.8, rows, starts, starts + 2, 0, 1))
    return LukeWindows(
        examples,
        tokenizer=make_tokenizer(options.vocabulary),
        mask_entity=2,
        first_entity=3,
        entities=options.entities,
        settings=MaskingSettings(),
        seed=0,
        max_window=options.pieces,
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    if options.threads:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    keep_freed_memory(device)  # as `pretrain` does
    config = LukeConfig(
        vocab_size=options.vocabulary,
        entity_vocab_size=options.entities,
        max_positions=options.pieces + 2,
        entity_aware=False,
        dropout=options.dropout,
        attention_dropout=options.dropout,
        **SIZES[options.size],
    )
    torch.manual_seed(0)
    model = LukePretraining(config)
    initialize(model, std=config.initializer_range)  # probabilities as of a model: of larger logits they are denormal
    model.to(device).train()
    if options.compile:
        compile_layers(model, device)
    stepper = make_stepper(model, OptimizerSettings(bias_correction=True, grad_clip=0.0))
    windows, n = make_windows(options), options.windows
    numbers = [[Drawn(i, 0, i) for i in range(a, a + n)] for a in range(0, n * options.repeats, n)]
    batches = [windows.collate(drawn) for drawn in numbers]
    shapes = [
        Shapes(sum(x.windows.lengths), sum(x.mentions.counts), list(zip(x.windows.lengths, x.mentions.counts)))
        for x in batches
    ]
    asked = [x.counts for x in batches]
    half = options.precision == "bfloat16"
    seconds: dict[str, list[float]] = {"step": [], "products": []}

    def step(drawn: Sequence[Drawn]) -> float:
        batch = to_device(windows.collate(drawn), device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=half):
            loss, _ = model(batch)
        loss.backward()
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        return float(loss.detach())

    for drawn in numbers[:UNTIMED]:
        step(drawn)
    dtype = torch.bfloat16 if half else torch.float32
    products = StepProducts(config, shapes[:1], asked[:1], entities=options.entities, dtype=dtype)
    flops = []
    for drawn, shape, counts in zip(numbers, shapes, asked):
        flops.append(count_flops(config, shape, counts, entities=options.entities))
        if device.type == "cpu":
            products.shapes, products.asked = [shape], [counts]
            products.run()  # once untimed
            seconds["products"].append(timed(products.run))
            assert products.flops == flops[-1], (products.flops, flops[-1])
        seconds["step"].append(timed(lambda drawn=drawn: step(drawn)))
    tokens = mean(x.words + x.entities for x in shapes)
    per_step = median(seconds["step"])
    peak = next(
        (p for name, p in PEAKS.items() if device.type == "cuda" and name in torch.cuda.get_device_name()), None
    )
    return {
        "settings": {k: v for k, v in vars(options).items() if k != "results"},
        "tokens": tokens,
        "flops": mean(flops),
        "seconds": {name: round(median(values), 4) for name, values in seconds.items() if values},
        "tokens_per_second": round(tokens / per_step, 1),
        "flops_per_second": mean(flops) / per_step,
        "share_of_products": round(median(seconds["products"]) / per_step, 3) if seconds["products"] else None,
        "model_flop_utilisation": None if peak is None else round(mean(flops) / per_step / peak, 3),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        **describe_machine(),
    }


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def count_flops(config: LukeConfig, shape: Shapes, asked: dict[str, int], *, entities: int) -> int:
    """Of the products of a step, forward and backward."""
    d, f, e = config.hidden_size, config.intermediate_size, config.entity_size
    rows = shape.words + shape.entities
    linear = rows * config.num_layers * (4 * d * d + 2 * d * f) + shape.entities * (d * e if e != d else 0)
    heads = asked["words"] * d * (d + config.vocab_size) + asked["entities"] * e * (d + entities)
    attention = 2 * config.num_layers * sum((w + m) ** 2 for w, m in shape.windows) * d
    return 6 * (linear + heads + attention)


def make_table(results: dict[str, Any]) -> str:
    lines = [
        "# Speed of a step of pretraining",
        "",
        "Written by `python benchmarks/pretraining.py`; its head says what is measured. Of products: the time of the "
        "same",
        "products alone as a share of the step's; MFU: the products' operations as a share of what the GPU can "
        "compute.",
        "",
        "| size | device | precision | windows | pieces | entities | tokens / s | TFLOP / s | of products | MFU | "
        "threads |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for x in results.values():
        s = x["settings"]
        shares = [f"{100 * x[k]:.0f} %" if x[k] else "" for k in ("share_of_products", "model_flop_utilisation")]
        cells = [
            s["size"],
            x["device"],
            s["precision"] + (", compiled" if s.get("compile") else ""),
            str(s["windows"]),
            str(s["pieces"]),
            f"{s['entities']:,}",
        ]
        cells += [f"{x['tokens_per_second']:,.0f}", f"{x['flops_per_second'] / 1e12:.3f}", *shares, str(x["threads"])]
        lines.append("| " + " | ".join(cells) + " |")
    chips = sorted({f"{x['chip']}, torch {x['versions']['torch']}" for x in results.values()})
    return "\n".join([*lines, "", f"Machine: {'; '.join(chips)}.", ""])


if __name__ == "__main__":
    main()
