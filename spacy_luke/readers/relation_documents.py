"""Data sets with all entities of a text and all relations between them: CoNLL04, SciERC, DocRED."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .json_files import read_json_lines, read_json_list, take, take_strings
from .records import Mention, Place, Record, blanks_between, check_choice
from .schemes import TagError, decode_tags

MENTION_PAIRS = ("all", "first")


def read_conll04(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """CoNLL04 (Roth & Yih, 2004) in SpERT's JSON: a list of sentences with "tokens"; "entities", objects with "type"
    and the words "start" to "end", or "tags" instead (BILOU and the like); and "relations" with "type" and the numbers
    "head" and "tail" of entities."""
    for where, item in read_json_list(path):
        words = take_strings(where, item, "tokens")
        mentions = _spert_entities(where, item, words)
        relations = [
            (take(at, relation, "head", int), take(at, relation, "tail", int), take(at, relation, "type", str))
            for i, relation in enumerate(take(where, item, "relations", list))
            for at in [f"{where}, relation {i}"]
        ]
        spaces = blanks_between(words, text=text)
        yield Record(where, words=words, spaces=spaces, sentence_starts=[0], mentions=mentions, relations=relations)


def _spert_entities(where: str, item: dict[str, Any], words: list[str]) -> list[Mention]:
    if "entities" in item:
        return [
            Mention(take(at, entity, "start", int), take(at, entity, "end", int), take(at, entity, "type", str))
            for i, entity in enumerate(take(where, item, "entities", list))
            for at in [f"{where}, entity {i}"]
        ]
    tags = take_strings(where, item, "tags")
    if len(tags) != len(words):
        raise ValueError(f"{where}: expected a tag for each of the {len(words)} words, but got {len(tags)}.")
    try:
        return [Mention(*mention) for mention in decode_tags(tags)]
    except TagError as error:
        raise ValueError(f"{where}, tag {error.index}: {error}.") from None


def read_scierc(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """SciERC (Luan et al., EMNLP 2018) in DyGIE's JSON lines, a document a line: "sentences" (lists of words), and for
    each of them "ner" ([first word, last word, label]) and "relations" ([first, last, first, last, label]), with words
    counted through the document. Coreference ("clusters") is not read. Entities may be nested."""
    for where, item in read_json_lines(path):
        words, starts = _join_sentences(where, item, "sentences")
        mentions: list[Mention] = []
        relations: list[tuple[int, int, str]] = []
        for i, (ner, found) in enumerate(zip(*_by_sentence(where, item, len(starts)), strict=True)):
            at = f"{where}, sentence {i}"
            for row in ner:
                first, last, label = _row(at, row, 2, "ner")
                mentions.append(Mention(first, last + 1, label))
            numbers = {(mention.start, mention.end): k for k, mention in enumerate(mentions)}
            for row in found:
                a, b, c, d, label = _row(at, row, 4, "relations")
                head, tail = (_number(at, numbers, (first, last + 1)) for first, last in ((a, b), (c, d)))
                relations.append((head, tail, label))
        yield Record(
            where,
            words=words,
            spaces=blanks_between(words, text=text),
            sentence_starts=starts,
            mentions=mentions,
            relations=relations,
        )


def read_docred(path: str | Path, *, text: str = "file", mention_pairs: str = "all") -> Iterator[Record]:
    """DocRED (Yao et al., ACL 2019) and Re-DocRED: a JSON list of documents with "sents" (lists of words), "vertexSet"
    (the mentions of each entity, with "sent_id", the sentence's words "pos" [start, end) and "type"), and "labels" with
    the numbers "h" and "t" of entities and the relation "r"; without "labels" nothing is said about relations.

    mention_pairs: a relation holds between entities, a Doc's between mentions: "all" pairs of their mentions, or the
    "first" of each. A pair of mentions with the same words is not one; a relation without any other pair is an error.
    """
    check_choice("mention_pairs", mention_pairs, MENTION_PAIRS)
    for where, item in read_json_list(path):
        words, starts = _join_sentences(where, item, "sents")
        ends = [*starts[1:], len(words)]
        mentions: list[Mention] = []
        numbers: list[range] = []  # of all entities; the numbers of each entity's mentions
        for e, entity in enumerate(take(where, item, "vertexSet", list)):
            if not isinstance(entity, list) or not entity:
                raise ValueError(f"{where}, entity {e}: expected a list of mentions, but got {entity!r:.80}.")
            numbers.append(range(len(mentions), len(mentions) + len(entity)))
            for m, mention in enumerate(entity):
                mentions.append(_docred_mention(f"{where}, entity {e}, mention {m}", mention, starts, ends))
        relations = None
        if "labels" in item:
            relations = []
            for i, label in enumerate(take(where, item, "labels", list)):
                at = f"{where}, label {i}"
                h, t = (_entity(at, numbers, take(at, label, name, int)) for name in ("h", "t"))
                pairs = [(head, tail) for head in h for tail in t if _place(mentions[head]) != _place(mentions[tail])]
                if not pairs:
                    raise ValueError(
                        f"{at}: its head and tail have the same words: entities {label['h']}, {label['t']}."
                    )
                relation = take(at, label, "r", str)
                relations += [(*pair, relation) for pair in (pairs if mention_pairs == "all" else pairs[:1])]
        yield Record(
            where,
            words=words,
            spaces=blanks_between(words, text=text),
            sentence_starts=starts,
            mentions=mentions,
            relations=relations,
        )


def _docred_mention(where: str, mention: Any, starts: list[int], ends: list[int]) -> Mention:
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


def _entity(where: str, numbers: list[range], entity: int) -> range:
    if not 0 <= entity < len(numbers):
        raise ValueError(f"{where}: expected a number of the {len(numbers)} entities, from 0, but got {entity}.")
    return numbers[entity]


def _place(mention: Mention) -> Place:
    return mention.start, mention.end


def _join_sentences(where: str, item: dict[str, Any], name: str) -> tuple[list[str], list[int]]:
    """All words of a document, and the first of each sentence."""
    words: list[str] = []
    starts: list[int] = []
    for i, sentence in enumerate(take(where, item, name, list)):
        starts.append(len(words))
        words += take_strings(where, {f"{name}[{i}]": sentence}, f"{name}[{i}]")
        if len(words) == starts[-1]:
            raise ValueError(f"{where}: sentence {i} has no words.")
    if not words:
        raise ValueError(f"{where}: expected sentences under {name!r}, but there are none.")
    return words, starts


def _by_sentence(where: str, item: dict[str, Any], n_sentences: int) -> list[list[list[Any]]]:
    lists = [take(where, item, name, list) for name in ("ner", "relations")]
    for name, values in zip(("ner", "relations"), lists):
        if len(values) != n_sentences or not all(isinstance(value, list) for value in values):
            raise ValueError(f"{where}: expected a list for each of the {n_sentences} sentences under {name!r}.")
    return lists


def _row(where: str, row: Any, n_numbers: int, name: str) -> list[Any]:
    expected = [int] * n_numbers + [str]
    if not isinstance(row, list) or [type(x) for x in row] != expected or not row[-1]:
        raise ValueError(f"{where}: expected {n_numbers} numbers and a label under {name!r}, but got {row!r:.80}.")
    return row


def _number(where: str, numbers: dict[Place, int], place: Place) -> int:
    if place not in numbers:
        raise ValueError(
            f"{where}: a relation has the words {place[0]} to {place[1] - 1}, which are no entity of its sentence or "
            f"of one "
            f"before."
        )
    return numbers[place]
