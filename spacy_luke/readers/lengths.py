"""Training texts of mixed lengths: single sentences, documents as they are, and documents joined and cut at random."""

import math
import random
from collections.abc import Hashable, Iterable, Iterator, Sequence

from spacy.pipeline import Sentencizer
from spacy.tokens import Doc
from spacy.util import registry

from ..annotations import KINDS, OWN_GROUPS, set_rows
from ..text.lines import sentence_starts
from .corpora import Lengths
from .parts import annotation_kind, cut_doc, free_starts, is_carried, join_docs

_SHORT = 10  # words of the shortest Docs that are joined
_BUFFER = 1000  # documents that are in memory, from which the next one is drawn


@registry.misc("spacy-luke.mixed_lengths.v1")
def make_mixed_lengths(
    sentences: float = 0.3,
    joined: float = 0.4,
    max_words: int = 300,
    without: Sequence[str] = (),
    seed: int = 0,
) -> Lengths:
    """Gold documents in mixed lengths: some cut into sentences, some joined (see `MixedLengths`).

    sentences: share of the documents that are cut into single sentences.
    joined: share that is joined to others, and cut at ends of sentences; the rest stays as it is.
    max_words: the longest that is made.
    without: annotations that are left out first, such as "luke_queries", since nothing is trained on them.
    seed: of all draws; training with max_epochs of 0 or more makes one, for all epochs.
    """
    return MixedLengths(sentences=sentences, joined=joined, max_words=max_words, without=without, seed=seed)


@registry.misc("spacy-luke.one_sentence.v1")
def make_one_sentence(max_words: int = 510, without: Sequence[str] = ()) -> Lengths:
    """A Doc for each sentence of the gold documents: the sentence with all that is annotated on it, and the words
    around it, of which nothing is. So a batch has sentences of different documents, each in its context, as in the
    original code of LUKE (examples/legacy/ner). Sentences that an annotation joins stay together; a document with
    annotations of the whole text (categories, a question without answers) or with user_data of others stays as it is.

    A span group cannot say that it leaves words out: where it holds entities, max_words must be 0, a ValueError
    otherwise.

    max_words: most words before the sentence, and after it; a window of 512 pieces holds no more than 510.
    without: annotations that are left out first, such as "luke_relations", which join sentences, where entities are
        learned alone.
    """
    if max_words < 0:
        raise ValueError(f"max_words must be at least 0, but it is {max_words}.")
    _check_without(without)

    def each_sentence(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in (_without_rows(doc, without) for doc in docs):
            starts = _cuts(doc)
            if max_words and len(starts) > 1 and (groups := sorted(set(doc.spans) - set(OWN_GROUPS))):
                raise ValueError(
                    "spacy-luke.one_sentence.v1 puts words around a sentence that are not annotated, but a document "
                    f"has the spans of {groups}, and nothing says of a span group which words it leaves out: they "
                    "would be learned to be no entities. Set max_words = 0, or take spacy-luke.mixed_lengths.v1."
                )
            yield from cut_doc(doc, starts, around=max_words)

    return each_sentence


def _check_without(without: Sequence[str]) -> None:
    if isinstance(without, str) or not set(without) <= set(KINDS):
        raise ValueError(f"without must be a list of some of {list(KINDS)}, but it is {without!r}.")


def _without_rows(doc: Doc, without: Sequence[str]) -> Doc:
    """A copy without these rows; the Doc itself where there are none to leave out."""
    if without:
        doc = doc.copy()
        for name in without:
            set_rows(doc, name, None)
    return doc


class MixedLengths:
    """Gold documents, each once, in other lengths: what a model is trained on decides in what lengths of text it finds
    all that there is.

    sentences: share of the documents that are cut into single sentences. joined: share that is joined to others, and
        cut, at ends of sentences, into lengths between a sentence and max_words words, short ones as often as long
        ones. The rest stays as it is.
    without: rows that are left out first, such as "luke_queries", since nothing is trained on them.
    seed: of all draws. Each pass over the documents draws anew; the same pass of the same seed gives the same Docs.
        Training with `max_epochs` of 0 or more makes one pass, whose draw serves all epochs.

    All annotations are kept (see `parts`): no cut goes through an entity, a span, a relation, a question and its
    answers. A document with annotations of the whole text stays as it is (categories, the pairs of GLUE, user_data of
    others), one with a question without answers is never cut. Where nothing says where sentences end, they end as
    `paragraph_sentencizer` ends them.
    """

    def __init__(
        self,
        *,
        sentences: float = 0.3,
        joined: float = 0.4,
        max_words: int = 300,
        without: Sequence[str] = (),
        seed: int = 0,
    ):
        if not (sentences >= 0 and joined >= 0 and sentences + joined <= 1):
            raise ValueError(
                "sentences and joined are shares of the documents, from 0 to 1 and not more than 1 together, but they "
                f"are {sentences} and {joined}."
            )
        if max_words < 1:
            raise ValueError(f"max_words must be at least 1, but it is {max_words}.")
        _check_without(without)
        self.sentences, self.joined, self.max_words = sentences, joined, max_words
        self.without, self.seed = tuple(without), seed
        self.passes = 0

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        draw = random.Random(f"{self.seed}-{self.passes}")
        self.passes += 1
        streams: dict[Hashable, _Stream] = {}
        for doc in _shuffled((_without_rows(doc, self.without) for doc in docs), draw):
            share = draw.random()
            starts = _cuts(doc)
            if not starts or share >= self.sentences + self.joined:
                yield doc
            elif share < self.sentences:
                yield from cut_doc(doc, starts)
            else:
                stream = streams.setdefault(annotation_kind(doc), _Stream(self.max_words, draw))
                yield from stream.add(doc, starts)
        for stream in streams.values():
            yield from stream.rest()


class _Stream:
    """Documents that are joined, and cut again into Docs of random lengths."""

    def __init__(self, max_words: int, draw: random.Random):
        self.max_words, self.draw = max_words, draw
        self.held: list[Doc] = []
        self._aim()

    def _aim(self) -> None:
        least = min(_SHORT, self.max_words)
        self.aim = math.exp(self.draw.uniform(math.log(least), math.log(self.max_words)))

    def add(self, doc: Doc, starts: Sequence[int]) -> Iterator[Doc]:
        """starts: words where the document may be cut, the first is 0. RETURNS: the Docs that are full."""
        words, cuts, full = sum(map(len, self.held)), [0], []
        for start, end in zip(starts, [*starts[1:], len(doc)]):
            if words and words + end - start > self.aim:
                cuts += [start] if start else []
                full.append(start)
                words = 0
                self._aim()
            words += end - start
        for start, part in zip(cuts, cut_doc(doc, cuts)):
            if start in full:
                yield from self.rest()
            self.held.append(part)

    def rest(self) -> Iterator[Doc]:
        if self.held:
            yield join_docs(self.held)
        self.held = []


def _cuts(doc: Doc) -> list[int]:
    """Words that begin sentences, where the Doc may be cut; none of one that stays as it is."""
    return free_starts(doc, _starts(doc)) if is_carried(doc) and len(doc) else []


def _starts(doc: Doc) -> list[int]:
    """Words that begin sentences."""
    if doc.has_annotation("SENT_START"):
        return [word.i for word in doc if word.is_sent_start or word.i == 0]
    spaces = [bool(word.whitespace_) for word in doc]
    starts = sentence_starts([word.text for word in doc], spaces, full_stops=set(Sentencizer.default_punct_chars))
    return [0, *starts[1:]]  # white space may come first


def _shuffled(docs: Iterable[Doc], draw: random.Random) -> Iterator[Doc]:
    """Documents in another order, each drawn from the next _BUFFER ones."""
    held: list[Doc] = []
    for doc in docs:
        held.append(doc)
        if len(held) > _BUFFER:
            i = draw.randrange(len(held))
            held[i], held[-1] = held[-1], held[i]
            yield held.pop()
    draw.shuffle(held)
    yield from held
