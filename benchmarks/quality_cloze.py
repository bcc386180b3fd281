"""ReCoRD in small: `luke_cloze` and its baselines. A task of common_start.py; see docs/results/pretraining.md.

Of ReCoRD there are 32 passages here, too few to learn from. Its task is made of Re-DocRED, which says which mentions
are of one entity: a sentence that names an entity of other sentences is taken out of its document and asks for it.
Tested are documents that were kept apart, and the 32 passages of ReCoRD, of which nothing is learned.
"""

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from paired import Answers, answers_of, keep
from quality_qa import asked
from quality_tasks import SYSTEMS as INPUTS
from runs import batches, make_result, predict, schedule, start

NAMES = "names"  # the baseline that learns nothing: the candidate whose name stands most often in the passage
SYSTEMS = ("markers", "luke", "one_way", NAMES)
DOCUMENTS, TRAIN = "redocred/dev_revised.json", 350  # documents to learn from, the first ones
RECORD = "record_fewglue/train.jsonl"
MOST = 2  # queries of a document
KINDS = ("PER", "ORG", "LOC", "MISC")  # what fills a gap: names, as in ReCoRD
SETTINGS: dict[str, Any] = {"rate": 2e-4, "batch": 8, "epochs": 3}


def run(options: argparse.Namespace, *, encoder: Path, folder: str) -> dict[str, Any]:
    """Train once and score once. options: of make_parser, and the system; folder: of the predictions."""
    import spacy

    options = argparse.Namespace(**vars(options), dev=False)
    start(options)
    nlp = spacy.blank("en")
    documents = json.loads((options.data / DOCUMENTS).read_text(encoding="utf8"))
    train, test = (
        [doc for document in part[: options.limit] for doc in make_docs(nlp, document)]
        for part in (documents[:TRAIN], documents[TRAIN:])
    )
    began = time.perf_counter()
    cloze = None if options.system == NAMES else learn(nlp, train, options, encoder)
    trained = time.perf_counter()
    scores: dict[str, Any] = {}
    kept: dict[str, str | None] = {}
    record = read_record_docs(nlp, options.data / RECORD)
    for name, docs in (("redocred", test), ("record", record)):
        found, answers = score(nlp, cloze, docs)
        scores |= {f"{name}_{key.removeprefix('cloze_')}": value for key, value in found.items()}
        path = f"{folder}/cloze-{name}-{options.system}-{options.seed}.jsonl"
        kept[name] = None if options.limit else keep(path, answers)
    return make_result(
        options,
        scores,
        task="cloze",
        score="redocred_em",
        settings=SETTINGS,
        records=[len(train), len(test)],
        seconds=[round(trained - began, 1), round(time.perf_counter() - trained, 1)],
        predictions=kept["redocred"],
        record_passages=len(record),
        record_predictions=kept["record"],
    )


# ---- the data


def make_docs(nlp: Any, document: dict[str, Any]) -> Iterator[Any]:
    """The last sentences that name an entity of others, each asking for it: a Doc of the others."""
    numbers = reversed(range(len(document["sents"])))
    asking = ((number, found) for number in numbers if (found := list(entities_to_ask(document, number))))
    for number, found in islice(asking, MOST):
        yield make_doc(nlp, document, number, *found[number % len(found)])


def entities_to_ask(document: dict[str, Any], number: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Those that a sentence names once and another one names too: their numbers, and their mentions in the sentence."""
    for entity, mentions in enumerate(document["vertexSet"]):
        here = [x for x in mentions if x["sent_id"] == number]
        if mentions[0]["type"] in KINDS and len(here) == 1 < len(mentions):
            yield entity, here[0]


def make_doc(nlp: Any, document: dict[str, Any], number: int, entity: int, mention: dict[str, Any]) -> Any:
    """All sentences but one, which asks for an entity where it has `mention`."""
    from spacy_luke.annotations import set_queries

    words, places = [], {}
    for i, sentence in enumerate(document["sents"]):
        for j, word in enumerate(sentence):
            if i != number:
                places[i, j] = sum(map(len, words)) + len(words)
                words.append(word)
    candidates, answers = [], []
    for e, mentions in enumerate(document["vertexSet"]):
        for x in mentions:
            i, (first, end) = x["sent_id"], x["pos"]
            if i != number and x["type"] in KINDS:
                place = [places[i, first], places[i, end - 1] + len(document["sents"][i][end - 1])]
                candidates.append(place)
                answers += [place] if e == entity else []
    first, end = mention["pos"]
    query = " ".join([*document["sents"][number][:first], "@placeholder", *document["sents"][number][end:]])
    doc = nlp.make_doc(" ".join(words))
    set_queries(doc, [{"query": query, "candidates": candidates, "answers": answers}])
    return doc


def read_record_docs(nlp: Any, path: Path) -> list[Any]:
    from spacy_luke.readers.datasets.table import dataset_docs

    return list(dataset_docs(nlp, path, format="record", overlaps="outermost"))


# ---- systems and scores


def learn(nlp: Any, train: Sequence[Any], options: argparse.Namespace, encoder: Path) -> Any:
    """The component, trained."""
    from spacy_luke.bridge.optimizer import make_adamw
    from spacy_luke.checkpoint.checkpoint import read_checkpoint

    system = INPUTS[options.system]
    model = {
        "@architectures": "spacy-luke.EntityClassifier.v1",
        "attention": system.attention,
        "features": system.features,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "auto"},
    }
    cloze = nlp.add_pipe("luke_cloze", config={"model": model})
    examples = [asked(nlp, doc) for doc in train]
    cloze.initialize(
        lambda: examples,
        nlp=nlp,
        weights=lambda: read_checkpoint(encoder, entities="special", entity_aware=system.entity_aware),
        seed=options.seed,
    )
    size, epochs = SETTINGS["batch"], SETTINGS["epochs"]
    steps = epochs * -(-len(train) // size)
    optimizer = make_adamw(schedule(SETTINGS["rate"], steps), grad_clip=1.0, group_rates={"^head": 5.0})
    for batch in batches(train, epochs=epochs, size=size, seed=options.seed):
        cloze.update([asked(nlp, doc) for doc in batch], drop=0.1, sgd=optimizer)
        optimizer.step_schedules()
    return cloze


def score(nlp: Any, cloze: Any, docs: Sequence[Any]) -> tuple[dict[str, Any], list[Answers]]:
    """ReCoRD's scores, and the answers that are gold and found, of which the digest of a query stands for its text,
    which may not be passed on; of NAMES, without a component."""
    from spacy_luke.annotations import QUERIES
    from spacy_luke.scorers.items import answer_items
    from spacy_luke.scorers.questions import score_fillers

    examples = [asked(nlp, doc) for doc in docs]
    if cloze is None:
        for example in examples:
            choose_most_frequent(example.predicted)
    else:
        predict(cloze, examples)
    items = [item._replace(label=digest(item.label)) for item in answer_items(examples, asked=QUERIES)]
    return score_fillers(examples), answers_of(items, len(examples))


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def choose_most_frequent(doc: Any) -> None:
    """Of equally frequent names the first one in the text."""
    from spacy_luke.annotations import QUERIES, get_queries, set_found

    found = []
    for query in get_queries(doc):
        names = Counter(doc.text[a:b] for a, b in query["candidates"])
        places = sorted(query["candidates"], key=lambda x: (-names[doc.text[x[0] : x[1]]], x))
        found.append([(a, b, float(names[doc.text[a:b]])) for a, b in places])
    set_found(doc, QUERIES, found)
