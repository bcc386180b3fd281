"""Words a second of an ERNIE encoder, beside the same BERT without entities and beside a dense K-Encoder.

    python benchmarks/ernie_speed.py            # results/ernie_speed.json and .md
    python benchmarks/ernie_speed.py --smoke    # a tiny encoder, to see that everything works

Base size (the released ERNIE's 5 sim, 1 mix and 6 norm layers), random weights, sentences of Open Entity with their
TagMe entities, each of which gets a vector. `bert` is the same encoder with sim layers alone, `hf_bert` BertModel of
transformers with the same weights at its best batch size, `dense` the K-Encoder as the original computes it: an entity
state at every piece. One process, alternating rounds, results compared before times.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

from machine import describe_machine
from measuring import data_parser, write_report

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
SIZES = {
    "base": {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": 3072},
    "smoke": {"hidden_size": 48, "num_layers": 4, "num_heads": 4, "intermediate_size": 96},
}


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds; the median counts")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    result = measure(options)
    name = "ernie_speed_smoke" if options.smoke else "ernie_speed"
    write_report(name, result, report(result))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from spacy_luke.model.ernie import ErnieConfig, ErnieEncoder, default_layer_kinds
    from spacy_luke.model.fresh import initialize

    batches, words, entities = read_batches(options)
    size = SIZES["smoke" if options.smoke else "base"]
    config = ErnieConfig(vocab_size=30522, layer_kinds=default_layer_kinds(size["num_layers"]), **size)
    torch.manual_seed(0)
    encoders = {
        "ernie": ErnieEncoder(config),
        "bert": ErnieEncoder(replace(config, layer_kinds=("sim",) * config.num_layers)),
    }
    initialize(encoders["ernie"], std=0.02)
    same = {n: x for n, x in encoders["ernie"].state_dict().items() if n in encoders["bert"].state_dict()}
    encoders["bert"].load_state_dict(same)
    peer = make_peer(config, encoders["bert"])
    hf_batch = best_batch(peer, batches)
    runs: dict[str, Callable[[Any, bool], Any]] = {
        "ernie": lambda batch, train: run_ours(encoders["ernie"], batch, dense=False, train=train),
        "dense": lambda batch, train: run_ours(encoders["ernie"], batch, dense=True, train=train),
        "bert": lambda batch, train: run_ours(encoders["bert"], batch, dense=False, train=train),
        "hf_bert": lambda batch, train: run_peer(peer, batch, size=hf_batch, train=train),
    }
    agree = compare(runs, batches[0])
    times: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in runs} for kind in ("inference", "training")}
    for kind in times:
        some = batches if kind == "inference" else batches[: max(1, len(batches) // 4)]
        for round_ in range(options.repeats + 1):
            for name, run in runs.items():
                start = time.perf_counter()
                for batch in some:
                    run(batch, kind == "training")
                if round_:
                    times[kind][name].append(time.perf_counter() - start)
    share = {"inference": 1.0, "training": max(1, len(batches) // 4) / len(batches)}
    return {
        "sentences": options.sentences,
        "words": words,
        "entities": entities,
        "pieces": sum(len(x) for batch in batches for x in batch["pieces"]),
        "hf_batch": hf_batch,
        "largest_difference": agree,
        "seconds": {kind: {name: median(x) for name, x in named.items()} for kind, named in times.items()},
        "words_per_second": {
            kind: {name: words * share[kind] / median(x) for name, x in named.items()} for kind, named in times.items()
        },
        "threads": torch.get_num_threads(),
        **describe_machine(),
    }


def read_batches(options: argparse.Namespace) -> tuple[list[dict[str, Any]], int, int]:
    """Batches of sentences of like length: pieces, and which pieces have an entity."""
    import numpy as np
    import spacy

    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.knowledge import KnownEntity, align_known
    from spacy_luke.text.tokenizer import PieceTokenizer

    nlp = spacy.blank("en")
    tokenizer = PieceTokenizer.from_folder(options.data / "vocabularies" / "bert_uncased")
    records = json.loads((options.data / "open_entity_ernie" / "test.json").read_text(encoding="utf8"))
    items, words, entities = [], 0, 0
    for record in records[: options.sentences]:
        doc = nlp.make_doc(record["sent"])
        document = read_document(doc, tokenizer)
        known = [KnownEntity(begin, end, name, score) for name, begin, end, score in record["ents"] if score > 0.3]
        placed = align_known(doc, known).placed
        at = sorted({int(document.pieces.first_W[word]) + 1 for word, _ in placed})
        ids = document.pieces.ids_N[:510]
        items.append((np.concatenate([[tokenizer.cls_id], ids, [tokenizer.sep_id]]), [x for x in at if x <= len(ids)]))
        words, entities = words + len(doc), entities + len(at)
    items.sort(key=lambda item: len(item[0]))
    batches = [items[a : a + 32] for a in range(0, len(items), 32)]
    return [{"pieces": [x for x, _ in batch], "at": [at for _, at in batch]} for batch in batches], words, entities


def run_ours(encoder: Any, batch: dict[str, Any], *, dense: bool, train: bool) -> Any:
    """Packed windows. dense: an entity state at every piece but [CLS], zeros where there is no entity."""
    import numpy as np
    import torch

    from spacy_luke.model.ernie import Knowledge
    from spacy_luke.model.luke import Windows

    size = encoder.config.entity_size
    lengths = [len(x) for x in batch["pieces"]]
    places = [list(range(1, n)) for n in lengths] if dense else batch["at"]
    vectors = [vector_of(at in real, size) for all_, real in zip(places, batch["at"]) for at in all_]
    knowledge = Knowledge(
        torch.from_numpy(np.stack(vectors)) if vectors else torch.zeros(0, size),
        torch.tensor([at for all_ in places for at in all_], dtype=torch.int64),
        [len(all_) for all_ in places],
    )
    windows = Windows(torch.from_numpy(np.concatenate(batch["pieces"])), lengths)
    with torch.set_grad_enabled(train):
        states = encoder.train(train)(windows, knowledge)[0]
        if train:
            states.square().mean().backward()
            encoder.zero_grad(set_to_none=True)
    return states.detach()


def vector_of(is_entity: bool, size: int) -> Any:
    import numpy as np

    return np.full(size, 0.1, dtype=np.float32) if is_entity else np.zeros(size, dtype=np.float32)


def make_peer(config: Any, ours: Any) -> Any:
    """transformers' BertModel with the weights of our encoder."""
    from transformers import BertConfig, BertModel

    from spacy_luke.checkpoint.ernie_names import bert_names

    peer = BertModel(
        BertConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.intermediate_size,
            max_position_embeddings=config.max_positions,
            type_vocab_size=config.token_types,
            layer_norm_eps=config.norm_eps,
        )
    )
    names = bert_names(ours.config, root="")
    state = {f"encoder.{n}": x for n, x in ours.state_dict().items()}
    theirs = {their: state[own] for their, own in names.items() if own in state and their in peer.state_dict()}
    missing = [n for n in peer.state_dict() if n not in theirs and not n.endswith("position_ids")]
    assert not missing, missing
    peer.load_state_dict(theirs, strict=False)
    return peer.eval()


def run_peer(peer: Any, batch: dict[str, Any], *, size: int, train: bool) -> Any:
    import torch
    from torch.nn.utils.rnn import pad_sequence

    states = []
    for a in range(0, len(batch["pieces"]), size):
        some = [torch.from_numpy(x) for x in batch["pieces"][a : a + size]]
        ids = pad_sequence(some, batch_first=True)
        mask = pad_sequence([torch.ones_like(x) for x in some], batch_first=True)
        with torch.set_grad_enabled(train):
            found = peer.train(train)(input_ids=ids, attention_mask=mask).last_hidden_state[mask.bool()]
            if train:
                found.square().mean().backward()
                peer.zero_grad(set_to_none=True)
        states.append(found.detach())
    return torch.cat(states)


def best_batch(peer: Any, batches: list[dict[str, Any]]) -> int:
    best = {}
    for size in (4, 8, 16, 32):
        for _ in range(2):
            start = time.perf_counter()
            run_peer(peer, batches[len(batches) // 2], size=size, train=False)
            best[size] = time.perf_counter() - start
    return min(best, key=best.__getitem__)


def compare(runs: dict[str, Callable[[Any, bool], Any]], batch: dict[str, Any]) -> dict[str, float]:
    """Largest differences between what must be equal. Raises where it is not.

    `dense` is not among them: zeros at pieces without an entity are not what the original's mask makes of these, only
    as much work.
    """
    bert, peer = runs["bert"](batch, False), runs["hf_bert"](batch, False)
    difference = float((bert - peer).abs().max())
    if difference > 1e-4:
        raise SystemExit(f"bert and hf_bert differ by {difference}.")
    return {"bert and hf_bert": difference}


def report(result: dict[str, Any]) -> str:
    speeds, seconds = result["words_per_second"], result["seconds"]
    lines = [
        "# ERNIE: speed",
        "",
        f"Written by `python benchmarks/ernie_speed.py`. {result['chip']}, {result['threads']} threads, float32, "
        f"torch {result['versions']['torch']}. {result['sentences']} sentences of Open Entity, {result['words']:,} "
        f"words, {result['pieces']:,} pieces, {result['entities']:,} entities. transformers' best batch: "
        f"{result['hf_batch']}.",
        "",
        "| encoder | inference words/s | times bert's time | training words/s | times bert's time |",
        "|---|---|---|---|---|",
    ]
    for name in ("bert", "hf_bert", "ernie", "dense"):
        cells = [name]
        for kind in ("inference", "training"):
            cells += [f"{speeds[kind][name]:.0f}", f"{seconds[kind][name] / seconds[kind]['bert']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "Training is a forward and a backward pass, without the optimizer's step.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
