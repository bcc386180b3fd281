"""Data sets with links for `ready_linker.py`: words, and mentions with the ids of a knowledge base."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import spacy
from spacy.tokens import Doc

from spacy_luke.annotations import NIL
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.readers.datasets.table import read_dataset
from spacy_luke.readers.splits import part_of_title

UNKNOWN = ""  # the id of a mention of which it cannot be told whether the knowledge base has its entity
GENRES = ("news", "interview", "bio", "voyage", "textbook", "vlog", "speech", "conversation")  # of GUM: CC BY, or free
GUM_LABELS = ("person", "organization", "place")
ITEM = re.compile(r"Q\d+")
OPENED = re.compile(r"\((?P<opened>[^()]+)(?P<closed>\)?)|(?P<id>\d+)\)")
QUALIFIER = re.compile(r", | \(")


class LinkedText(NamedTuple):
    """A text and its mentions, words [start, end), with ids of a knowledge base, NIL, or UNKNOWN."""

    doc: Doc
    links: dict[tuple[int, int], str]


@dataclass(frozen=True)
class LinkSet:
    """partial: names without a link may be of the knowledge base; learned: it is trained on; tuned: it chooses the
    threshold. Of a set that is both, every other document is."""

    path: str
    format: str
    partial: bool = False
    learned: bool = False
    tuned: bool = False


SETS = {
    "knowledge_net": LinkSet(
        "knowledge_net/human_readable-v10-notest.zip", "knowledge_net", partial=True, learned=True
    ),
    "gum": LinkSet("gum/sources", "gum", partial=True, learned=True),
    "wiki_fair": LinkSet("ed_elevant/wiki-fair-v2.benchmark.jsonl", "elevant", learned=True, tuned=True),
    "news_fair": LinkSet("ed_elevant/news-fair-v2.benchmark.jsonl", "elevant", learned=True, tuned=True),
    "wned_wiki": LinkSet("ed_wned/wikipedia/wikipedia.xml", "wned", partial=True, learned=True),
    "msnbc": LinkSet("ed_elevant/msnbc.benchmark.jsonl", "elevant"),
    "aida_testa": LinkSet("ed_elevant/aida-conll-dev.benchmark.jsonl", "elevant", tuned=True),
    "tweeki": LinkSet("ed_zelda/test_tweeki.jsonl", "zelda", tuned=True),
    "aida_testb": LinkSet("ed_zelda/test_aida-b.jsonl", "zelda"),
    "rss500": LinkSet("ed_opentapioca/data/RSS-500_wd.ttl", "nif"),
}


def read_set(name: str, data: Path, kb: EntityKB) -> Iterator[LinkedText]:
    """data: folder of the data sets. Test parts of KnowledgeNet and GUM are left out."""
    one = SETS[name]
    if one.format == "gum":
        left_out = (data / "gum/file-lists/files.test").read_text(encoding="utf8").split()
        for genre in GENRES:
            for path in sorted((data / one.path).glob(f"GUM_{genre}_*.conllu")):
                if path.stem not in left_out:
                    yield read_gum(path, kb)
        return
    nlp = spacy.blank("en")
    titles = elevant_titles(data / one.path) if one.format == "elevant" else {}
    for record in read_dataset(data / one.path, format=one.format):
        if one.format == "knowledge_net" and part_of_title(record.title) == "test":
            continue
        text = record.text if record.text is not None else " ".join(record.words or [])
        doc, links = nlp.make_doc(text), {}
        for mention in record.mentions:
            span = doc.char_span(mention.start, mention.end, alignment_mode="expand")
            if span is not None and mention.kb_id:
                links[span.start, span.end] = resolve(mention.kb_id, titles.get(mention.kb_id, ""), span.text, kb)
        yield LinkedText(doc, links)


def elevant_titles(path: Path) -> dict[str, str]:
    """What ELEVANT calls the items of Wikidata."""
    with path.open(encoding="utf8") as file:
        labels = [label for line in file for label in json.loads(line)["labels"]]
    return {label["entity_id"]: label["name"] for label in labels if label.get("name")}


def read_gum(path: Path, kb: EntityKB) -> LinkedText:
    """Persons, organizations and places with a title of Wikipedia; a name of the document without one has that of the
    same name elsewhere."""
    words, spaces, cells = [], [], []
    with path.open(encoding="utf8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 10 and fields[0].isdigit():
                words.append(fields[1])
                spaces.append("SpaceAfter=No" not in fields[9])
                found = re.search(r"(?:^|\|)Entity=([^|]*)", fields[9])
                cells.append(found[1] if found else "")
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=spaces)
    titles = {place: title for place, title in gum_mentions(cells) if is_name(doc, *place)}
    known = {doc[a:b].text: title for (a, b), title in titles.items() if title}
    names = {(a, b): known.get(doc[a:b].text, "") for a, b in titles}
    return LinkedText(doc, {(a, b): resolve(x, "", doc[a:b].text, kb) for (a, b), x in names.items() if x})


def gum_mentions(cells: list[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Words [start, end) and the title, "" where there is none; `group-etype-infstat-...-link-identity`."""
    opened: dict[str, list[tuple[int, list[str]]]] = {}
    for i, cell in enumerate(cells):
        for match in OPENED.finditer(cell):
            if match["id"] is None:
                parts = match["opened"].split("-")
                opened.setdefault(parts[0], []).append((i, parts))
                if not match["closed"]:
                    continue
            start, parts = opened[match["id"] or match["opened"].split("-")[0]].pop()
            if parts[1] in GUM_LABELS:
                yield (start, i + 1), unquote("-".join(parts[7:])).replace("_", " ")


def is_name(doc: Doc, start: int, end: int) -> bool:
    """Whether all words have capitals, short ones apart."""
    words = doc[start:end]
    capitals = [x.text[:1].isupper() or len(x) < 4 or not x.is_alpha for x in words]
    return end - start <= 6 and words[0].text[:1].isupper() and words[-1].text[:1].isupper() and all(capitals)


def resolve(gold: str, title: str, text: str, kb: EntityKB) -> str:
    """The id that the knowledge base has for a gold id, an item of Wikidata or the title of a page; NIL where it has
    not the entity. Where the mention's candidates without an item could be it, their titles decide, or it is UNKNOWN.

    title: of the item, where it is known; text: of the mention.
    """
    if gold == NIL:
        return NIL
    if (row := kb.row(gold)) >= 0:
        return kb.name_of(row)
    item = ITEM.fullmatch(gold) is not None
    title = title or ("" if item else gold)
    unsure = False
    for candidate in kb.candidates(text, top=30):
        record = kb.record(kb.row(candidate.entity))
        if item and record.wikidata:
            continue  # another item
        if title and record.title.casefold() == title.casefold():
            return record.id
        name, *rest = QUALIFIER.split(title, maxsplit=1)
        if not title:
            unsure = True
        elif QUALIFIER.split(record.title)[0].casefold() == name.casefold():
            if record.id.startswith("geo:") and (not rest or rest[0].rstrip(")") in record.description):
                return record.id
            unsure = True
    return UNKNOWN if unsure else NIL
