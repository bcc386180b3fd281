"""Does a linker look at the entities that are decided already? Each mention is decided with others known, or not.

    python benchmarks/linking_oracle.py --pipeline PIPELINE    # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_oracle.py --table                # results/linking_oracle.md

Every mention of a window is decided by itself, while all others of it are masked ("none"), are given as their gold
entities ("gold", and those of other names alone), as entities that are drawn from all candidates of these documents
("random"), or as what they get by themselves ("decided": a second pass that refines). Others that are NIL are masked,
but in "decided". No order of decisions can bring more than "gold" over "none". A run appends a line to
results/linking_oracle.jsonl. docs/results/linking.md says what is compared.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from linking import PARTS, example_of, read_part
from machine import describe_machine
from measuring import sums_of_draws
from paired import keep
from runs import add_line, describe_machines, read_lines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
CONTEXTS = ("none", "gold", "gold of other names", "random", "decided", "decided, no NIL")
AT_ONCE = 16  # windows whose words are encoded together


class Window(NamedTuple):
    """Of its entity tokens: gold_E: numbers of their gold entities, -1 of NIL; names_E: the words of their mentions."""

    document: int
    task: Any
    gold_E: np.ndarray
    names_E: np.ndarray


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
        "predictions": keep_found(f"linking_oracle/{options.pipeline.name}-{options.part}-{len(docs)}.jsonl", found),
        **summarise(found),
        **describe_machine(),
    }


def ask(linker: Any, examples: Sequence[Any], *, seed: int, hide: bool = False) -> list[np.ndarray]:
    """Of each document (M, contexts, 2): of its mentions with several candidates, the gold entity among them, whether
    the best candidate is right in each of CONTEXTS, and the probability of the gold one. hide: the words of all
    mentions are [MASK]."""
    from spacy_luke.annotations import NIL
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.components.linker.gold import gold_links
    from spacy_luke.components.linker.inputs import link_tasks

    table, random = linker.table(), np.random.default_rng(seed)
    windows: list[Window] = []
    for number, example in enumerate(examples):
        mentions, golds, _ = gold_links(example)
        found = [table.candidates(x) for x in linker.candidates(example.predicted, mentions)]
        gold_M = np.array([-1 if x == NIL else table.number(x) for x in golds], dtype=np.int64)
        document = read_document(example.predicted, linker.tokenizer)
        for task, mention_E in link_tasks(linker.input(), document, mentions, found, table):
            names_E = np.array([example.predicted[slice(*mentions[m])].text for m in mention_E.tolist()], dtype=object)
            if hide:
                hide_names(task, linker.tokenizer.mask_id)
            windows.append(Window(number, task, gold_M[mention_E], names_E))
    rows: list[list[np.ndarray]] = [[] for _ in examples]
    vectors = table.vectors()
    with linker.predicting():
        for start in range(0, len(windows), AT_ONCE):
            some = windows[start : start + AT_ONCE]
            drawn = [random.integers(0, len(table), len(x.gold_E)) for x in some]
            decided = decide_alone(linker, some, vectors)
            found = [decide_each(linker, some, vectors, context, drawn, decided) for context in CONTEXTS]
            for window, *asked in zip(some, *found, strict=True):
                rows[window.document].extend(np.stack(asked, axis=1))
    return [np.array(row).reshape(-1, len(CONTEXTS), 2) for row in rows]


def hide_names(task: Any, mask: int) -> None:
    task.pieces = task.pieces.copy()
    for first, last in zip(task.first_E.tolist(), task.last_E.tolist(), strict=True):
        task.pieces[first : last + 1] = mask


def decide_alone(linker: Any, windows: Sequence[Window], vectors: Any) -> list[np.ndarray]:
    """Of each window the entities that its mentions get where none is known, MASKED of those without candidates."""
    from spacy_luke.batch.linking import MASKED, make_link_batch
    from spacy_luke.components.linker.decisions import candidate_probabilities

    asked = [[e for e, rows_K in enumerate(x.task.rows) if len(rows_K)] for x in windows]
    for window in windows:
        window.task.entities_E = np.full(len(window.gold_E), MASKED)
    batch = make_link_batch([x.task.item(tokens) for x, tokens in zip(windows, asked, strict=True)], vectors)
    found = iter(candidate_probabilities(linker.model, batch))
    decided = [np.full(len(x.gold_E), MASKED) for x in windows]
    for window, tokens, decided_E in zip(windows, asked, decided, strict=True):
        for e in tokens:
            decided_E[e] = window.task.rows[e][int(np.argmax(next(found)[: len(window.task.rows[e])]))]
    return decided


def decide_each(
    linker: Any,
    windows: Sequence[Window],
    vectors: Any,
    context: str,
    drawn: Sequence[np.ndarray],
    decided: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Of each window (tokens that are asked about, 2), see `ask`."""
    from spacy_luke.architectures.entity_linker import encode_link_words
    from spacy_luke.batch.linking import make_link_batch
    from spacy_luke.components.linker.decisions import candidate_probabilities

    tasks = [x.task for x in windows]
    asked = [list(tokens_to_ask(x.task, x.gold_E)) for x in windows]
    words = encode_link_words(linker.model, make_link_batch([x.item([], tokens=False) for x in tasks], vectors))
    found: list[list[tuple[bool, float]]] = [[] for _ in windows]
    for turn in range(max(map(len, asked))):
        active = [i for i, tokens in enumerate(asked) if turn < len(tokens)]
        for i in active:
            tasks[i].entities_E = known_entities(windows[i], asked[i][turn], context, drawn[i], decided[i])
        items = [
            task.item([asked[i][turn]] if i in active else [], tokens=i in active)
            for i, task in enumerate(tasks)
            if words is not None or i in active
        ]
        batch = make_link_batch(items, vectors, words=words)
        for i, probabilities_K in zip(active, candidate_probabilities(linker.model, batch), strict=True):
            place = int(np.flatnonzero(tasks[i].rows[asked[i][turn]] == windows[i].gold_E[asked[i][turn]])[0])
            found[i].append((int(np.argmax(probabilities_K)) == place, float(probabilities_K[place])))
    return [np.array(one, dtype=np.float64).reshape(-1, 2) for one in found]


def known_entities(window: Window, token: int, context: str, drawn_E: np.ndarray, decided_E: np.ndarray) -> np.ndarray:
    """What a window has of its mentions when a token is decided."""
    from spacy_luke.batch.linking import MASKED

    gold_E = window.gold_E
    if context == "decided":
        known_E = decided_E.copy()
    else:
        known_E = {"none": np.full_like(gold_E, MASKED), "random": drawn_E}.get(context, gold_E)
        known_E = np.where(gold_E >= 0, decided_E if context == "decided, no NIL" else known_E, MASKED)
    if context == "gold of other names":
        known_E[window.names_E == window.names_E[token]] = MASKED
    known_E[token] = MASKED
    return known_E


def tokens_to_ask(task: Any, gold_E: np.ndarray) -> Iterator[int]:
    """Those that the window decides, with several candidates, the gold one among them."""
    for e in np.flatnonzero(task.decided_E).tolist():
        if len(task.rows[e]) > 1 and gold_E[e] in task.rows[e]:
            yield e


def keep_found(path: str, found: Sequence[np.ndarray]) -> str:
    """found: see `ask`. RETURNS: the file, in which a document's answers are its mentions' numbers in each context;
    found are those that are right."""
    return keep(
        path,
        [
            (
                [f"{m} {context}" for context in CONTEXTS for m in range(len(x))],
                [f"{m} {context}" for i, context in enumerate(CONTEXTS) for m in np.flatnonzero(x[:, i, 0]).tolist()],
            )
            for x in found
        ],
    )


def summarise(found: Sequence[np.ndarray]) -> dict[str, Any]:
    """Percent right in each context, what it has more than "none" with a 95 % interval over documents, and how far the
    probability of the gold candidate moves."""
    right_DX = np.stack([x[:, :, 0].sum(0) for x in found])
    size_D = np.array([len(x) for x in found])
    sums_RX = sums_of_draws(np.column_stack([right_DX, size_D]))
    share_RX = 100 * sums_RX[:, :-1] / np.maximum(sums_RX[:, -1:], 1)
    moved_MX = np.abs(np.concatenate([x[:, :, 1] - x[:, :1, 1] for x in found]))
    accuracy_X = 100 * right_DX.sum(0) / size_D.sum()
    return {"mentions": int(size_D.sum())} | {
        context: {
            "accuracy": round(float(accuracy_X[i]), 2),
            "above_none": round(float(accuracy_X[i] - accuracy_X[0]), 2),
            "interval": [round(float(x), 2) for x in np.quantile(share_RX[:, i] - share_RX[:, 0], (0.025, 0.975))],
            "moved": round(float(moved_MX[:, i].mean()), 4),
            "moved_most": round(float(moved_MX[:, i].max()), 4),
        }
        for i, context in enumerate(CONTEXTS)
    }


def make_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "# Does the context of decided entities count?",
        "",
        "Written by `python benchmarks/linking_oracle.py --table`; see docs/results/linking.md. Mentions of AIDA",
        "with several candidates of PPRforNED, each decided by itself. Percent right; points above none, with 95 %",
        "intervals over documents; how far the probability of the right candidate moves, mean and most.",
        "",
        "| pipeline | part | documents | mentions | others are | right | above none | moved | most |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    last = {(x["pipeline"], x["part"], x["documents"]): x for x in results}  # of each run
    for x in last.values():
        for context in (name for name in CONTEXTS if name in x):
            one = x[context]
            above = f"{one['above_none']:+.1f} ({one['interval'][0]:+.1f} to {one['interval'][1]:+.1f})"
            cells = [x["pipeline"], x["part"], str(x["documents"]), f"{x['mentions']:,}", context]
            cells += [f"{one['accuracy']:.1f}", "" if context == "none" else above]
            cells += ["", ""] if context == "none" else [f"{one['moved']:.3f}", f"{one['moved_most']:.3f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
