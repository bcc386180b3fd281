"""Sentences of news in which names meet, with all that holds between them, for the workflow `ready`, after
`ready_data.py`.

    python scripts/ready_encounters.py assets/ready corpus/ready/encounters.train.spacy

The data sets with relations are of encyclopedias: whoever is named beside a city was born, lives or studied there, so
that a visit to Berlin was a residence, and two who met in London were spouses. In the news most names in a sentence
merely meet.
The frames in ready_encounters.txt were written for this script; no corpus has them, and what they say is not true.

A frame is a sentence, and behind | what holds: "a employer b", "a ?residence b" where it may or may not, "a ? b" where
nothing is known of the two. Of all other pairs nothing holds. Marks have a letter where facts name them, {PER:a}; they
are those of `ready_wire.py`, which fills them, and {PARTY}, {DATE}, {YEAR} and {DAY}. Of <one/another> one is taken.
"""

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import spacy
from ready_wire import KINDS, MONTHS, draw_name, draw_value, read_frame_names
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations import get_relation_rows, register_extensions
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.records import Mention, Record, make_doc

SENTENCES = 4000
PARTIES = """
Labour Party, Green Party, Civic Party, Democratic Party, Republican Party, Conservative Party, Socialist Party,
Liberal Democrats, Social Democrats, Christian Democrats, National Front, Progress Party, Workers ' Party,
Centre Party, People 's Party, Independence Party, Reform Party, Communist Party, Freedom Party, Farmers '
Union, New Democracy, Forward, Radical Party, Popular Alliance, Liberal Party, Justice Party, LDP, SPD, NPP, DAP
"""
OPENED, ENDED = 0.25, 0.35  # shares of sentences with something before and behind
SHARES = ("meetings", "dealings", "facts", "facts", "lists", "press")  # as often is a frame of each taken
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

NOTHING: Mapping[str, Sequence[str]] = {}
Names = Mapping[str, Sequence[Sequence[str]]]
Named = tuple[list[str], list[Mention], dict[str, int]]  # words, mentions in words, and which mention a letter is


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="file of Docs, in the folder that ready_data.py wrote")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="how many Docs")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    options = parser.parse_args()
    register_extensions()
    nlp = spacy.blank("en")
    names = read_frame_names(nlp, options.data, options.output.parent)
    draw = random.Random(options.seed)
    frames = read_frames()
    docs = [
        make_sentence(nlp, draw.choice(frames[draw.choice(SHARES)]), names, draw, frames)
        for _ in range(options.sentences)
    ]
    write_docbin(docs, options.output)
    facts = sum(not x[4].startswith("?") for doc in docs for x in get_relation_rows(doc) or [])
    print(f"{options.output.stem}: {len(docs):,} sentences, {sum(map(len, docs)):,} words, {facts:,} relations")


def read_frames() -> dict[str, list[str]]:
    """By the groups of the file."""
    groups: dict[str, list[str]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf8").splitlines():
        if match := re.match(r"\[(\w+)] ", line):
            groups[match[1]] = lines = []
        elif line:
            lines.append(line)
    return groups


def make_sentence(
    nlp: Language, frame: str, names: Names, draw: random.Random, additions: Mapping[str, Sequence[str]] = NOTHING
) -> Doc:
    """A frame with names in it. A label with "?" before it may hold or not; "?" alone: anything may. additions:
    openings and endings, of which some sentences have one."""
    text, _, facts = frame.partition("|")
    text = text.strip()
    if additions and draw.random() < OPENED:
        text = f"{draw.choice(additions['openings'])} {text}"
    if additions and draw.random() < ENDED:
        text = f"{text[:-1]}{draw.choice(additions['endings'])} ."
    words, mentions, letters = fill(choose(text, draw), names, draw)
    relations = [
        (letters[x[0]], letters[x[-1]], x[1:-1].strip()) for x in split_facts(facts) if {x[0], x[-1]} <= letters.keys()
    ]
    if facts.strip() == "?":
        relations = [(a, b, "?") for a in range(len(mentions)) for b in range(len(mentions)) if a != b]
    record = Record("", words=words, sentence_starts=[0], mentions=mentions, relations=relations)
    doc = make_doc(nlp, record)
    unsure = {label for _, _, label in relations if label.startswith("?")}
    doc._.luke_scope = {
        "entities": {"annotates": [], "labels": {"*": None}},
        "relations": {"labels": {x: [x[1:], ""] if x[1:] else None for x in sorted(unsure)}},
    }
    return doc


def split_facts(text: str) -> list[str]:
    return [fact for x in text.split(",") if len(fact := x.strip()) > 2]


def choose(text: str, draw: random.Random) -> str:
    return re.sub(r"<([^<>]+)>", lambda x: draw.choice(x[1].split("/")), text)


def fill(frame: str, names: Names, draw: random.Random) -> Named:
    """A sentence with names in the place of its marks, of which no two are the same."""
    words: list[str] = []
    mentions: list[Mention] = []
    letters: dict[str, int] = {}
    used: set[str] = set()
    for part in frame.split():
        match = re.fullmatch(r"\{([A-Z]+)(?::(\w))?}", part)
        if match is None:
            words.append(re.sub(r"\{([a-z])}", lambda x: draw_value(x[1], draw), part))
            continue
        mark, letter = match.groups()
        new, label = draw_other(mark, used, draw) or draw_name(mark, names, used, draw), LABELS[mark]
        letters |= {letter: len(mentions)} if letter else {}
        mentions.append(Mention(len(words), len(words) + len(new), label))
        words += new
    return words, mentions, letters


LABELS = {**KINDS, "PARTY": "ORG", "PEOPLE": "MISC", **dict.fromkeys(("DATE", "YEAR", "DAY"), "TIME")}


def draw_other(mark: str, used: set[str], draw: random.Random) -> list[str]:
    """Words of a time or a party; [] where the mark is of no such thing."""
    if mark == "PARTY":
        name = draw.choice([x for x in map(str.strip, PARTIES.split(",")) if x not in used])
        used.add(name)
        return name.split()
    month, day, year = draw.choice(MONTHS), str(draw.randint(1, 28)), str(draw.randint(1880, 2024))
    if mark == "DATE":
        return draw.choice(([month, day, ",", year], [day, month, year], [month, day]))
    return {"YEAR": [year], "DAY": [draw.choice(DAYS)]}.get(mark, [])


if __name__ == "__main__":
    main()
