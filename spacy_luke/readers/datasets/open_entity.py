"""Types of mentions as ERNIE's release has them: Open Entity and FIGER."""

from collections.abc import Iterator
from pathlib import Path

from ..json_files import read_json_list, take, take_strings
from ..records import TEXTS, Mention, Record, check_choice
from .brackets import move_place, replace_brackets
from .ernie_guesses import read_guesses


def read_open_entity(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """Open Entity as ERNIE and LUKE used it (Choi et al., ACL 2018; 9 types), and FIGER in ERNIE's format (Ling & Weld,
    AAAI 2012): a JSON list of objects with "sent", the characters "start" and "end" of the mention, and "labels".

    The guessed entities under "ents", [[id, start, end, score], ...], become given entities with all scores; ERNIE
    reads those above .3. A mention without a character is left out, as ERNIE leaves out the object, and counted.
    text: "file" as it stands; "paper": -LRB- and the like become brackets, as in LUKE's code.
    """
    check_choice("text", text, TEXTS)
    for where, item in read_json_list(path):
        sentence = take(where, item, "sent", str)
        start, end = take(where, item, "start", int), take(where, item, "end", int)
        types = take_strings(where, item, "labels")
        knowledge = read_guesses(where, item, "ents") if "ents" in item else None
        if text == "paper":
            sentence, places = replace_brackets(sentence, (start, end))
            start, end = move_place(places, start, end)
            knowledge = knowledge and [(*move_place(places, a, b), name, score) for a, b, name, score in knowledge]
        empty = start == end
        mentions = [] if empty else [Mention(start, end, types=types)]
        yield Record(
            where,
            text=sentence,
            sentence_starts=[0],
            mentions=mentions,
            has_entities=False,
            knowledge=knowledge,
            empty=int(empty),
        )
