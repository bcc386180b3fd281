"""The reader of .spacy files that gives a pipeline what its tasks take of a gold Doc."""

from pathlib import Path

from spacy.util import registry

from .corpora import GoldDocs, corpus
from .docbin import read_gold_docs
from .given import GivenGold


@registry.readers("spacy-luke.GoldCorpus.v1")
@corpus(noun="documents")
def make_gold_corpus(path: str | Path | None, given: GivenGold = GivenGold()) -> GoldDocs:
    """A corpus for `spacy train` from a .spacy file or a folder of them, whole documents.

    The pipeline is given the file's words, where `spacy.Corpus.v1` would give it the text alone, and of the annotation
    what a task takes as its input.

    path: the file or folder.
    given: see `GivenGold`.
    """
    if path is None:
        raise ValueError("A corpus needs the path of its .spacy file, but it is None; set it, or give --paths.train.")
    source = Path(path)
    return GoldDocs(lambda nlp: read_gold_docs(source, nlp.vocab), given.give)
