"""Relations that the ready pipeline shows on news of GUM, by what one of us said of each: no annotation has them.

    python benchmarks/judged_relations.py PIPELINE     # results/judged_relations.json and judged_relations.md

judged_relations.json beside this file has relations that versions 0.6.0 to 0.8.0 showed in GUM's news, interviews and
speeches, by their words, and whether each is true. A relation that no version showed is not judged. And it has a sample
of what both showed on CoNLL04's sentences, drawn with a seed and judged without knowing which version showed what.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import spacy
from machine import describe_machine
from measuring import data_parser, share, title_of, write_report
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.readers.datasets.gum import read_gum_names
from spacy_luke.readers.records import make_doc

JUDGED = Path(__file__).with_suffix(".json")
GENRES = ("news", "interview", "speech")
PARTS = ("train", "dev", "test")  # relations were learned from none
THRESHOLDS = (0.65, 0.70, 0.75, 0.80, 0.85)
Place = tuple[str, int, int, int, int, str]  # document, words of head and tail, relation


class Shown(NamedTuple):
    """right: None where nobody judged it."""

    score: float
    right: bool | None


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("pipeline", help="folder or name of the ready pipeline")
    options = parser.parse_args()
    judged = json.loads(JUDGED.read_text(encoding="utf8"))
    nlp = spacy.load(options.pipeline)
    docs = list(read_news(options.data / "gum"))
    shown = find_shown(nlp, docs, {tuple(row[:6]): row[6] for row in judged["gum"]})
    result = {"pipeline": title_of(nlp), "documents": len(docs), "words": sum(len(doc) for _, doc in docs)}
    result |= {"shown": [list(x) for x in shown], **describe_machine()}
    write_report("judged_relations", result, make_report(result, shown, judged["conll04"]))


def read_news(folder: Path) -> Iterator[tuple[str, Doc]]:
    nlp = spacy.blank("en")
    for part in PARTS:
        for name in (folder / f"file-lists/files.{part}").read_text(encoding="utf8").split():
            if name.split("_")[1] in GENRES:
                yield from (
                    (name, make_doc(nlp, x, spans_key="entities"))
                    for x in read_gum_names(folder / f"sources/{name}.conllu")
                )


def find_shown(nlp: Language, docs: Sequence[tuple[str, Doc]], judged: Mapping[Place, bool]) -> list[Shown]:
    plain = (Doc(nlp.vocab, words=[x.text for x in doc], spaces=[bool(x.whitespace_) for x in doc]) for _, doc in docs)
    return [
        Shown(x.score, judged.get((name, x.head.start, x.head.end, x.tail.start, x.tail.end, x.label)))
        for (name, _), doc in zip(docs, nlp.pipe(plain), strict=True)
        for x in doc._.luke_relations
    ]


def make_report(result: Mapping[str, Any], shown: Sequence[Shown], sample: Sequence[Sequence[Any]]) -> str:
    """sample: rows of CoNLL04: sentence, head, relation, tail, score, version, whether it is true."""
    lines = [
        "# Relations of the ready pipeline on news, judged by a person",
        "",
        f"Written by `python benchmarks/judged_relations.py`: {result['pipeline']}, {result['documents']} documents",
        f"and {result['words']:,} words of GUM, by what one of us said of each relation. The same texts told which",
        "sentences version 0.7.0 should learn from, so that this flatters it.",
        "",
        "| shown from the score of | relations | judged | right |",
        "| --- | --- | --- | --- |",
    ]
    least = min(x.score for x in shown)
    for threshold in (least, *(x for x in THRESHOLDS if x > least)):
        own = [x for x in shown if x.score >= threshold]
        known = [x.right for x in own if x.right is not None]
        lines.append(f"| {threshold:.2f} | {len(own)} | {len(known)} | {share(known)} |")
    lines += [
        "",
        "Of CoNLL04's sentences, of which nothing was learned, a hundred shown relations of each version:",
        "",
    ]
    lines += ["| version | judged | right |", "| --- | --- | --- |"]
    for version in sorted({row[5] for row in sample}):
        known = [row[6] for row in sample if row[5] == version]
        lines.append(f"| {version} | {len(known)} | {share(known)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
