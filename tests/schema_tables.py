"""The forms of annotations and graphs for docs/reference, as tables; that of annotations as a file for programs too."""

import json
from pathlib import Path
from typing import Any

from spacy_luke.facts.forms import Evidence, GraphEdge, GraphMention, GraphNode, TextPlace
from spacy_luke.pages.schema import FORMAT, json_schema

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
FILE, PAGE, GRAPH_PAGE = REFERENCE / "annotations.json", REFERENCE / "annotations.md", REFERENCE / "graph.md"
HEAD = f"""# Annotations as JSON

What a pipeline found in a text has one form, for the page of `annotate`, the service, the parts that `apply` writes and
programs: `{FORMAT}`. [annotations.json](annotations.json) is its JSON schema; a table of Parquet has its fields as
columns. In Python `as_form(findings)` makes it, an `AnnotatedText`, and `AnnotatedText.model_validate_json(line)` reads
and checks it.

Places are characters of the text, as Python counts them: code points of Unicode. JavaScript and Java count UTF-16
units, in which an emoji is two. Scores are from 0 to 1, rounded to six digits, `null` where nobody told one. Within a
version fields may be added; what a field means, and which are there, stays.
"""

GRAPH_HEAD = """# Graphs as JSON lines

What [`graph`](../howto/graph.md) writes: `nodes.jsonl`, `edges.jsonl` and `mentions.jsonl` have a line for each node,
edge and mention. In Python `FactGraph.open(folder)` of `spacy_luke.api` gives them by `nodes()`, `edges()` and
`mentions()`. `manifest.json` has the version of the lines, the settings, what was left out and why, and digests.

Ids of nodes: `Q84`, an item of Wikidata; `kb:ID`, an entity of a knowledge base that does not tell the item, or, with
`--own-ids`, that has another id than its item; `nil:HEX`, a thing that no knowledge base has; `value:HEX`, a date or a
number. Places are characters of the document, code points of Unicode.
"""


def draw_file() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def draw_page() -> str:
    schema = json_schema()
    parts = {"AnnotatedText": schema, **schema["$defs"]}
    order = ["AnnotatedText", *sorted(schema["$defs"], key=_place_in(schema))]
    return "\n".join([HEAD, *(_table(name, parts[name]) for name in order)])


def draw_graph_page() -> str:
    forms = (GraphNode, GraphEdge, Evidence, TextPlace, GraphMention)
    return "\n".join([GRAPH_HEAD, *(_table(x.__name__, x.model_json_schema()) for x in forms)])


def _place_in(schema: dict[str, Any]) -> Any:
    """Parts in the order in which they are first needed."""
    text = json.dumps({"properties": schema["properties"], **schema["$defs"]})
    return lambda name: text.index(f'"#/$defs/{name}"')


def _table(name: str, part: dict[str, Any]) -> str:
    rows = [f"| `{key}` | {_kind(field)} | {field['description']} |" for key, field in part["properties"].items()]
    about = " ".join(part["description"].split())
    return "\n".join([f"## {name}", "", about, "", "| field | value | what it is |", "| --- | --- | --- |", *rows, ""])


def _kind(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(map(_kind, field["anyOf"]))
    if "prefixItems" in field:
        return f"[{', '.join(map(_kind, field['prefixItems']))}]"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}"
    if field.get("additionalProperties") is True:
        return "object"
    if "additionalProperties" in field:
        return f"object with a {_kind(field['additionalProperties'])} each"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(x)}`" for x in field["enum"])
    return str(field["type"])


if __name__ == "__main__":
    FILE.write_text(draw_file(), encoding="utf8")
    PAGE.write_text(draw_page(), encoding="utf8")
    GRAPH_PAGE.write_text(draw_graph_page(), encoding="utf8")
