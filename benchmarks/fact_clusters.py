"""Names that no knowledge base has: `spacy luke graph` on gold mentions without their links, scored by gold titles.

    python benchmarks/fact_clusters.py PIPELINE          # results/fact_clusters.json and .md
    python benchmarks/fact_clusters.py PIPELINE --part dev      # for choosing the similarity; prints only

PIPELINE: one with a knowledge base; mentions of what that has are taken for linked, and not scored in the second table.
Gold titles say which mentions are of one thing, those without a title are clustered, but not scored.
"""

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import spacy
from machine import describe_machine
from measuring import data_parser, write_report

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


class GoldSet(NamedTuple):
    """lines: annotated documents without links. gold: titles of the mentions that have one."""

    lines: list[str]
    gold: dict[Place, str]


def main() -> None:
    options = read_options()
    nlp = spacy.load(options.pipeline)
    kb = next(x.kb for _, x in nlp.pipeline if getattr(x, "kb", None) is not None)
    systems = SYSTEMS
    if options.part == "dev":
        tried = (0.02, 0.1, 0.2)
        systems = {**SYSTEMS, **{f"{x}": FactSettings(similarity=x, shortened=BEST, values=()) for x in tried}}
    results = []
    for name in PARTS[options.part]:
        one = read_set(name, options.data, options.part)
        known = {title for title in set(one.gold.values()) if is_known(title, kb)}
        for system, settings in systems.items():
            nodes = find_nodes(one, settings)
            for scored in ("all", "unknown"):
                places = [x for x, title in one.gold.items() if scored == "all" or title not in known]
                scores = score([nodes[x] for x in places], [one.gold[x] for x in places])
                results.append({"set": name, "system": system, "scored": scored, "mentions": len(places), **scores})
                print(json.dumps(results[-1]), flush=True)
    if options.part == "test":
        pipeline = f"{nlp.lang}_{nlp.meta['name']} {nlp.meta['version']}"
        result = {"pipeline": pipeline, "results": results, **describe_machine()}
        write_report("fact_clusters", result, report(results, pipeline))


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


def score(found: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
    """Precision, recall and F1, in percent: of pairs of mentions, and B-cubed (Bagga and Baldwin, 1998)."""
    found_sizes, gold_sizes, both = Counter(found), Counter(gold), Counter(zip(found, gold, strict=True))
    right = _pairs(both)
    pairs = right / max(_pairs(found_sizes), 1), right / max(_pairs(gold_sizes), 1)
    cubed = (
        sum(n * n / found_sizes[x] for (x, _), n in both.items()) / len(found),
        sum(n * n / gold_sizes[y] for (_, y), n in both.items()) / len(found),
    )
    scores = {}
    for name, (precision, recall) in (("pairs", pairs), ("b3", cubed)):
        f = 2 * precision * recall / (precision + recall)
        scores |= {f"{name}_{x}": round(100 * y, 1) for x, y in zip("prf", (precision, recall, f))}
    return scores


def _pairs(sizes: Counter[Any]) -> float:
    return sum(n * (n - 1) / 2 for n in sizes.values())


def report(results: Sequence[Mapping[str, Any]], pipeline: str) -> str:
    lines = [
        "# Things without a link: which mentions are of one",
        "",
        "Written by `python benchmarks/fact_clusters.py`. Gold mentions without their links, clustered by `spacy luke "
        "graph` with its default settings, beside clusters of all mentions of one name and label. The similarity was "
        "chosen on AIDA's train and testa parts and on half of WNED's Wikipedia.",
    ]
    told = {"all": "All mentions", "unknown": f"Those of what the knowledge base of {pipeline} has not"}
    for scored, what in told.items():
        lines += ["", f"## {what}", "", "| set | mentions | clusters by | pairs P | R | F1 | B3 P | R | F1 |"]
        lines.append("|---|---|---|---|---|---|---|---|---|")
        for x in results:
            if x["scored"] == scored:
                scores = " | ".join(f"{x[f'{name}_{y}']:.1f}" for name in ("pairs", "b3") for y in "prf")
                lines.append(f"| {x['set']} | {x['mentions']:,} | {x['system']} | {scores} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
