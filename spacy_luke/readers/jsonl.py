"""JSON lines: a text and what is marked in it by characters, as annotation tools and this project write them.

A file that is one JSON list of such objects is read as well.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from ..annotations import NIL, Query, Question
from .corpora import GoldDocs, corpus
from .datasets.places import other_words, same_words
from .json_files import read_json_objects, take, take_strings
from .records import ALIGN, OVERLAPS, Mention, Place, Record, check_choice, make_doc

_LEFT_OUT = ("reject", "ignore")  # of Prodigy's "answer"
_WORDS = {"tokens", "words", "tokenized_text"}  # of the format "tokens"
_OTHER_LISTS = {"relations", "questions", "queries", "tokens"}  # of a line, which are no mentions; Prodigy's words
_SPANS_FIELDS = ("spans", "entities", "label", "labels")  # Prodigy; doccano with and without relations
# What a relation may look like: here, in doccano, and in Prodigy
_RELATION_FIELDS = ({"head", "tail", "label"}, {"from_id", "to_id", "type"}, {"head_span", "child_span", "label"})


def read_jsonl(
    path: str | Path, *, spans_field: str | None = None, counts: Counter[str] | None = None
) -> Iterator[Record]:
    """Records of a file, one after another, without lines that were rejected or ignored in Prodigy ("answer"), which
    `counts` gets under "notes: ...".

    A line is an object with "text" and a list of mentions, each `[start, end, label]` or an object with "start",
    "end" (or "start_offset", "end_offset"), "label" and perhaps "types", a list of strings, "kb_id", the id of its
    entity in a knowledge base, "NIL" for none (or "link", an object with "id", null for none, as `spacy luke apply`
    writes it), and "text", which must be what stands there. The list stands under `spans_field`, or under the one of
    "spans", "entities", "label" and "labels" that is there. Of a line without any nothing is known of the entities,
    and of one without "relations" nothing of these; `counts` gets both under "notes: ...", the latter where other
    lines have relations. There may be besides

    - "relations": objects with "head" and "tail", numbers of mentions in their list, and "label"; also as doccano
      ("from_id", "to_id", "type") and Prodigy ("head_span", "child_span", "label") write them;
    - "questions": objects with "question" and "answers", a list of [start, end], empty where the text has none;
    - "queries": objects with "query", which has @placeholder once, "answers", and perhaps "candidates", lists of
      [start, end]; the candidates are all mentions where none are given.

    Questions and queries may have an "id". Other fields are not read.

    Raises ValueError, naming the line, for a line that is not such an object, for offsets outside the text, and where
    the list of mentions may have another name.
    """
    known: Counter[bool] = Counter()  # documents with and without a list of relations
    for where, data in read_json_objects(path):
        if data.get("answer") not in _LEFT_OUT:
            record = _parse_line(where, data, spans_field)
            known[record.relations is not None] += 1
            yield record
        elif counts is not None:
            counts["notes: documents left out, since their answer is reject or ignore"] += 1
    if counts is not None and known[True] and known[False]:
        counts["notes: documents without a list of relations, of whose relations nothing is known"] += known[False]


def jsonl_docs(
    nlp: Language,
    path: str | Path,
    *,
    spans_key: str | None = None,
    spans_field: str | None = None,
    align: str = "strict",
    overlaps: str = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Doc]:
    """Docs of a file; see `make_jsonl_corpus`. counts: see `records.make_doc`."""
    for record in read_jsonl(path, spans_field=spans_field, counts=counts):
        yield make_doc(nlp, record, spans_key=spans_key, align=align, overlaps=overlaps, counts=counts)


@registry.readers("spacy-luke.JsonlCorpus.v1")
@corpus(noun="lines")
def make_jsonl_corpus(
    path: str | Path | None,
    spans_key: str | None = None,
    spans_field: str | None = None,
    align: str = "strict",
    overlaps: str = "error",
) -> GoldDocs:
    """A corpus for `spacy train` from JSON lines; a line is a Doc.

    path: the file.
    spans_key: the mentions go to doc.spans[spans_key]; None: to doc.ents, which cannot hold overlapping ones.
    spans_field: where a line has its mentions; None: see `read_jsonl`.
    align: "strict": a mention that does not begin and end with a word is an error; "expand": it grows to whole words;
        "split": the words are split there.
    overlaps: where mentions overlap and go to doc.ents, "error", or "outermost": the longest is kept, then the first.
    """
    if path is None:
        raise ValueError("A JSONL corpus needs the path of its file, but it is None; set it, or give --paths.train.")
    check_choice("align", align, ALIGN)
    check_choice("overlaps", overlaps, OVERLAPS)
    own: dict[str, Any] = {"spans_key": spans_key, "spans_field": spans_field, "align": align, "overlaps": overlaps}
    return GoldDocs(
        lambda nlp: jsonl_docs(nlp, path, **own),
        lambda gold, nlp: nlp.tokenizer(gold.text),
    )


def _parse_line(where: str, data: dict[str, Any], spans_field: str | None) -> Record:
    text = data.get("text")
    if not isinstance(text, str):
        advice = " Label Studio's exports are --format label_studio." if "data" in data else ""
        advice = " Words with tags are --format tokens." if _WORDS & set(data) else advice
        raise ValueError(f"{where}: expected an object with a string under 'text', but got {str(data)[:80]!r}.{advice}")
    wanted = _SPANS_FIELDS if spans_field is None else (spans_field,)
    there = [name for name in wanted if isinstance(data.get(name), list)]
    others = {name for name, value in data.items() if isinstance(value, list) and name not in _OTHER_LISTS}
    others |= {name for name in wanted if data.get(name) is not None}  # what is no list
    if len(there) > 1 or (not there and (others or spans_field is not None)):
        raise ValueError(
            f"{where}: expected one list of mentions under {' or '.join(map(repr, wanted))} (empty for a text without "
            f"any), but found {there or 'none'} among {sorted(data)}; set spans_field to the one to read."
        )
    items = data[there[0]] if there else []
    mentions = [_parse_mention(where, text, item) for item in items]
    links = any(isinstance(item, dict) and ("kb_id" in item or "link" in item) for item in items)
    relations = questions = queries = None
    if data.get("relations") is not None:
        found = take(where, data, "relations", list)
        relations = [_parse_relation(f"{where}, relation {i}", item, items, mentions) for i, item in enumerate(found)]
    if data.get("questions") is not None:
        found = take(where, data, "questions", list)
        questions = [_parse_question(f"{where}, question {i}", item, i, text) for i, item in enumerate(found)]
    if data.get("queries") is not None:
        found = take(where, data, "queries", list)
        queries = [_parse_query(f"{where}, query {i}", item, i, text, mentions) for i, item in enumerate(found)]
    return Record(
        where,
        text=text,
        mentions=mentions,
        has_entities=bool(there),
        relations=relations,
        questions=questions,
        queries=queries,
        links=links,
        notes={} if there else {"documents without a list of mentions, of whose entities nothing is known": 1},
    )


def _parse_mention(where: str, text: str, item: Any) -> Mention:
    parts, types, kb_id, said = item, None, "", None
    if isinstance(item, dict):
        start, end = (item.get(name, item.get(f"{name}_offset")) for name in ("start", "end"))
        parts = [start, end, item.get("label")]
        if item.get("types") is not None:
            types = take_strings(f"{where}, mention {parts}", item, "types")
        kb_id, said = _parse_link(where, item), item.get("text")
    is_triple = isinstance(parts, list) and len(parts) == 3
    if not is_triple or [type(part) for part in parts] != [int, int, str] or not parts[2]:
        raise ValueError(
            f"{where}: expected a mention as [start, end, label] or an object with these, but got {item!r}."
        )
    start, end, label = parts
    _check_characters(where, f"mention {item!r}", (start, end), text)
    if isinstance(said, str) and not same_words(said, text[start:end]):
        error = other_words(where, f"{start} {end}", said, text[start:end])
        raise ValueError(
            f"{error} Places count characters; JavaScript counts some, such as 😀, as two, and in some texts accents "
            "are characters of their own."
        )
    return Mention(start, end, label, types, kb_id)


def _parse_link(where: str, item: dict[str, Any]) -> str:
    """The id of the entity, NIL for none, "" where it is not said."""
    found = item.get("kb_id")
    if "link" in item and found is None:
        found = NIL if item["link"] is None else take(where, item["link"], "id", str)
    if found is not None and not (isinstance(found, str) and found.strip()):
        raise ValueError(f"{where}: expected the id of an entity as text, {NIL!r} for none, but got {found!r:.60}.")
    return found or ""


def _parse_relation(where: str, item: Any, items: list[Any], mentions: list[Mention]) -> tuple[int, int, str]:
    """Numbers of head and tail, and the label; see RELATION_FIELDS."""
    fields = next((fields for fields in _RELATION_FIELDS if isinstance(item, dict) and fields <= set(item)), None)
    if fields is None:
        raise ValueError(
            f"{where}: expected an object with 'head' and 'tail', numbers of mentions, and 'label', but got "
            f"{item!r:.80}."
        )
    if "head_span" in fields:
        numbers: dict[Any, int] = {(mention.start, mention.end): i for i, mention in enumerate(mentions)}
        ends: list[Any] = [(span.get("start"), span.get("end")) for span in (item["head_span"], item["child_span"])]
    elif "from_id" in fields:
        numbers = {entry["id"]: i for i, entry in enumerate(items) if isinstance(entry, dict) and "id" in entry}
        ends = [item["from_id"], item["to_id"]]
    else:
        numbers = {i: i for i in range(len(mentions))}
        ends = [take(where, item, name, int) for name in ("head", "tail")]
    if missing := [end for end in ends if end not in numbers]:
        raise ValueError(
            f"{where}: its head and tail must be among the {len(mentions)} mentions of the line (numbers count from "
            f"0), but {missing[0]!r} is not."
        )
    label = take(where, item, "type" if "from_id" in fields else "label", str)
    if not label:
        raise ValueError(f"{where}: expected a relation, but its label is empty.")
    return numbers[ends[0]], numbers[ends[1]], label


def _parse_question(where: str, item: Any, number: int, text: str) -> Question:
    asked = take(where, item, "question", str)
    question = Question(id=_id_of(item, number), question=asked)
    if item.get("answers") is not None:
        question["answers"] = _parse_places(where, item, "answers", text)
    return question


def _parse_query(where: str, item: Any, number: int, text: str, mentions: Sequence[Mention]) -> Query:
    """The candidates are all mentions where none are given."""
    asked = take(where, item, "query", str)
    query = Query(id=_id_of(item, number), query=asked)
    if item.get("candidates") is not None:
        candidates = _parse_places(where, item, "candidates", text)
    else:
        candidates = [list(place) for place in dict.fromkeys((m.start, m.end) for m in mentions)]
    query["candidates"] = candidates
    if item.get("answers") is None:
        return query
    answers = query["answers"] = _parse_places(where, item, "answers", text)
    if wrong := [place for place in answers if place not in candidates]:
        raise ValueError(
            f"{where}: the answer {wrong[0]} is none of its {len(candidates)} candidates (all mentions, where "
            f"'candidates' is not given), and so could never be found."
        )
    if not answers:
        raise ValueError(
            f"{where}: expected the places of its answers, but there are none; leave 'answers' out if unknown."
        )
    return query


def _id_of(item: dict[str, Any], number: int) -> str:
    return str(number if item.get("id") is None else item["id"])


def _parse_places(where: str, item: dict[str, Any], name: str, text: str) -> list[list[int]]:
    """Places of the text, each once."""
    places: list[list[int]] = []
    for place in take(where, item, name, list):
        if not isinstance(place, list) or [type(x) for x in place] != [int, int]:
            raise ValueError(f"{where}: expected [start, end] under {name!r}, but got {place!r}.")
        _check_characters(where, f"{name} {place}", (place[0], place[1]), text)
        if place not in places:
            places.append(place)
    return places


def _check_characters(where: str, name: str, place: Place, text: str) -> None:
    start, end = place
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise ValueError(
            f"{where}: {name} must hold characters of the text, which has {len(text)} of them, and not blanks alone."
        )
