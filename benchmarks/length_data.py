"""The texts of lengths.py: sentences of documents in their order, with mentions of persons, organisations and places.

Other labels are left out, and mentions inside other ones. GUM and LitBank mark all noun phrases: taken are the names
among them, by GUM's part-of-speech tags (a mention whose first and last word are proper nouns) and by LitBank's own
mark (PROP).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from ner_data import Mention, Sentence, outermost

from spacy_luke.readers.conll import read_columns
from spacy_luke.readers.datasets.conll04 import read_conll04
from spacy_luke.readers.datasets.docred import read_docred

LABELS = {
    "PER": "PER person PERSON Peop".split(),
    "ORG": "ORG organization corporation group Org".split(),
    "LOC": "LOC location place GPE FAC Loc".split(),
}
MAPPED = {name: label for label, names in LABELS.items() for name in names}
Text = list[Sentence]  # of one document, in order


def read_training(folder: Path) -> list[Text]:
    """WikiGold, half of WNUT-17's training part, and 120 documents of Re-DocRED's dev part."""
    wikigold = read_texts(folder / "wikigold/CONLL-format/data/wikigold.conll.txt", "conll2003")
    wnut = read_texts(folder / "wnut17/wnut17train.conll", "wnut")
    redocred = read_docred(folder / "redocred/dev_revised.json", mention_pairs="first")
    return [*wikigold, *wnut[::2], *(cut_record(x) for x, _ in zip(redocred, range(120)))]


def read_conll2003(folder: Path, part: str) -> list[Text]:
    return read_texts(folder / "conll2003" / part, "conll2003")


def read_conll04_sentences(folder: Path, part: str) -> list[Text]:
    return [cut_record(x) for x in read_conll04(folder / "conll04" / part)]


def read_gum(folder: Path, part: str) -> list[Text]:
    path = folder / "gum" / part
    tags = [document.words for document in read_columns(path, format="gum", word_column=4)]
    return [
        _cut(document.words, document.sentence_starts, _proper(document.layers, names))
        for document, names in zip(read_columns(path, format="gum"), tags, strict=True)
    ]


def _proper(layers: Sequence[Sequence[Mention]], tags: Sequence[str]) -> list[Mention]:
    proper = [tag.startswith("NNP") for tag in tags]
    return [m for layer in layers for m in layer if proper[m[0]] and proper[m[1] - 1]]


def read_litbank(folder: Path, part: slice) -> list[Text]:
    return [_read_novel(path) for path in sorted((folder / "litbank/coref/tsv").glob("*.ann"))[part]]


def _read_novel(path: Path) -> Text:
    """Sentences a line in the .txt; mentions in the .ann: MENTION, id, first sentence and word, last ones, text, type,
    kind."""
    sentences = [line.split() for line in path.with_suffix(".txt").read_text(encoding="utf8").splitlines()]
    mentions: list[list[Mention]] = [[] for _ in sentences]
    for line in path.read_text(encoding="utf8").splitlines():
        kind, *cells = line.split("\t")
        if kind == "MENTION" and cells[7] == "PROP":
            sentence, first, last_sentence, last = (int(x) for x in cells[1:5])
            assert sentence == last_sentence, line
            mentions[sentence].append((first, last + 1, cells[6]))
    return [make_sentence(words, own) for words, own in zip(sentences, mentions) if words]


def read_texts(path: Path, format: str) -> list[Text]:
    return [
        _cut(document.words, document.sentence_starts, [m for layer in document.layers for m in layer])
        for document in read_columns(path, format=format)
    ]


def cut_record(record) -> Text:
    return _cut(record.words, record.sentence_starts, [(m.start, m.end, m.label) for m in record.mentions])


def _cut(words: Sequence[str], starts: Sequence[int], mentions: Sequence[Mention]) -> Text:
    return [
        make_sentence(list(words[a:b]), [(x - a, y - a, label) for x, y, label in mentions if a <= x and y <= b])
        for a, b in zip(starts, [*starts[1:], len(words)])
    ]


def make_sentence(words: list[str], mentions: Sequence[Mention]) -> Sentence:
    return Sentence(words, outermost(sorted({(a, b, MAPPED[x]) for a, b, x in mentions if x in MAPPED})))


@dataclass(frozen=True)
class TestSet:
    """dev: for choosing settings; test: what is reported. Neither is trained on."""

    dev: Callable[[Path], list[Text]]
    test: Callable[[Path], list[Text]]


SETS: dict[str, TestSet] = {
    "conll2003": TestSet(lambda x: read_conll2003(x, "eng.testa"), lambda x: read_conll2003(x, "eng.testb")),
    "conll04": TestSet(
        lambda x: read_conll04_sentences(x, "conll04_dev.json"),
        lambda x: read_conll04_sentences(x, "conll04_test.json") + read_conll04_sentences(x, "conll04_train.json"),
    ),
    "gum": TestSet(lambda x: read_gum(x, "en_gum-ud-dev.conllu"), lambda x: read_gum(x, "en_gum-ud-test.conllu")),
    "litbank": TestSet(lambda x: read_litbank(x, slice(0, 20)), lambda x: read_litbank(x, slice(20, None, 4))),
}


def take_texts(texts: Sequence[Text], limit: int, *, most: int = 40) -> list[Text]:
    """About `limit` sentences in order: the first ones, at most `most`, of texts at equal distances."""
    mean = sum(min(len(text), most) for text in texts) / len(texts)
    step = max(int(len(texts) * mean / limit), 1)
    taken: list[Text] = []
    for text in texts[::step]:
        if left := limit - sum(map(len, taken)):
            taken.append(text[: min(most, left)])
    return taken


def join(sentences: Sequence[Sentence], size: int) -> Iterator[tuple[list[str], list[int], list[Mention]]]:
    """Words, sentence starts and mentions of each run of `size` sentences."""
    for a in range(0, len(sentences), size):
        words: list[str] = []
        starts: list[int] = []
        mentions: list[Mention] = []
        for sentence in sentences[a : a + size]:
            starts.append(len(words))
            mentions += [(x + len(words), y + len(words), label) for x, y, label in sentence.mentions]
            words += sentence.words
        yield words, starts, mentions


def divide(texts: Sequence[Text], docs: Sequence[tuple[int, Sequence[Mention]]]) -> list[list[Mention]]:
    """The mentions of each text, words counted from its start. docs: the words, how many, and the mentions of each of
    what the texts' sentences were joined to."""
    starts = [0, *accumulate(sum(len(sentence.words) for sentence in text) for text in texts)]
    divided: list[list[Mention]] = [[] for _ in texts]
    offset = 0
    for n_words, mentions in docs:
        for a, b, label in mentions:
            text = bisect_right(starts, offset + a) - 1
            divided[text].append((offset + a - starts[text], offset + b - starts[text], label))
        offset += n_words
    return divided
