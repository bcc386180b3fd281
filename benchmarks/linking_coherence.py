"""Could decided entities help, whatever the model? Coherence with the other entities of a text, without an encoder.

    python benchmarks/linking_coherence.py --cache DIR             # results/linking_coherence.json and .md
    python benchmarks/linking_coherence.py --cache DIR --scores FOLDER    # above a trained encoder's scores, too

A logistic model ranks the candidates of each mention of AIDA's testa that has several, the gold one among them: a base,
and beside it how a candidate goes with the entities of the document's other mentions, when these are known. Ten parts
of the documents: each is ranked by what was learned from the other nine. docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from linking import ENCODER, example_of, find, make_kb, read_encoder, read_part
from machine import describe_machine
from measuring import sums_of_draws
from paired import Answers, keep

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
PART, FIRST = "testa", 947  # and the number of its first document in PPRforNED
OTHERS = ("gold", "gold of other names", "decided", "random")  # what the other mentions are known as
COHERENCE = {"same": [0], "titles": [1, 2], "texts": [3, 4], "links": [5, 6]}  # columns of `compare`
FOLDS = 10
ROUNDS, DECAY = 60, 1.0  # of the fit; DECAY: of the sum of all losses
PRIORS = 2  # columns of a base that are priors
Choices = Sequence[Sequence[int]]  # of each mention that is asked, of all texts


@dataclass
class Asked:
    """A mention with several candidates. place: among all mentions of its text; gold: of its candidates."""

    place: int
    candidates: list[str]
    gold: int
    base_KF: np.ndarray

    def answer(self, text: "Text", candidate: int) -> str:
        """The mention's place with a candidate."""
        start, end = text.spans[self.place]
        return f"{start}-{end} {self.candidates[candidate]}"


@dataclass
class Text:
    """names, gold ("" for NIL), best (the candidate with the highest prior): of all mentions. links: of a candidate
    those of the text that it links to."""

    names: list[str] = field(default_factory=list)
    gold: list[str] = field(default_factory=list)
    best: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    links: dict[str, set[str]] = field(default_factory=dict)


class Knowledge:
    """What is known of pairs of entities: vectors of titles, and texts of AIDA's training part that have both."""

    def __init__(self, kb: Any, texts: Sequence[set[str]]):
        self.kb, self.cached = kb, {}
        self.texts: dict[str, set[int]] = {}
        for number, entities in enumerate(texts):
            for entity in entities:
                self.texts.setdefault(entity, set()).add(number)

    def vectors(self, entities: Sequence[str]) -> np.ndarray:
        new = [x for x in dict.fromkeys(entities) if x not in self.cached]
        rows = self.kb.vectors.rows(new) if new else np.empty(0, np.int64)
        found = np.zeros((len(new), self.kb.vectors.size), np.float32)
        if (rows >= 0).any():
            found[rows >= 0] = self.kb.vectors.gather(rows[rows >= 0])
        self.cached.update(zip(new, found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)))
        return np.stack([self.cached[x] for x in entities])

    def compare(self, candidates: Sequence[str], known: Sequence[str], links: dict[str, set[str]]) -> np.ndarray:
        """(K, columns of COHERENCE): is a candidate one of the known entities; its title's cosine to theirs, mean and
        most; log(1 + texts that it shares with them), mean and most; with how many it has a link, share and any."""
        if not known:
            return np.zeros((len(candidates), 7), np.float32)
        cosine_KO = self.vectors(candidates) @ self.vectors(known).T
        linked_by = {x: links.get(x, frozenset()) for x in known}
        rows = []
        for candidate, cosine_O in zip(candidates, cosine_KO, strict=True):
            kept = [i for i, x in enumerate(known) if x != candidate]
            others, same = [known[i] for i in kept], len(kept) < len(known)
            near_O = cosine_O[kept] if kept else np.zeros(1)
            own, targets = self.texts.get(candidate, frozenset()), links.get(candidate, frozenset())
            shared = [np.log1p(len(own & self.texts.get(x, own))) for x in others if own and x in self.texts] or [0.0]
            linked = sum(x in targets or candidate in linked_by[x] for x in others)
            n = max(len(others), 1)
            rows.append([same, near_O.mean(), near_O.max(), sum(shared) / n, max(shared), linked / n, linked > 0])
        return np.array(rows, np.float32)


def main() -> None:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the knowledge base with vectors")
    parser.add_argument("--scores", type=Path, help="folder of what linking_context.py --save wrote")
    parser.add_argument("--limit", type=int, help="documents of each part (smoke runs)")
    options = parser.parse_args()
    path = RESULTS / "linking_coherence.json"
    before = json.loads(path.read_text(encoding="utf8"))["rows"] if path.exists() else []
    rows = list(measure(options))
    made = {x["base"] for x in rows}
    result = {"rows": [x for x in before if x["base"] not in made] + rows, **describe_machine()}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    (RESULTS / "linking_coherence.md").write_text(make_table(result), encoding="utf8")
    print(make_table(result))


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    texts, knowledge = read_texts(options)
    if options.scores:
        files = sorted(options.scores.glob("*.jsonl"))
        bases = {f"encoder, {path.stem}": read_scores(path, texts) for path in files}
    else:
        bases = {
            "names, no prior": [[x.base_KF[:, PRIORS:] for x in text.asked] for text in texts],
            "names and prior": [[x.base_KF for x in text.asked] for text in texts],
        }
    for name, base in bases.items():
        alone = rank(texts, base)
        yield describe(texts, alone, alone, base=name, others="none", by="", limit=options.limit)
        for others in OTHERS:
            compared = compare_all(texts, knowledge, others, alone)
            for by, columns in [*COHERENCE.items(), ("all", list(range(7)))]:
                if by == "all" or others == OTHERS[1]:
                    both = [
                        [np.concatenate([a, b[:, columns]], 1) for a, b in zip(*pair, strict=True)]
                        for pair in zip(base, compared, strict=True)
                    ]
                    ranked = rank(texts, both)
                    yield describe(texts, ranked, alone, base=name, others=others, by=by, limit=options.limit)


def read_texts(options: argparse.Namespace) -> tuple[list[Text], Knowledge]:
    import spacy

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    nlp = spacy.blank("en")
    kb = make_kb(options.data, options.cache / "kb", read_encoder())
    model = {"@architectures": "spacy-luke.EntityLinker.v2", "context": False, "match": True, "nil": False}
    linker: Any = nlp.add_pipe("luke_linker", config={"model": model, "max_candidates": 30})
    examples = [example_of(nlp, doc) for doc in read_part(nlp, options, PART)]
    unused = read_checkpoint(find_source(ENCODER), entity_start="words", entity_aware=False, layers=1)
    linker.initialize(lambda: examples, kb=lambda: kb, weights=lambda: unused)
    texts = [read_text(linker, one) for one in examples]
    lists = options.data / "ed_pprforned/ppr_for_ned.tar.xz"
    for text, links in zip(texts, read_links(lists, len(texts)), strict=True):
        text.links = links
    annotated = ElementTree.parse(find(options.data / "ed_wned", "aida-train.xml")).iter("document")
    train = [{x.text or "" for x in document.iter("wikiName")} - {"", "NIL"} for document in annotated]
    return texts, Knowledge(kb, train)


def read_text(linker: Any, example: Any) -> Text:
    text, table = Text(), linker.table()
    ids = {(x.start, x.end): x.kb_id_ for x in example.reference.ents}
    text.spans = [(x.start, x.end) for x in example.predicted.ents]
    listed = linker.candidates(example.predicted, text.spans)
    for place, (span, found) in enumerate(zip(text.spans, listed, strict=True)):
        gold, candidates = ids[span].replace("NIL", ""), [entity for entity, _ in found.named]
        text.names.append(example.predicted[slice(*span)].text)
        text.gold.append(gold)
        text.best.append(candidates[0] if candidates else "")
        if len(candidates) > 1 and gold in candidates:
            features_KF = table.candidates(found).features_KF
            text.asked.append(Asked(place, candidates, candidates.index(gold), features_KF))
    return text


def read_links(path: Path, documents: int) -> Iterator[dict[str, set[str]]]:
    from urllib.parse import unquote

    found: dict[int, dict[str, set[str]]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            if not member.isfile() or not name.isdecimal() or not FIRST <= int(name) < FIRST + documents:
                continue
            titles, targets = {}, defaultdict(set)
            for line in archive.extractfile(member).read().decode("utf8").splitlines():  # type: ignore[union-attr]
                if line.startswith("CANDIDATE"):
                    cells = dict(x.split(":", 1) for x in line.split("\t")[1:] if ":" in x)
                    title = unquote(cells["url"].partition("/wiki/")[2]).replace("_", " ")
                    titles[cells["id"]] = title
                    targets[title].update(cells["links"].split(";"))
            found[int(name)] = {title: {titles[x] for x in ids if x in titles} for title, ids in targets.items()}
    for number in range(FIRST, FIRST + documents):
        yield found.get(number, {})


def read_scores(path: Path, texts: Sequence[Text]) -> list[list[np.ndarray]]:
    """The logarithms of a trained linker's local scores."""
    rows = []
    for line, text in zip(path.read_text(encoding="utf8").splitlines(), texts):
        of_span = {(start, end): scores for start, end, scores in json.loads(line)}
        given = [(of_span[text.spans[x.place]], x.candidates) for x in text.asked]
        rows.append([np.log([[max(scores.get(c, 0), 1e-6)] for c in some], dtype=np.float32) for scores, some in given])
    return rows


def compare_all(texts: Sequence[Text], knowledge: Knowledge, others: str, alone: Choices) -> list[list[np.ndarray]]:
    random = np.random.default_rng(0)
    every = sorted({x for text in texts for one in text.asked for x in one.candidates})
    rows = []
    for text, chosen in zip(texts, alone, strict=True):
        known = text.best.copy() if others == "decided" else text.gold.copy()
        if others == "decided":
            for one, choice in zip(text.asked, chosen, strict=True):
                known[one.place] = one.candidates[choice]
        if others == "random":
            known = [str(random.choice(every)) if x else "" for x in known]
        row = []
        for one in text.asked:
            kept = [
                x
                for i, x in enumerate(known)
                if x and i != one.place and (others != OTHERS[1] or text.names[i] != text.names[one.place])
            ]
            row.append(knowledge.compare(one.candidates, kept, text.links))
        rows.append(row)
    return rows


def rank(texts: Sequence[Text], features: Sequence[Sequence[np.ndarray]]) -> list[list[int]]:
    """Of each mention the place of the best candidate, by what the other parts of the documents taught."""
    part = np.random.default_rng(0).permutation(len(texts)) % FOLDS
    found: list[list[int]] = [[] for _ in texts]
    for fold in range(FOLDS):
        learned = [
            (x_KF, one.gold)
            for i, text in enumerate(texts)
            for x_KF, one in zip(features[i], text.asked, strict=True)
            if part[i] != fold
        ]
        weights_F, scale_F = learn([x for x, _ in learned], [gold for _, gold in learned])
        for i in np.flatnonzero(part == fold):
            found[i] = [int(np.argmax(x_KF / scale_F @ weights_F)) for x_KF in features[i]]
    return found


def learn(features: Sequence[np.ndarray], golds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the conditional logistic model by Newton's method, and the columns' scale."""
    sizes = np.array([len(x) for x in features])
    rows_CF = np.concatenate(features).astype(np.float64)
    scale_F = np.maximum(rows_CF.std(0), 1e-6)
    x_CF, starts_M = rows_CF / scale_F, np.cumsum(sizes) - sizes
    gold_F = x_CF[starts_M + np.array(golds)].sum(0)
    weights_F = np.zeros(x_CF.shape[1])
    for _ in range(ROUNDS):
        score_C = x_CF @ weights_F
        score_C = np.exp(score_C - np.repeat(np.maximum.reduceat(score_C, starts_M), sizes))
        share_C = score_C / np.repeat(np.add.reduceat(score_C, starts_M), sizes)
        weighted_CF = share_C[:, None] * x_CF
        mean_MF = np.add.reduceat(weighted_CF, starts_M)
        curve_FF = weighted_CF.T @ x_CF - mean_MF.T @ mean_MF + 2 * DECAY * np.eye(len(weights_F))
        step_F = np.linalg.solve(curve_FF, gold_F - mean_MF.sum(0) - 2 * DECAY * weights_F)
        weights_F = weights_F + step_F * min(1.0, 2.0 / np.abs(step_F).max(initial=1e-9))
        if np.abs(step_F).max() < 1e-4:
            break
    return weights_F, scale_F


def describe(
    texts: Sequence[Text], chosen: Choices, alone: Choices, *, limit: int | None, **names: str
) -> dict[str, Any]:
    """A line of results, with the path of what was chosen; None of a smoke run."""
    path = "linking_coherence/" + "-".join(x for x in names.values() if x) + ".jsonl"
    kept = None if limit else keep(path, answers_of(texts, chosen))
    return {**summarise(texts, chosen, alone), **names, "predictions": kept}


def answers_of(texts: Sequence[Text], chosen: Choices) -> list[Answers]:
    """Of each text the mentions that were asked, in words, with the gold entities, and with those that were chosen."""
    return [
        (
            [x.answer(text, x.gold) for x in text.asked],
            [x.answer(text, i) for x, i in zip(text.asked, some, strict=True)],
        )
        for text, some in zip(texts, chosen, strict=True)
    ]


def summarise(texts: Sequence[Text], chosen: Choices, alone: Choices) -> dict[str, Any]:
    """Percent right, and what it is above the base, with 95 % of draws of the documents."""
    right_D, base_D = (
        np.array([sum(a == one.gold for a, one in zip(row, text.asked)) for row, text in zip(some, texts)])
        for some in (chosen, alone)
    )
    size_D = np.array([len(text.asked) for text in texts])
    more_R, size_R = sums_of_draws(np.column_stack([right_D - base_D, size_D])).T
    share_R = 100 * more_R / np.maximum(size_R, 1)
    changes = Counter(
        (a == one.gold, b == one.gold)
        for row, base, text in zip(chosen, alone, texts, strict=True)
        for a, b, one in zip(row, base, text.asked, strict=True)
    )
    return {
        "mentions": int(size_D.sum()),
        "accuracy": round(100 * right_D.sum() / size_D.sum(), 2),
        "above": round(100 * (right_D.sum() - base_D.sum()) / size_D.sum(), 2),
        "interval": [round(float(x), 2) for x in np.quantile(share_R, (0.025, 0.975))],
        "mended": changes[True, False],
        "spoilt": changes[False, True],
    }


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# What could decided entities say?",
        "",
        "Written by `python benchmarks/linking_coherence.py`; see docs/results/linking.md. AIDA's testa,",
        f"{result['rows'][0]['mentions']:,} mentions with several candidates: percent right, points above the base",
        "with 95 % intervals over documents, and how many decisions become right, and wrong.",
        "",
        "| base | others are | compared by | right | above the base | mended | spoilt |",
        "|---|---|---|---|---|---|---|",
    ]
    for x in result["rows"]:
        low, high = x["interval"]
        gain = [f"{x['above']:+.1f} ({low:+.1f} to {high:+.1f})", str(x["mended"]), str(x["spoilt"])]
        cells = [x["base"], x["others"], x["by"], f"{x['accuracy']:.1f}", *(gain if x["by"] else [""] * 3)]
        lines.append("| " + " | ".join(cells) + " |")
    chip = f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}"
    return "\n".join([*lines, "", f"Machine: {chip}.", ""])


if __name__ == "__main__":
    main()
