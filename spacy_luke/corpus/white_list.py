"""White lists of entity vocabularies: titles that come first, some of which a later dump has as redirects."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..entity_vocab import entity_name
from ..stores.opening import open_source
from ..wikipedia.interwiki import Name
from .linked_corpus import LinkedCorpus


def read_white_list(path: Path) -> list[str]:
    """Titles, one a line."""
    with open_source(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines:
        return [title for line in lines if (title := line.strip())]


def find_redirects(listed: Sequence[str], corpora: Sequence[LinkedCorpus], languages: Sequence[str]) -> dict[str, str]:
    """Of listed names ("language:title" where there are languages) those that are redirects, and where they lead."""
    leads = {}
    for corpus, language in zip(corpora, languages, strict=True):
        prefix = entity_name("", language or None)
        if titles := {name.removeprefix(prefix) for name in listed if name.startswith(prefix)}:
            leads.update({prefix + title: prefix + target for title, target in corpus.moved(titles).items()})
    return leads


def name_redirects(names: Sequence[list[Name]], leads: Mapping[str, str]) -> int:
    """Add listed names that are redirects to the names of the entities where they lead. RETURNS: how many."""
    named = {entity_name(title, language or None): (language, own) for own in names for language, title in own}
    followed = [(name, *named[target]) for name, target in leads.items() if target in named and name not in named]
    for name, language, own in followed:
        own.append((language, name.removeprefix(entity_name("", language or None))))
    return len(followed)
