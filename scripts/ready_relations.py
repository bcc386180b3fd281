"""The relations of the workflow `ready` as .spacy files, after `ready_data.py`, whose files of Re-DocRED they replace.

    python scripts/ready_relations.py assets/ready corpus/ready

`redocred.PART.spacy` has entities and relations of documents, of which all are annotated; `knowledge_net.PART.spacy`
and `fewrel.train.spacy` have sentences with pairs, and say which relations are known of these (`doc._.luke_scope`).
Mentions have the types that relations tell (`ready_types.py`). Names of peoples are other names, and
"the" is no part of a name, as in most data sets.
Relations are properties of Wikidata, under their names; RELATIONS has their ids. Documents are divided by their titles
(`part_of_title`), sentences of FewRel by seed.
"""

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import spacy
from ready_types import OPEN_TYPES, add_types, read_cities
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations import get_relation_rows, register_extensions
from spacy_luke.readers.datasets.docred import read_docred
from spacy_luke.readers.datasets.fewrel import read_fewrel
from spacy_luke.readers.datasets.knowledge_net import read_knowledge_net
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.records import Record, make_doc
from spacy_luke.readers.splits import PARTS, choose_by_title, divide_records

RELATIONS = {
    "P131": "located in",
    "P17": "country",
    "P27": "country of citizenship",
    "P800": "notable work",
    "P577": "publication date",
    "P361": "part of",
    "P175": "performer",
    "P569": "date of birth",
    "P463": "member of",
    "P571": "inception",
    "P570": "date of death",
    "P495": "country of origin",
    "P19": "place of birth",
    "P3373": "sibling",
    "P127": "owned by",
    "P26": "spouse",
    "P1344": "participant of",
    "P749": "parent organization",
    "P206": "located in or next to body of water",
    "P50": "author",
    "P54": "member of sports team",
    "P264": "record label",
    "P140": "religion",
    "P178": "developer",
    "P40": "child",
    "P1441": "present in work",
    "P102": "member of political party",
    "P161": "cast member",
    "P22": "father",
    "P25": "mother",
    "P69": "educated at",
    "P159": "headquarters location",
    "P108": "employer",
    "P112": "founded by",
    "P57": "director",
    "P551": "residence",
    "P86": "composer",
    "P20": "place of death",
}
OURS = frozenset(RELATIONS.values())
# Of FewRel, which has these in the parts that are here.
FEWREL = "P361 P206 P26 P463 P40 P25 P1344 P159 P178 P22 P140 P175 P27 P57 P800".split()
FEWREL_FILES = ("val_wiki.json", "resplit_mgfte/val.json", "resplit_mgfte/test.json")
OTHERS = 0.3  # of FewRel's sentences with other relations, that have none of ours
# What KnowledgeNet's properties mean here, or which of several.
KNOWLEDGE_NET = {
    "DATE_OF_BIRTH": ["date of birth"],
    "DATE_OF_DEATH": ["date of death"],
    "DATE_FOUNDED": ["inception"],
    "PLACE_OF_BIRTH": ["place of birth"],
    "PLACE_OF_RESIDENCE": ["residence"],
    "NATIONALITY": ["country of citizenship"],
    "SPOUSE": ["spouse"],
    "CHILD_OF": ["father", "mother"],
    "FOUNDED_BY": ["founded by"],
    "HEADQUARTERS": ["headquarters location"],
    "EDUCATED_AT": ["educated at"],
    "POLITICAL_AFFILIATION": ["member of political party"],
    "SUBSIDIARY_OF": ["parent organization"],
    "EMPLOYEE_OR_MEMBER_OF": ["employer", "member of"],
    "CEO": [],
}
# What may hold of a pair beside a property of KnowledgeNet that is stated of it: the others exclude one another.
MAY_HOLD = {"residence", "employer", "member of"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="folder of the .spacy files")
    options = parser.parse_args()
    register_extensions()
    nlp = spacy.blank("en")
    documents = list(read_docred(options.data / "redocred/dev_revised.json", peoples="MISC", articles="drop"))
    passages = list(read_knowledge_net(options.data / "knowledge_net/human_readable-v10-notest.zip"))
    sentences = [x for name in FEWREL_FILES for x in read_fewrel(options.data / "fewrel" / name)]
    cities = read_cities(options.data / "wikidata_slice/cities15000.tsv")
    documents = [add_types(record, cities, full=True) for record in documents]
    passages, sentences = ([add_types(record) for record in some] for some in (passages, sentences))
    names = {label: [name] for label, name in RELATIONS.items()}
    for part in PARTS:
        write(nlp, choose_by_title(documents, part=part), options.output / f"redocred.{part}.spacy", names)
        known = {name for labels in KNOWLEDGE_NET.values() for name in labels} - MAY_HOLD
        own = [x for x in choose_by_title(passages, part=part) if x.relations]
        write(nlp, own, options.output / f"knowledge_net.{part}.spacy", KNOWLEDGE_NET, annotates=known)
    own = list(choose_sentences(divide_records(sentences, part="train")))
    own_names = {label: [RELATIONS[label]] for label in FEWREL}
    known = {RELATIONS[label] for label in FEWREL}
    write(nlp, own, options.output / "fewrel.train.spacy", own_names, annotates=known)


def choose_sentences(records: Iterable[Record]) -> Iterator[Record]:
    """Of FewRel: those of our relations, and some of the others."""
    others = 0.0
    for record in records:
        if any(label in FEWREL for _, _, label in record.relations or []):
            yield record
            continue
        others += OTHERS
        if others >= 1:
            others -= 1
            yield record


def write(
    nlp: Language,
    records: Iterable[Record],
    path: Path,
    names: Mapping[str, list[str]],
    *,
    annotates: Collection[str] | None = None,
) -> None:
    """names: what each label of the data set becomes; others become none of ours. annotates: relations that are known
    of a pair; None: all, and entities too."""
    docs = [make(nlp, record, names, annotates) for record in records]
    write_docbin(docs, path)
    relations = sum(len(get_relation_rows(doc) or []) for doc in docs)
    print(f"{path.stem}: {len(docs):,} documents, {sum(map(len, docs)):,} words, {relations:,} relations")


def make(nlp: Language, record: Record, names: Mapping[str, list[str]], annotates: Collection[str] | None) -> Doc:
    found = [(head, tail, " or ".join(names.get(label, []))) for head, tail, label in record.relations or []]
    renamed = replace(record, relations=[x for x in found if x[2]], has_entities=annotates is None)
    doc = make_doc(nlp, renamed, overlaps="outermost")
    doc._.luke_scope = {"types": {"labels": OPEN_TYPES}}
    if annotates is not None:
        either = {" or ".join(labels): labels for labels in names.values() if len(labels) > 1}
        doc._.luke_scope |= {
            "entities": {"annotates": [], "labels": {"*": None}},
            "relations": {"annotates": sorted(annotates), "labels": either},
        }
    return doc


if __name__ == "__main__":
    main()
