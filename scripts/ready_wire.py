"""Sentences as news agencies write them, with names of gazetteers, for the workflow `ready`, after `ready_data.py`.

    python scripts/ready_wire.py assets/ready corpus/ready/wire.train.spacy

The data sets of the ready pipeline have hardly a result of sport, a dateline, a headline in capitals or a quarter's
profit, so that "Surrey 24 points" was a place and "Japan beat Syria" two clubs. The frames below were written for this
script, each from what such lines look like anywhere; no corpus has them. What they say is not true.

Marks: {LOC} a city; {NATION} a country; {CLUB} an organisation, which has the name of a city, or of a club that says
so; {PER} a first and a last name, {LAST} a last name, {SHORT} a letter and a last name: persons; {ORG} an organisation
of Wikidata; {DESK} the office of a city; {PEOPLE} an adjective of a country, which is no name that is marked; {n} a
number, {s} a digit, {d} a day, {m} a month. Words in square brackets are a name of the kind behind them: [Reuters|ORG].
"""

import argparse
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import spacy
from ready_data import read_names
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_luke.kb.starter.peoples import country_names, peoples
from spacy_luke.readers.docbin import read_docbins, write_docbin

REPORTS = 900
CAPITALS = 0.15  # of the lines of prose, beside headlines
ENDINGS = "United City Town Rovers Wanderers Albion Athletic County FC Tigers Lions Eagles Rangers Dynamo Stars".split()
STARTS = "FC AC Real Dynamo Sporting Racing Spartak Olympique Atletico Inter".split()
MONTHS = "January February March April May June July August September October November December".split()
KINDS = {"CLUB": "ORG", "DESK": "ORG", "ORG": "ORG", "LOC": "LOC", "NATION": "LOC"}
KINDS |= dict.fromkeys(("PER", "LAST", "SHORT"), "PER")

# A line that begins with ! is set in capitals. Each report begins with some of HEADS, and takes one of the others.
HEADS = """
!SOCCER - {NATION} DRAW WITH {NATION} IN WORLD CUP QUALIFIER .
!SOCCER - {NATION} BEAT {NATION} {n} - {n} IN FRIENDLY .
!SOCCER - {CLUB} SIGN {PEOPLE} STRIKER {LAST} .
!SOCCER - {LAST} MOVES TO {CLUB} .
!SOCCER - {CLUB} 'S {LAST} OUT FOR SIX WEEKS .
!CRICKET - {NATION} {n} FOR {n} AT LUNCH ON SECOND DAY .
!CRICKET - {CLUB} COUNTY CHAMPIONSHIP SCORES .
!RUGBY UNION - {LAST} RECALLED BY {NATION} .
!TENNIS - {LAST} BEATS {LAST} IN {LOC} FINAL .
!GOLF - {LAST} LEADS BY TWO IN {LOC} .
!CYCLING - {LAST} WINS STAGE IN {NATION} .
!BASKETBALL - {CLUB} BEAT {CLUB} {n} - {n} .
!BASEBALL - {CLUB} END LOSING STREAK IN {LOC} .
!ICE HOCKEY - {NATION} EDGE {NATION} IN OPENING ROUND .
!MOTOR RACING - {LAST} FASTEST IN {NATION} PRACTICE .
!{NATION} SAYS TALKS WITH {NATION} TO RESUME .
!{NATION} , {NATION} SIGN TRADE ACCORD .
!{LOC} SHARES END LOWER IN THIN TRADE .
!{ORG} TO CUT {n} JOBS IN {NATION} .
!{ORG} Q{n} NET PROFIT UP .
!{ORG} NAMES {LAST} CHAIRMAN .
!{LAST} MEETS {LAST} IN {LOC} .
!RESEARCH ALERT - {ORG} CUT TO HOLD .
{NATION} and {NATION} to hold talks in {LOC} next week .
{ORG} shares fall after profit warning
{LAST} quits as {ORG} chief executive
{PER} : what we know
"""
DATELINES = """
{LOC} 1998-0{s}-1{s}
{LOC} , {NATION} 1998-0{s}-1{s}
{LOC} ( [Reuters|ORG] ) -
{LOC} , {NATION} ( [AP|ORG] )
{LOC} , {m} {d} ( [AFP|ORG] ) -
{LOC} , {m} {d} [Xinhua|ORG] --
{LOC} [ITAR-TASS|ORG] in English {d} {m}
{LOC} , {NATION} ( [UPI|ORG] ) --
By {PER}
By {PER} in {LOC}
-- {DESK} + {n} {n} {n} {n}
-- {PER} , {DESK} , + {n} {n}
( c ) [Reuters|ORG] Limited 1998
"""
REPORT_KINDS = {
    "results": """
{CLUB} {n} {CLUB} {n}
{CLUB} {n} {CLUB} {n} ( halftime {n} - {n} )
{CLUB} {n} , {CLUB} {n}
{CLUB} v {CLUB}
!{CLUB} AT {CLUB}
{CLUB} at {CLUB}
{NATION} {n} {NATION} {n}
{NATION} - {NATION} {n} - {n}
{NATION} bt {NATION} {n} - {n}
{CLUB} - {SHORT} ( {n} minutes ) , {LAST} ( {n} )
{NATION} : {LAST} ( {n} ) , {LAST} ( {n} , penalty )
Scorers : {LAST} ( {n}th minute ) , {LAST} ( {n}th )
Halftime {n} - {n} . Attendance {n} .
""",
    "table": """
{CLUB} {n} {n} {n} {n} {n} {n} {n}
{CLUB} {n} {n} . {n} {n}
{CLUB} {n} {n} {n} - {n}
{NATION} {n} {n} {n} {n} {n} {n}
!{PEOPLE} LEAGUE STANDINGS
!WESTERN CONFERENCE
!EASTERN DIVISION
Standings after {n} matches ( tabulate under played , won , drawn , lost , points ) :
""",
    "ranks": """
{n} . {PER} ( {NATION} ) {n} . {n}
{n} . {PER} ( {NATION} ) {n} minutes {n} seconds
{PER} ( {NATION} ) beat {PER} ( {NATION} ) {n} - {n} , {n} - {n}
{n} - {PER} ( {NATION} ) bt {PER} ( {NATION} ) {n} - {n} {n} - {n}
{n} . {NATION} ( {PER} , {PER} , {PER} ) {n} . {n}
{PER} , {NATION} , {n} points
{n} {PER} {n} {n} {n} {n}
""",
    "cricket": """
At {LOC} : {CLUB} {n} and {n} ( {SHORT} {n} not out ) , {CLUB} {n} for {n} .
{CLUB} {n} and {n} - {n} ( {SHORT} {n} , {SHORT} {n} - {n} ) ; {CLUB} {n} ( {SHORT} {n} ) .
{CLUB} beat {CLUB} by an innings and {n} runs .
{CLUB} {n} points , {CLUB} {n} .
Match abandoned : {CLUB} v {CLUB} , {CLUB} {n} points .
{NATION} won the toss and chose to bat against {NATION} in {LOC} .
{SHORT} c {LAST} b {LAST} {n}
{LAST} lbw b {LAST} {n}
""",
    "match": """
{NATION} beat {NATION} {n} - {n} ( halftime {n} - {n} ) in a World Cup qualifier on Sunday .
{NATION} and {NATION} drew {n} - {n} in a European championship qualifier in {LOC} .
{LAST} scored twice as {CLUB} came from behind to beat {CLUB} {n} - {n} on Saturday .
{CLUB} striker {PER} will miss the trip to {CLUB} with a knee injury .
{PEOPLE} international {PER} has joined {CLUB} from {CLUB} on loan .
{CLUB} coach {PER} said his side had deserved a point in {LOC} .
In {LOC} , {PER} hit a three-run homer to lift {CLUB} over {CLUB} .
The visitors from {LOC} lost {n} - {n} to {CLUB} , with {LAST} sent off .
{NATION} , the hosts , take on {NATION} in {LOC} on Friday while {NATION} visit {NATION} .
{NATION} captain {PER} was named man of the match .
{CLUB} moved three points clear of {CLUB} at the top of the table .
Defending champion {PER} of {NATION} lost to {PER} in the second round of the {LOC} open .
{PER} of {NATION} clocked {n} . {n} seconds to win the 800 metres ahead of {PER} of {NATION} .
{CLUB} ended {CLUB} 's run of {n} wins .
" We played badly , " said {LAST} , who joined from {CLUB} in {m} .
""",
    "markets": """
{LOC} shares closed lower on Tuesday , led by {ORG} .
{ORG} said on Wednesday it would cut {n} jobs at its plant in {LOC} .
{ORG} said net profit fell to $ {n} million from $ {n} million a year earlier .
Shares of {ORG} rose {n} percent on the {LOC} stock exchange .
{PER} , an analyst at {ORG} in {LOC} , said the dollar would weaken .
{ORG} has agreed to buy {ORG} 's {PEOPLE} unit for $ {n} million .
{LAST} , chairman of {ORG} , told [Reuters|ORG] that talks with {ORG} had ended .
Net loss {n} vs profit {n} ; Revs {n} vs {n} ; ( all data in millions )
The {ORG} index ended {n} points up in {LOC} .
{NATION} 's central bank left rates unchanged , {LAST} said in {LOC} .
-- {ORG} rated buy at {ORG} , analyst {PER} says .
Traders in {LOC} said {ORG} had bought wheat from {NATION} .
""",
    "politics": """
{NATION} recalled its ambassador from {NATION} on Monday .
President {LAST} of {NATION} arrived in {LOC} on a three-day visit .
{PEOPLE} Prime Minister {PER} will meet {PEOPLE} President {PER} in {LOC} .
Police in the {PEOPLE} city of {LOC} arrested {n} people after the attack , the [AFP|ORG] news agency said .
" We cannot accept this , " {LAST} told the {LOC} newspaper .
{ORG} officials in {LOC} declined to comment .
A spokesman for {ORG} , {PER} , said relief flights to {NATION} would resume .
A magnitude {n} earthquake shook {NATION} near the border with {NATION} , killing {n} people in {LOC} .
{PER} , {n} , was sentenced to {n} years by a court in {LOC} .
Troops from {NATION} entered {LOC} , witnesses said .
The weekly quoted {LAST} as saying that {NATION} and {NATION} would sign on {m} {d} .
[Pravda|ORG] carries an interview with {PER} , who led {ORG} until {m} .
The [United Nations|ORG] mission said {NATION} had kept {n} {PEOPLE} soldiers in {LOC} .
{LOC} mayor {PER} and {ORG} director {PER} opened the bridge .
""",
}
Named = tuple[list[str], list[tuple[int, int, str]]]  # words, and (first, one past last, label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="file of Docs, in the folder that ready_data.py wrote")
    parser.add_argument("--reports", type=int, default=REPORTS, help="how many Docs")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    options = parser.parse_args()
    nlp = spacy.blank("en")
    names = read_frame_names(nlp, options.data, options.output.parent)
    draw = random.Random(options.seed)
    docs = [make_report(nlp, names, draw) for _ in range(options.reports)]
    write_docbin(docs, options.output)
    entities = sum(len(doc.ents) for doc in docs)
    print(f"{options.output.stem}: {len(docs):,} documents, {sum(map(len, docs)):,} words, {entities:,} entities")


def read_frame_names(nlp: Language, data: Path, corpus: Path) -> dict[str, list[list[str]]]:
    """What frames are filled with: names of gazetteers, and persons of two data sets. data: folder of the data sets;
    corpus: folder that ready_data.py wrote."""
    files = [corpus / f"{name}.train.spacy" for name in ("wikigold", "redocred")]
    seen = [doc for path in files for doc in read_docbins(path, nlp.vocab)]
    return read_names(data / "wikidata_slice", seen)


def make_report(nlp: Language, names: Mapping[str, Sequence[Sequence[str]]], draw: random.Random) -> Doc:
    """A headline, a dateline, and lines of one kind; some of each are left out."""
    frames = [draw.choice(_lines(HEADS)) for _ in range(draw.choice((0, 1, 1, 2)))]
    frames += [draw.choice(_lines(DATELINES)) for _ in range(draw.choice((0, 1, 1)))]
    kind = draw.choice(list(REPORT_KINDS))
    lines = _lines(REPORT_KINDS[kind])
    frames += [draw.choice(lines) for _ in range(draw.randint(2, 7))]
    words: list[str] = []
    starts: list[bool] = []
    mentions: list[tuple[int, int, str]] = []
    for frame in frames:
        own, named = fill(frame, names, draw)
        if frame[-1] == "." and draw.random() < CAPITALS:
            own = [word.upper() for word in own]
        mentions += [(a + len(words), b + len(words), label) for a, b, label in named]
        words += own
        starts += [i == 0 for i in range(len(own))]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    doc.set_ents([Span(doc, a, b, label=label) for a, b, label in mentions])
    return doc


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def fill(frame: str, names: Mapping[str, Sequence[Sequence[str]]], draw: random.Random) -> Named:
    """The words of a frame with names in the place of its marks. A city or a country stands in it once."""
    words: list[str] = []
    mentions: list[tuple[int, int, str]] = []
    used: set[str] = set()
    for part in re.findall(r"\[[^]]+]|\S+", frame.lstrip("!")):
        if match := re.fullmatch(r"\[(.+)\|(\w+)]", part):
            new, label = match[1].split(), match[2]
        elif match := re.fullmatch(r"\{([A-Z]+)}", part):
            new, label = draw_name(match[1], names, used, draw), KINDS.get(match[1], "")
        else:
            new, label = [re.sub(r"\{([a-z])}", lambda x: draw_value(x[1], draw), part)], ""
        if label:
            mentions.append((len(words), len(words) + len(new), label))
        words += new
    return [word.upper() for word in words] if frame[0] == "!" else words, mentions


def draw_name(
    mark: str, names: Mapping[str, Sequence[Sequence[str]]], used: set[str], draw: random.Random
) -> list[str]:
    """Words of a name that the frame does not have yet."""
    while True:
        name = _draw_any(mark, names, draw)
        if " ".join(name) not in used:
            used.add(" ".join(name))
            return name


def _draw_any(mark: str, names: Mapping[str, Sequence[Sequence[str]]], draw: random.Random) -> list[str]:
    if mark == "NATION":
        return draw.choice(sorted(country_names())).split()
    if mark == "PEOPLE":
        return draw.choice([x for x in sorted(peoples()) if x.istitle()]).split()
    if mark in ("PER", "LAST", "SHORT"):
        first, last = draw.choice([x for x in draw.choices(names["PER"], k=50) if len(x) == 2])
        return {"PER": [first, last], "LAST": [last], "SHORT": [f"{first[0]}.", last]}[mark]
    if mark == "ORG":
        return list(draw.choice(names["ORG"]))
    # The best known cities come first in the gazetteer: half of what is drawn is of these.
    city = list(draw.choice(names["LOC"][: draw.choice((1_000, len(names["LOC"])))]))
    if mark == "CLUB":
        kind = draw.random()
        return [*city, draw.choice(ENDINGS)] if kind < 0.2 else [draw.choice(STARTS), *city] if kind < 0.25 else city
    return [*city, "Newsroom" if draw.random() < 0.7 else "Bureau"] if mark == "DESK" else city


def draw_value(mark: str, draw: random.Random) -> str:
    if mark == "m":
        return draw.choice(MONTHS)
    least, most = {"d": (1, 31), "s": (1, 9), "n": (0, draw.choice((3, 9, 99, 999)))}[mark]
    return str(draw.randint(least, most))


if __name__ == "__main__":
    main()
