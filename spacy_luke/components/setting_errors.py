"""What is said of settings that are wrong: where, and of one that there is not, which is nearest.

confection, which checks configs for spaCy, says of a misspelt setting that it is unexpected, and prints all others. Of
the components, models and readers of this package its errors say instead what may be meant, wherever they are raised:
`nlp.add_pipe`, `spacy.load`, `spacy train`. Errors about others' functions stay as they are.
"""

from collections.abc import Iterable, Iterator
from inspect import signature

from confection import ConfigValidationError
from spacy.util import registry

from ..text.spelling import nearest

_UNKNOWN = ("unexpected argument", "Extra inputs", "extra fields")  # how messages on unknown settings begin
_HIDDEN = ("nlp", "name")  # parameters of factories that are no settings
_MEANT = {"threshold": "none_bias"}  # what other components call a setting that one has under another name
_OURS = __name__.partition(".")[0] + "."


def wrong_settings(error: ConfigValidationError) -> Iterator[str]:
    """A line for each setting that is wrong: where it is, what is wrong, and of an unknown one what may be meant."""
    parents = [error.parent] if isinstance(error.parent, str) else list(error.parent or [])
    for wrong in error.errors or []:
        place = [str(x) for x in [*parents, *wrong.get("loc", ())]]
        text = str(wrong.get("msg", ""))
        if text.startswith(_UNKNOWN):
            text = f"there is no such setting{nearest_setting(place[-1], set(_siblings(error)) - {place[-1]})}"
        elif "input" in wrong:
            text = f"{text}, but it is {wrong['input']!r}"
        yield f"{'.'.join(place)}: {text}"


def nearest_setting(name: str, settings: Iterable[str]) -> str:
    """The end of the sentence; also of a setting that other components have."""
    known = set(settings)
    others = {other: own for other, own in _MEANT.items() if own in known and other not in known}
    for other, own in others.items():
        if name != other and f"Is {other} meant" not in nearest(name, known | {other}):
            continue
        return f". Is {own} meant? It is what this component has in the place of {other}."
    return nearest(name, known)


def _siblings(error: ConfigValidationError) -> list[str]:
    """Settings of the section where a wrong one is: those that the config has, and those that its function takes."""
    names = [x for x in error.config or {} if not x.startswith("@") and x not in _HIDDEN]
    for key, function in (error.config or {}).items():
        if key.startswith("@"):
            names += [x for x in signature(registry.get(key[1:], function)).parameters if x not in _HIDDEN]
    return names


def _is_ours(error: ConfigValidationError) -> bool:
    """Whether it is about a function of this package."""
    named = [(key[1:], name) for key, name in dict(error.config or {}).items() if str(key).startswith("@")]
    return any(
        registry.has(kind, name) and str(getattr(registry.get(kind, name), "__module__", "")).startswith(_OURS)
        for kind, name in named
    )


def _format(error: ConfigValidationError) -> str:
    if not error.errors or not _is_ours(error):
        return _plain(error)
    return "\n\n" + "\n".join([*filter(None, (error.title, error.desc)), *wrong_settings(error)])


_plain = ConfigValidationError._format
ConfigValidationError._format = _format  # type: ignore[method-assign, assignment]
