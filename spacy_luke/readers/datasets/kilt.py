"""Entity disambiguation of KILT and GENRE: JSON lines, one mention each."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..json_files import read_json_lines, take, take_strings
from ..records import ENTITY_LABEL, Mention, Record
from .linking import title_of

_MARKED = re.compile(r"\s*\[START_ENT\]\s*(.*?)\s*\[END_ENT\]\s*", re.DOTALL)


def read_kilt(path: str | Path) -> Iterator[Record]:
    """Entity disambiguation of KILT (Petroni et al., 2021) and GENRE (De Cao et al., 2021): a document a mention.

    "input" marks it with [START_ENT] and [END_ENT], which are taken out; the id is the title of the first "output" with
    an "answer" (NIL without any). GENRE's "candidates" have no numbers: each gets the prior 1/n, by id.
    """
    for where, item in read_json_lines(path):
        marked = take(where, item, "input", str)
        found = list(_MARKED.finditer(marked))
        if len(found) != 1 or not found[0][1]:
            raise ValueError(
                f"{where}: expected one mention between [START_ENT] and [END_ENT] in 'input', but there are "
                f"{len(found)}."
            )
        before, name, after = marked[: found[0].start()].lstrip(), found[0][1], marked[found[0].end() :].rstrip()
        start = len(before) + bool(before)
        text = " ".join(part for part in (before, name, after) if part)
        outputs = take(where, item, "output", list) if "output" in item else []
        answers = [
            take(f"{where}, output {i}", output, "answer", str)
            for i, output in enumerate(outputs)
            if not isinstance(output, dict) or output.get("answer") is not None
        ]
        place = (start, start + len(name))
        mention = Mention(*place, ENTITY_LABEL, kb_id=title_of(next(filter(None, answers), "")))
        candidates = None
        if "candidates" in item:
            titles = sorted({title_of(title) for title in take_strings(where, item, "candidates")})
            candidates = [(*place, [(title, 1 / len(titles)) for title in titles])]
        yield Record(where, text=text, mentions=[mention], links=True, candidates=candidates)
