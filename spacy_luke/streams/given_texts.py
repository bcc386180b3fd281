"""What readers of inputs give: texts, and places where there should be one but none can be read."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

_DEEPEST = 100  # objects in objects, of a field


class GivenText(NamedTuple):
    """A text that a pipeline is given. id: the input's own, else its place, such as "texts.jsonl:17"; questions,
    queries: about it, strings or objects (see `set_questions`, `set_queries`); fields: of the record beside these, as
    JSON, "" where there are none; doc: a Doc as bytes, whose words and annotation the pipeline gets."""

    id: str
    text: str
    place: str
    questions: tuple[Any, ...] = ()
    queries: tuple[Any, ...] = ()
    fields: str = ""
    doc: bytes | None = None


class UnreadText(NamedTuple):
    """A place in the input where no text can be read. message: what was expected there, and what came."""

    id: str
    place: str
    message: str


InputItem = GivenText | UnreadText


def count_words(text: str) -> int:
    """About how many words a text has, at once: by its blanks, by its characters where a script has none."""
    return max(text.count(" ") + 1, len(text) // 12)


def as_item(
    text: Any, id: Any, place: str, *, questions: Any = (), queries: Any = (), fields: Mapping[str, Any] | None = None
) -> InputItem:
    """An item of what a record of an input holds. id: None where it has none; fields: that go along."""
    name = _own_id(id) or place
    if id is not None and id != "" and _own_id(id) is None:
        return UnreadText(place, place, f"expected an id that is a string or a whole number, but it is {id!r:.80}.")
    if not isinstance(text, str):
        return UnreadText(name, place, f"expected a text, but it is {text!r:.80}.")
    if not _is_whole(text):
        return UnreadText(name, place, "expected a text of Unicode, but it has half of a pair of surrogates.")
    for what, asked in (("questions", questions), ("queries", queries)):
        if asked is not None and not isinstance(asked, (list, tuple)):
            return UnreadText(name, place, f"expected a list of {what}, but it is {asked!r:.80}.")
    try:
        told = _as_json(fields) if fields else ""
    except RecursionError:
        return UnreadText(name, place, f"expected fields that are nested at most {_DEEPEST} times, but one is deeper.")
    return GivenText(name, text, place, tuple(questions or ()), tuple(queries or ()), told)


def unread_record(id: Any, place: str, message: str) -> UnreadText:
    """A record in which no text can be read, by its id, or by its place where this can be none."""
    return UnreadText(_own_id(id) or place, place, message)


def _own_id(id: Any) -> str | None:
    own = str(id) if isinstance(id, (str, int)) and not isinstance(id, bool) else ""
    return own if own and _is_whole(own) else None


def _as_json(fields: Mapping[str, Any]) -> str:
    """JSON that anybody reads: what is no number is null, halves of pairs of surrogates are "?", dates and what else
    JSON does not know are text; bytes stay behind."""
    kept = {str(name): _plain(value) for name, value in fields.items() if not isinstance(value, bytes)}
    return json.dumps(kept, ensure_ascii=False).encode("utf8", "replace").decode("utf8") if kept else ""


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(value, Mapping):
        return {str(name): _plain(x, depth + 1) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(x, depth + 1) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


def _is_whole(text: str) -> bool:
    """Whether it can be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
