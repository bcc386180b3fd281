"""The settings of components, each written once, and the factories by which pipelines and configs make components.

    class LukeNER(LukeComponent):
        none_bias: Setting[float] = Setting(0.0, 'added to the logit of "no entity" in predictions')

    make_luke_ner = register("luke_ner", LukeNER, model=..., assigns=[...], scores={...})

From the line of a setting come the attribute `pipe.none_bias`, its place in `pipe.cfg` and so in files, the parameter
of the factory with the type that spaCy validates, the default of the config, and the row of the table in
docs/reference/components.md (`make tables`). What is no number, string or list, but made by a registered function, is a
`Function`.
"""

import copy
import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from sys import float_info
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar, Union, get_args, get_origin, overload, runtime_checkable

import numpy as np
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model

from .setting_errors import nearest_setting

T = TypeVar("T")
P = TypeVar("P")
_LAST = ("batch_size", "scorer")  # in tables and signatures
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {  # of values of a type, and what messages call them
    bool: ((bool, np.bool_), "true or false"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "a text"),
    list: ((list, tuple), "a list"),
    dict: ((Mapping,), "a table"),
}


class Setting(Generic[T]):
    """A setting of a component whose values are JSON, in `pipe.cfg` and as an attribute.

    about: what it means, a cell of Markdown; least, most: of numbers, both allowed; choices: of strings; valid: what
    else is asked of it; rule: what messages say that it must be, where that is not said by the others. Numbers that may
    have a fraction must be finite.
    """

    name: str
    type: Any  # T, from the annotation

    def __init__(
        self,
        default: T,
        about: str,
        *,
        least: float | None = None,
        most: float | None = None,
        choices: Sequence[str] = (),
        valid: Callable[[T], bool] | None = None,
        rule: str | None = None,
    ):
        self.default: Any = default
        self.about = about
        self.least, self.most, self.choices, self.valid, self._rule = least, most, choices, valid, rule

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        (self.type,) = get_args(owner.__annotations__[name])

    @overload
    def __get__(self, pipe: None, owner: type) -> "Setting[T]": ...

    @overload
    def __get__(self, pipe: Any, owner: type) -> T: ...

    def __get__(self, pipe: Any, owner: type) -> "Setting[T] | T":
        return self if pipe is None else self._values(pipe)[self.name]

    def __set__(self, pipe: Any, value: T) -> None:
        """Raises ValueError for a value that the setting cannot have: `Values` checks it."""
        self._values(pipe)[self.name] = value

    def _values(self, pipe: Any) -> dict[str, Any]:
        values: dict[str, Any] = pipe.cfg
        return values

    def checked(self, value: Any) -> Any:
        """As it is kept. Raises ValueError for a value that the setting cannot have."""
        self.check(value)
        return float(value) if type(self.default) is float and isinstance(value, int) else value

    def fallback(self) -> T:
        """The value where none is given."""
        value: T = copy.deepcopy(self.default)
        return value

    def check(self, value: Any) -> None:
        if value is None and type(None) in self.kinds:
            return
        known = [_KINDS[kind] for kind in self.kinds if kind in _KINDS]
        is_switch = isinstance(value, bool | np.bool_) and bool not in self.kinds  # which is a number, too
        if known and not self.is_float and (is_switch or not any(isinstance(value, types) for types, _ in known)):
            said = " or ".join(words for _, words in known)
            raise ValueError(f"{self.name} must be {said}, but it is {value!r}.")
        try:
            number = not self.is_float or (not is_switch and abs(value) <= float_info.max)  # NaN is not
            low = self.least is None or value >= self.least
            high = self.most is None or value <= self.most
            valid = self.valid is None or self.valid(value)
        except TypeError:  # of another type than its numbers
            number = low = high = valid = False
        if not (number and low and high and valid and (not self.choices or value in self.choices)):
            raise ValueError(f"{self.name} must be {self.rule}, but it is {value!r}.")

    @property
    def rule(self) -> str:
        if self._rule is not None:
            return self._rule
        if self.choices:
            return f"one of {tuple(self.choices)}"
        if self.most is not None:
            return f"from {self.least} to {self.most}"
        least = "0 or more" if self.least == 0 else f"at least {self.least}"
        if self.is_float:
            return "a finite number" if self.least is None else f"a finite number, {least}"
        return least

    @property
    def kinds(self) -> list[Any]:
        """Of values: of `list[str] | None` list and NoneType."""
        is_union = get_origin(self.type) in (Union, UnionType)
        return [get_origin(x) or x for x in (get_args(self.type) if is_union else (self.type,))]

    @property
    def is_float(self) -> bool:
        return float in self.kinds


class Function(Setting[T]):
    """A setting that is made by a registered function, such as a scorer. Its default is a block of a config; it is an
    attribute alone."""

    def __init__(self, default: dict[str, Any] | None, about: str):
        super().__init__(default, about)  # type: ignore[arg-type]  # what the block makes is a T

    def __set__(self, pipe: Any, value: T) -> None:
        self.check(value)
        super().__set__(pipe, value)

    def _values(self, pipe: Any) -> dict[str, Any]:
        values: dict[str, Any] = vars(pipe)
        return values

    def fallback(self) -> T:
        made: T = registry.resolve({"made": self.default})["made"]
        return made


class Values(dict[str, Any]):
    """`pipe.cfg`: the values of the settings of a component, and what it has learned. Raises ValueError for a value
    that a setting cannot have, alone or beside the others (`Configured.check_together`), and for a new name that is
    none: `pipe.cfg["treshold"] = 0.8` would change nothing. So it does for what was learned, where that does not fit
    the component (`Configured.check_learned`), once it `belongs_to` one: a pickle or a copy of it alone does not.

    values: as they are, unchecked.
    """

    def __init__(self, owner: "type[Configured]", values: Mapping[str, Any]):
        super().__init__(values)
        self.owner = owner
        self._pipe: Callable[[], Configured | None] = lambda: None
        self._settings = {key: x for key, x in settings_of(owner).items() if not isinstance(x, Function)}

    def belongs_to(self, pipe: "Configured") -> None:
        self._pipe = weakref.ref(pipe)

    def learn(self, **values: Any) -> None:
        """What the component has learned, unchecked, as its model may be about to get what fits."""
        super().update(values)

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *others: Any, **named: Any) -> None:
        """All of them, or where one is wrong none."""
        changed = {name: self._checked(name, value) for name, value in dict(*others, **named).items()}
        if not self._settings.keys().isdisjoint(changed):
            self.owner.check_together({**self, **changed})
        super().update(changed)

    def _checked(self, name: str, value: Any) -> Any:
        if name in self._settings:
            return self._settings[name].checked(value)
        is_learned = name in getattr(self.owner, "learned", ())
        if name not in self and not is_learned:
            raise ValueError(f"{self.owner.__name__} has no setting {name!r}{nearest_setting(name, self._settings)}")
        if is_learned and (pipe := self._pipe()) is not None:
            pipe.check_learned(name, value)
        return value

    def __ior__(self, other: Any) -> "Values":  # type: ignore[override,misc]
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.owner, dict(self))


@runtime_checkable
class Scorer(Protocol):
    """Scores of predicted Docs."""

    def __call__(self, examples: Iterable[Example], /, **settings: Any) -> dict[str, Any]: ...


class Configured:
    """What has settings. Its signature, for `help` and `register`, has them all."""

    cfg: Values

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        makers = [vars(part).get("__init__") for part in cls.__mro__]
        written = [list(inspect.signature(x).parameters.values()) for x in makers if inspect.isfunction(x)]
        own: list[inspect.Parameter] = next((some for some in written if any(p.name == "name" for p in some)), [])
        fixed = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
            for name, one in settings_of(cls).items()
        ]
        if named:
            cls.__signature__ = inspect.Signature([*fixed, *named])  # type: ignore[attr-defined]

    def configure(self, values: Mapping[str, Any]) -> None:
        """Give all settings their values, or their defaults. Raises TypeError for what is no setting."""
        settings = settings_of(type(self))
        if unknown := sorted(set(values) - set(settings)):
            raise TypeError(
                f"{type(self).__name__} has no setting {unknown[0]!r}{nearest_setting(unknown[0], settings)}"
            )
        chosen = {name: values[name] if name in values else x.fallback() for name, x in settings.items()}
        self.cfg.update({name: x for name, x in chosen.items() if not isinstance(settings[name], Function)})
        for name, setting in settings.items():
            if isinstance(setting, Function):
                setting.__set__(self, chosen[name])

    @classmethod
    def check_together(cls, values: Mapping[str, Any]) -> None:
        """Raises ValueError for values of settings that exclude each other, before they are taken."""

    def check_learned(self, name: str, value: Any) -> None:
        """Raises ValueError for a value of what the component has learned that does not fit it, before it is taken."""


def settings_of(owner: type) -> dict[str, Setting[Any]]:
    """The settings of a class by their names: its bases' first."""
    found = {name: x for part in reversed(owner.__mro__) for name, x in vars(part).items() if isinstance(x, Setting)}
    found = {name: x for name, x in found.items() if isinstance(inspect.getattr_static(owner, name), Setting)}
    return dict(sorted(found.items(), key=lambda item: _LAST.index(item[0]) + 1 if item[0] in _LAST else 0))


def register(
    name: str,
    made: Callable[..., P],
    *,
    model: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    requires: Sequence[str] = (),
    assigns: Sequence[str] = (),
    scores: Mapping[str, float | None] | None = None,
) -> Callable[..., P]:
    """Make a component known to spaCy as `name`. RETURNS: its factory.

    made: the class, whose keyword-only parameters are the settings. model: block of its model; None: it has none.
    defaults: of settings that are not those of the class; without: settings that the config does not have. requires,
    assigns: for `nlp.analyze_pipes`, as the defaults of the settings have it. scores: weights of the scores.
    """
    parameters = [
        p for p in inspect.signature(made).parameters.values() if p.kind is p.KEYWORD_ONLY and p.name not in without
    ]
    default_config = {p.name: copy.deepcopy(p.default) for p in parameters} | dict(defaults or {})
    types: dict[str, Any] = {"nlp": Language, "name": str}
    if model is not None:
        default_config = {"model": copy.deepcopy(dict(model)), **default_config}
        types["model"] = Model
    types.update({p.name: p.annotation for p in parameters})

    def make(nlp: Language, name: str, **settings: Any) -> P:
        return made(nlp.vocab, name=name, **settings)

    make.__name__ = make.__qualname__ = f"make_{name}"
    make.__module__ = made.__module__
    make.__doc__ = f"Builds the component; see `{made.__name__}`."
    make.__annotations__ = {**types, "return": made}
    make.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=x) for key, x in types.items()],
        return_annotation=made,
    )
    weights = {} if scores is None else dict(scores)
    Language.factory(
        name,
        default_config=default_config,
        requires=list(requires),
        assigns=list(assigns),
        default_score_weights=weights,
        func=make,
    )
    return make


def model_block(architecture: str, *, encoder: str = "spacy-luke.LukeEncoder.v1", **settings: Any) -> dict[str, Any]:
    """A config's block of a model with an encoder; what it does not name is the default of its builder."""
    return {"@architectures": architecture, **settings, "encoder": {"@architectures": encoder}}
