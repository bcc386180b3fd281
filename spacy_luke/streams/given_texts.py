"""What readers of inputs give: texts, and places where there should be one but none can be read."""

from typing import Any, NamedTuple


class GivenText(NamedTuple):
    """A text that a pipeline is given. id: the input's own, else its place, such as "texts.jsonl:17"; questions,
    queries: about it, strings or objects (see `set_questions`, `set_queries`); doc: a Doc as bytes, whose words and
    annotation the pipeline gets."""

    id: str
    text: str
    place: str
    questions: tuple[Any, ...] = ()
    queries: tuple[Any, ...] = ()
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


def as_item(text: Any, id: Any, place: str, *, questions: Any = (), queries: Any = ()) -> InputItem:
    """An item of what a record of an input holds. id: None where it has none."""
    own = str(id) if isinstance(id, (str, int)) and not isinstance(id, bool) and id != "" else None
    name = place if own is None or not _is_whole(own) else own
    if id is not None and id != "" and name != own:
        return UnreadText(place, place, f"expected an id that is a string or a whole number, but it is {id!r:.80}.")
    if not isinstance(text, str):
        return UnreadText(name, place, f"expected a text, but it is {text!r:.80}.")
    if not _is_whole(text):
        return UnreadText(name, place, "expected a text of Unicode, but it has half of a pair of surrogates (\\ud800).")
    for what, asked in (("questions", questions), ("queries", queries)):
        if asked is not None and not isinstance(asked, (list, tuple)):
            return UnreadText(name, place, f"expected a list of {what}, but it is {asked!r:.80}.")
    return GivenText(name, text, place, tuple(questions or ()), tuple(queries or ()))


def _is_whole(text: str) -> bool:
    """Whether it can be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
