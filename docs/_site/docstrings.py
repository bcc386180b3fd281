"""Docstrings of the house as Markdown: `name: what it means` of a parameter becomes an item of a list."""

import re
from typing import Any

import griffe

PLACE = r"(?:^|(?<=; )|(?<=\. )|(?<=\.\n)|(?<=;\n))"


def as_markdown(text: str, names: list[str]) -> str:
    """The docstring of an object whose parameters or fields have these names."""
    paragraphs = []
    mark = re.compile(rf"{PLACE}((?:{'|'.join(map(re.escape, names))})(?:, (?:\w+))*): ") if names else None
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = re.sub(r"(?:^|\s)RETURNS: ", "\n\n**Returns** ", paragraph)
        found = list(mark.finditer(paragraph)) if mark else []
        starts = [x.start() for x in found] + [len(paragraph)]
        before = paragraph[: starts[0]].strip()
        if before:
            paragraphs.append(before)
        items = [paragraph[a:b].strip().rstrip(";") for a, b in zip(starts, starts[1:])]
        lists, after = [], ""
        for item in items:
            item, returns, rest = item.partition("\n\n**Returns** ")
            after = f"**Returns** {rest}" if returns else ""
            name, _, meaning = item.partition(": ")
            meaning, raises, rest = meaning.partition(" Raises ")
            after = f"Raises {' '.join(rest.split())}" if raises else after
            shown = ", ".join(f"`{x}`" for x in name.split(", "))
            lists.append(f"- {shown}: {' '.join(meaning.split())}")
        if lists:
            paragraphs.append("\n".join(lists))
        if after:
            paragraphs.append(after)
    return "\n\n".join(paragraphs)


class HouseDocstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        if obj.is_function:
            names = [x.name.lstrip("*") for x in obj.parameters]  # type: ignore[attr-defined]
        elif obj.is_class:
            made = obj.members.get("__init__")
            names = [x.name for x in getattr(made, "parameters", [])]
            names += [name for name, x in obj.members.items() if x.is_attribute]
        else:
            names = []
        obj.docstring.value = as_markdown(obj.docstring.value, names)
