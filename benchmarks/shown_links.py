"""Links that the ready pipeline shows in three sets that nothing was learned from, and of names that people try.

    python benchmarks/shown_links.py PIPELINE      # results/shown_links.json and shown_links.md

MSNBC, AIDA's testb and RSS-500 are read, and their links judged, as by `scripts/ready_linker.py`, which makes the
linker: mentions are those that the pipeline finds; shown are links with a score of the threshold at least;
found is what is right, of the gold mentions whose entity the knowledge base has. Countries are those of
`spacy_luke/kb/starter/countries.tsv`, in one sentence each; other names are in sentences that say nothing else of them.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import numpy as np
import spacy
from machine import describe_machine
from measuring import data_parser, interval_of_share, share, title_of, write_report
from ready_linker import is_unseen, judge_shown, read_examples, there
from spacy.language import Language
from spacy.training import Example

from spacy_luke.annotations import NIL
from spacy_luke.kb.starter.peoples import is_people
from spacy_luke.kb.starter.places import COUNTRIES, read_table_lines

SENTENCE = "She moved to {} in 1990."
NAMES = ("Putin", "Obama", "Google", "New York", "the EU", "the FBI")
PLAIN = (
    "He wrote about {} in 2015.",
    "{} was in the news again on Friday.",
    "Much has been said of {} since then.",
    "We talked about {}.",
    "They like {}.",
    "{}",
)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


class Link(NamedTuple):
    """text: its number in the set; place: characters; people: whether the name is that of a people ("American")."""

    text: int
    place: str
    label: str
    score: float
    right: bool
    people: bool


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("pipeline", help="folder or name of the ready pipeline")
    options = parser.parse_args()
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    threshold = linker.cfg["threshold"]
    result = {"pipeline": title_of(nlp), "threshold": threshold}
    result |= {"countries": link_countries(nlp), "names": {x: score_name(nlp, x) for x in NAMES}}
    linker.cfg["threshold"] = min(*THRESHOLDS, threshold)
    names = [name for name in there(options.data) if is_unseen(name)]
    sets = {name: find_links(linker, part) for name, part in read_examples(nlp, linker.kb, options.data, names).items()}
    result |= {"sets": sets, **describe_machine()}
    write_report("shown_links", result, make_report(result))


def link_countries(nlp: Language) -> dict[str, str]:
    """The countries whose name is not linked to them, and what it is linked to; "" of one that has no link."""
    found = {}
    for doc, (name, item) in nlp.pipe(((SENTENCE.format(x), (x, q)) for x, q in read_countries()), as_tuples=True):
        links = {x.kb_id_ for x in doc.ents} - {"", NIL}
        if links != {item}:
            found[name] = " ".join(sorted(links))
    return found


def read_countries() -> list[tuple[str, str]]:
    """Names and items of Wikidata."""
    return [(name, item) for _, (_, item, name, *_) in read_table_lines(COUNTRIES, columns=6)][1:]


def score_name(nlp: Language, name: str) -> list[float]:
    """The score of the name's best candidate beside NIL in each sentence, 0.0 where the name is not found."""
    scores = []
    for sentence in PLAIN:
        text = sentence.format(name)
        ends = [x for x in nlp(text[0].upper() + text[1:]).ents if name.endswith(x.text)]
        candidates = [x for span in ends for x in span._.luke_candidates if x.id != NIL]
        scores.append(round(max((x.score for x in candidates), default=0.0), 4))
    return scores


def find_links(linker: Any, examples: Sequence[Example]) -> dict[str, Any]:
    """gold: of each text, how many mentions have an entity of the knowledge base; links: `Link`s."""
    docs = [x.predicted for x in examples]
    linker.set_annotations(docs, linker.predict(docs))
    found, known = [], []
    for i, example in enumerate(examples):
        gold, shown = judge_shown(example)
        known.append(gold)
        for span, right in shown:
            place = f"{span.start_char}-{span.end_char}"
            score = round(span._.luke_candidates[0].score, 4)
            found.append(Link(i, place, span.label_, score, right, is_people(span.text)))
    return {"gold": known, "links": found}


def make_report(result: Mapping[str, Any]) -> str:
    sets: dict[str, Any] = {
        name: {"gold": part["gold"], "links": [Link(*x) for x in part["links"]]}
        for name, part in result["sets"].items()
    }
    lines = [
        "# Links of the ready pipeline",
        "",
        f"Written by `python benchmarks/shown_links.py`: {result['pipeline']}, threshold {result['threshold']:.3f}.",
        "",
        "| set | texts | shown | right | found, of those in the knowledge base | wrong | of these names of peoples |",
        "| --- |" + " --- |" * 6,
    ]
    for name, part in sets.items():
        shown = [x for x in part["links"] if x.score >= result["threshold"]]
        wrong = [x for x in shown if not x.right]
        cells = [name, len(part["gold"]), f"{len(shown):,}", right(shown), found(shown, part["gold"])]
        lines.append(row(*cells, len(wrong), sum(x.people for x in wrong)))
    lines += ["", "All together, with 95 % of draws of texts:", ""]
    lines += ["| shown from the score of | shown | right | found |", "| --- |" + " --- |" * 3]
    gold = [n for part in sets.values() for n in part["gold"]]
    for threshold in sorted({*THRESHOLDS, round(result["threshold"], 3)}):
        parts = [(part["gold"], [x for x in part["links"] if x.score >= threshold]) for part in sets.values()]
        shown = [x for _, own in parts for x in own]
        low, high = interval(parts)
        spread = f"{right(shown)} ({low:.1f} to {high:.1f})"
        lines.append(row(threshold, f"{len(shown):,}", spread, found(shown, gold)))
    lines += ["", describe_countries(result["countries"]), ""]
    lines += [row("score of the best candidate in", *result["names"]), "| --- |" + " --- |" * len(result["names"])]
    for i, sentence in enumerate(PLAIN):
        lines.append(row(f'"{sentence.format("...")}"', *(f"{own[i]:.2f}" for own in result["names"].values())))
    return "\n".join(lines) + "\n"


def row(*cells: Any) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def describe_countries(others: Mapping[str, str]) -> str:
    known = len(read_countries())
    wrong = ", ".join(f"{name} ({item})" for name, item in others.items() if item)
    without = ", ".join(name for name, item in others.items() if not item)
    return (
        f'Of {known} countries in "{SENTENCE.format("...")}" {known - len(others)} are linked to themselves; to '
        f"something else: {wrong or 'none'}; to nothing: {without or 'none'}."
    )


def right(shown: Sequence[Link]) -> str:
    return share([x.right for x in shown])


def found(shown: Sequence[Link], gold: Sequence[int]) -> str:
    return f"{100 * sum(x.right for x in shown) / sum(gold):.1f} %"


def interval(parts: Sequence[tuple[Sequence[int], Sequence[Link]]]) -> tuple[float, float]:
    """Of what is right in what is shown, over texts."""
    counts = []
    for gold, links in parts:
        own = np.zeros((len(gold), 2))
        for x in links:
            own[x.text] += (x.right, 1)
        counts.append(own)
    return interval_of_share(np.concatenate(counts))


if __name__ == "__main__":
    main()
