"""Are the decisions of `luke_linker` those of the plain step-by-step procedure, and how much faster are they?

    python benchmarks/linking_speed.py PIPELINE                   # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_speed.py PIPELINE --documents 50

The plain procedure is that of the original evaluate.py: one window at a time, a whole pass for each of its mentions with
candidates, the most confident one fixed after each. Writes results/linking_speed.json. README.md says what is compared.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from linking import example_of, read_part
from machine import describe_machine

os.environ.update(TOKENIZERS_PARALLELISM="false")
RESULTS = Path(__file__).parent / "results"
WAYS = (("local", "local", None), ("global", "global", None), ("global, sure = 0.95", "global", 0.95))


def main() -> None:
    import spacy
    import torch

    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--documents", dest="limit", type=int, help="so many of AIDA testb; default: all 231")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    docs = [example_of(nlp, doc).predicted for doc in read_part(nlp, options, "testb")]
    linker.predict(docs[:2])  # what is loaded lazily
    results, plain = {}, {}
    for name, inference, sure in WAYS:
        linker.cfg.update(inference=inference, sure=sure)
        if inference not in plain:
            plain[inference] = run_all_plainly(linker, docs)
        results[name] = compare(linker, docs, plain[inference])
        print(name, json.dumps(results[name]), flush=True)
    notes = {"pipeline": Path(options.pipeline).name, "attention": linker.attention, "documents": len(docs)}
    text = json.dumps({**notes, **results, **describe_machine()}, indent=1) + "\n"
    (RESULTS / "linking_speed.json").write_text(text, encoding="utf8")


def run_all_plainly(linker: Any, docs: Sequence[Any]) -> Tuple[List[List[str]], Dict[str, int], float]:
    """Ids of each Doc's mentions, windows encoded, seconds."""
    counts: Dict[str, int] = {"windows": 0}
    start = time.perf_counter()
    found = [decide_plainly(linker, doc, counts) for doc in docs]
    return found, counts, time.perf_counter() - start


def compare(linker: Any, docs: Sequence[Any], plainly: Tuple[List[List[str]], Dict[str, int], float]) -> Dict[str, Any]:
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


def best_of(found: Any) -> List[str]:
    return [linked[0][0] if linked else "NIL" for _, linked in found]


def decide_plainly(linker: Any, doc: Any, counts: Dict[str, int]) -> List[str]:
    """The ids of a Doc's mentions."""
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.link_inputs import link_tasks

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


def run_plainly(linker: Any, task: Any, vectors: Any, counts: Dict[str, int]) -> Dict[int, int]:
    """Of each token with candidates the place of the best one."""
    import torch

    from spacy_luke.batch.linking import make_link_batch

    waiting = [e for e in range(len(task.rows)) if len(task.rows[e])]
    chosen: Dict[int, int] = {}
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
