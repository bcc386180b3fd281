"""The reader of .spacy files that gives a pipeline what its tasks take of a gold Doc."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.training import Corpus, Example
from spacy.util import registry

from .corpora import Lengths, check_limit, make_examples
from .given import copy_given


@registry.readers("spacy-luke.GoldCorpus.v1")
def make_gold_corpus(
    path: str | Path | None,
    limit: int | None = None,
    sentences: bool = True,
    entities: bool = False,
    mentions: bool = False,
    pairs: bool = False,
    questions: bool = False,
    knowledge: bool = True,
    links: bool = False,
    lengths: Lengths | None = None,
) -> Callable[[Language], Iterator[Example]]:
    """A corpus for `spacy train` from a .spacy file or a folder of them, whole documents.

    The pipeline is given the file's words, where `spacy.Corpus.v1` would give it the text alone, and of the annotation
    what a task takes as its input (see `copy_given`).

    path: the file or folder.
    limit: documents to read, from 1; None: all.
    sentences: whether the pipeline is given the sentence boundaries.
    entities: whether it is given doc.ents, with their labels.
    mentions: whether it is given the mentions of types, without the types.
    pairs: whether it is given the pairs of mentions that relations are asked of, without the relations.
    questions: whether it is given questions and queries, without the answers.
    knowledge: whether it is given doc._.luke_knowledge, the given entities.
    links: whether it is given the mentions that are linked, without their entities.
    lengths: what joins and cuts documents, such as spacy-luke.mixed_lengths.v1; None: as they are.
    """
    if path is None:
        raise ValueError("A corpus needs the path of its .spacy file, but it is None; set it, or give --paths.train.")
    check_limit(limit, noun="documents")
    corpus = Corpus(path)

    def read_corpus(nlp: Language) -> Iterator[Example]:
        docs = (example.reference for example in islice(corpus(nlp), limit))
        given = partial(
            copy_given,
            vocab=nlp.vocab,
            sentences=sentences,
            entities=entities,
            mentions=mentions,
            pairs=pairs,
            questions=questions,
            knowledge=knowledge,
            links=links,
        )
        return make_examples(docs, given, lengths=lengths)

    return read_corpus
