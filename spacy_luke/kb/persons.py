"""Persons that a text names in full once and by a part of the name later: "Bill Clinton ... Clinton"."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..aliases.store import Candidate
from .knowledge_base import EntityKB


def share_person_names(
    mentions: Sequence[str], candidates: Sequence[Sequence[Candidate]], kb: EntityKB
) -> list[list[Candidate]]:
    """The candidates of a document's mentions, of which those that are a part of a person's name get the person's.

    mentions: their texts; candidates: those of each, the best first. A mention whose text is one or more whole words of
    another mention's text, in any case, gets that one's candidates in place of its own, where the first of these is a
    person in `kb`; those of several are averaged. Two mentions of the same text do not share. As mulrel-nel's
    `with_coref` (Le and Titov 2018), which LUKE's code for entity disambiguation has taken over.
    """
    if len(mentions) != len(candidates):
        raise ValueError(f"Expected the candidates of {len(mentions)} mentions, but got those of {len(candidates)}.")
    texts = [" ".join(text.lower().split()) for text in mentions]
    persons = Counter(
        (text, tuple(own)) for text, own in zip(texts, candidates, strict=True) if own and _is_person(own[0], kb)
    )
    shared: dict[str, list[Candidate]] = {}
    for text in set(texts) - {""}:
        full = [(own, n) for (name, own), n in persons.items() if text != name and f" {text} " in f" {name} "]
        if full:
            shared[text] = _average(full)
    return [list(shared.get(text, own)) for text, own in zip(texts, candidates, strict=True)]


def _is_person(candidate: Candidate, kb: EntityKB) -> bool:
    return kb.is_person(kb.row(candidate.entity))


def _average(full: Sequence[tuple[tuple[Candidate, ...], int]]) -> list[Candidate]:
    """full: candidates, and how many mentions have them."""
    total = sum(n for _, n in full)
    priors: dict[str, float] = defaultdict(float)
    for own, n in full:
        for entity, prior in own:
            priors[entity] += n * prior
    best = sorted(priors.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Candidate(entity, prior / total) for entity, prior in best]
