"""Examples of pages: every piece and every link is in one, or counted; limits; and the places of mentions."""

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.corpus.examples import ExampleMaker, ExampleSettings, single_blanks
from spacy_luke.corpus.linked_corpus import Paragraph
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.readers.sentences import RuleSentences
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import make_wordpiece, tokenizer_json

VOCAB = EntityVocab([("[PAD]", 0), ("[UNK]", 1), ("[MASK]", 2), ("Ada", 3), ("London", 4), ("ltg:Reiga", 5)])
WORDPIECE = make_wordpiece()
BPE = PieceTokenizer.from_json(tokenizer_json())


def maker(*, tokenizer=WORDPIECE, sentences=RuleSentences("en"), language=None, **changes):
    given = {"max_pieces": 12, "min_sentence_length": 0, "include_sentences_without_entities": True, **changes}
    return ExampleMaker(tokenizer, VOCAB, sentences, ExampleSettings(**given), language)


def read(paragraphs, *, title="Ada", **changes):
    counts = Counter()
    return maker(**changes).page(title, paragraphs, counts), counts


def words(tokenizer, pieces):
    return [tokenizer.backend.id_to_token(piece) for piece in pieces.tolist()]


def mentions(page, tokenizer=WORDPIECE):
    return [
        [(words(tokenizer, x.pieces[a:b]), int(row)) for a, b, row in zip(x.starts, x.ends, x.entities)]
        for x in page.examples
    ]


def test_unknown_pieces_are_counted():
    _, counts = read([Paragraph("A", "ada \u9a6c \u4e91 a", [(0, 3, "Ada")])])
    assert (counts["pieces"], counts["unknown pieces"]) == (4, 2)


def test_a_page():
    paragraphs = [
        Paragraph("Ada", "ada london . a b .", [(0, 3, "Ada"), (4, 10, "London")]),
        Paragraph("Ada", "c d\u00a0 london  ada .", [(6, 17, "London")]),
    ]
    page, counts = read(paragraphs)
    assert (page.title, page.page_id) == ("Ada", 3)
    assert [words(WORDPIECE, x.pieces) for x in page.examples] == [
        ["ada", "london", ".", "a", "b", "."],
        ["c", "d", "london", "ada", "."],
    ]
    assert mentions(page) == [[(["ada"], 3), (["london"], 4)], [(["london", "ada"], 4)]]
    assert page.examples[1].word_starts.tolist() == [True] * 5
    assert counts == Counter(
        {"paragraphs": 2, "links": 3, "sentences": 3, "mentions": 3, "pieces": 11, "examples": 2, "pages": 1}
    )
    assert read(paragraphs, title="Nobody")[0].page_id == 1
    assert read(paragraphs, title="[MASK]")[0].page_id == 1, "a page is never a special entity"


def test_languages():
    paragraphs = [Paragraph("Reiga", "ada .", [(0, 3, "Reiga")])]
    assert mentions(read(paragraphs, language="ltg", title="Reiga")[0]) == [[(["ada"], 5)]]
    page, counts = read(paragraphs, language="en")
    assert mentions(page) == [[]]
    assert counts["links to unknown entities, left out"] == 1


def test_settings():
    text = "ada london ada london . a . a b c d e f ."
    links = [(0, 3, "Ada"), (4, 14, "London"), (15, 21, "Unknown"), (24, 25, "[PAD]")]
    paragraphs = [Paragraph("Ada", text, links), Paragraph("Ada", "b c d london", [(6, 12, "London")], False)]
    page, counts = read(paragraphs, max_pieces=40, max_mention_pieces=1)
    assert mentions(page) == [[(["ada"], 3), (["london"], 4)]]
    assert counts["mentions of too many pieces, left out"] == 1
    assert counts["links to unknown entities, left out"] == 2
    page, counts = read(paragraphs, max_pieces=40, include_unk_entities=True)
    assert [row for _, row in mentions(page)[0]] == [3, 4, 1, 1, 4]
    page, counts = read(paragraphs, max_pieces=40, abstract_only=True)
    assert len(page.examples[0].pieces) == 14
    assert counts["links in paragraphs that are no abstract, left out"] == 1
    page, counts = read(paragraphs, max_pieces=40, min_sentence_length=3)
    assert counts["short sentences, left out"] == 1
    assert counts["pieces of short sentences, left out"] == 2
    page, counts = read(paragraphs, max_pieces=9, include_sentences_without_entities=False)
    assert counts["examples without entities, left out"] == 1
    assert counts["pieces of examples without entities, left out"] == 7
    for bad in ({"max_pieces": 2}, {"max_entities": 0}, {"max_mention_pieces": 0}, {"min_sentence_length": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
            ExampleSettings(**bad)
    with pytest.raises(ValueError, match=r"Expected \[UNK\] in the entity vocabulary"):
        no_unk = EntityVocab([("[MASK]", 0)])
        ExampleMaker(WORDPIECE, no_unk, RuleSentences(), ExampleSettings()).page("A", paragraphs, Counter())


def test_long_sentences_are_split_before_words_and_mentions():
    text = "a b c d e f g h i j london k"
    page, counts = read([Paragraph("A", text, [(16, 26, "London")])])
    assert [words(WORDPIECE, x.pieces) for x in page.examples] == [
        ["a", "b", "c", "d", "e", "f", "g", "h"],
        ["i", "j", "london", "k"],
    ]
    assert mentions(page)[1] == [(["i", "j", "london"], 4)]
    assert counts["long sentences, split"] == 1
    page, counts = read([Paragraph("A", " ".join("abcdefghijklmn"), [(0, 27, "London")])])
    assert [len(x.pieces) for x in page.examples] == [10, 4], "a mention that fits no example is split too"
    assert counts["mentions across the parts of a long sentence, left out"] == 1


def test_sentences_are_joined_over_links():
    page, counts = read([Paragraph("A", "ada a . b c .", [(4, 9, "London")])])
    assert mentions(page) == [[(["a", ".", "b"], 4)]]
    assert counts["borders of sentences inside of links, joined"] == 1
    assert counts["sentences"] == 1


def test_many_mentions_begin_a_new_example():
    text = "ada . ada . ada ada ada ."
    links = [(i, i + 3, "Ada") for i in (0, 6, 12, 16, 20)]
    page, counts = read([Paragraph("A", text, links)], max_entities=2)
    assert [len(x.entities) for x in page.examples] == [2, 2]
    assert counts["mentions beyond max_entities in one sentence, left out"] == 1


def test_bpe_pieces_have_the_blank_before_the_first_word():
    text = "Ada Lovelace lived in London."
    page, _ = read([Paragraph("A", text, [(0, 12, "Ada"), (22, 28, "London")])], tokenizer=BPE, max_pieces=512)
    pieces = words(BPE, page.examples[0].pieces)
    assert pieces[0].startswith("Ġ")
    assert "".join(pieces).replace("Ġ", " ") == " " + text
    first, second = mentions(page, BPE)[0]
    assert ("".join(first[0]), "".join(second[0])) == ("ĠAdaĠLovelace", "ĠLondon")
    starts = [piece for piece, start in zip(pieces, page.examples[0].word_starts) if start]
    assert len(starts) == 5
    assert all(piece.startswith("Ġ") for piece in starts)


@pytest.mark.parametrize("name", ["roberta", "bert_cased", "luke"])
def test_real_vocabularies(name, shared):
    if name == "luke":
        folder = shared("golden/hf_luke_tokenizer")
    else:
        folder = shared(f"data/vocabularies/{name}")
    tokenizer = PieceTokenizer.from_folder(Path(folder))
    text = "In 1903, Marie Curie (née Skłodowska) moved to Paris—with  Pierre. She won!"
    page, counts = read(
        [Paragraph("A", text, [(9, 20, "Ada"), (47, 52, "London")])], tokenizer=tokenizer, max_pieces=99
    )
    assert counts["mentions"] == 2
    first, second = (tokenizer.backend.decode(page.examples[0].pieces[a:b].tolist()) for a, b in zip(page.examples[0].starts, page.examples[0].ends))  # fmt: skip  # noqa: E501
    first, second = ("".join(text.lower().replace("ġ", "").replace("#", "").split()) for text in (first, second))
    assert (first, second) == ("mariecurie", "paris")


def test_sentencepiece(tmp_path):
    spm = pytest.importorskip("sentencepiece", reason="the sentencepiece package is not installed")
    out = io.BytesIO()
    lines = ["Ada Lovelace lived in London.", "London is a city, and Ada knew it.", "Reiga i Daugpiļs, Latgola"] * 20
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    (tmp_path / "sentencepiece.bpe.model").write_bytes(out.getvalue())
    tokenizer = PieceTokenizer.from_folder(tmp_path)
    text = "Ada  Lovelace lived in\u00a0London. Ada knew London, too."
    links = [(0, 13, "Ada"), (23, 29, "London"), (31, 34, "Ada"), (40, 46, "London")]
    page, counts = read([Paragraph("A", text, links)], tokenizer=tokenizer, max_pieces=99)
    (example,) = page.examples
    pieces = words(tokenizer, example.pieces)
    assert "".join(pieces).replace("▁", " ") == " " + " ".join(text.split())
    found = ["".join(found) for found, _ in mentions(page, tokenizer)[0]]
    assert found == ["▁Ada▁Lovelace", "▁London", "▁Ada", "▁London"]
    assert all(piece.startswith("▁") == bool(start) for piece, start in zip(pieces, example.word_starts))
    assert counts["sentences"] == 2


def test_single_blanks():
    text, links = single_blanks("  a\t b\u00a0c  d ", [(2, 6, "X"), (6, 8, "Y"), (8, 11, "Z")])
    assert text == "a b c d"
    assert [text[a:b] for a, b, _ in links] == ["a b", "c", "d"]
    same = "a b"
    assert single_blanks(same, [(0, 1, "X")]) == (same, [(0, 1, "X")])


WORDS = st.lists(
    st.sampled_from(["ada", "london", "a", "b.", ".", "!", "hijk", "Ünd", "  ", "\u2028", "-x-"]), max_size=60
)


@st.composite
def paragraphs(draw):
    text = " ".join(draw(WORDS)).strip() or "x"
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    titles = st.sampled_from(["Ada", "London", "Unknown"])
    spans = [(a, b, draw(titles)) for a, b in zip(cuts[::2], cuts[1::2]) if text[a:b].strip()]
    spans = [
        (a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip()), title) for a, b, title in spans
    ]
    return Paragraph("A", text, spans, draw(st.booleans()))


@given(
    st.lists(paragraphs(), max_size=4),
    st.sampled_from([WORDPIECE, BPE]),
    st.integers(3, 20),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
def test_every_piece_and_link_is_there_or_counted(given_paragraphs, tokenizer, most, least, plain, abstract):
    page, counts = read(
        given_paragraphs, tokenizer=tokenizer, max_pieces=most, max_entities=3, max_mention_pieces=4,
        min_sentence_length=least, include_sentences_without_entities=plain, abstract_only=abstract,
    )  # fmt: skip
    blank = " " if tokenizer is BPE else ""
    used = [x for x in given_paragraphs if x.lead or not abstract]
    texts = [" ".join(x.text.split()) for x in used]
    assert sum(count for what, count in counts.items() if "pieces" in what.split()[:1]) == sum(
        len(tokenizer.encode(blank + text)[0]) for text in texts
    )
    assert counts["links"] == sum(len(x.links) for x in given_paragraphs)
    lost = sum(n for what, n in counts.items() if what.startswith(("links ", "mentions ")) and "left out" in what)
    assert counts["links"] == counts["mentions"] + lost
    for example in page.examples:
        assert 1 <= len(example.pieces) <= most - 2
        assert len(example.entities) <= 3
        assert example.word_starts[0]
        assert (example.starts < example.ends).all()
        assert ((example.ends - example.starts) <= 4).all()
        assert (np.diff(example.starts) >= 0).all()
        assert plain or len(example.entities)
