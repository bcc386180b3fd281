"""Scores of entity linking: of given mentions, as the papers on disambiguation count (in-KB accuracy and F1), and
end to end, as GERBIL counts a strong annotation match (Röder et al., 2018)."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry

from ..annotations import (
    LINKS,
    NIL,
    Place,
    get_candidates_given,
    get_entities,
    get_linked,
    gold_place_finder,
    unknown_places,
)
from .counts import get_spans, prf

KEYS = (
    *("links_accuracy", "links_macro_accuracy", "links_p", "links_r", "links_f", "links_macro_f"),
    *("links_strict_p", "links_strict_r", "links_strict_f", "links_strict_macro_f", "links_candidate_recall"),
    *("links_mentions_p", "links_mentions_r", "links_mentions_f"),
    *("links_nil_p", "links_nil_r", "links_nil_f"),
)


class Links(NamedTuple):
    """Gold and prediction of a document, in characters of the prediction's text."""

    gold: dict[Place, frozenset[str]]  # ids of each gold mention that has any; several: each is right
    unknown: set[Place]  # gold mentions whose entity is not said
    predicted: dict[Place, frozenset[str]]  # ids of each predicted mention, none where it is not linked
    candidates: dict[Place, frozenset[str]] | None  # ids proposed for mentions; None: it is not said


class Counts(NamedTuple):
    """Of one document."""

    known: int  # gold mentions with an entity of the knowledge base
    answered: int  # of them those with at least one candidate
    right: int  # of them those with the right entity
    reachable: int | None  # of them those whose entity is a candidate; None: candidates are not said
    strict: PRFScore
    mentions: PRFScore
    nil: PRFScore


@registry.scorers("spacy-luke.linking_scorer.v1")
def make_linking_scorer(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_linker`: `score_links`.

    spans_key: predicted mentions are in doc.spans[spans_key]; None: in doc.ents.
    """
    return partial(_score, spans_key)  # not a function in here, which could not be pickled


def _score(spans_key: str | None, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    return score_links(examples, spans_key=kwargs.get("spans_key") or spans_key)


def score_links(examples: Iterable[Example], *, spans_key: str | None = None) -> dict[str, Any]:
    """Scores (0 to 1) of predicted entities (`kb_id_`) against gold ones.

    Gold mentions are those of doc.spans["luke_links"] where the gold doc has it, else of doc.ents. A span that stands
    there with several ids is one mention, for which each is right. A gold id is right that is any id (title, Wikidata
    id) of the entity that was found, as `span._.luke_entity` says. Mentions are compared by their characters, ids as
    strings. A mention without an id is one whose entity is not said: predictions for it count as mentions alone. Words
    whose annotation is missing (ent_iob 0) are not scored, nor predictions that touch them.

    Disambiguation, of gold mentions whose entity is in the knowledge base; those with gold NIL do not count, as in
    Yamada et al. (2022), Le and Titov (2018), De Cao et al. (2021) and others:
    links_accuracy: share with the right entity, over all of them ("in-KB accuracy"); links_macro_accuracy: mean of the
        documents' shares, over documents with such mentions.
    links_p, _r, _f: precision of the mentions with at least one candidate (as `span._.luke_candidates` or the given
        ones say, or else those that are linked), recall of all; micro. Recall is the accuracy. A mention that has
        candidates and is not linked costs precision. links_macro_f: mean of the documents' F1.
    links_candidate_recall: share whose entity is among the candidates.

    End to end (Röder et al., 2018, "strong annotation match"; entities alone):
    links_strict_p, _r, _f: span and id must be right; a predicted NIL is no prediction, gold NIL no gold, so that a
        link of such a mention is wrong. links_strict_macro_f: mean of the documents' F1, over those with gold or
        predictions.
    links_mentions_p, _r, _f: spans of all mentions, NIL or not.
    links_nil_p, _r, _f: of the gold mentions that are found, those without a link, which should have none.

    All are None where no gold mention has an id, and others where there is nothing to divide by.
    """
    found = (links for example in examples if (links := read_links(example, spans_key)) is not None)
    counts = [one for links in found if (one := _count(links)) is not None]
    if not counts:
        return dict.fromkeys(KEYS)
    known, right = sum(one.known for one in counts), sum(one.right for one in counts)
    answered = sum(one.answered for one in counts)
    with_known = [one for one in counts if one.known]
    strict, mentions, nil = PRFScore(), PRFScore(), PRFScore()
    for one in counts:
        strict += one.strict
        mentions += one.mentions
        nil += one.nil
    reachable = [one.reachable for one in with_known if one.reachable is not None]
    precision, recall = _share(right, answered), _share(right, known)
    return {
        "links_accuracy": recall,
        "links_macro_accuracy": _mean([one.right / one.known for one in with_known]),
        "links_p": precision,
        "links_r": recall,
        "links_f": None if recall is None else _f1(precision or 0.0, recall),
        "links_macro_f": _mean([_f1(_share(x.right, x.answered) or 0.0, x.right / x.known) for x in with_known]),
        **prf("links_strict", strict),
        "links_strict_macro_f": _mean([one.strict.fscore for one in counts if len(one.strict)]),
        "links_candidate_recall": _share(sum(reachable), known) if reachable else None,
        **prf("links_mentions", mentions),
        **prf("links_nil", nil),
    }


def link_rows(scores: dict[str, float | None]) -> list[tuple[str, ...]]:
    """A table of `score_links`: name, P, R, F1 in percent, "" where there is none; no rows where nothing was scored."""
    table = [
        ("given mentions, micro", "links_p", "links_r", "links_f"),
        ("given mentions, macro", "", "links_macro_accuracy", "links_macro_f"),
        ("end to end, micro", "links_strict_p", "links_strict_r", "links_strict_f"),
        ("end to end, macro", "", "", "links_strict_macro_f"),
        ("mentions found", "links_mentions_p", "links_mentions_r", "links_mentions_f"),
        ("NIL, of mentions found", "links_nil_p", "links_nil_r", "links_nil_f"),
        ("entity among the candidates", "", "links_candidate_recall", ""),
    ]
    rows = [
        (name, *("" if (x := scores.get(key)) is None else f"{100 * x:.2f}" for key in keys)) for name, *keys in table
    ]
    return [row for row in rows if any(row[1:])]


def read_links(example: Example, spans_key: str | None) -> Links | None:
    """None where nothing is gold. spans_key: the group of the predicted mentions; None: doc.ents."""
    gold_doc, doc = example.reference, example.predicted
    key = LINKS if LINKS in gold_doc.spans else None
    if key is None and not gold_doc.has_annotation("ENT_IOB"):
        return None
    find = gold_place_finder(example)
    gold = {find(*place): ids for place, ids in _ids(get_spans(gold_doc, key)).items()}
    missing = unknown_places(gold_doc, find)
    predicted = {
        place: ids - {NIL}
        for place, ids in _ids(get_spans(doc, spans_key)).items()
        if place in gold or not any(start < place[1] and place[0] < end for start, end in missing)
    }
    for place, entity in get_entities(doc).items():
        if predicted.get(place, frozenset()) & entity.ids() and gold.get(place, frozenset()) & entity.ids():
            predicted[place] = gold[place] & entity.ids()  # the same entity by another of its ids
    linked = get_linked(doc)
    proposed = get_candidates_given(doc) if linked is None else linked
    candidates = None
    if proposed is not None:
        candidates = {(one.start, one.end): frozenset(x.id for x in one.candidates) for one in proposed}
    unknown = {place for place, ids in gold.items() if not ids}
    return Links({place: ids for place, ids in gold.items() if ids}, unknown, predicted, candidates)


def _ids(spans: Sequence[Span]) -> dict[Place, frozenset[str]]:
    ids: dict[Place, set[str]] = {}
    for span in spans:
        found = ids.setdefault((span.start_char, span.end_char), set())
        found.update([span.kb_id_] if span.kb_id_ else [])
    return {place: frozenset(found) for place, found in ids.items()}


def _count(links: Links) -> Counts | None:
    """None where the gold has mentions, but says the entity of none."""
    if links.unknown and not links.gold:
        return None
    gold = {place: ids - {NIL} for place, ids in links.gold.items() if ids != {NIL}}
    answered = right = reachable = 0
    for place, ids in gold.items():
        found = links.predicted.get(place, frozenset())
        proposed = None if links.candidates is None else links.candidates.get(place)
        answered += bool(found) if proposed is None else bool(proposed or found)
        right += bool(found) and found <= ids
        reachable += bool(proposed and proposed & ids)
    strict, mentions = PRFScore(), PRFScore()
    for place, ids in links.predicted.items():
        if ids and place not in links.unknown:
            strict.tp += ids <= gold.get(place, frozenset())
            strict.fp += not ids <= gold.get(place, frozenset())
    strict.fn = len(gold) - strict.tp
    mentions.score_set(set(links.predicted), set(links.gold) | links.unknown)
    nil = PRFScore()
    both = links.predicted.keys() & links.gold.keys()
    nil.score_set({x for x in both if not links.predicted[x]}, both - gold.keys())
    return Counts(len(gold), answered, right, None if links.candidates is None else reachable, strict, mentions, nil)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
