"""The test sets of ready.py: sentences with persons, organisations and places.

In domain are the test parts of what `ready` is trained on; out of domain are sets of which no training has any part.
Other labels are left out, and mentions inside other ones. ELEVANT's sets name kinds of Wikidata: taken are persons,
organisations and places; what is found at mentions of another kind, or of none, is not counted, and neither is a
people ("American"), which they have as the country that it is linked to.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy
from length_data import Text, cut_record, read_conll04_sentences, read_conll2003, read_texts, take_texts
from ner_data import Mention, outermost

from spacy_luke.kb.starter.peoples import is_people
from spacy_luke.readers.datasets.docred import read_docred
from spacy_luke.readers.datasets.gum import read_gum_names
from spacy_luke.readers.datasets.litbank import read_litbank
from spacy_luke.readers.splits import part_of_title

OPEN_GENRES = "bio conversation interview news speech textbook vlog voyage".split()  # of GUM: CC BY or public domain
KINDS = {"Q215627": "PER", "Q27096213": "LOC", "Q43229": "ORG"}  # of Wikidata: a person, a place, an organisation
MOST = 1000  # sentences of a set


@dataclass(frozen=True)
class TestSentence:
    """ignored: places where what is found is not counted."""

    words: list[str]
    mentions: list[Mention]
    ignored: list[tuple[int, int]]


def read_wikigold(folder: Path, part: str) -> list[Text]:
    """WikiGold has no parts and no titles: its documents are divided by their first sentences."""
    texts = read_texts(folder / "wikigold/CONLL-format/data/wikigold.conll.txt", "conll2003")
    return [text for text in texts if part_of_title(" ".join(text[0].words)) == part]


def read_redocred(folder: Path, part: str) -> list[Text]:
    records = read_docred(folder / "redocred/dev_revised.json", mention_pairs="first", peoples="MISC", articles="drop")
    return [cut_record(x) for x in records if part_of_title(x.title) == part]


def read_gum(folder: Path, part: str | None) -> list[Text]:
    """The names of the genres that may be passed on, of an official part; None: of all other genres, which `ready` has
    not seen."""
    known = None if part is None else (folder / f"gum/file-lists/files.{part}").read_text(encoding="utf8").split()
    return [
        cut_record(record)
        for path in sorted((folder / "gum/sources").glob("GUM_*.conllu"))
        if (path.stem.split("_")[1] in OPEN_GENRES) == (known is not None) and (known is None or path.stem in known)
        for record in read_gum_names(path)
    ]


def read_novels(folder: Path, part: str) -> list[Text]:
    paths = sorted((folder / "litbank/coref/tsv").glob("*.ann"))
    return [
        cut_record(x) for path in paths if part_of_title(path.stem) == part for x in read_litbank(path, kinds="names")
    ]


def read_kinds(path: Path) -> Iterator[list[TestSentence]]:
    """ELEVANT's documents; of a document that is annotated in part, that part."""
    nlp = spacy.blank("en")
    nlp.add_pipe("paragraph_sentencizer")
    for line in path.read_text(encoding="utf8").splitlines():
        item: dict[str, Any] = json.loads(line)
        doc = nlp(item["text"])
        first, last = item.get("evaluation_span") or (0, len(item["text"]))
        mentions: list[Mention] = []
        ignored: list[tuple[int, int]] = []
        for label in item["labels"]:
            span = doc.char_span(*label["span"], alignment_mode="expand")
            kinds = label.get("type", "").split("|")
            kind = next((name for key, name in KINDS.items() if key in kinds), None)
            value = "DATETIME" in kinds or "QUANTITY" in kinds
            if (
                kind is None
                or is_people(span.text)
                or label.get("optional")
                or label.get("coref")
                or span.text != item["text"][slice(*label["span"])]
            ):
                ignored += [] if value else [(span.start, span.end)]
            else:
                mentions.append((span.start, span.end, kind))
        mentions = outermost(mentions)
        yield [
            TestSentence(
                [word.text for word in sent],
                [(a - sent.start, b - sent.start, x) for a, b, x in mentions if sent.start <= a and b <= sent.end],
                [(a - sent.start, b - sent.start) for a, b in ignored if sent.start <= a and b <= sent.end],
            )
            for sent in doc.sents
            if first <= sent.start_char and sent.end_char <= last and not sent.text.isspace()
        ]


def plain(texts: list[Text]) -> list[list[TestSentence]]:
    return [[TestSentence(x.words, x.mentions, []) for x in text] for text in texts]


Reader = Callable[[Path], list[list[TestSentence]]]
DEV: dict[str, Reader] = {
    "wikigold": lambda x: plain(read_wikigold(x, "dev")),
    "wnut17": lambda x: plain(read_texts(x / "wnut17/emerging.dev.conll", "wnut")),
    "redocred": lambda x: plain(read_redocred(x, "dev")),
    "gum": lambda x: plain(read_gum(x, "dev")),
    "litbank": lambda x: plain(read_novels(x, "dev")),
    "conll2003": lambda x: plain(read_conll2003(x, "eng.testa")),
    "conll04": lambda x: plain(read_conll04_sentences(x, "conll04_dev.json")),
}
INSIDE: dict[str, Reader] = {
    "wikigold": lambda x: plain(read_wikigold(x, "test")),
    "wnut17": lambda x: plain(read_texts(x / "wnut17/emerging.test.annotated", "wnut")),
    "redocred": lambda x: plain(read_redocred(x, "test")),
    "gum": lambda x: plain(read_gum(x, "test")),
    "litbank": lambda x: plain(read_novels(x, "test")),
}
OUTSIDE: dict[str, Reader] = {
    "conll2003": lambda x: plain(read_conll2003(x, "eng.testb")),
    "conll04": lambda x: plain(
        read_conll04_sentences(x, "conll04_test.json") + read_conll04_sentences(x, "conll04_train.json")
    ),
    "gum_other": lambda x: plain(read_gum(x, None)),
    "news_fair": lambda x: list(read_kinds(x / "ed_elevant/news-fair-v2.benchmark.jsonl")),
    "msnbc": lambda x: list(read_kinds(x / "ed_elevant/msnbc.benchmark.jsonl")),
    "wiki_fair": lambda x: list(read_kinds(x / "ed_elevant/wiki-fair-v2.benchmark.jsonl")),
}


def read_set(reader: Reader, folder: Path, *, most: int = MOST) -> list[TestSentence]:
    """At most so many sentences, from texts at equal distances."""
    texts = [text for text in reader(folder) if text]
    if sum(map(len, texts)) <= most:
        return [sentence for text in texts for sentence in text]
    return [sentence for text in take_texts(texts, most, most=200) for sentence in text]
