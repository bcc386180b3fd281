"""Annotated documents of few words, and graphs of them."""

from pathlib import Path

from spacy_luke.facts.build import build_facts
from spacy_luke.facts.settings import FactSettings
from spacy_luke.pages.schema import FORMAT, AnnotatedText

HOSTILE = 'A "q", b; \\c\\\r\nd\t{e}|^`<f>\x1f\x00 %41 😀 \u2028 é $ # @en ^^x'


def link(id, *, wikidata=None, title="", score=0.9, url="", types=()):
    """As annotations have it; the id is Wikidata's where nothing else is said."""
    known = {"title": title, "description": "", "url": url, "types": list(types)}
    return {"id": id, "wikidata": id if wikidata is None else wikidata, **known, "score": score, "candidates": []}


def document(id, parts, relations=(), *, sentences="all", scores=()):
    """parts: words, and mentions (text, label) or (text, label, link), with a blank between them; relations: (number of
    head, label, number of tail, score), or with a property behind; scores: of the mentions, else 0.9."""
    text, entities = "", []
    for part in parts:
        text += " " if text else ""
        if not isinstance(part, str):
            start, number = len(text), len(entities)
            text += part[0]
            place = {"id": number, "start": start, "end": len(text), "text": part[0], "label": part[1]}
            score = scores[number] if number < len(scores) else 0.9
            entities.append({**place, "score": score, "types": [], "link": part[2] if len(part) > 2 else None})
        else:
            text += part
    ends = [{"entity": x["id"], **{k: x[k] for k in ("start", "end", "text")}} for x in entities]
    return AnnotatedText.model_validate(
        {
            "format": FORMAT,
            "id": id,
            "pipeline": "en_test 1",
            "language": "en",
            "text": text,
            "words": len(text.split()),
            "sentences": [(0, len(text))] if sentences == "all" else sentences,
            "entities": entities,
            "relations": [
                {"head": ends[x[0]], "label": x[1], "property": (*x, "")[4], "tail": ends[x[2]], "score": x[3]}
                for x in relations
            ],
            "answers": [],
        }
    )


def write_lines(path: Path, documents) -> Path:
    path.write_text("".join(x.model_dump_json() + "\n" for x in documents), encoding="utf8")
    return path


def make_graph(folder: Path, documents, *, name="graph", previous=None, formats=(), room=1 << 27, **settings):
    """The graph of documents, in a folder of its own."""
    lines = write_lines(folder / f"{name}.jsonl", documents)
    return build_facts(
        [lines],
        folder / name,
        settings=FactSettings(**settings),
        previous=previous,
        formats=formats,
        room=room,
    )


def hostile_documents():
    """Names, ids, labels and texts with all that a format must escape."""
    wild = (
        HOSTILE,
        HOSTILE,
        link(HOSTILE, wikidata="", title=HOSTILE, url=f"https://a.org/{HOSTILE}", types=[HOSTILE]),
    )
    return [
        document(
            HOSTILE,
            [wild, "met", (f"NIL {HOSTILE}", "PER"), "in", ("London", "LOC", link("Q84")), "in", ("1955\n", "TIME")],
            [
                (0, HOSTILE, 1, 0.5),
                (1, "place of birth", 2, 0.75, "P19"),
                (0, "born", 3, 1.0),
                (3, "of", 0, 0.25, "x y"),
            ],
        ),
        document(
            "plain", [("Ada", "PER", link("Q7259")), "saw", ("London", "LOC", link("Q84"))], [(0, "in", 1, 0.125)]
        ),
    ]
