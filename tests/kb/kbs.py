"""Small knowledge bases, from tables and dumps written here."""

import json

from spacy_luke.kb.build import build_kb

ENTITIES = [
    {"id": "Japan", "names": ["Japan", "Nippon"], "description": "A country in Asia.", "count": 90},
    {"id": "Japan national football team", "names": ["Japan"], "count": 10},
    {"id": "United States", "names": ["US", "United States", "America"], "description": "A country.", "count": 200},
    {"id": "Us (band)", "names": ["us"], "count": 1},
    {"id": "Bill Clinton", "names": ["Bill Clinton", "Clinton"], "count": 40, "person": True},
    {"id": "Hillary Clinton", "names": ["Hillary Clinton", "Clinton"], "count": 60, "person": True},
    {"id": "Clinton, Iowa", "names": ["Clinton", "Clinton, Iowa"], "description": "A city.", "count": 100},
    {"id": "São Paulo", "names": ["São Paulo", "Sampa"], "description": "Uma cidade – «grande».", "count": 7},
]


def write_entities(path, rows=ENTITIES):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf8")
    return path


def small_kb(folder, rows=ENTITIES, **settings):
    return build_kb([write_entities(folder / "entities.jsonl", rows)], folder / "kb", **settings).kb


def dump_of(pages):
    """A Wikipedia dump of pages by their titles."""
    body = "".join(
        f"<page><title>{title}</title><ns>{int(title.startswith('Talk:'))}</ns><revision><text>{text}</text></revision></page>"
        for title, text in pages.items()
    )
    return f'<mediawiki><siteinfo><namespaces><namespace key="1">Talk</namespace></namespaces></siteinfo>{body}</mediawiki>'  # noqa: E501
