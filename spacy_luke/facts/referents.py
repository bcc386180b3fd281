"""What the mentions of one document are of: entities of a knowledge base, values, and things that it does not have.

Within a document a name means one thing: mentions of one label and one name (case, Unicode form and a possessive make
no difference) are of one thing. Persons and organizations are also called by a part of their name: "Lovelace" and "Ada"
are of the one thing of this label that is called so in full, "ESA" of the one whose words begin so; where two are, it
is a thing of its own.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ..pages.schema import EntityForm, LinkForm
from ..text.forms import LETTERS, fold_case, key_of, without_possessive
from .settings import FactSettings

_BESIDE = 10  # mentions before and behind one that are its context
_READ = 10  # mentions of a thing whose context is read
_REACH = 150  # characters before and behind a mention whose words are its context
_UNCASED = 4  # longer runs of letters of scripts without case are taken for several words
_WORD = re.compile(rf"(?:(?![\d_])[{LETTERS}]){{3,}}")

Name = tuple[str, str]  # key and label


class Referent(NamedTuple):
    """A thing in a document. node: its id, "" of what is to be clustered: by key and label, its name, and by context,
    the names and words around its mentions. mentions: numbers of these."""

    node: str
    key: str
    label: str
    mentions: Sequence[int]
    context: Sequence[str] = ()


def find_referents(text: str, mentions: Sequence[EntityForm], settings: FactSettings) -> list[Referent]:
    """The things that these mentions, in the order of the text, are of, by their first mentions."""
    named: dict[Name, list[int]] = {}
    nodes: dict[str, list[int]] = defaultdict(list)
    linked: dict[Name, set[str]] = defaultdict(set)
    for number, mention in enumerate(mentions):
        name = name_of(mention)
        if mention.label in settings.values:
            nodes[_value_id(mention.label, mention.text)].append(number)
        elif mention.link is not None:
            node = linked_id(mention.link, settings)
            nodes[node].append(number)
            linked[name].add(node)
        else:
            named.setdefault(name, []).append(number)
    full = _full_names({**dict.fromkeys(linked, ""), **{x: mentions[named[x][0]].text for x in named}}, settings)
    groups: dict[Name, list[int]] = defaultdict(list)
    for name, numbers in named.items():
        known = linked.get(full[name], set()) if settings.join_links else set()
        if len(known) == 1:
            nodes[next(iter(known))] += numbers
        else:
            groups[full[name]] += numbers
    found = [Referent(node, "", "", sorted(numbers)) for node, numbers in nodes.items()]
    context = _Context(text, mentions, nodes)
    found += [Referent("", *name, sorted(x), context.of(sorted(x))) for name, x in groups.items()]
    return sorted(found, key=lambda x: (x.mentions[0], x.node, x.key))


def name_of(mention: EntityForm) -> Name:
    """What is compared of a mention."""
    return without_possessive(fold_case(key_of(mention.text, case="exact"))), mention.label


def linked_id(link: LinkForm, settings: FactSettings) -> str:
    """Of an entity of a knowledge base: its item of Wikidata, else its own id."""
    if link.wikidata and (link.wikidata == link.id or not settings.own_ids):
        return link.wikidata
    return f"kb:{link.id}"


def _value_id(label: str, text: str) -> str:
    return f"value:{_hex(label, key_of(text, case='casefold'))}"


def nil_id(key: str, label: str, document: str, start: int) -> str:
    """Of a thing that no knowledge base has: by its name and the mention that it was first found at."""
    return f"nil:{_hex(key, label, document, str(start))}"


def _hex(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf8", "surrogatepass"), digest_size=8).hexdigest()


def _full_names(texts: Mapping[Name, str], settings: FactSettings) -> dict[Name, Name]:
    """For each name of a document the one that it is short for, itself where there is none, or several. texts: as it is
    written, "" where initials need not be looked for."""
    by_label: dict[str, list[Name]] = defaultdict(list)
    for name in texts:
        by_label[name[1]].append(name)
    full = {name: name for name in texts}
    for label, names in by_label.items():
        if label not in settings.shortened:
            continue
        parts: dict[str, set[Name]] = defaultdict(set)
        for name in names:
            for part in _parts_of(name[0]):
                parts[part].add(name)
        for name in sorted(names, key=lambda x: (-len(x[0].split()), -len(x[0]), x)):  # long ones have theirs by then
            longer = {full[x] for x in parts.get(name[0].replace(".", ""), ()) if x != name}
            if len(longer) == 1:
                full[name] = longer.pop()
    return full


def _parts_of(key: str) -> Iterator[str]:
    """What a name may be short in: its first words, its last words, its initials."""
    words = key.split()
    for size in range(1, len(words)):
        yield " ".join(words[:size])
        yield " ".join(words[-size:])
    if len(words) > 1:
        yield "".join(word[0] for word in words)
        if long := "".join(word[0] for word in words if len(word) > 3):
            yield long


class _Context:
    """What stands around the mentions of a document: names near them, as "@name" or "=id", and words that are in no
    mention."""

    def __init__(self, text: str, mentions: Sequence[EntityForm], nodes: Mapping[str, Sequence[int]]) -> None:
        self._text, self._mentions = text, mentions
        self._starts = [x.start for x in mentions]
        self._names = [f"@{name_of(x)[0]}" for x in mentions]
        for node, numbers in nodes.items():
            for number in numbers:
                self._names[number] = f"={node}"

    def of(self, numbers: Sequence[int]) -> list[str]:
        """numbers: the mentions of one thing."""
        own = set(numbers)
        read = numbers[:_READ]
        near = {i for number in read for i in range(max(number - _BESIDE, 0), number + _BESIDE + 1)} - own
        found = {self._names[i] for i in near if i < len(self._names)} - {self._names[i] for i in own}
        for number in read:
            found.update(self._words(self._mentions[number]))
        return sorted(found)

    def _words(self, mention: EntityForm) -> Iterator[str]:
        first, last = max(mention.start - _REACH, 0), mention.end + _REACH
        inside = self._inside(first, last)
        for match in _WORD.finditer(self._text, first, min(last, len(self._text))):
            if not any(a < match.end() and match.start() < b for a, b in inside):
                yield from _words_in(match[0].casefold())

    def _inside(self, first: int, last: int) -> list[tuple[int, int]]:
        """Places of the mentions that begin in [first, last)."""
        numbers = range(bisect_left(self._starts, first), bisect_left(self._starts, last))
        return [(self._mentions[i].start, self._mentions[i].end) for i in numbers]


def _words_in(word: str) -> Collection[str]:
    """The word; of letters without case, which may be several words without blanks, each pair of neighbours."""
    if len(word) > _UNCASED and word.upper() == word:
        return {word[i : i + 2] for i in range(len(word) - 1)}
    return (word,)
