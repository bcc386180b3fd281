"""TACRED (Zhang et al., EMNLP 2017), Re-TACRED and TACREV: relations of a subject and an object."""

from collections.abc import Iterator
from pathlib import Path

from ..json_files import read_json_list, take, take_strings
from ..records import ENTITY_LABEL, Mention, Record, blanks_between
from .pairs import pair_record


def read_tacred(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """TACRED (Zhang et al., EMNLP 2017), Re-TACRED and TACREV: a JSON list of objects with "token", the words
    "subj_start" to "subj_end" (which belongs to it) and "obj_start" to "obj_end", "subj_type", "obj_type" and
    "relation", which may be "no_relation". The head is the subject."""
    for where, item in read_json_list(path):
        words = take_strings(where, item, "token")
        mentions = [
            Mention(
                take(where, item, f"{role}_start", int),
                take(where, item, f"{role}_end", int) + 1,
                take(where, item, f"{role}_type", str) or ENTITY_LABEL,
            )
            for role in ("subj", "obj")
        ]
        label = take(where, item, "relation", str)
        yield pair_record(
            where, label, ("no_relation",), mentions, words=words, spaces=blanks_between(words, text=text)
        )
