"""The data sets of the workflow `ready` as .spacy files, a file for each set and part.

    python scripts/ready_data.py assets/ready corpus/ready

The folder of the data has them as project.yml names them. Parts: WNUT-17 and GUM have their own; documents of the
others are divided by their titles (`part_of_title`), those of WikiGold, which have none, by their first sentences.
Entities of GUM and LitBank are nested, in doc.spans["entities"], and only names are taken; those of the others are in
doc.ents. Labels are those of the sets; configs/ready.cfg says what becomes of them.

`names.train.spacy` has sentences of the training parts again, in which other names stand for persons, organisations
and places: names of cities (GeoNames, CC BY 4.0), of organisations (Wikidata, CC0), and first and last names of the
persons of the training parts.
"""

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_luke.readers.conll import make_column_doc, read_columns
from spacy_luke.readers.datasets.docred import read_docred
from spacy_luke.readers.datasets.gum import read_gum_names
from spacy_luke.readers.datasets.litbank import read_litbank
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.records import make_doc
from spacy_luke.readers.splits import PARTS, part_of_title

KEY = "entities"  # of the group of nested entities
OPEN_GENRES = "bio conversation interview news speech textbook vlog voyage".split()  # of GUM: CC BY or public domain
WNUT_FILES = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
Parts = dict[str, list[Doc]]

# What the names of the gazetteers stand for: labels of WikiGold, WNUT-17 and GUM.
PERSONS, PLACES = ("PER", "person"), ("LOC", "location", "place")
ORGANISATIONS = ("ORG", "corporation", "group", "organization")
KINDS = {label: kind[0] for kind in (PERSONS, PLACES, ORGANISATIONS) for label in kind}
SHARE = 0.85  # of the entities that get another name
COPIES = {"wnut17": 1, "wikigold": 1, "gum": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="folder of the .spacy files")
    parser.add_argument("--seed", type=int, default=0, help="of the names that are drawn")
    options = parser.parse_args()
    nlp = spacy.blank("en")
    sets = {
        "wikigold": read_wikigold(nlp, options.data / "wikigold/CONLL-format/data/wikigold.conll.txt"),
        "wnut17": read_wnut(nlp, options.data / "wnut17"),
        "redocred": read_redocred(nlp, options.data / "redocred/dev_revised.json"),
        "gum": read_gum(nlp, options.data / "gum"),
        "litbank": read_novels(nlp, options.data / "litbank/coref/tsv"),
    }
    draw = random.Random(options.seed)
    names = read_names(options.data / "wikidata_slice", [doc for parts in sets.values() for doc in parts["train"]])
    copies = [
        swapped
        for name, times in COPIES.items()
        for _ in range(times)
        for doc in sets[name]["train"]
        for swapped in swap_names(nlp, doc, names, draw)
    ]
    draw.shuffle(copies)
    sets["names"] = {"train": copies}
    for name, parts in sets.items():
        for part, docs in parts.items():
            write_docbin(docs, options.output / f"{name}.{part}.spacy")
            entities = sum(len(entities_of(doc)) for doc in docs)
            print(f"{name}.{part}: {len(docs):,} documents, {sum(map(len, docs)):,} words, {entities:,} entities")


def read_wikigold(nlp: Language, path: Path) -> Parts:
    parts: Parts = {part: [] for part in PARTS}
    for document in read_columns(path, format="conll2003"):
        end = [*document.sentence_starts[1:], len(document.words)][0]
        parts[part_of_title(" ".join(document.words[:end]))].append(make_column_doc(nlp.vocab, document))
    return parts


def read_wnut(nlp: Language, folder: Path) -> Parts:
    return {
        part: [make_column_doc(nlp.vocab, document) for document in read_columns(folder / name, format="wnut")]
        for part, name in WNUT_FILES.items()
    }


def read_redocred(nlp: Language, path: Path) -> Parts:
    """Entities alone; relations come from `spacy luke corpus`."""
    parts: Parts = {part: [] for part in PARTS}
    for record in read_docred(path, mention_pairs="first", peoples="MISC", articles="drop"):
        doc = make_doc(nlp, record, overlaps="outermost")
        parts[part_of_title(record.title)].append(_without_user_data(doc))
    return parts


def read_gum(nlp: Language, folder: Path) -> Parts:
    """Of the genres that may be passed on, the official parts."""
    parts: Parts = {part: [] for part in PARTS}
    for part in PARTS:
        for name in (folder / f"file-lists/files.{part}").read_text(encoding="utf8").split():
            if name.split("_")[1] in OPEN_GENRES:
                for record in read_gum_names(folder / f"sources/{name}.conllu"):
                    parts[part].append(make_doc(nlp, record, spans_key=KEY))
    return parts


def read_novels(nlp: Language, folder: Path) -> Parts:
    parts: Parts = {part: [] for part in PARTS}
    for path in sorted(folder.glob("*.ann")):
        for record in read_litbank(path, kinds="names"):
            parts[part_of_title(record.title)].append(make_doc(nlp, record, spans_key=KEY))
    return parts


def entities_of(doc: Doc) -> list[Span]:
    return list(doc.spans[KEY]) if KEY in doc.spans else list(doc.ents)


def _without_user_data(doc: Doc) -> Doc:
    copy = doc.copy()
    copy.user_data = {}
    return copy


def read_names(folder: Path, docs: Iterable[Doc]) -> dict[str, list[list[str]]]:
    """Words of names: cities, organisations with their other names, and first and last names of persons in `docs`."""
    cities = (line.split("\t")[0] for line in _lines(folder / "cities15000.tsv"))
    firms = (
        name
        for cells in (line.split("\t") for line in _lines(folder / "wikidata-slice.tsv"))
        if cells[1] == "organization"
        for name in [cells[3], *cells[4].split("|")]
    )
    found = {" ".join(word.text for word in x) for doc in docs for x in entities_of(doc) if x.label_ in PERSONS}
    full = [words for name in sorted(found) if len(words := name.split()) == 2 and all(map(str.isalpha, words))]
    firsts, lasts = sorted({first for first, _ in full}), sorted({last for _, last in full})
    draw = random.Random("persons")
    persons = [[draw.choice(firsts), draw.choice(lasts)] for _ in range(10_000)]
    persons += [[draw.choice(firsts)] for _ in range(3_000)] + [[draw.choice(lasts)] for _ in range(3_000)]
    plain = {"LOC": [name.split() for name in cities if name], "ORG": [name.split() for name in firms if name]}
    return {"PER": persons, **plain}


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf8").splitlines() if line]


def swap_names(nlp: Language, doc: Doc, names: dict[str, list[list[str]]], draw: random.Random) -> Iterator[Doc]:
    """The sentences of a document that have entities without overlap, with other names."""
    for sent in doc.sents:
        inside = [x for x in entities_of(doc) if sent.start <= x.start and x.end <= sent.end]
        edges = sorted((x.start, x.end) for x in inside)
        if not any(x.label_ in KINDS for x in inside) or any(a[1] > b[0] for a, b in zip(edges, edges[1:])):
            continue
        words: list[str] = []
        mentions: list[tuple[int, int, str]] = []
        place = sent.start
        for entity in sorted(inside, key=lambda x: x.start):
            words += [word.text for word in doc[place : entity.start]]
            kind = KINDS.get(entity.label_)
            own = [word.text for word in entity]
            new = draw.choice(names[kind]) if kind and draw.random() < SHARE else own
            mentions.append((len(words), len(words) + len(new), entity.label_))
            words += new
            place = entity.end
        words += [word.text for word in doc[place : sent.end]]
        yield _make(nlp, words, mentions, group=KEY in doc.spans)


def _make(nlp: Language, words: Sequence[str], mentions: Sequence[tuple[int, int, str]], *, group: bool) -> Doc:
    doc = Doc(nlp.vocab, words=list(words), sent_starts=[i == 0 for i in range(len(words))])
    spans = [Span(doc, start, end, label=label) for start, end, label in mentions]
    if group:
        doc.spans[KEY] = spans
    else:
        doc.set_ents(spans)
    return doc


if __name__ == "__main__":
    main()
