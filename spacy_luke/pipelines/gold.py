"""What `spacy luke evaluate` and `spacy luke tune` give a pipeline of a file of gold documents."""

from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.training import Corpus, Example

from ..components.base import LukeComponent
from ..readers.docbin import read_docbins
from ..readers.given import copy_asked
from ..readers.gold_corpus import make_gold_corpus
from ..stores.opening import find_files

_ZLIB = b"x"  # what its data begin with


def check_docs(path: Path, name: str) -> None:
    """ValueError for what is no .spacy file, and no folder with any. name: of the setting or argument, for the
    message."""
    how = "python -m spacy luke corpus"
    if not path.exists():
        raise ValueError(f"{name} is {path}, which does not exist. Make it with `{how}`, or give another.")
    if path.is_dir():
        if not find_files(path, ".spacy"):
            raise ValueError(
                f"{name} must be a .spacy file or a folder of them, but {path} has none. Make one with `{how}`."
            )
        return
    if path.suffix != ".spacy":
        raise ValueError(
            f"{name} must be a .spacy file, but it is {path}. Convert it: {how} {path} {path.with_suffix('.spacy')} "
            f"--format ..."
        )
    with path.open("rb") as file:
        if file.read(1) != _ZLIB:
            raise ValueError(f"{name} is {path}, which is no .spacy file in spite of its name. Make one with `{how}`.")


class Given(NamedTuple):
    """What a pipeline is given of the gold documents, besides the text: words and sentence boundaries; doc.ents;
    mentions that have types, as doc.spans["luke_mentions"]; the pairs that are to be classified; doc.ents without their
    entities."""

    sentences: bool = False
    entities: bool = False
    mentions: bool = False
    pairs: bool = False
    links: bool = False


def read_gold(nlp: Language, data: str | Path, given: Given = Given()) -> list[Example]:
    """Examples whose predicted Docs are what the pipeline is given: the text alone, or, where anything is given, the
    file's words and that of its annotation. Questions and queries are given in any case, without their answers, and so
    are candidates of linking."""
    data = Path(data)
    check_docs(data, "The data")
    if any(given):
        corpus = make_gold_corpus(data, **given._asdict(), questions=True)
        return list(corpus(nlp))
    examples = list(Corpus(data).make_examples(nlp, read_docbins(data, nlp.vocab)))
    for example in examples:
        copy_asked(example.reference, example.predicted)
    return examples


def luke_components(nlp: Language) -> list[LukeComponent]:
    return [component for _, component in nlp.pipeline if isinstance(component, LukeComponent)]
