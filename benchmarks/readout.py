"""What a linear layer reads from frozen states: is an entity token a good place to read a mention from?

    python benchmarks/readout.py --task open_entity --system luke   # one run
    python benchmarks/readout.py --all                              # every run that is missing
    python benchmarks/readout.py --cache DIR --system luke          # of the common start, not of MiniLM
    python benchmarks/readout.py --table                            # results/readout.md

Systems, inputs and data are those of quality_tasks.py, before any training: only the head's layer is learned, by all
training records at once, with the L2 weight that is best on their last fifth. The common start is that of
common_start.py, in whose folder it lies.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common_start
import quality_tasks
from machine import describe_machine
from paired import compare_lines, count, counts_of, keep_run, score
from runs import describe_runs, group_runs, make_parser, run_as_asked, start

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
TASKS = ("open_entity", "semeval")
SYSTEMS = ("markers", "luke", "luke_mention", "one_way", "one_way_mention")
WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1)  # of L2, tried on the last fifth of the training records
NONE = "Other"


def main() -> None:
    parser = make_parser(__doc__ or "", "readout")
    parser.add_argument("--task", choices=TASKS, default="open_entity")
    parser.add_argument("--system", choices=SYSTEMS, default="luke")
    parser.add_argument("--cache", type=Path, help="folder with the common start, which is read from")
    parser.add_argument("--dev", action="store_true", help="score the dev part instead of the test part")
    runs = [{"task": task, "system": system} for task in TASKS for system in SYSTEMS]
    given = ("data", "threads")
    run_as_asked("readout", parser.parse_args(), run=run, runs=runs, given=given, make_table=make_table)


def run(options: argparse.Namespace) -> dict[str, Any]:
    start(options)
    task, system = quality_tasks.TASKS[options.task], quality_tasks.SYSTEMS[options.system]
    nlp = quality_tasks.build(options.task, system, tokens="pair")
    train, test = quality_tasks.read_parts(nlp, task, options)
    folder = None if options.cache is None else common_start.find_start(options)
    quality_tasks.initialize(nlp, train, system, seed=options.seed, folder=folder)
    began = time.perf_counter()
    items = [[gold_of(doc, options.task) for doc in some] for some in (train, test)]
    states = [read_states(nlp, some, options.task) for some in (train, test)]
    labels = sorted({label for gold in items[0] for label in gold})
    read = time.perf_counter()
    weight, found = learn(states, items[0], labels, single=options.task == "semeval")
    answers = [tuple([f"0-1 {x}" for x in sorted(some) if x != NONE] for some in pair) for pair in zip(items[1], found)]
    macro = options.task == "semeval"
    encoder = "MiniLM" if folder is None else "common start"
    kept = f"readout/{options.task}-{options.system}{'' if folder is None else '-common_start'}.jsonl"
    return {
        "task": options.task,
        "system": options.system,
        "encoder": encoder,
        "seed": options.seed,
        "part": "dev" if options.dev else "test",
        "f": round(float(score(count(answers, macro=macro).sum(0))), 2),
        "width": states[0].shape[1],
        "norm": round(float(states[0].norm(dim=1).mean()), 2),
        "start_norms": start_norms(nlp),
        "weight": weight,
        "records": [len(train), len(test)],
        "seconds": [round(read - began, 1), round(time.perf_counter() - read, 1)],
        "predictions": keep_run(kept, answers, limit=options.limit, dev=options.dev, settings={"weight": weight}),
        **describe_machine(),
    }


def start_norms(nlp: Any) -> dict[str, float]:
    """Norms of the encoder's vectors: of the piece [MASK], and the mean of all."""
    ((_, component),) = nlp.pipeline
    norms_V = component.encoder.module.words.piece.weight.detach().norm(dim=1)
    return {
        "[MASK]": round(float(norms_V[component.tokenizer.mask_id]), 3),
        "pieces": round(float(norms_V.mean()), 3),
    }


def gold_of(doc: Any, task: str) -> list[str]:
    """The labels of a document's only mention, or pair of mentions."""
    if task == "open_entity":
        return sorted({span.label_ for span in doc.spans["luke_types"] if span.label_})
    return sorted({relation.label for relation in doc._.luke_relations}) or [NONE]


def read_states(nlp: Any, docs: Sequence[Any], task: str) -> Any:
    """What the head's layer is given of each document: (documents, width)."""
    import torch

    ((_, component),) = nlp.pipeline
    taken: list[Any] = []
    layer = component.model.shims[0].module.classifier
    hook = layer.register_forward_hook(lambda _, inputs, output: taken.append(inputs[0].detach().float().clone()))
    for doc in docs:
        component.predict([quality_tasks.fresh(nlp, doc, task).predicted])
    hook.remove()
    assert [len(x) for x in taken] == [1] * len(docs), "each document has one mention, or one pair"
    return torch.cat(taken)


def learn(states: Sequence[Any], gold: Sequence[list[str]], labels: list[str], *, single: bool) -> tuple[float, Any]:
    """The best of WEIGHTS, and the labels found for each test record by a layer learned of all training records.

    single: each record has one label, the likeliest; else all above a half.
    """
    import torch

    target = torch.zeros(len(gold), len(labels))
    for i, some in enumerate(gold):
        target[i, [labels.index(x) for x in some]] = 1
    train, test = states
    mean, scale = train.mean(0), train.std(0).clamp(min=1e-6)
    train, test = (train - mean) / scale, (test - mean) / scale
    cut = len(train) * 4 // 5

    def said(layer: Any, x: Any) -> list[list[str]]:
        logits = layer(x)
        if single:
            return [[labels[i]] for i in logits.argmax(1).tolist()]
        return [[label for label, logit in zip(labels, row) if logit > 0] for row in logits.tolist()]

    def f_of(found: Sequence[list[str]], wanted: Sequence[list[str]]) -> float:
        pairs = [tuple([f"0-1 {x}" for x in some if x != NONE] for some in pair) for pair in zip(wanted, found)]
        return float(score(count(pairs, macro=single).sum(0)))

    tried = [f_of(said(fit(train[:cut], target[:cut], w, single=single), train[cut:]), gold[cut:]) for w in WEIGHTS]
    weight = WEIGHTS[max(range(len(WEIGHTS)), key=lambda i: tried[i])]
    return weight, said(fit(train, target, weight, single=single), test)


def fit(x: Any, target: Any, weight: float, *, single: bool) -> Any:
    """A linear layer by L-BFGS, from zeros. weight: of L2."""
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(x.shape[1], target.shape[1])
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        logits = layer(x)
        loss = F.cross_entropy(logits, target) if single else F.binary_cross_entropy_with_logits(logits, target)
        loss = loss + weight * layer.weight.pow(2).sum() / 2
        loss.backward()
        return loss

    optimizer.step(closure)
    return layer.requires_grad_(False)


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# What is read from frozen states",
        "",
        "Written by `python benchmarks/readout.py --table`; see docs/results/relations.md. Percent: open_entity",
        "loose micro F1, semeval the official macro F1. Above: the difference, and where 95 of 100 draws of documents",
        "have it (paired bootstrap).",
        "",
        "| data | encoder | system | numbers read | their norm | F1 | above markers | above luke |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups = group_runs(results, lambda x: (x["task"], x["encoder"], x["system"]), order=(*TASKS, *SYSTEMS))
    of = dict(groups)
    for (task, encoder, system), group in groups:
        said = []
        for base in ("markers", "luke"):
            gap = compare_lines(of.get((task, encoder, base), []), group, counts=counts_of(task))
            said.append("" if gap is None or base == system else str(gap))
        x = group[-1]
        cells = [task, encoder, system, f"{x['width']:,}", f"{x['norm']}", f"{x['f']:.1f}", *said]
        lines.append("| " + " | ".join(cells) + " |")
    norms = next((x["start_norms"] for x in results if (x["encoder"], x["system"]) == ("MiniLM", "luke")), None)
    if norms:
        pieces, mask = norms["pieces"], norms["[MASK]"]
        lines += ["", f"Norm of MiniLM's vector of the piece [MASK]: {mask}; mean of all pieces: {pieces}."]
    lines += ["", describe_runs(results), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
