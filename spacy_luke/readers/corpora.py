"""What the corpora of `spacy train` share: gold Docs, joined and cut where that is wanted, as Examples."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from .docbin import look_up_codecs_once
from .given import GivenGold

CorpusReader = Callable[[Language], Iterator[Example]]  # what configs call a corpus
Lengths = Callable[[Iterable[Doc]], Iterator[Doc]]  # gold documents, joined and cut (see `lengths`)
Augmenter = Callable[[Language, Example], Iterator[Example]]  # of spaCy's registry `augmenters`


class GoldDocs(NamedTuple):
    """What a corpus reads. docs: the gold Docs of a pipeline, anew each time; given: what the pipeline gets of one."""

    docs: Callable[[Language], Iterable[Doc]]
    given: Callable[[Doc, Language], Doc]


def corpus(*, noun: str | None = None) -> Callable[[Callable[..., GoldDocs]], Callable[..., CorpusReader]]:
    """The registered function of a corpus, made of one that gives its GoldDocs. Configs may set what all corpora have,
    and in the place of its parameter `given` the settings of GivenGold; its docstring tells them.

    noun: what the setting `limit` counts, such as "documents"; None: there is none.
    """
    shared: dict[str, tuple[Any, str]] = {
        "lengths": (
            Lengths | None,
            "what joins and cuts documents, such as spacy-luke.mixed_lengths.v1; None: as they are.",
        ),
        "augmenter": (
            Augmenter | None,
            "what changes Examples, such as spacy-luke.case.v1; None: they stay. spaCy's own lose what spaCy does not "
            "know: relations, questions, scopes.",
        ),
    }
    if noun is not None:
        shared = {"limit": (int | None, f"{noun} to read, from 1; None: all."), **shared}

    def decorate(make: Callable[..., GoldDocs]) -> Callable[..., CorpusReader]:
        signature = inspect.signature(make)
        given = [_setting(x.name, bool, x.default) for x in fields(GivenGold)] * ("given" in signature.parameters)
        own = [p for x in signature.parameters.values() for p in (given if x.name == "given" else [x])]
        whole = signature.replace(parameters=[*own, *(_setting(x, kind, None) for x, (kind, _) in shared.items())])

        @wraps(make)
        def make_corpus(*args: Any, **kwargs: Any) -> CorpusReader:
            values = whole.bind(*args, **kwargs).arguments
            common = {name: values.pop(name, None) for name in shared}
            if given:
                values["given"] = GivenGold(**{x.name: values.pop(x.name) for x in given if x.name in values})
            gold = make(**values)
            if noun is not None:
                check_limit(common["limit"], noun=noun)
            return GoldExamples(gold, **common)

        text = inspect.getdoc(make) or ""
        if given:
            told = (inspect.getdoc(GivenGold) or "").split("\n\n")[1]
            text = re.sub(r"(?m)^given: .*$", lambda _: told, text)
        make_corpus.__doc__ = "\n".join([text, *(f"{name}: {said}" for name, (_, said) in shared.items())])
        make_corpus.__signature__ = whole  # type: ignore[attr-defined]
        return make_corpus

    return decorate


def _setting(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)


def check_limit(limit: int | None, *, noun: str) -> None:
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be a number of {noun} from 1, or None for all, but it is {limit}.")


class GoldExamples:
    """A corpus as `spacy train` calls it."""

    def __init__(
        self,
        gold: GoldDocs,
        *,
        limit: int | None = None,
        lengths: Lengths | None = None,
        augmenter: Augmenter | None = None,
    ):
        self._gold, self._limit, self._lengths, self._augmenter = gold, limit, lengths, augmenter

    def __call__(self, nlp: Language) -> Iterator[Example]:
        return self._examples(nlp, self._gold.docs(nlp))

    def read_all(self, nlp: Language) -> tuple[list[Example], list[int]]:
        """All Examples, and of each gold Doc the hash of its text, before lengths and augmenter have changed it."""
        texts: list[int] = []
        return list(self._examples(nlp, _noted(self._gold.docs(nlp), texts))), texts

    def _examples(self, nlp: Language, gold: Iterable[Doc]) -> Iterator[Example]:
        look_up_codecs_once()
        docs = islice(gold, self._limit)
        for doc in docs if self._lengths is None else self._lengths(docs):
            example = Example(self._gold.given(doc, nlp), doc)
            if self._augmenter is None:
                yield example
            else:
                yield from self._augmenter(nlp, example)


def _noted(docs: Iterable[Doc], texts: list[int]) -> Iterator[Doc]:
    for doc in docs:
        texts.append(hash(doc.text))
        yield doc
