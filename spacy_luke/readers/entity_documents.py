"""Documents whose entities are linked to a knowledge graph, sentence by sentence, for pretraining."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from ..annotations import UNLINKED, KnownEntity
from ..stores.opening import find_files
from .docbin import read_docbins
from .json_files import read_json_lines, take

EntityMention = tuple[int, int, str]


class LinkedDocument(NamedTuple):
    """name: for messages; sentences: each its text, and the ids of its entities at characters [start, end) of it."""

    name: str
    sentences: Sequence[tuple[str, Sequence[EntityMention]]]


@registry.readers("spacy-luke.EntityDocuments.v1")
def make_entity_documents(
    path: str | None,
    getter: Callable[[Doc], list[KnownEntity]] | None = None,
    lang: str = "en",
    skip: int = 0,
    limit: int | None = None,
) -> Callable[[int], Iterator[LinkedDocument]]:
    """Documents of a .spacy file, of a folder of them, or of a .jsonl file; read as they are used. Those
    that are left out are not tokenised.

    A line of JSON has "text" and "entities", each `[start, end, id]` or an object with "start", "end" and "id".

    path: the file or folder.
    getter: a Doc's entities, one of spaCy's misc registry such as spacy-luke.given_entities.v1; null: those of doc.ents
    that have a kb_id_.
    lang: of the rules that find sentences, where a document has none.
    skip: documents left out at the beginning.
    limit: documents read at most; null: all.

    RETURNS: a function that reads the documents from a number on.
    """
    if path is None:
        raise ValueError(
            "A corpus needs the path of its file or folder, but it is None; set it in the config's [paths]."
        )
    if skip < 0 or (limit is not None and limit < 1):
        raise ValueError(f"skip must be from 0 and limit from 1 (or None), but they are {skip} and {limit}.")
    source = Path(path)
    _check_files(source)
    nlp = spacy.blank(lang)
    nlp.add_pipe("sentencizer")
    find = _linked_ents if getter is None else getter

    def read(start: int) -> Iterator[LinkedDocument]:
        first, most = skip + start, None if limit is None else max(limit - start, 0)
        if source.is_file() and source.suffix == ".jsonl":
            rest = islice(read_json_lines(source), first, None)
            for where, data in islice(rest, most):
                yield _from_line(where, data, nlp)
        else:
            docs = read_docbins(source, nlp.vocab, skip=first)
            for number, doc in enumerate(islice(docs, most), first):
                known = [(one.start, one.end, one.id) for one in find(doc)]
                yield _split(f"{path}, document {number}", doc, known, nlp)

    return read


def _check_files(path: Path) -> None:
    files = find_files(path, ".spacy")
    if not files or not all(file.is_file() and file.suffix in (".spacy", ".jsonl") for file in files):
        raise ValueError(f"Expected a .spacy file, a folder of them, or a .jsonl file at {path}, but there is none.")


def _from_line(where: str, data: dict[str, Any], nlp: Language) -> LinkedDocument:
    text = take(where, data, "text", str)
    mentions = []
    for item in take(where, data, "entities", list):
        if isinstance(item, dict):
            item = [take(where, item, key, kind) for key, kind in (("start", int), ("end", int), ("id", str))]
        if not isinstance(item, list) or [type(x) for x in item] != [int, int, str]:
            raise ValueError(f"{where}: expected [start, end, id] for each entity, but got {str(item)[:80]!r}.")
        mentions.append((item[0], item[1], item[2]))
    return _split(where, nlp.tokenizer(text), mentions, nlp)


def _linked_ents(doc: Doc) -> list[KnownEntity]:
    return [KnownEntity(e.start_char, e.end_char, e.kb_id_) for e in doc.ents if e.kb_id_ not in UNLINKED]


def _split(name: str, doc: Doc, mentions: Sequence[EntityMention], nlp: Language) -> LinkedDocument:
    """Each mention goes to the sentence that holds its first character, and ends with it at the latest."""
    if wrong := [m for m in mentions if not 0 <= m[0] < m[1] <= len(doc.text)]:
        raise ValueError(
            f"{name}: entities must be at characters [start, end) of the text, which has {len(doc.text)}, but one is "
            f"at [{wrong[0][0]}, {wrong[0][1]})."
        )
    if not doc.has_annotation("SENT_START"):
        doc = nlp.get_pipe("sentencizer")(doc)
    spans = list(doc.sents)
    edges = [span.start_char for span in spans] + [len(doc.text)]
    edges[:1] = [0]
    sentences: list[tuple[str, list[EntityMention]]] = []
    left = sorted(mentions)
    for start, end in zip(edges, edges[1:]):
        inside = [m for m in left if start <= m[0] < end]
        sentences.append((doc.text[start:end], [(a - start, min(b, end) - start, kb) for a, b, kb in inside]))
        left = left[len(inside) :]
    assert not left
    return LinkedDocument(name, sentences)
