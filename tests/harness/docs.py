"""Random Docs through all components: what is written is sound, and says the same however the Docs come.

One case is a batch of Docs in one of the pipelines. It runs once as one batch and once in another way (VARIANTS), and
both must agree. Texts do not change, spans lie in the Doc, scores are probabilities, entities that were there are kept.
"""

import math
import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations import get_all_rows, get_rows

from .documents import Asked, draw_doc, draw_junk
from .refusals import is_documented
from .runner import Kind, Outcome
from .stand import STANDS, make_stand, make_stores

BATCH = 40
VARIANTS = {
    "one by one": 4,
    "batches of 7": 4,
    "shuffled": 4,
    "Docs as bytes": 3,
    "pipeline as bytes": 1,
    "processes": 0.05,
}
TOLERANCE = 2e-4
JUNKED = 2  # Docs of a case that are read again with junk


class DocsKind(Kind):
    name, unit, wanted, slow, limit, share = "docs", "Docs", 100_000, 600, 300.0, 30

    def prepare(self, folder: Path) -> None:
        make_stores(folder / "stores")
        self.pipelines = {name: make_stand(name, folder / "stores") for name in STANDS}

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        name = rng.choice(list(STANDS))
        nlp = self.pipelines[name]
        asked = [x for x in (draw_doc(rng, nlp) for _ in range(BATCH)) if x is not None]
        outcome = Outcome(tried=len(asked), counts={name: len(asked), "refused by spaCy": BATCH - len(asked)})
        variant = rng.choices(list(VARIANTS), weights=list(VARIANTS.values()))[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                docs = list(nlp.pipe([x.make() for x in asked], batch_size=len(asked) or 1))
                others = run_variant(variant, nlp, asked, rng)
            except Exception as error:
                outcome.failures.append(f"{name}, {variant}: {_blame(nlp, asked, error)}")
                return outcome
        outcome.counts[variant] = len(asked)
        if len(docs) != len(asked):
            outcome.failures.append(f"{name}: {len(asked)} Docs went in, {len(docs)} came out")
        for i, (one, doc, other) in enumerate(zip(asked, docs, others)):
            wrong = [*check_doc(one, doc, keeps="sentences" not in name)]
            if difference := compare(read(doc), read(other)):
                wrong.append(f"{variant}: {difference}")
            outcome.failures += [f"{name}, Doc {i} {doc.text[:80]!r}: {text}" for text in wrong]
        for one in asked[:JUNKED]:
            _try_junk(name, nlp, one, rng, outcome)
        return outcome


def _try_junk(name: str, nlp: Language, asked: Asked, rng: random.Random, outcome: Outcome) -> None:
    """A Doc with junk where the package looks: it is refused by a ValueError, or nothing comes of it that is
    unsound."""
    doc = asked.make()
    key, junk = draw_junk(rng)
    doc.user_data[key] = junk
    what = f"{key} = {junk!r:.80}"
    outcome.tried += 1
    outcome.counts["junk"] = outcome.counts.get("junk", 0) + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nlp(doc)
            if doc.user_data.get(key) is junk:  # nobody has read or written it
                doc.user_data.pop(key, None)
            wrong = [*_check_places(doc), *_check_scores(doc)]
    except ValueError as error:
        if not (known := is_documented(error)):
            outcome.failures.append(f"{name}, Doc {doc.text[:40]!r} with {what}: {type(error).__name__}: {error}")
        outcome.refused += known
    except Exception as error:
        outcome.failures.append(f"{name}, Doc {doc.text[:40]!r} with {what}: {type(error).__name__}: {error}")
    else:
        outcome.failures += [f"{name}, Doc {doc.text[:40]!r} with {what}: {text}" for text in wrong]


def run_variant(variant: str, nlp: Language, asked: Sequence[Asked], rng: random.Random) -> list[Doc]:
    docs = [one.make() for one in asked]
    if variant == "one by one":
        return [nlp(doc) for doc in docs]
    if variant == "batches of 7":
        return list(nlp.pipe(docs, batch_size=7))
    if variant == "shuffled":
        order = rng.sample(range(len(docs)), len(docs))
        found = dict(zip(order, nlp.pipe([docs[i] for i in order], batch_size=rng.choice([3, 11, 100]))))
        return [found[i] for i in range(len(docs))]
    if variant == "Docs as bytes":
        docs = list(nlp.pipe([Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]))
        return [Doc(nlp.vocab).from_bytes(doc.to_bytes()) for doc in docs]
    if variant == "processes":
        return list(nlp.pipe(docs, n_process=2, batch_size=10))
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    return list(again.pipe([Doc(again.vocab).from_bytes(doc.to_bytes()) for doc in docs]))


def _blame(nlp: Language, asked: Sequence[Asked], error: Exception) -> str:
    """The first Doc that raises alone."""
    for i, one in enumerate(asked):
        try:
            nlp(one.make())
        except Exception as own:
            return f"Doc {i}, {one.make().text[:200]!r}: {type(own).__name__}: {own}; its cause: {own.__cause__ or own.__context__!r}"  # noqa: E501
    return f"{type(error).__name__}: {error} (no Doc alone raises)"


# ---- what a Doc says


def read(doc: Doc) -> dict[str, Any]:
    """Everything that components wrote, in lists, dicts, strings and numbers."""
    found: dict[str, Any] = {"text": doc.text, "words": [word.text for word in doc]}
    found["sentences"] = [word.is_sent_start for word in doc]
    found["iob"] = [word.ent_iob for word in doc]
    found["ents"] = [_read_span(span) for span in doc.ents]
    for key in sorted(doc.spans):
        scores = {name: [float(x) for x in values] for name, values in doc.spans[key].attrs.items()}
        found[f"spans {key}"] = [[_read_span(span) for span in doc.spans[key]], scores]
    found["rows"] = get_all_rows(doc)
    found["cats"] = dict(doc.cats)
    return found


def _read_span(span: Any) -> list[Any]:
    return [span.start, span.end, span.label_, span.kb_id_, span._.luke_score, dict(span._.luke_types or {})]


def compare(one: Any, other: Any, place: str = "") -> str:
    """Where the two first differ, "" where they do not; numbers may by TOLERANCE."""
    if isinstance(one, float) and isinstance(other, (int, float)):
        return "" if abs(one - other) <= TOLERANCE else f"{place}: {one} and {other}"
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        return next((x for key in one if (x := compare(one[key], other[key], f"{place}.{key}"))), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next((x for i, (a, b) in enumerate(zip(one, other)) if (x := compare(a, b, f"{place}[{i}]"))), "")
    return "" if type(one) is type(other) and one == other else f"{place}: {one!r:.300} and {other!r:.300}"


def check_doc(asked: Asked, doc: Doc, *, keeps: bool) -> Iterator[str]:
    """What is unsound in an annotated Doc. keeps: whether entities keep their labels."""
    before = asked.make()
    if before.text != doc.text or [x.text for x in before] != [x.text for x in doc]:
        yield f"the text or its words have changed: {before.text[:100]!r}"
    after = {(x.start, x.end): x.label_ for x in doc.ents}
    for start, end, label, _ in asked.kept:
        if (start, end) not in after or (keeps and after[start, end] != label):
            yield f"the entity [{start}, {end}) {label!r} that was there is not kept: {sorted(after)}"
    blocked = [word.i for word in before if word.ent_iob == 3 and not word.ent_type]
    if taken := [i for i in blocked if doc[i].ent_type]:
        yield f"words {taken} were blocked, but are entities"
    for key, spans in [("ents", doc.ents), *doc.spans.items()]:
        for span in spans:
            if not 0 <= span.start < span.end <= len(doc):
                yield f"{key}: words [{span.start}, {span.end}) of {len(doc)}"
    yield from _check_places(doc)
    yield from _check_scores(doc)


def _check_scores(doc: Doc) -> Iterator[str]:
    if wrong := [x for x in _scores(doc) if not (isinstance(x, float) and math.isfinite(x) and -1e-6 <= x <= 1 + 1e-6)]:
        yield f"{len(wrong)} scores are no probabilities, such as {wrong[0]!r}"


def _check_places(doc: Doc) -> Iterator[str]:
    size = len(doc.text)
    places: list[tuple[str, int, int]] = []
    for a, b, c, d, *_ in get_rows(doc, "luke_relations") or []:
        places += [("luke_relations", a, b), ("luke_relations", c, d)]
    for key in ("luke_answers", "luke_fillers"):
        places += [(key, a, b) for rows in get_rows(doc, key) or [] for a, b, _ in rows if (a, b) != (0, 0)]
    places += [("luke_linked", a, b) for a, b, _ in get_rows(doc, "luke_linked") or []]
    for key, start, end in places:
        if not 0 <= start < end <= size:
            yield f"{key}: characters [{start}, {end}) of {size}"
    for question, answers in (("luke_questions", "luke_answers"), ("luke_queries", "luke_fillers")):
        found = get_rows(doc, answers)
        if found is not None and len(found) != len(get_rows(doc, question) or []):
            yield f"{answers} are not one for each of {question}"
    for key in ("luke_relations", "luke_answers", "luke_fillers"):
        getattr(doc._, key)  # as Spans


def _scores(doc: Doc) -> Iterable[float]:
    yield from (row[5] for row in get_rows(doc, "luke_relations") or [])
    yield from (x[2] for key in ("luke_answers", "luke_fillers") for rows in get_rows(doc, key) or [] for x in rows)
    linked = get_rows(doc, "luke_linked") or []
    yield from (x for _, _, rows in linked for _, prior, score in rows for x in (prior, score))
    for spans in (doc.ents, *doc.spans.values()):
        yield from (x for span in spans for x in (span._.luke_types or {}).values())
        yield from (span._.luke_score for span in spans if span._.luke_score is not None)
    for group in doc.spans.values():
        yield from (float(x) for values in group.attrs.values() for x in values)
    yield from doc.cats.values()
