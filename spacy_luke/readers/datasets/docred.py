"""DocRED (Yao et al., ACL 2019) and Re-DocRED: relations between the entities of a document."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...kb.starter.peoples import is_people
from ..json_files import read_json_list, take
from ..records import Mention, Place, Record, check_choice
from .sentences import document_record, join_sentences

MENTION_PAIRS = ("all", "first")
_ARTICLES = ("keep", "drop")
_VALUES = ("TIME", "NUM")  # labels of what is no name


def read_docred(
    path: str | Path, *, text: str = "file", mention_pairs: str = "all", peoples: str = "LOC", articles: str = "keep"
) -> Iterator[Record]:
    """DocRED (Yao et al., ACL 2019) and Re-DocRED: a JSON list of documents with "sents" (lists of words), "vertexSet"
    (the mentions of each entity, with "sent_id", the sentence's words "pos" [start, end) and "type"), and "labels" with
    the numbers "h" and "t" of entities and the relation "r"; without "labels" nothing is said about relations. By the
    "title" documents are divided into parts.

    mention_pairs: a relation holds between entities, a Doc's between mentions: "all" pairs of their mentions, or the
    "first" of each. A pair of mentions with the same words is not one; a relation without any other pair is an error.
    peoples: the label of English names of peoples ("American", "Swedes"), which are places here, and other names
    ("MISC") in most data sets of entities.
    """
    check_choice("mention_pairs", mention_pairs, MENTION_PAIRS)
    check_choice("articles", articles, _ARTICLES)
    for where, item in read_json_list(path):
        words, starts = join_sentences(where, item, "sents")
        ends = [*starts[1:], len(words)]
        mentions: list[Mention] = []
        numbers: list[range] = []  # of all entities; the numbers of each entity's mentions
        for e, entity in enumerate(take(where, item, "vertexSet", list)):
            if not isinstance(entity, list) or not entity:
                raise ValueError(f"{where}, entity {e}: expected a list of mentions, but got {entity!r:.80}.")
            numbers.append(range(len(mentions), len(mentions) + len(entity)))
            for m, item_mention in enumerate(entity):
                at = f"{where}, entity {e}, mention {m}"
                mention = _docred_mention(at, item_mention, starts, ends, words)
                mentions.append(_as_elsewhere(mention, words, peoples, articles))
        relations = None
        if "labels" in item:
            relations = []
            for i, label in enumerate(take(where, item, "labels", list)):
                at = f"{where}, label {i}"
                h, t = (_entity(at, numbers, take(at, label, name, int)) for name in ("h", "t"))
                pairs = pairs_between(mentions, h, t)
                if not pairs:
                    raise ValueError(
                        f"{at}: its head and tail have the same words: entities {label['h']}, {label['t']}."
                    )
                relation = take(at, label, "r", str)
                relations += [(*pair, relation) for pair in (pairs if mention_pairs == "all" else pairs[:1])]
        title = take(where, item, "title", str) if "title" in item else ""
        yield document_record(where, words, starts, mentions, relations, text=text, title=title)


def _docred_mention(where: str, mention: Any, starts: list[int], ends: list[int], words: list[str]) -> Mention:
    sentence, pos = take(where, mention, "sent_id", int), take(where, mention, "pos", list)
    if not 0 <= sentence < len(starts) or len(pos) != 2 or not all(isinstance(x, int) for x in pos):
        raise ValueError(
            f"{where}: expected 'sent_id' below {len(starts)} and 'pos' [start, end), but got {sentence} and {pos}."
        )
    start, end = (starts[sentence] + x for x in pos)
    if not starts[sentence] <= start < end <= ends[sentence]:
        raise ValueError(f"{where}: 'pos' {pos} is not within sentence {sentence}, which has "
                         f"{ends[sentence] - starts[sentence]} words.")  # fmt: skip
    return Mention(start, end, take(where, mention, "type", str))


def _as_elsewhere(mention: Mention, words: list[str], peoples: str, articles: str) -> Mention:
    """As most data sets have it."""
    start, end, label = mention.start, mention.end, mention.label
    if articles == "drop" and label not in _VALUES and words[start] == "the" and end > start + 1:
        start += 1
    if label == "LOC" and is_people(" ".join(words[start:end])):
        label = peoples
    return Mention(start, end, label)


def _entity(where: str, numbers: list[range], entity: int) -> range:
    if not 0 <= entity < len(numbers):
        raise ValueError(f"{where}: expected a number of the {len(numbers)} entities, from 0, but got {entity}.")
    return numbers[entity]


def pairs_between(mentions: Sequence[Mention], heads: Iterable[int], tails: Collection[int]) -> list[tuple[int, int]]:
    """Numbers of all pairs of a mention of one entity and one of another that have not the same words."""
    return [(head, tail) for head in heads for tail in tails if _place(mentions[head]) != _place(mentions[tail])]


def _place(mention: Mention) -> Place:
    return mention.start, mention.end
