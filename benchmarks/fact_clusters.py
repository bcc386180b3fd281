"""Names that no knowledge base has: `spacy luke graph` on gold mentions without their links, scored by gold titles.

    python benchmarks/fact_clusters.py PIPELINE          # results/fact_clusters.json and .md
    python benchmarks/fact_clusters.py PIPELINE --part dev      # fact_clusters_dev.*, to choose the similarity by

PIPELINE: one with a knowledge base; mentions of what that has are taken for linked, and not scored in the second table.
Gold titles say which mentions are of one thing, those without a title are clustered, but not scored. Of each mention
of the test part its title and its cluster are kept in results/predictions/fact_clusters.
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import numpy as np
import spacy
from machine import describe_machine
from measuring import data_parser, sums_of_draws, write_report
from numpy.typing import NDArray
from paired import Answers, Gap, keep

from spacy_luke.annotations import NIL
from spacy_luke.facts.build import build_facts
from spacy_luke.facts.settings import SHORTENED, FactSettings
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.pages.schema import FORMAT
from spacy_luke.readers.datasets.table import read_dataset
from spacy_luke.readers.records import ENTITY_LABEL, Record, make_doc

Place = tuple[str, int]  # document, first character
SETS: dict[str, tuple[str, Mapping[str, str]]] = {
    name: ("aida", {"path": f"conll2003/eng.{part}", "links": f"ed_wned/aida-{part}/aida-{part}.xml"})
    for name, part in (("AIDA train", "train"), ("AIDA testa", "testa"), ("AIDA testb", "testb"))
}
SETS |= {
    name: ("wned", {"path": f"ed_wned/{folder}/{folder}.xml"})
    for name, folder in (("MSNBC", "msnbc"), ("Clueweb", "clueweb"), ("Wikipedia", "wikipedia"))
}
# Of Wikipedia, documents of even numbers choose, the others test.
PARTS = {"dev": ["AIDA train", "AIDA testa", "Wikipedia"], "test": ["AIDA testb", "MSNBC", "Clueweb", "Wikipedia"]}
NAMES_ALONE = FactSettings(similarity=0.0, shortened=(), values=())
BEST = (*SHORTENED, ENTITY_LABEL)  # WNED's own sets give mentions no label
SYSTEMS = {
    "name": NAMES_ALONE,
    "name, short ones in a document": FactSettings(similarity=0.0, shortened=BEST, values=()),
    "name and context": FactSettings(shortened=BEST, values=()),
}
TRIED = {  # beside the default, on the dev part
    f"name and context, {x}": FactSettings(similarity=x, shortened=BEST, values=()) for x in (0.02, 0.1, 0.2)
}
SCORED = {"all": "All mentions", "unknown": "Those of what the knowledge base of {} has not"}


class Clustered(NamedTuple):
    """gold: the title of a mention; found: the node of its cluster."""

    document: str
    gold: str
    found: str


class GoldSet(NamedTuple):
    """lines: annotated documents without links. gold: titles of the mentions that have one."""

    lines: list[str]
    gold: dict[Place, str]


def main() -> None:
    options = read_options()
    nlp = spacy.load(options.pipeline)
    kb = next(x.kb for _, x in nlp.pipeline if getattr(x, "kb", None) is not None)
    systems = {**SYSTEMS, **(TRIED if options.part == "dev" else {})}
    results = []
    for name in PARTS[options.part]:
        one = read_set(name, options.data, options.part)
        known = {title for title in set(one.gold.values()) if is_known(title, kb)}
        before: dict[str, dict[str, NDArray[np.float64]]] = {scored: {} for scored in SCORED}
        for system, settings in systems.items():
            nodes = find_nodes(one, settings)
            path = f"fact_clusters/{name}-{system}.jsonl"
            kept = keep(path, answers_of_nodes(one, nodes)) if options.part == "test" else None
            for scored in SCORED:
                mentions = [Clustered(x[0], title, nodes[x]) for x, title in one.gold.items()]
                mentions = [x for x in mentions if scored == "all" or x.gold not in known]
                cubed = by_document(mentions)
                line = {"set": name, "system": system, "scored": scored, "mentions": len(mentions)}
                line |= score(mentions, cubed)
                line["above"] = {other: compare(x, cubed)[:3] for other, x in before[scored].items()}
                before[scored][system] = cubed
                results.append(line | {"predictions": kept})
                print(json.dumps(results[-1]), flush=True)
    pipeline = f"{nlp.lang}_{nlp.meta['name']} {nlp.meta['version']}"
    result = {"pipeline": pipeline, "results": results, **describe_machine()}
    write_report("fact_clusters" if options.part == "test" else "fact_clusters_dev", result, report(results, pipeline))


def read_options() -> argparse.Namespace:
    parser = data_parser(__doc__)
    parser.add_argument("pipeline", help="folder or name of a pipeline with luke_linker")
    parser.add_argument("--part", choices=list(PARTS), default="test")
    return parser.parse_args()


def read_set(name: str, data: Path, part: str) -> GoldSet:
    format, paths = SETS[name]
    files = {key: data / path for key, path in paths.items()}
    records = list(read_dataset(files.pop("path"), format=format, **files))
    if name == "Wikipedia":
        records = records[part == "test" :: 2]
    lines, gold = [], {}
    nlp = spacy.blank("en")
    for number, record in enumerate(records):
        document, line = as_line(record, number, nlp)
        lines.append(json.dumps(line))
        gold |= {(document, start): title for start, title in titles(record, nlp)}
    return GoldSet(lines, gold)


def as_line(record: Record, number: int, nlp: Any) -> tuple[str, dict[str, Any]]:
    """An annotated document of the gold mentions, the outermost where they overlap."""
    doc = make_doc(nlp, record, overlaps="outermost", align="expand")
    entities = [
        {"start": x.start_char, "end": x.end_char, "text": x.text, "label": x.label_, "score": None, "types": []}
        | {"id": i, "link": None}
        for i, x in enumerate(doc.ents)
    ]
    name = f"{number:05d}"
    line = {"format": FORMAT, "id": name, "pipeline": "gold", "language": "en", "text": doc.text, "words": len(doc)}
    return name, {**line, "sentences": None, "entities": entities, "relations": [], "answers": []}


def titles(record: Record, nlp: Any) -> Iterator[tuple[int, str]]:
    doc = make_doc(nlp, record, overlaps="outermost", align="expand")
    return ((x.start_char, x.kb_id_) for x in doc.ents if x.kb_id_ not in ("", NIL))


def is_known(title: str, kb: EntityKB) -> bool:
    """Whether a knowledge base has an entity of a title of Wikipedia."""
    found = (kb.record(kb.row(x.entity)).title for x in kb.candidates(title, top=5))
    return title.casefold() in (x.casefold() for x in found)


def find_nodes(one: GoldSet, settings: FactSettings) -> dict[Place, str]:
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "gold.jsonl"
        lines.write_text("\n".join(one.lines) + "\n", encoding="utf8")
        graph = build_facts([lines], Path(folder) / "graph", settings=settings)
        return {(x.document, x.start): x.node for x in graph.mentions()}


def answers_of_nodes(one: GoldSet, nodes: Mapping[Place, str]) -> list[Answers]:
    """Of each document the mentions that have a title with it, and with their nodes."""
    answers: dict[str, Answers] = {json.loads(line)["id"]: ([], []) for line in one.lines}
    for (document, start), title in one.gold.items():
        for answer, what in zip(answers[document], (title, nodes[document, start])):
            answer.append(f"{start} {what}")
    return list(answers.values())


def score(mentions: Sequence[Clustered], cubed_D3: NDArray[np.float64]) -> dict[str, float]:
    """Precision, recall and F1, in percent: of pairs of mentions, and B-cubed (Bagga and Baldwin, 1998), of which
    `by_document` has the sums."""
    found, gold, both = count_sizes(mentions)
    right = _pairs(both)
    pairs = right / max(_pairs(found), 1), right / max(_pairs(gold), 1)
    precision, recall, number = cubed_D3.sum(0).tolist()
    scores = {}
    for name, (p, r) in (("pairs", pairs), ("b3", (precision / number, recall / number))):
        scores |= {f"{name}_{x}": round(100 * y, 1) for x, y in zip("prf", (p, r, 2 * p * r / (p + r)))}
    return scores


def count_sizes(mentions: Sequence[Clustered]) -> tuple[Counter[str], Counter[str], Counter[tuple[str, str]]]:
    """Mentions of each cluster, of each title, and of each cluster with one title."""
    found, gold = [x.found for x in mentions], [x.gold for x in mentions]
    return Counter(found), Counter(gold), Counter(zip(found, gold, strict=True))


def by_document(mentions: Sequence[Clustered]) -> NDArray[np.float64]:
    """(D, 3): the sums of B-cubed precision and recall of a document's mentions in the clusters of all documents, and
    how many there are."""
    found, gold, both = count_sizes(mentions)
    sums: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))
    for x in mentions:
        same = both[x.found, x.gold]
        sums[x.document] += (same / found[x.found], same / gold[x.gold], 1)
    return np.stack(list(sums.values()))


def compare(first_D3: NDArray[np.float64], second_D3: NDArray[np.float64]) -> Gap:
    """By how many points of B-cubed F1 the second is above the first, over documents that are drawn; the clusters that
    mentions are in stay as they are."""
    f_drawn = [_cubed_f(sums_of_draws(x)) for x in (first_D3, second_D3)]
    low, high = np.quantile(f_drawn[1] - f_drawn[0], [0.025, 0.975])
    gap = _cubed_f(second_D3.sum(0)) - _cubed_f(first_D3.sum(0))
    return Gap(*(round(float(x), 3) for x in (gap, low, high)), runs=None)


def _cubed_f(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., 3) -> (...): percent."""
    precision, recall, number = np.moveaxis(sums, -1, 0)
    found: NDArray[np.float64] = 200 * precision * recall / (precision + recall) / number
    return found


def _pairs(sizes: Counter[Any]) -> float:
    return sum(n * (n - 1) / 2 for n in sizes.values())


def report(results: Sequence[Mapping[str, Any]], pipeline: str) -> str:
    lines = [
        "# Things without a link: which mentions are of one",
        "",
        "Written by `python benchmarks/fact_clusters.py`. Gold mentions without their links, clustered by `spacy luke "
        "graph` with its default settings, beside clusters of all mentions of one name and label. The similarity was "
        "chosen on AIDA's train and testa parts and on half of WNED's Wikipedia. Above: by how many points B3's F1 is "
        "above that of the rows before, with 95 % intervals over documents.",
    ]
    others = list(SYSTEMS)[:-1]
    columns = ["set", "mentions", "clusters by", "pairs P", "R", "F1", "B3 P", "R", "F1"]
    columns += [f"above: {x}" for x in others]
    for scored, what in SCORED.items():
        lines += ["", f"## {what.format(pipeline)}", ""]
        lines += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        for x in results:
            if x["scored"] == scored:
                scores = " | ".join(f"{x[f'{name}_{y}']:.1f}" for name in ("pairs", "b3") for y in "prf")
                gaps = " | ".join(str(Gap(*x["above"][y], runs=None)) if y in x["above"] else "" for y in others)
                lines.append(f"| {x['set']} | {x['mentions']:,} | {x['system']} | {scores} | {gaps} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
