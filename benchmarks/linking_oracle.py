"""Does a linker look at the entities that are decided already? Each mention is decided with others known, or not.

    python benchmarks/linking_oracle.py --pipeline PIPELINE    # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_oracle.py --table                # results/linking_oracle.md

Every mention of a window is decided by itself, while all others of it are masked ("none"), are given as their gold
entities ("gold"), or as entities that are drawn from all candidates of these documents ("random"). Others that are NIL
are masked. No order of decisions can bring more than "gold" over "none". A run appends a line to
results/linking_oracle.jsonl. README.md says what is compared.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from linking import PARTS, example_of, read_part
from machine import describe_machine
from runs import add_line, describe_machines, read_lines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
CONTEXTS = ("none", "gold", "random")
DRAWS = 1000  # of the bootstrap over documents
AT_ONCE = 16  # windows whose words are encoded together


def main() -> None:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", type=Path, help="folder of a trained pipeline")
    parser.add_argument("--part", choices=PARTS, default="testa")
    parser.add_argument("--limit", type=int, default=60, help="documents")
    parser.add_argument("--seed", type=int, default=0, help="of the random entities")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--table", action="store_true", help="write results/linking_oracle.md")
    options = parser.parse_args()
    if options.pipeline:
        add_line(RESULTS / "linking_oracle.jsonl", run(options))
    if options.table or not options.pipeline:
        text = make_table(read_lines(RESULTS / "linking_oracle.jsonl"))
        (RESULTS / "linking_oracle.md").write_text(text, encoding="utf8")
        print(text)


def run(options: argparse.Namespace) -> dict[str, Any]:
    import spacy
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    if not linker.context or linker.cfg["others"] != "masked":
        raise SystemExit("Expected a linker that reads the context and the other mentions (others = 'masked').")
    docs = read_part(nlp, options, options.part)
    found = ask(linker, [example_of(nlp, doc) for doc in docs], seed=options.seed)
    model = {name: linker.model.attrs[name] for name in ("attention", "prior", "nil")}
    return {
        "pipeline": options.pipeline.name,
        "part": options.part,
        "documents": len(docs),
        "seed": options.seed,
        "model": model,
        **summarise(found),
        **describe_machine(),
    }


def ask(linker: Any, examples: Sequence[Any], *, seed: int) -> list[np.ndarray]:
    """Of each document (M, contexts, 2): of its mentions with several candidates, the gold entity among them, whether
    the best candidate is right in each of CONTEXTS, and the probability of the gold one."""
    from spacy_luke.annotations import NIL
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.linker.gold import gold_links
    from spacy_luke.components.linker.inputs import link_tasks

    table, random = linker.table(), np.random.default_rng(seed)
    windows: list[tuple[int, Any, np.ndarray]] = []  # document, window, gold entity of each of its tokens or -1
    for number, example in enumerate(examples):
        mentions, golds, _ = gold_links(example)
        found = [table.candidates(x) for x in linker.candidates(example.predicted, mentions)]
        gold_M = np.array([-1 if x == NIL else table.number(x) for x in golds], dtype=np.int64)
        document = read_document(example.predicted, linker.tokenizer)
        for task, mention_E in link_tasks(linker.input(), document, mentions, found, table):
            windows.append((number, task, gold_M[mention_E]))
    rows: list[list[np.ndarray]] = [[] for _ in examples]
    vectors = table.vectors()
    with linker.predicting():
        for start in range(0, len(windows), AT_ONCE):
            some = windows[start : start + AT_ONCE]
            drawn = [random.integers(0, len(table), len(gold_E)) for _, _, gold_E in some]
            found = [decide_each(linker, some, vectors, context, drawn) for context in CONTEXTS]
            for number, *asked in zip([number for number, _, _ in some], *found, strict=True):
                rows[number].extend(np.stack(asked, axis=1))
    return [np.array(row).reshape(-1, len(CONTEXTS), 2) for row in rows]


def decide_each(
    linker: Any, windows: Sequence[Any], vectors: Any, context: str, drawn: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Of each window (tokens that are asked about, 2), see `ask`."""
    from spacy_luke.architectures.entity_linker import encode_link_words
    from spacy_luke.batch.linking import MASKED, make_link_batch
    from spacy_luke.components.linker.decisions import candidate_probabilities

    tasks = [task for _, task, _ in windows]
    asked = [list(tokens_to_ask(task, gold_E)) for _, task, gold_E in windows]
    words = encode_link_words(linker.model, make_link_batch([x.item([], tokens=False) for x in tasks], vectors))
    found: list[list[tuple[bool, float]]] = [[] for _ in windows]
    for turn in range(max(map(len, asked))):
        active = [i for i, tokens in enumerate(asked) if turn < len(tokens)]
        for i in active:
            task, gold_E = tasks[i], windows[i][2]
            known_E = {"none": np.full_like(gold_E, MASKED), "gold": gold_E, "random": drawn[i]}[context]
            task.entities_E = np.where(gold_E >= 0, known_E, MASKED)
            task.entities_E[asked[i][turn]] = MASKED
        items = [
            task.item([asked[i][turn]] if i in active else [], tokens=i in active)
            for i, task in enumerate(tasks)
            if words is not None or i in active
        ]
        batch = make_link_batch(items, vectors, words=words)
        for i, probabilities_K in zip(active, candidate_probabilities(linker.model, batch), strict=True):
            place = int(np.flatnonzero(tasks[i].rows[asked[i][turn]] == windows[i][2][asked[i][turn]])[0])
            found[i].append((int(np.argmax(probabilities_K)) == place, float(probabilities_K[place])))
    return [np.array(one, dtype=np.float64).reshape(-1, 2) for one in found]


def tokens_to_ask(task: Any, gold_E: np.ndarray) -> Iterator[int]:
    """Those that the window decides, with several candidates, the gold one among them."""
    for e in np.flatnonzero(task.decided_E).tolist():
        if len(task.rows[e]) > 1 and gold_E[e] in task.rows[e]:
            yield e


def summarise(found: Sequence[np.ndarray]) -> dict[str, Any]:
    """Percent right in each context, what it has more than "none" with a 95 % interval over documents, and how far the
    probability of the gold candidate moves."""
    right_DX = np.stack([x[:, :, 0].sum(0) for x in found])
    size_D = np.array([len(x) for x in found])
    drawn = np.random.default_rng(0).integers(0, len(found), (DRAWS, len(found)))
    share_SX = 100 * right_DX[drawn].sum(1) / np.maximum(size_D[drawn].sum(1), 1)[:, None]
    moved_MX = np.abs(np.concatenate([x[:, :, 1] - x[:, :1, 1] for x in found]))
    accuracy_X = 100 * right_DX.sum(0) / size_D.sum()
    return {"mentions": int(size_D.sum())} | {
        context: {
            "accuracy": round(float(accuracy_X[i]), 2),
            "above_none": round(float(accuracy_X[i] - accuracy_X[0]), 2),
            "interval": [round(float(x), 2) for x in np.quantile(share_SX[:, i] - share_SX[:, 0], (0.025, 0.975))],
            "moved": round(float(moved_MX[:, i].mean()), 4),
            "moved_most": round(float(moved_MX[:, i].max()), 4),
        }
        for i, context in enumerate(CONTEXTS)
    }


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Does the context of decided entities count?",
        "",
        "Written by `python benchmarks/linking_oracle.py --table`; README.md says what is compared. Mentions of AIDA",
        "with several candidates of PPRforNED, each decided by itself. Percent right; points above none, with 95 %",
        "intervals over documents; how far the probability of the right candidate moves, mean and most.",
        "",
        "| pipeline | part | documents | mentions | others are | right | above none | moved | most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    last = {(x["pipeline"], x["part"], x["documents"]): x for x in results}  # of each run
    for x in last.values():
        for context in CONTEXTS:
            one = x[context]
            above = f"{one['above_none']:+.1f} ({one['interval'][0]:+.1f} to {one['interval'][1]:+.1f})"
            cells = [x["pipeline"], x["part"], str(x["documents"]), f"{x['mentions']:,}", context]
            cells += [f"{one['accuracy']:.1f}", "" if context == "none" else above]
            cells += ["", ""] if context == "none" else [f"{one['moved']:.3f}", f"{one['moved_most']:.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
