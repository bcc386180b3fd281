"""The reader of .spacy files that gives a pipeline what its tasks take of a gold Doc."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.training import Corpus, Example
from spacy.util import registry

from .corpora import Augmenter, CorpusReader, Lengths, check_limit, make_examples
from .given import GivenGold, takes_given


@registry.readers("spacy-luke.GoldCorpus.v1")
@takes_given
def make_gold_corpus(
    path: str | Path | None,
    limit: int | None = None,
    given: GivenGold = GivenGold(),
    lengths: Lengths | None = None,
    augmenter: Augmenter | None = None,
) -> CorpusReader:
    """A corpus for `spacy train` from a .spacy file or a folder of them, whole documents.

    The pipeline is given the file's words, where `spacy.Corpus.v1` would give it the text alone, and of the annotation
    what a task takes as its input.

    path: the file or folder.
    limit: documents to read, from 1; None: all.
    given: see `GivenGold`.
    lengths: what joins and cuts documents, such as spacy-luke.mixed_lengths.v1; None: as they are.
    augmenter: what changes Examples, such as spacy-luke.case.v1; None: they stay. spaCy's own lose what spaCy does not
        know: relations, questions, scopes.
    """
    if path is None:
        raise ValueError("A corpus needs the path of its .spacy file, but it is None; set it, or give --paths.train.")
    check_limit(limit, noun="documents")
    corpus = Corpus(path)

    def read_corpus(nlp: Language) -> Iterator[Example]:
        docs = (example.reference for example in islice(corpus(nlp), limit))
        return make_examples(docs, partial(given.copy, vocab=nlp.vocab), nlp, lengths=lengths, augmenter=augmenter)

    return read_corpus
