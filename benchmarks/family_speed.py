"""Pieces a second of DeBERTa-v3's and ModernBERT's encoders, beside transformers' own models of the same weights.

    python benchmarks/family_speed.py            # results/family_speed.json and .md
    python benchmarks/family_speed.py --smoke    # tiny encoders, to see that everything works

Base width, random weights, some of the layers (ModernBERT: one global layer and two local ones of every three). Windows
of one length, and of the lengths of sentences. transformers gets the windows sorted by length, in batches of its best
size, padded; ours gets them as they come. One process and thread, alternating rounds, states compared before times;
seconds are those of the processor, which other programs change little.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from machine import describe_machine
from measuring import RESULTS, write_report
from runs import describe_machines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
VOCABULARY = 4000
WORKS = {"sentences": (), "128": (128,), "512": (512,), "2048": (2048,), "8192": (8192,)}  # lengths of windows
FAMILIES = {"deberta-v2": ("sentences", "128", "512"), "modernbert": ("sentences", "128", "512", "2048", "8192")}
BATCHES = (1, 4, 16, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--windows", nargs="+", default=list(WORKS), choices=WORKS, help="works to measure")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--pieces", type=int, default=4096, help="of a work, in whole windows")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds; the median counts")
    parser.add_argument("--train", action="store_true", help="forward and backward passes too")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    rows = [row for family in options.families for row in measure(family, options)]
    name = "family_speed_smoke" if options.smoke else "family_speed"
    rows = kept_rows(name, rows) + rows
    rows.sort(key=lambda row: (row["family"], list(WORKS).index(row["windows"]), row["training"]))
    result = {"machine": describe_machine(), "rows": rows}
    write_report(name, result, report(result))


def kept_rows(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of earlier runs for what is not measured now."""
    path = RESULTS / f"{name}.json"
    earlier = json.loads(path.read_text("utf8"))["rows"] if path.is_file() else []
    keys = ("family", "windows", "training")
    now = [[row[key] for key in keys] for row in rows]
    return [row for row in earlier if [row[key] for key in keys] not in now]


def measure(family: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    ours, theirs = make_pair(family, options)
    rows = []
    for work in FAMILIES[family]:
        if work not in options.windows or (options.smoke and work in ("2048", "8192")):
            continue
        windows = make_windows(work, 256 if options.smoke else options.pieces)
        for train in (False, True) if options.train and work != "8192" else (False,):
            found = compare(ours, theirs, windows, train, options.repeats)
            rows.append({"family": family, "windows": work, "training": train, "layers": options.layers, **found})
            print(rows[-1], flush=True)
    return rows


def make_pair(family: str, options: argparse.Namespace) -> tuple[Any, Any]:
    """An encoder of ours and transformers' model with the same weights."""
    import torch
    import transformers

    from spacy_luke.checkpoint.families import PLAIN
    from spacy_luke.model.families import build_encoder

    width = {"hidden_size": 48, "num_attention_heads": 4} if options.smoke else {"num_attention_heads": 12}
    width = {"hidden_size": 768, "num_hidden_layers": options.layers, "vocab_size": VOCABULARY, **width}
    torch.manual_seed(0)
    if family == "modernbert":
        config = transformers.ModernBertConfig(
            **width, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2
        )
        theirs = transformers.ModernBertModel(config)
    else:
        form = {
            "relative_attention": True,
            "position_biased_input": False,
            "position_buckets": 256,
            "share_att_key": True,
        }
        form |= {"norm_rel_ebd": "layer_norm", "pos_att_type": ["p2c", "c2p"], "intermediate_size": 3072}
        theirs = transformers.DebertaV2Model(transformers.DebertaV2Config(**width, **form))
    with torch.no_grad():
        for name, x in theirs.named_parameters():
            x.normal_(0.0, 0.05)
            if "norm" in name.lower() and name.endswith("weight"):
                x.add_(1.0)
    plain = PLAIN[family]
    ours = build_encoder(
        plain.config(theirs.config.to_dict(), entity_vocab_size=4, entity_size=768, entity_aware=False)
    )
    state = plain.rewrite(theirs.state_dict())
    names = plain.known_names(ours.config, root="")
    found = {names[name].removeprefix("encoder."): x for name, x in state.items() if name in names}
    missing = ours.load_state_dict(found, strict=False).missing_keys
    assert all(name.startswith("entities.") for name in missing), missing
    return ours.eval(), theirs.eval()


def make_windows(work: str, pieces: int) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(1)
    windows: list[Any] = []
    while sum(map(len, windows)) < pieces:
        length = WORKS[work][0] if WORKS[work] else int(torch.randint(8, 60, (), generator=generator))
        windows.append(torch.randint(5, VOCABULARY, (length,), generator=generator))
    return windows


def compare(ours: Any, theirs: Any, windows: Sequence[Any], train: bool, repeats: int) -> dict[str, Any]:
    import torch

    best = 1
    if len(windows) > 1:
        best = min(BATCHES, key=lambda size: timed(lambda: run_theirs(theirs, windows, size, train)))
    runs: dict[str, Callable[[], Any]] = {
        "ours": lambda: run_ours(ours, windows, train),
        "theirs": lambda: run_theirs(theirs, windows, best, train),
    }
    states = {name: run() for name, run in runs.items()}
    worst = max(float((a - b).abs().max()) for a, b in zip(states["ours"], states["theirs"], strict=True))
    assert worst < 1e-3 * max(1.0, float(torch.cat(states["theirs"]).abs().max())), worst
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(timed(run))
    pieces = sum(map(len, windows))
    speed = {name: pieces / median(some) for name, some in times.items()}
    return {"pieces": pieces, "batch": best, "worst": worst, **speed, "ratio": speed["ours"] / speed["theirs"]}


def timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def run_ours(encoder: Any, windows: Sequence[Any], train: bool) -> list[Any]:
    import torch

    from spacy_luke.model.luke import make_windows as pack

    lengths = [len(x) for x in windows]
    with torch.enable_grad() if train else torch.inference_mode():
        states = encoder.word_states(pack(torch.cat(list(windows)).numpy(), lengths, device=torch.device("cpu")))
        if train:
            encoder.zero_grad(set_to_none=True)
            states.square().mean().backward()
    return list(states.detach().split(lengths))


def run_theirs(model: Any, windows: Sequence[Any], size: int, train: bool) -> list[Any]:
    import torch

    order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
    states: list[Any] = [None] * len(windows)
    with torch.enable_grad() if train else torch.inference_mode():
        model.zero_grad(set_to_none=True)
        for first in range(0, len(order), size):
            some = order[first : first + size]
            ids = torch.nn.utils.rnn.pad_sequence([windows[i] for i in some], batch_first=True)
            found = model(input_ids=ids, attention_mask=(ids > 0).long()).last_hidden_state
            if train:
                found[ids > 0].square().mean().backward()
            for i, row in zip(some, found, strict=True):
                states[i] = row[: len(windows[i])].detach()
    return states


def report(result: dict[str, Any]) -> str:
    lines = [
        "# DeBERTa-v3 and ModernBERT beside transformers",
        "",
        "Base width, random weights; pieces a second of the processor, median of alternating rounds in one process and "
        "thread; states compared before times. transformers: sorted by length, batches of its best size.",
        "",
        "| family | layers | windows | passes | ours | transformers | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in result["rows"]:
        passes = "forward and backward" if row["training"] else "forward"
        lines.append(
            f"| {row['family']} | {row['layers']} | {row['windows']} | {passes} | {row['ours']:,.0f} | "
            f"{row['theirs']:,.0f} (batches of {row['batch']}) | {row['ratio']:.2f} |"
        )
    return "\n".join([*lines, "", f"Machine: {describe_machines([result['machine']])}.", ""])


if __name__ == "__main__":
    main()
