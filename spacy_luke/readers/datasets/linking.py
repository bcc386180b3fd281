"""What readers of entity linking share: titles as ids of entities, and mentions beside their offset."""

import html

from ...annotations import NIL

REACH = 40  # characters that a mention may stand away from its offset


def title_of(name: str | None) -> str:
    """A Wikipedia title as an entity's id: blanks instead of underscores, HTML's escapes undone; NIL where none is."""
    title = html.unescape(name or "").replace("_", " ").strip()
    return title or NIL


def find_near(text: str, form: str, offset: int) -> int | None:
    """Where `form` stands in the text nearest to `offset`, at most 40 characters away; None where it does not."""
    if text.startswith(form, offset):
        return offset
    low = max(0, offset - REACH)
    places = [i for i in range(low, min(len(text), offset + REACH + 1)) if text.startswith(form, i)]
    return min(places, key=lambda place: (abs(place - offset), place), default=None)
