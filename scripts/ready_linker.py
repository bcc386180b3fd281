"""The last step of the workflow `ready`: a linker of names, priors and types on top of a pipeline that finds entities.

    python scripts/ready_linker.py PIPELINE KB DATA OUTPUT --precision 0.87 [--metrics FILE]

It learns from the entities that the pipeline finds in KnowledgeNet, in the Wikinews, Wikivoyage and other texts of GUM
whose licence is CC BY, in WNED-WIKI, whose names often do not mean what they mean most often, and in ELEVANT's
wiki-fair and news-fair, of which every other document teaches. The others, with Tweeki and AIDA's testa, choose the
threshold by precision. Scores are those of sets that it never saw: MSNBC, AIDA's testb and RSS-500. `link_data.py`
reads them. Where no threshold gives the precision, or where --without names luke_linker, the pipeline stays as it is,
and meta.json says why.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from link_data import SETS, LinkedText, read_set
from ready_tune import read_unwanted
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc, Span
from spacy.training import Example
from tqdm import tqdm

from spacy_luke.annotations import LINKS, NIL
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.linker.component import LukeLinker
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.pipelines.card import leave_out
from spacy_luke.pipelines.link_tuning import tune_links
from spacy_luke.pipelines.saving import save
from spacy_luke.scorers.items import link_items
from spacy_luke.scorers.linking import score_links
from spacy_luke.scorers.reliability import judged, measure_reliability

IGNORED = ["TIME", "NUM", "DATE"]  # labels of what is no entity
DRAWS = 1000  # of the bootstrap
BESIDE = 40  # words around the annotated part of a document that are read


def main() -> None:
    options = read_options()
    if "luke_linker" in read_unwanted(options.without):
        save_without(spacy.load(options.pipeline), options, "left out by the settings of the workflow.")
        return
    random.seed(options.seed)
    np.random.seed(options.seed)
    nlp, kb = spacy.load(options.pipeline), EntityKB.open(options.kb)
    if "luke_linker" in nlp.pipe_names:  # of a pipeline that has one already, another one takes the place
        nlp.remove_pipe("luke_linker")
    examples = read_examples(nlp, kb, options.data, there(options.data), limit=options.limit)
    linker = add_linker(nlp, labels_ignore=IGNORED)
    train, dev = divide(examples)
    for example in train:
        keep_found(example)
    weights = [options.repeat if x.reference.user_data["full"] else 1 for x in train]
    linker.initialize(lambda: train, nlp=nlp, kb=lambda: EntityKB.open(options.kb))
    learn(linker, train, weights, options)
    least = 0 if options.limit else 50
    try:
        found = tune_links(linker, dev, nlp=nlp, least=least, precision=options.precision, calibrate=True)
    except ValueError as error:
        save_without(nlp, options, f"on development data it did not reach the precision that is wanted. {error}")
        return
    print("tuned on", len(dev), "texts:", found, flush=True)
    links, reliability = evaluate_unseen(linker, examples, dev=dev)
    metrics = {"tuned": found, "dev": links.pop("dev"), "links": links, "reliability": reliability}
    write_metrics(options.metrics, metrics)
    save_without_words(nlp, options.output)


def read_examples(
    nlp: Language, kb: EntityKB, data: Path, names: Sequence[str], *, limit: int | None = None
) -> dict[str, list[Example]]:
    """Of these sets, with the mentions that the pipeline finds. limit: texts of each."""
    finders = [name for name in nlp.pipe_names if name not in ("luke_typer", "luke_relation", "luke_linker")]
    examples: dict[str, list[Example]] = {}
    for name in names:
        texts = list(islice(read_set(name, data, kb), limit))
        with nlp.select_pipes(enable=finders):
            examples[name] = list(find_mentions(nlp, texts, partial=SETS[name].partial))
        mentions = sum(len(x.reference.spans[LINKS]) for x in examples[name])
        print(name, len(texts), "texts,", mentions, "mentions", flush=True)
    return examples


def is_unseen(name: str) -> bool:
    return not (SETS[name].learned or SETS[name].tuned)


def evaluate_unseen(
    linker: LukeLinker, examples: Mapping[str, Sequence[Example]], **others: Sequence[Example]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Of `others`, of the sets that are for scores alone, and of these together; see `evaluate`."""
    unseen = {name: part for name, part in examples.items() if is_unseen(name)}
    together = [x for part in unseen.values() for x in part]
    links, reliability = evaluate(linker, {**others, **unseen, "together": together})
    for name, one in links.items():
        print(name, one, flush=True)
    print("calibration error", reliability["ece"], flush=True)
    return links, reliability


def there(data: Path) -> list[str]:
    """The sets that are in the folder. One that is not learned may be missing, as AIDA's may not be passed on."""
    for name, one in SETS.items():
        if not (data / one.path).exists():
            if one.learned:
                raise SystemExit(f"Expected {data / one.path}: `python -m spacy project assets` fetches it.")
            print(f"{name} is left out: there is no {data / one.path}", flush=True)
    return [name for name, one in SETS.items() if (data / one.path).exists()]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="that finds entities, with a luke_encoder: a folder or an installed package")
    parser.add_argument("kb", type=Path, help="folder of a knowledge base")
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="folder of the new pipeline")
    parser.add_argument("--metrics", type=Path, help="file of the scores, JSON")
    parser.add_argument("--precision", type=float, required=True, help="of the links that are shown, on dev documents")
    parser.add_argument("--without", default="", help="luke_linker: leave it out")
    parser.add_argument("--repeat", type=int, default=4, help="how much more often fully annotated documents are seen")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="texts of each set (smoke runs)")
    return parser.parse_args()


def add_linker(nlp: Language, **settings: Any) -> LukeLinker:
    model = {"context": False, "match": True, "encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}
    linker = nlp.add_pipe("luke_linker", config={"model": model, "inference": "local", "drop_gold": 0.0, **settings})
    assert isinstance(linker, LukeLinker)
    return linker


def find_mentions(nlp: Language, texts: Sequence[LinkedText], *, partial: bool) -> Iterator[Example]:
    """Examples whose mentions are those that the pipeline finds, with gold ids: those of `texts`, NIL of others where
    all names are annotated. Of documents the part that is annotated is read, and a few words around it."""
    cut = [part for text in texts if (part := cut_text(nlp, text)) is not None]
    docs = nlp.pipe((text.doc for text in cut), batch_size=32)
    for doc, text in zip(docs, cut, strict=True):
        gold = Doc(nlp.vocab, words=[x.text for x in doc], spaces=[bool(x.whitespace_) for x in doc])
        first, last = min(a for a, _ in text.links), max(b for _, b in text.links)
        ids = {(x.start, x.end): NIL for x in doc.ents if not partial and first <= x.start and x.end <= last}
        ids |= text.links
        gold.spans[LINKS] = [Span(gold, a, b, kb_id=kb_id) for (a, b), kb_id in sorted(ids.items()) if kb_id]
        gold.user_data["full"] = not partial
        doc.set_ents([x for x in doc.ents if ids.get((x.start, x.end))])
        yield Example(doc, gold)


def divide(examples: dict[str, list[Example]]) -> tuple[list[Example], list[Example]]:
    """What is learned, and what chooses the threshold."""
    train: list[Example] = []
    dev: list[Example] = []
    for name, part in examples.items():
        both = SETS[name].learned and SETS[name].tuned
        train += part[:: 2 if both else 1] if SETS[name].learned else []
        dev += part[1 if both else 0 :: 2 if both else 1] if SETS[name].tuned else []
    return train, dev


def keep_found(example: Example) -> None:
    """Gold mentions that the pipeline did not find teach nothing."""
    found, gold = {(x.start, x.end) for x in example.predicted.ents}, example.reference
    gold.spans[LINKS] = [x for x in gold.spans[LINKS] if (x.start, x.end) in found]


def cut_text(nlp: Language, text: LinkedText) -> LinkedText | None:
    """None where nothing is annotated."""
    if not text.links:
        return None
    start = max(0, min(a for a, _ in text.links) - BESIDE)
    words = text.doc[start : max(b for _, b in text.links) + BESIDE]
    doc = Doc(nlp.vocab, words=[x.text for x in words], spaces=[bool(x.whitespace_) for x in words])
    return LinkedText(doc, {(a - start, b - start): kb_id for (a, b), kb_id in text.links.items()})


def learn(linker: LukeLinker, train: Sequence[Example], weights: Sequence[int], options: argparse.Namespace) -> None:
    """Few numbers are learned, so that all is over in some minutes, with a rate that falls to nothing."""
    seen = [x for x, n in zip(train, weights, strict=True) for _ in range(n)]
    size, start = 64, time.perf_counter()
    steps = options.epochs * -(-len(seen) // size)
    optimizer = make_adamw(learn_rate=[options.rate * (1 - i / steps) for i in range(steps + 1)], weight_decay=0.0)
    for _ in tqdm(range(options.epochs), desc="epochs", disable=None):
        random.shuffle(seen)
        for i in range(0, len(seen), size):
            linker.update(seen[i : i + size], sgd=optimizer)
            optimizer.step_schedules()
    print("learned in", round(time.perf_counter() - start), "s", flush=True)


def evaluate(
    linker: LukeLinker, sets: Mapping[str, Sequence[Example]]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Percent, of each set. precision: of the links that are shown; recall: of all gold mentions whose entity is known;
    with 95 % intervals over texts. labels: of the mentions that are linked, how many are right and how many are shown.
    And how often what is shown is right, by its score, in the last set."""
    found, reliability = {}, {}
    for name, examples in sets.items():
        copies = [Example(x.predicted.copy(), x.reference) for x in examples]
        docs = [x.predicted for x in copies]
        linker.set_annotations(docs, linker.predict(docs))
        found[name] = score_shown(copies)
        reliability = measure_reliability(judged(link_items(copies))).to_dict()
    return found, reliability


def score_shown(examples: Sequence[Example]) -> dict[str, Any]:
    """Of one set, see `evaluate`."""
    labels: dict[str, list[int]] = {}
    counts = np.zeros((len(examples), 3), dtype=np.int64)  # right, shown, gold
    for count, example in zip(counts, examples, strict=True):
        count[2], shown = judge_shown(example)
        for span, right in shown:
            count[:2] += right, 1
            label = labels.setdefault(span.label_, [0, 0])
            label[0], label[1] = label[0] + right, label[1] + 1
    scores = score_links(examples)
    drawn = np.random.default_rng(0).integers(0, len(counts), (DRAWS, len(counts)))
    right_D, shown_D, gold_D = np.maximum(counts[drawn].sum(1), 1).T
    return {
        "precision": _percent(scores["links_strict_p"]),
        "precision_95": [_percent(x) for x in np.quantile(right_D / shown_D, (0.025, 0.975))],
        "recall": _percent(scores["links_strict_r"]),
        "recall_95": [_percent(x) for x in np.quantile(right_D / gold_D, (0.025, 0.975))],
        "f": _percent(scores["links_strict_f"]),
        "shown": int(counts[:, 1].sum()),
        "gold": int(counts[:, 2].sum()),
        "labels": dict(sorted(labels.items())),
    }


def judge_shown(example: Example) -> tuple[int, list[tuple[Span, bool]]]:
    """How many gold mentions have an entity of the knowledge base; and the linked mentions, and whether rightly."""
    gold = {(x.start, x.end): x.kb_id_ for x in example.reference.spans[LINKS] if x.kb_id_ != NIL}
    linked = [x for x in example.predicted.ents if x.kb_id_ not in ("", NIL)]
    return len(gold), [(x, gold.get((x.start, x.end)) == x.kb_id_) for x in linked]


def _percent(share: float | None) -> float:
    return round(100 * float(share or 0.0), 1)


def save_without(nlp: Language, options: argparse.Namespace, why: str) -> None:
    print(f"luke_linker is left out: {why}", flush=True)
    leave_out(nlp, "luke_linker", why)
    write_metrics(options.metrics, {"links": {}})
    save_without_words(nlp, options.output)


def save_without_words(nlp: Language, folder: Path) -> None:
    """Save a pipeline with the strings of a blank one and its labels; not with every word that it was trained on."""
    save(nlp, folder)
    strings = StringStore(
        [*spacy.blank(nlp.meta["lang"]).vocab.strings, *(x for labels in nlp.pipe_labels.values() for x in labels)]
    )
    strings.to_disk(folder / "vocab" / "strings.json")


def write_metrics(path: Path | None, metrics: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
