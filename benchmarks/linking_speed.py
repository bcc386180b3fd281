"""How fast `luke_linker` is beside spaCy's `entity_linker` and the plain step-by-step procedure, and whether its
decisions are those of the latter.

    python benchmarks/linking_speed.py PIPELINE                   # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_speed.py PIPELINE --spacy FOLDER --spacy-cnn FOLDER     # those of linking_spacy.py --save
    python benchmarks/linking_speed.py PIPELINE --all-documents   # equal decisions on all 231 documents of AIDA testb

The plain procedure is that of the original evaluate.py: one window at a time, a whole pass for each of its mentions
with candidates, the most confident one fixed after each. The first two forms write results/linking_speed.json and .md,
the last results/linking_decisions.json. docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from linking import example_of, read_part
from machine import describe_machine

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
RESULTS = Path(__file__).parent / "results"
WAYS = (("local", "local", None), ("global", "global", None), ("global, sure = 0.95", "global", 0.95))
Links = list[list[str]]  # of each Doc the ids of its mentions


def main() -> None:
    options = read_options()
    import spacy
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    docs = read_part(nlp, options, "testb")
    linker.predict([example_of(nlp, doc).predicted for doc in docs[:2]])  # what is loaded lazily
    notes = {"pipeline": Path(options.pipeline).name, "attention": linker.attention, "documents": len(docs)}
    if options.limit is None:
        found = compare_decisions(nlp, linker, docs)
        text = json.dumps({**notes, **found, **describe_machine()}, indent=1)
        (RESULTS / "linking_decisions.json").write_text(text + "\n", encoding="utf8")
        return
    systems = {name: our_system(nlp, linker, inference, sure) for name, inference, sure in WAYS}
    for name, inference, sure in WAYS:  # bfloat16 where the chip computes it fast
        systems[f"{name}, precision auto"] = our_system(nlp, linker, inference, sure, precision="auto")
    systems.update(spacy_systems(options, linker.kb, nlp, docs))
    results = measure(systems, docs, rounds=options.rounds)
    result = {**notes, "systems": {**results, **measure_plainly(nlp, linker, docs)}, **describe_machine()}
    (RESULTS / "linking_speed.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    (RESULTS / "linking_speed.md").write_text(make_table(result), encoding="utf8")
    print(make_table(result))


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline")
    parser.add_argument("--spacy", type=Path, help="trained entity_linker with MiniLM; default: untrained")
    parser.add_argument("--spacy-cnn", type=Path, help="trained entity_linker with its own encoder; default: untrained")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--documents", dest="limit", type=int, default=40, help="the first ones of AIDA testb")
    parser.add_argument(
        "--all-documents", dest="limit", action="store_const", const=None, help="compare decisions alone"
    )
    parser.add_argument("--rounds", type=int, default=3, help="each system's best time counts")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    return parser.parse_args()


# ---- speed


def our_system(
    nlp: Any, linker: Any, inference: str, sure: Any, *, precision: str = "float32"
) -> Callable[[list[Any]], list[Any]]:
    def link(docs: list[Any]) -> list[Any]:
        linker.cfg.update(inference=inference, sure=sure)
        linker.encoder_node.attrs["predict_precision"] = precision
        return list(nlp.pipe(docs, batch_size=64))

    return link


def spacy_systems(options: argparse.Namespace, kb: Any, nlp: Any, docs: Sequence[Any]) -> dict[str, Callable]:
    """spaCy's entity_linker: after a luke_encoder, which reads each document once; with the same encoder inside, which
    is called for each mention; and with its default CNN."""
    import spacy
    from linking import ENCODER
    from linking_spacy import initialize, make_pipeline

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    checkpoint = read_checkpoint(find_source(ENCODER), entity_start="words", entity_aware=False)
    examples = [example_of(nlp, doc) for doc in docs[:4]]
    found = {}
    for kind, folder in (("minilm", options.spacy), ("cnn", options.spacy_cnn), ("inside", None)):
        if folder is not None:
            found[kind] = spacy.load(folder)
        else:
            found[kind] = make_pipeline(spacy.blank("en"), kind)
            initialize(found[kind], kb, checkpoint, examples)
    put_inside(found["inside"].get_pipe("entity_linker").model, found["minilm"])
    names = {
        "minilm": "entity_linker on luke_encoder",
        "inside": "entity_linker, MiniLM inside",
        "cnn": "entity_linker, CNN",
    }
    return {name: lambda some, pipe=found[kind].pipe: list(pipe(some, batch_size=64)) for kind, name in names.items()}


def put_inside(model: Any, trained: Any) -> None:
    """The encoder and the layers of a trained pipeline."""
    other = trained.get_pipe("entity_linker").model
    for name in ("maxout", "linear"):
        ours, theirs = (next(node for node in x.walk() if node.name == name) for x in (model, other))
        for parameter in theirs.param_names:
            ours.set_param(parameter, theirs.get_param(parameter))
    model.get_ref("tok2vec").attrs["owner"] = trained.get_pipe("luke_encoder")


def measure(systems: dict[str, Callable], docs: Sequence[Any], *, rounds: int) -> dict[str, dict[str, Any]]:
    """Accuracy, and mentions a second: Docs with words, sentences, mentions and candidates go in, linked ones come
    out."""
    times: dict[str, list[float]] = {name: [] for name in systems}
    accuracy = {name: accuracy_of(link, docs) for name, link in systems.items()}  # before any time
    for _ in range(rounds):
        for name, link in systems.items():
            fresh = given(docs)
            start = time.perf_counter()
            link(fresh)
            times[name].append(time.perf_counter() - start)
    mentions = sum(len(doc.ents) for doc in docs)
    return {
        name: {"accuracy": accuracy[name], "mentions": mentions, **speed_of(mentions, min(times[name]))}
        for name in systems
    }


def measure_plainly(nlp: Any, linker: Any, docs: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The plain procedure, once."""
    found = {}
    linker.encoder_node.attrs["predict_precision"] = "float32"
    for inference in ("local", "global"):
        linker.cfg.update(inference=inference, sure=None)
        links, _, seconds = run_all_plainly(linker, given(docs))
        known = [(a, x.kb_id_) for doc, ids in zip(docs, links) for x, a in zip(doc.ents, ids) if x.kb_id_ != "NIL"]
        mentions = sum(map(len, links))
        share = round(100 * sum(a == b for a, b in known) / len(known), 2)
        found[f"{inference}, step by step"] = {"accuracy": share, "mentions": mentions, **speed_of(mentions, seconds)}
    return found


def given(docs: Sequence[Any]) -> list[Any]:
    from spacy_luke.readers.given import copy_given

    return [copy_given(doc, doc.vocab, links=True) for doc in docs]


def accuracy_of(link: Callable, docs: Sequence[Any]) -> float:
    from spacy.training import Example

    from spacy_luke.scorers.linking import score_links

    examples = [Example(doc, gold) for doc, gold in zip(link(given(docs)), docs, strict=True)]
    return round(100 * score_links(examples)["links_accuracy"], 2)


def speed_of(mentions: int, seconds: float) -> dict[str, float]:
    return {"seconds": round(seconds, 2), "mentions_per_second": round(mentions / seconds, 1)}


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# Speed of entity linking",
        "",
        "Written by `python benchmarks/linking_speed.py`; see docs/results/linking.md. AIDA testb, mentions and "
        "candidates",
        f"given, the first {result['documents']} documents; in-KB accuracy in percent on these.",
        "",
        "| system | accuracy | seconds | mentions / s |",
        "|---|---|---|---|",
    ]
    for name, x in result["systems"].items():
        lines.append(f"| {name} | {x['accuracy']:.1f} | {x['seconds']:.2f} | {x['mentions_per_second']:.0f} |")
    machine = f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}"
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


# ---- decisions


def compare_decisions(nlp: Any, linker: Any, docs: Sequence[Any]) -> dict[str, Any]:
    results, plain = {}, {}
    for name, inference, sure in WAYS:
        linker.cfg.update(inference=inference, sure=sure)
        if inference not in plain:
            plain[inference] = run_all_plainly(linker, given(docs))
        results[name] = compare(linker, given(docs), plain[inference])
        print(name, json.dumps(results[name]), flush=True)
    return results


def run_all_plainly(linker: Any, docs: Sequence[Any]) -> tuple[Links, dict[str, int], float]:
    """Ids of each Doc's mentions, windows encoded, seconds."""
    from tqdm import tqdm

    counts: dict[str, int] = {"windows": 0}
    start = time.perf_counter()
    found = [decide_plainly(linker, doc, counts) for doc in tqdm(docs, desc="step by step", mininterval=20)]
    return found, counts, time.perf_counter() - start


def compare(linker: Any, docs: Sequence[Any], plainly: tuple[Links, dict[str, int], float]) -> dict[str, Any]:
    linker.counts.clear()
    start = time.perf_counter()
    fast = [best_of(found) for found in linker.predict(docs)]
    fast_seconds = time.perf_counter() - start
    plain, counts, plain_seconds = plainly
    mentions = sum(map(len, plain))
    equal = sum(a == b for one, other in zip(fast, plain, strict=True) for a, b in zip(one, other, strict=True))
    return {
        "mentions": mentions,
        "equal": equal,
        "documents_equal": sum(one == other for one, other in zip(fast, plain, strict=True)),
        "passes": {"fast": dict(linker.counts), "plain": counts},
        "seconds": [round(fast_seconds, 2), round(plain_seconds, 2)],
        "mentions_per_second": [round(mentions / x, 1) for x in (fast_seconds, plain_seconds)],
        "times_as_fast": round(plain_seconds / fast_seconds, 2),
    }


def best_of(found: Any) -> list[str]:
    return [linked[0][0] if linked else "NIL" for _, linked in found]


def decide_plainly(linker: Any, doc: Any, counts: dict[str, int]) -> list[str]:
    """The ids of a Doc's mentions."""
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.linker.inputs import link_tasks

    mentions = list(dict.fromkeys((x.start, x.end) for x in linker.getter(doc)))
    table, ids = linker.table(), ["NIL"] * len(mentions)
    found = [table.candidates(named) for named in linker.candidates(doc, mentions)]
    tasks = list(link_tasks(linker.input(), read_document(doc, linker.tokenizer), mentions, found, table))
    with linker.predicting():
        for task, mention_E in tasks:
            chosen = run_plainly(linker, task, table.vectors(), counts)
            for e in np.flatnonzero(task.decided_E).tolist():
                if e in chosen:
                    candidates = found[int(mention_E[e])]
                    ids[int(mention_E[e])] = candidates.named[candidates.places_K[chosen[e]]][0]
    return ids


def run_plainly(linker: Any, task: Any, vectors: Any, counts: dict[str, int]) -> dict[int, int]:
    """Of each token with candidates the place of the best one."""
    import torch

    from spacy_luke.batch.linking import make_link_batch

    waiting = [e for e in range(len(task.rows)) if len(task.rows[e])]
    chosen: dict[int, int] = {}
    while waiting:
        counts["windows"] += 1
        batch = make_link_batch([task.item(waiting)], vectors)
        scores = torch.split(linker.model.predict(batch), [len(task.rows[e]) for e in waiting])
        best = [x.softmax(0).max(0) for x in scores]
        fixed = range(len(waiting))
        if linker.cfg["inference"] == "global":
            fixed = [max(fixed, key=lambda i: (float(best[i].values), -i))]
        for i in fixed:
            chosen[waiting[i]] = int(best[i].indices)
            task.entities_E[waiting[i]] = task.rows[waiting[i]][chosen[waiting[i]]]
        waiting = [e for e in waiting if e not in chosen]
    return chosen


if __name__ == "__main__":
    main()
