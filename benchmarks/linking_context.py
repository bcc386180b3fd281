"""Can a linker be taught to look at the entities that are decided already? Trainings, each asked by linking_oracle.py.

    python benchmarks/linking_context.py --cache DIR --system plain --seed 0    # trains, and asks on testa
    python benchmarks/linking_context.py --cache DIR --all                      # every run that is missing
    python benchmarks/linking_context.py --table                                # results/linking_context.md

All learn without priors. A run appends a line to results/linking_context.jsonl. docs/results/linking.md says
what is compared.
"""

import argparse
import json
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import common_start
import linking
import linking_oracle
import numpy as np
from link_answers import count_links, judge
from linking import example_of
from machine import describe_machine
from paired import compare, keep, read
from runs import RESULTS, add_line, describe_machines, group_runs, make_parser, read_lines, start

CACHED = RESULTS / "linking_context.jsonl"
SEEDS = (0, 1, 2)
ORACLE = 40  # documents of testa that are asked
NAMES = ("shown", "hidden")  # of mentions, to the oracle
WAYS = ("local", "global")
NOISE = 0.1  # of the known entities in training, with `taught`: one of the wrong candidates


@dataclass(frozen=True)
class System:
    """taught: masked_share is drawn for each window, one known entity in ten is a wrong one, a matrix (at first the
    identity) stands between the vectors of known entities and the encoder, and mentions that are NIL are left out.
    pretrained: it begins with the encoder of common_start.py, whose table of entities began as vectors of titles, like
    those that the linker has; else with MiniLM."""

    taught: bool
    attention: str = "one_way"
    pretrained: bool = False


SYSTEMS = {
    "plain": System(False),
    "taught": System(True),
    "taught_full": System(True, "full"),
    "pretrained": System(True, pretrained=True),
}


class Texts(NamedTuple):
    nlp: Any
    train: list[Any]
    testa: list[Any]


def main() -> None:
    parser = make_parser(__doc__ or "", "linking_context")
    parser.add_argument("--system", choices=SYSTEMS, default="taught")
    parser.add_argument("--cache", type=Path, help="folder that keeps data and the pretrained encoder")
    parser.add_argument("--documents", type=int, default=150, help="of AIDA's training part")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--save", type=Path, help="folder that gets the local scores of testa's candidates")
    options = parser.parse_args()
    if options.table:
        (RESULTS / "linking_context.md").write_text(make_table(read_lines(CACHED)), encoding="utf8")
        print((RESULTS / "linking_context.md").read_text(encoding="utf8"))
        return
    done = {(x["system"], x["seed"]) for x in read_lines(CACHED)}
    runs = [(x, seed) for seed in SEEDS for x in SYSTEMS if (x, seed) not in done] if options.all else []
    texts = read_texts(options)
    for system, seed in runs or [(options.system, options.seed)]:
        options.system, options.seed = system, seed
        add_line(CACHED, run(options, texts))


def read_texts(options: argparse.Namespace) -> Texts:
    import spacy

    nlp = spacy.blank("en")
    train, testa = (linking.read_part(nlp, options, part) for part in ("train", "testa"))
    return Texts(nlp, train[: options.limit or options.documents], testa)


def run(options: argparse.Namespace, texts: Texts) -> dict[str, Any]:
    start(options)
    system, (nlp, train, testa) = SYSTEMS[options.system], texts
    linker = make_linker(options, system, texts)
    settings = {"batch": 8, "rate": 2e-4, "head_rate": 5.0, "prior_rate": 1.0, "dropout": 0.0}
    if system.taught:
        add_adapter(linker)
        linker.batches = types.MethodType(taught_batches, linker)
    seconds = linking.learn(nlp, linker, train, argparse.Namespace(**{**vars(options), **settings}))
    if options.save:
        keep_scores(nlp, linker, testa, options)
    asked = testa[: options.limit or ORACLE]
    examples = [example(nlp, doc, nil=not system.taught) for doc in asked]
    oracle = {name: linking_oracle.ask(linker, examples, seed=options.seed, hide=name == "hidden") for name in NAMES}
    linked = {way: link(nlp, linker, asked, way, nil=not system.taught) for way in WAYS}
    nlp.remove_pipe("luke_linker")
    path = f"linking_context/{options.system}-{len(train)}-{options.seed}"
    return {
        "system": options.system,
        "seed": options.seed,
        "settings": {"documents": len(train), "epochs": options.epochs, **settings},
        "asked": len(asked),
        "oracle": {name: linking_oracle.summarise(found) for name, found in oracle.items()},
        "accuracy": {way: found["accuracy"] for way, found in linked.items()},
        "predictions": None
        if options.limit
        else {
            **{name: linking_oracle.keep_found(f"{path}-{name}.jsonl", found) for name, found in oracle.items()},
            **{way: keep(f"{path}-{way}.jsonl", found["answers"]) for way, found in linked.items()},
        },
        "seconds": round(seconds, 1),
        **describe_machine(),
    }


def make_linker(options: argparse.Namespace, system: System, texts: Texts) -> Any:
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    kb = linking.make_kb(options.data, options.cache / "linking" / "kb", linking.read_encoder())
    whole = argparse.Namespace(**{**vars(options), "limit": None})
    folder = common_start.find_start(whole) if system.pretrained else find_source(linking.ENCODER)
    checkpoint = read_checkpoint(
        folder, entities="special", entity_start="words", entity_aware=False, seed=options.seed
    )
    nlp, train, _ = texts
    parts = {"attention": system.attention, "prior": False, "nil": False}
    model = {"@architectures": "spacy-luke.EntityLinker.v2", **parts}
    linker: Any = nlp.add_pipe("luke_linker", config={"model": model, "max_candidates": 30})
    linker.initialize(
        lambda: [example_of(nlp, x) for x in train], kb=lambda: kb, weights=lambda: checkpoint, seed=options.seed
    )
    return linker


def example(nlp: Any, doc: Any, *, nil: bool) -> Any:
    """nil: whether mentions that are NIL are among those of the predicted Doc."""
    found = example_of(nlp, doc)
    if not nil:
        known = {(x.start, x.end) for x in doc.ents if x.kb_id_ and x.kb_id_ != "NIL"}
        found.predicted.ents = [x for x in found.predicted.ents if (x.start, x.end) in known]
    return found


def add_adapter(linker: Any) -> None:
    from torch import nn

    entities = linker.encoder.module.entities
    width = entities.table.weight.shape[1]
    entities.dense = nn.Linear(width, width, bias=False)
    nn.init.eye_(entities.dense.weight)


def taught_batches(linker: Any, examples: Sequence[Any]) -> Iterator[Any]:
    """In place of the component's: see `System`."""
    from spacy_luke.batch.batches import batch_items
    from spacy_luke.batch.linking import make_link_batch
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.linker.gold import learnable_links

    table, items = linker.table(), []
    for owner, one in enumerate(examples):
        links, _ = learnable_links(one, table, linker.candidates)
        if links:
            items += taught_items(linker.input(), read_document(one.predicted, linker.tokenizer), links, table, owner)
    vectors = table.vectors()
    return batch_items(items, size=linker.batch_size, make=lambda some: make_link_batch(some, vectors))


def taught_items(settings: Any, document: Any, links: Sequence[Any], table: Any, owner: int) -> Iterator[Any]:
    from spacy_luke.components.linker.inputs import link_tasks

    mentions, found, golds = [x.mention for x in links], [x.candidates for x in links], [x.number for x in links]
    for window, mention_E in link_tasks(settings, document, mentions, found, table):
        masked_E = np.random.random(len(mention_E)) < np.random.uniform(0.1, 1.0)
        masked_E[np.random.randint(len(mention_E))] = True
        for e in np.flatnonzero(~masked_E).tolist():
            wrong_K = window.rows[e][window.rows[e] != golds[mention_E[e]]]
            noisy = len(wrong_K) and np.random.random() < NOISE
            window.entities_E[e] = np.random.choice(wrong_K) if noisy else golds[mention_E[e]]
        scored = np.flatnonzero(masked_E & window.decided_E).tolist()
        if scored:
            places = [int(np.flatnonzero(window.rows[e] == golds[mention_E[e]])[0]) for e in scored]
            yield window.item(scored, owner=owner, gold=np.array(places, dtype=np.int64))


def link(nlp: Any, linker: Any, docs: Sequence[Any], way: str, *, nil: bool) -> dict[str, Any]:
    """What `judge` finds."""
    linker.cfg["inference"] = way
    return judge([example(nlp, doc, nil=nil) for doc in docs], partial(nlp.pipe, batch_size=64))


def keep_scores(nlp: Any, linker: Any, docs: Sequence[Any], options: argparse.Namespace) -> None:
    """The local scores of all candidates of testa's mentions, which linking_coherence.py reads."""
    linker.cfg["inference"] = "local"
    examples = [example_of(nlp, doc) for doc in docs]
    options.save.mkdir(parents=True, exist_ok=True)
    with (options.save / f"{options.system}_{options.seed}.jsonl").open("w", encoding="utf8") as file:
        for doc in nlp.pipe((x.predicted for x in examples), batch_size=64):
            rows = [(x.start, x.end, {c.id: round(c.score, 6) for c in x._.luke_candidates}) for x in doc.ents]
            file.write(json.dumps(rows) + "\n")


def counts_of(lines: Sequence[dict[str, Any]], way: str) -> list[Any]:
    """For `compare`, of runs with predictions."""
    return [count_links(read(x["predictions"][way])) for x in lines]


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Does a linker learn to look at decided entities?",
        "",
        "Written by `python benchmarks/linking_context.py --table`; see docs/results/linking.md. Mentions with",
        f"several candidates in {ORACLE} documents of AIDA's testa: percent right with nothing known of the others,",
        "and points above that when they are known; hidden: the words of all mentions are [MASK]. Means over the",
        "seeds, and the standard deviation of the points (n - 1). Below: in-KB accuracy on the same documents; local",
        "above that of `taught`, and global above local, with 95 % intervals over documents and seeds.",
        "",
        "| system | seeds | names | none | " + " | ".join(linking_oracle.CONTEXTS[1:]) + " |",
        "|---" * (4 + len(linking_oracle.CONTEXTS) - 1) + "|",
    ]
    groups = group_runs(results, lambda x: (describe(x),), order=tuple(SYSTEMS))
    for (system,), group in groups:
        for names in NAMES:
            some = [x["oracle"][names] for x in group]
            cells = [system, str(len(group)), names, f"{mean(x['none']['accuracy'] for x in some):.1f}"]
            for context in linking_oracle.CONTEXTS[1:]:
                above = [x[context]["above_none"] for x in some]
                cells.append(f"{mean(above):+.1f}" + (f" ± {stdev(above):.1f}" if len(above) > 1 else ""))
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| system | seeds | local | above taught | global | global above local | train s |"]
    lines.append("|---|---|---|---|---|---|---|")
    known = {system: group for (system,), group in groups}
    for (system,), group in groups:
        ways = [f"{mean(x['accuracy'][way] for x in group):.1f}" for way in WAYS]
        ways.insert(1, describe_gap(known.get(describe({**group[0], "system": "taught"}), []), group))
        gap = str(compare(counts_of(group, "local"), counts_of(group, "global")))
        seeds = ", ".join(str(x["seed"]) for x in group)
        lines.append(f"| {system} | {seeds} | {' | '.join(ways)} | {gap} | {mean(x['seconds'] for x in group):.0f} |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


def describe_gap(base: Sequence[dict[str, Any]], group: Sequence[dict[str, Any]]) -> str:
    """Of local decisions, on the seeds of both."""
    pairs = [(a, b) for a in base for b in group if a["seed"] == b["seed"]]
    if not pairs or base is group:
        return ""
    return str(compare(*(counts_of(some, "local") for some in zip(*pairs, strict=True))))


def describe(line: dict[str, Any]) -> str:
    settings = line["settings"]
    return f"{line['system']}, {settings['documents']} documents, {settings['epochs']} epochs"


if __name__ == "__main__":
    main()
