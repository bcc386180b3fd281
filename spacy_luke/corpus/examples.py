"""Examples for pretraining from pages: sentences that fill the window of the encoder, and the entities linked in them.

As `build_wikipedia_pretraining_dataset` of the original (studio-ousia/luke luke/pretraining/dataset.py). What differs:
a sentence that is longer than an example is split, where the original leaves it out; sentences are joined where a link
goes across their border, where the original leaves out the link; a new example begins before the mentions become too
many, where the original cuts them; a mention of too many pieces is left out, where the original cuts its positions;
text and links of a paragraph become pieces together, as in our components, where the original makes those of links
apart. Everything that is left out is counted. Shapes: N pieces, L links, S sentences, of a paragraph.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..entity_vocab import SPECIAL, EntityVocab
from ..text.align import pieces_of_spans
from ..text.tokenizer import PieceTokenizer
from .linked_corpus import Paragraph
from .shards import Example, PageExamples

UNKNOWN_PIECES = "unknown pieces"  # in the counts
_WORD = re.compile(r"\S+")
_ODD_BLANK = re.compile(r"\s\s+|[^\S ]")

Sentences = Callable[[str], list[tuple[int, int]]]  # a text's sentences in order, characters [start, end)
PieceMention = tuple[int, int, int]  # first piece, one past the last, row of the entity


@dataclass(frozen=True)
class ExampleSettings:
    """max_pieces: of an example, two special ones included. max_entities: mentions of an example.
    max_mention_pieces, min_sentence_length: in pieces. abstract_only: only what stands before a page's first heading.
    include_sentences_without_entities: examples without a mention, too. include_unk_entities: links to what the
    vocabulary lacks are mentions of [UNK]."""

    max_pieces: int = 512
    max_entities: int = 128
    max_mention_pieces: int = 30
    min_sentence_length: int = 5
    abstract_only: bool = False
    include_sentences_without_entities: bool = False
    include_unk_entities: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("max_pieces", 3),
            ("max_entities", 1),
            ("max_mention_pieces", 1),
            ("min_sentence_length", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, but it is {getattr(self, name)}.")


class EncodedSentence(NamedTuple):
    """Pieces int32 (n,), the first ones of words bool (n,), and mentions, whose pieces count from the sentence's
    first."""

    pieces: np.ndarray
    word_starts: np.ndarray
    mentions: list[PieceMention]


@dataclass(frozen=True)
class ExampleMaker:
    """Makes examples of pages. language: in which titles are looked up in the vocabulary, where its names have one."""

    tokenizer: PieceTokenizer
    vocab: EntityVocab
    sentences: Sentences
    settings: ExampleSettings
    language: str | None = None

    def page(self, title: str, paragraphs: Iterable[Paragraph], counts: Counter[str]) -> PageExamples:
        """The examples of a page, which are numbered 0 here."""
        row = self._row(title)
        row = self._unknown if row is None else row
        found = (sentence for paragraph in paragraphs for sentence in self._read_paragraph(paragraph, counts))
        examples = []
        for sentences in self._fill(found, counts):
            example = _join_sentences(sentences, row)
            kept = len(example.entities) > 0 or self.settings.include_sentences_without_entities
            what = "" if kept else " without entities, left out"
            counts[f"examples{what}"] += 1
            counts[f"pieces{' of examples' + what if what else ''}"] += len(example.pieces)
            if kept:
                counts["mentions"] += len(example.entities)
                counts[UNKNOWN_PIECES] += int(self.tokenizer.is_unknown(example.pieces).sum())
                examples.append(example)
        counts["pages"] += 1
        counts["pages without an example"] += not examples
        return PageExamples(title, row, examples)

    @property
    def _unknown(self) -> int:
        row = self.vocab.unk_row
        if row is None:
            raise ValueError("Expected [UNK] in the entity vocabulary, for pages and links without a row of their own.")
        return row

    def _row(self, title: str) -> int | None:
        if title in SPECIAL:
            return None
        row = self.vocab.row(title)
        return row if row is not None or self.language is None else self.vocab.row(title, language=self.language)

    def _read_paragraph(self, paragraph: Paragraph, counts: Counter[str]) -> Iterator[EncodedSentence]:
        counts["paragraphs"] += 1
        counts["links"] += len(paragraph.links)
        if self.settings.abstract_only and not paragraph.lead:
            counts["paragraphs that are no abstract, left out"] += 1
            counts["links in paragraphs that are no abstract, left out"] += len(paragraph.links)
            return
        plain, links = single_blanks(paragraph.text, paragraph.links)
        blank = 1 if self.tokenizer.kind == "byte_bpe" else 0  # one before the first word, too, as the original has it
        text = " " * blank + plain
        pieces, starts_N, ends_N = self.tokenizer.encode(text)
        if not len(pieces):
            counts["paragraphs without pieces"] += 1
            counts["links without pieces, left out"] += len(links)
            return

        def place(spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
            spans_2 = np.array(spans, np.int64).reshape(-1, 2)
            first, last = pieces_of_spans(self.tokenizer, text, (starts_N, ends_N), spans_2[:, 0], spans_2[:, 1])
            return first.tolist(), last.tolist()

        word_starts_N = np.zeros(len(pieces) + 1, bool)
        word_starts_N[place([match.span() for match in _WORD.finditer(text)])[0]] = True
        first_L, last_L = place([(start + blank, end + blank) for start, end, _ in links])
        first_S, _ = place([(start + blank, end + blank) for start, end in self.sentences(plain)])
        places = list(zip(first_L, last_L))
        cuts = sorted(set(first_S) - {0, len(pieces)})
        whole = [cut for cut in cuts if not any(first < cut < last for first, last in places)]
        counts["borders of sentences inside of links, joined"] += len(cuts) - len(whole)
        mentions = self._mentions(places, [title for _, _, title in links], counts)
        for start, end in zip([0, *whole], [*whole, len(pieces)]):
            inside = [(a - start, b - start, row) for a, b, row in mentions if start <= a and b <= end]
            sentence = EncodedSentence(pieces[start:end].astype(np.int32), word_starts_N[start:end], inside)
            counts["sentences"] += 1
            if len(sentence.pieces) < self.settings.min_sentence_length:
                counts["short sentences, left out"] += 1
                counts["pieces of short sentences, left out"] += len(sentence.pieces)
                counts["mentions in short sentences, left out"] += len(inside)
            else:
                yield from self._split(sentence, counts)

    def _mentions(
        self, places: Sequence[tuple[int, int]], titles: Sequence[str], counts: Counter[str]
    ) -> list[PieceMention]:
        mentions = []
        for (first, last), title in zip(places, titles):
            row = self._row(title)
            if row is None:
                counts[f"links to unknown entities{'' if self.settings.include_unk_entities else ', left out'}"] += 1
                if not self.settings.include_unk_entities:
                    continue
                row = self._unknown
            if first == last:
                counts["links without pieces, left out"] += 1
            elif last - first > self.settings.max_mention_pieces:
                counts["mentions of too many pieces, left out"] += 1
            else:
                mentions.append((first, last, row))
        return mentions

    def _split(self, sentence: EncodedSentence, counts: Counter[str]) -> Iterator[EncodedSentence]:
        """Parts that fit an example, which begin with a word and not inside of a mention, where that is possible."""
        most = self.settings.max_pieces - 2
        if len(sentence.pieces) <= most:
            yield sentence
            return
        counts["long sentences, split"] += 1
        good_N = sentence.word_starts.copy()
        for first, last, _ in sentence.mentions:
            good_N[first + 1 : last] = False
        start, taken = 0, 0
        while start < len(sentence.pieces):
            end = min(start + most, len(sentence.pieces))
            if end < len(sentence.pieces) and (inside := np.flatnonzero(good_N[start + 1 : end + 1])).size:
                end = start + 1 + int(inside[-1])
            mentions = [(a - start, b - start, row) for a, b, row in sentence.mentions if start <= a and b <= end]
            taken += len(mentions)
            yield EncodedSentence(sentence.pieces[start:end], sentence.word_starts[start:end], mentions)
            start = end
        counts["mentions across the parts of a long sentence, left out"] += len(sentence.mentions) - taken

    def _fill(self, sentences: Iterable[EncodedSentence], counts: Counter[str]) -> Iterator[list[EncodedSentence]]:
        """Sentences of one example after the other."""
        most, most_mentions = self.settings.max_pieces - 2, self.settings.max_entities
        group: list[EncodedSentence] = []
        pieces = mentions = 0
        for sentence in sentences:
            if (beyond := len(sentence.mentions) - most_mentions) > 0:
                counts["mentions beyond max_entities in one sentence, left out"] += beyond
                sentence = sentence._replace(mentions=sentence.mentions[:most_mentions])
            pieces += len(sentence.pieces)
            mentions += len(sentence.mentions)
            if group and (pieces > most or mentions > most_mentions):
                yield group
                group, pieces, mentions = [], len(sentence.pieces), len(sentence.mentions)
            group.append(sentence)
        if group:
            yield group


def single_blanks(text: str, links: Sequence[tuple[int, int, str]]) -> tuple[str, Sequence[tuple[int, int, str]]]:
    """A text with one blank where there is whitespace, none at its ends, and the links where they are then."""
    if not _ODD_BLANK.search(text) and text == text.strip():
        return text, links
    parts: list[str] = []
    places_N, size = np.zeros(len(text) + 1, np.int64), 0
    for match in _WORD.finditer(text):
        if parts:
            parts.append(" ")
            size += 1
        places_N[match.start() : match.end() + 1] = np.arange(size, size + len(match[0]) + 1)
        places_N[match.end() + 1 :] = size + len(match[0])  # a link may end with blanks
        parts.append(match[0])
        size += len(match[0])
    moved = [(start + _leading(text[start:end]), end, title) for start, end, title in links]
    return "".join(parts), [(int(places_N[a]), int(places_N[max(a, b)]), title) for a, b, title in moved]


def _leading(text: str) -> int:
    return len(text) - len(text.lstrip())


def _join_sentences(sentences: Sequence[EncodedSentence], page_id: int) -> Example:
    starts = np.cumsum([0, *(len(sentence.pieces) for sentence in sentences)]).tolist()
    mentions = [(a + at, b + at, row) for at, x in zip(starts, sentences) for a, b, row in x.mentions]
    mentions_M3 = np.array(mentions, np.int32).reshape(-1, 3)
    word_starts_N = np.concatenate([sentence.word_starts for sentence in sentences])
    word_starts_N[0] = True
    return Example(
        pieces=np.concatenate([sentence.pieces for sentence in sentences]),
        word_starts=word_starts_N,
        entities=mentions_M3[:, 2],
        starts=mentions_M3[:, 0],
        ends=mentions_M3[:, 1],
        page=0,
        page_id=page_id,
    )
