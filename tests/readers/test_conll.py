import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import registry

from spacy_luke.readers.column_layouts import COLUMN_LAYOUTS, layout_of
from spacy_luke.readers.conll import make_column_corpus, make_column_doc, read_columns

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
-DOCSTART- -X- O O

BRUSSELS NNP I-NP I-LOC
Mecca NNP I-NP B-LOC
"""

CONLLU = """# newdoc id = one
# global.Entity = GRP-etype-infstat
# text = "We don't," he said.
1\t"\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tWe\t_\t_\t_\t_\t_\t_\t_\tEntity=(1-person-new)
3-4\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tdo\t_\t_\t_\t_\t_\t_\t_\t_
4\tn't\t_\t_\t_\t_\t_\t_\t_\t_
5\t,\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
6\t"\t_\t_\t_\t_\t_\t_\t_\t_
6.1\tthen\t_\t_\t_\t_\t_\t_\t_\t_
7\the\t_\t_\t_\t_\t_\t_\t_\tEntity=(2-person-new|MSeg=he
8\tsaid\t_\t_\t_\t_\t_\t_\t_\tEntity=(3-event-new)2)|SpaceAfter=No
9\t.\t_\t_\t_\t_\t_\t_\t_\t_

# newdoc id = two
1\t#\t_\t_\t_\t_\t_\t_\t_\t_
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf8"))
        return path

    return write


def test_conll2003(write):
    first, second = read_columns(write(CONLL), format="conll2003", scheme="IOB1")
    assert first.words == ["EU", "rejects", "Peter", "Blackburn"]
    assert first.sentence_starts == [0, 2]
    assert first.layers == [[(0, 1, "ORG"), (2, 4, "PER")]]
    assert first.spaces is None
    assert second.layers == [[(0, 1, "LOC"), (1, 2, "LOC")]]


@pytest.mark.parametrize(("documents", "sizes"), [("file", [3]), (1, [1, 1, 1]), (2, [2, 1]), ("docstart", [2, 1])])
def test_documents(write, documents, sizes):
    found = list(read_columns(write(CONLL), documents=documents))
    assert [len(document.sentence_starts) for document in found] == sizes
    assert [word for document in found for word in document.words] == [
        "EU", "rejects", "Peter", "Blackburn", "BRUSSELS", "Mecca",
    ]  # fmt: skip


def test_document_marks_may_end_documents(write):
    """Wikigold begins without a mark and ends with one."""
    found = list(read_columns(write("a O\n-DOCSTART- O\n\nb O\n-DOCSTART- O\n")))
    assert [document.words for document in found] == [["a"], ["b"]]
    assert [document.words for document in read_columns(write("a O\n\n-DOCSTART- O\n"))] == [["a"]]


def test_missing_marks_are_an_error(write):
    for format, mark in (("conll2003", "-DOCSTART- lines"), ("conllu", "# newdoc comments")):
        text = "1\ta\tO\n" if format == "conllu" else "a O\n\nb O\n"
        with pytest.raises(ValueError, match=f"expected {mark} between the documents"):
            list(read_columns(write(text), format=format))


def test_words_keep_unusual_characters(write):
    """Only blanks and tabs part columns, only line feeds part lines; '#' is a word where there are no comments."""
    words = ["a\u00a0b", "c\u2028d", "e\x85f", "#", "\u200b", "g\x0ch"]
    text = "\ufeff" + "".join(f"{word}\tO\r\n" for word in words) + "\t\r\n"
    (document,) = read_columns(write(text), format="wnut")
    assert document.words == words
    (document,) = read_columns(write(text), documents=1)
    assert document.words == words
    doc = make_column_doc(spacy.blank("en").vocab, document)
    assert [word.text for word in doc] == words


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a X O\nb O\n", {}, "line 2: expected 3 columns as in line 1, but got 2"),
        (
            "Ann\tB-Person Name\nworks\tO\n",
            {},
            r"expected 3 .* have 2 columns where only tabs .* set delimiter \(of commands: --delimiter\) to '\\t'",
        ),
        ("New York\tB-LOC\nis\tO\n", {}, "line 2: expected 3 columns .*--delimiter"),
        ("a\tX\tO\nb\tO\n", {}, "but got 2: 'b\\\\tO'.$"),
        ("a X\tO\nb O\n", {}, "but got 2: 'b O'.$"),
        ("a\tX|O\nb\tO\n", {"delimiter": "|"}, "but got 1: 'b\\\\tO'.$"),
        ("a O\n\nb Q-PER\n", {}, "line 3: expected the tag O"),
        ("a O\nb I-X\n", {"scheme": "IOB2"}, "line 2: tag 'I-X' is not valid IOB2"),
        (b"a O\n\xff O\n", {}, "line 2: expected UTF-8"),
        ("-DOCSTART- O\r\ra O\rb O\r", {}, r"line 1: expected a line feed .*such as by tr '\\r' '\\n' < .*data.txt"),
        ("a B-PER\rb I-PER\r", {}, "line 1: expected a line feed at the end of each line"),
        ("a B-PER\r\nb I-PER\rc O\r\n", {}, "line 2: expected a line feed at the end of each line"),
        ("# x\ra O\r", {"comments": "#"}, "line 1: expected a line feed at the end of each line"),
        ("a\tO\n \tO\n", {"delimiter": "\t"}, "line 2: expected a word"),
        ("a O\n", {"tag_columns": [1, 2]}, "line 1: expected a column 2"),
        ("a O\n", {"word_column": 5}, "line 1: expected a column 5"),
        ("\n-DOCSTART- O\n\n", {}, "expected words, but the file holds none"),
        ("", {}, "expected words, but the file holds none"),
    ],
)
def test_malformed_files(write, text, settings, message):
    with pytest.raises(ValueError, match=message):
        list(read_columns(write(text), **{"documents": 1, **settings}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "IOB"}, "scheme must be one of"),
        ({"documents": "blank"}, "documents must be"),
        ({"documents": 0}, "documents must be"),
        ({"documents": True}, "documents must be"),
        ({"documents": "newdoc"}, "needs the comments"),
        ({"brackets": True}, "misc_column"),
        ({"colour": 1}, "Unknown settings"),
        ({"format": "xml"}, "format must be one of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        layout_of(**{"format": "columns", **settings})


def test_conllu_tags(write):
    text = "# newdoc\n1\tBonn\tB-LOC\n2-3\tzum\tO\n2\tzu\tO\n3\tdem\tO\n\n# newdoc\n1\t#\tO\n"
    first, second = read_columns(write(text), format="conllu")
    assert (first.words, first.layers, first.spaces) == (["Bonn", "zu", "dem"], [[(0, 1, "LOC")]], None)
    assert second.words == ["#"]


def test_gum(write):
    path = write(CONLLU)
    first, second = read_columns(path, format="gum")
    assert first.words == ['"', "We", "do", "n't", ",", '"', "he", "said", "."]
    assert first.layers == [[(1, 2, "person"), (6, 8, "person"), (7, 8, "event")]]
    doc = make_column_doc(spacy.blank("en").vocab, first, spans_key="sc")
    assert doc.text == '"We don\'t," he said. '
    assert second.layers == [[]]
    path.write_text(CONLLU.replace("2)|", "4)|"), encoding="utf8")
    with pytest.raises(ValueError, match=r"line 13: '4\)' closes a mention that is not open"):
        list(read_columns(path, format="gum"))


def test_a_multiword_token_ends_with_its_sentence(write):
    text = "1-3\tx\tSpaceAfter=No\n1\ta\t_\n2\tb\t_\n\n1\tc\t_\n2\td\tSpaceAfter=No\n3\te\t_\n"
    layout = {"misc_column": 2, "brackets": True, "documents": "file"}
    (document,) = read_columns(write(text), format="conllu", **layout)
    assert document.spaces == [False, False, True, False, True]


def test_genia_layers_nest(write):
    text = "IL\tB-protein\tB-DNA\tO\tO\n2\tO\tI-DNA\tO\tO\ngene\tO\tI-DNA\tO\tO\n\na\tO\tO\tO\tO\n"
    path = write(text)
    first, _ = read_columns(path, format="genia")
    assert first.layers == [[(0, 1, "protein")], [(0, 3, "DNA")], [], []]
    with pytest.raises(ValueError, match=r"Nested mentions .* set spans_key"):
        make_column_corpus(path, format="genia")
    example = next(iter(make_column_corpus(path, format="genia", spans_key="nested")(spacy.blank("en"))))
    assert [(s.start, s.end, s.label_) for s in example.reference.spans["nested"]] == [(0, 1, "protein"), (0, 3, "DNA")]
    assert not example.reference.has_annotation("ENT_IOB")


def test_corpus(write):
    nlp = spacy.blank("en")
    corpus = make_column_corpus(write(CONLL), format="conll2003")
    first, second = corpus(nlp)
    assert [len(eg.reference) for eg in corpus(nlp)] == [4, 2]  # it can be read again
    assert [(e.text, e.label_) for e in first.reference.ents] == [("EU", "ORG"), ("Peter Blackburn", "PER")]
    assert [s.text for s in first.reference.sents] == ["EU rejects", "Peter Blackburn"]
    assert first.predicted.has_unknown_spaces
    assert not first.predicted.has_annotation("ENT_IOB")
    assert not first.predicted.has_annotation("SENT_START")
    assert [w.text for w in first.predicted] == [w.text for w in first.reference]
    assert second.reference.has_annotation("ENT_IOB")
    given = next(iter(make_column_corpus(write(CONLL), format="conll2003", gold_sentences=True)(nlp)))
    assert [s.text for s in given.predicted.sents] == ["EU rejects", "Peter Blackburn"]
    assert len(list(make_column_corpus(write(CONLL), limit=1)(nlp))) == 1


def test_corpus_in_a_config(write):
    """spaCy's validation fills defaults and refuses settings that do not exist."""
    assert registry.readers.get("spacy-luke.ColumnCorpus.v1") is make_column_corpus
    config = {"@readers": "spacy-luke.ColumnCorpus.v1", "path": str(write(CONLL)), "documents": 1, "tag_columns": [3]}
    corpus = registry.resolve({"corpus": config})["corpus"]
    assert [len(example.reference) for example in corpus(spacy.blank("en"))] == [2, 2, 2]  # a sentence each
    with pytest.raises(ValueError, match="colour"):
        registry.resolve({"corpus": {**config, "colour": 1}})
    with pytest.raises(ValueError, match="scheme"):
        registry.resolve({"corpus": {**config, "scheme": ["IOB1"]}})
    with pytest.raises(ValueError, match="the path of its file"):
        registry.resolve({"corpus": {**config, "path": None}})
    with pytest.raises(ValueError, match="limit must be"):
        make_column_corpus("x", limit=0)


REAL = [
    ("conll2003/eng.train", "conll2003", {"scheme": "IOB1"}, (946, 14041, 23499)),
    ("conll2003/eng.testa", "conll2003", {"scheme": "IOB1"}, (216, 3250, 5942)),
    ("conll2003/eng.testb", "conll2003", {"scheme": "IOB1"}, (231, 3453, 5648)),
    ("wnut17/wnut17train.conll", "wnut", {"scheme": "IOB2"}, (3394, 3394, 1975)),
    ("wnut17/emerging.dev.conll", "wnut", {"scheme": "IOB2"}, (1009, 1009, 836)),
    ("wnut17/emerging.test.annotated", "wnut", {"scheme": "IOB2"}, (1287, 1287, 1079)),
    ("wikigold/CONLL-format/data/wikigold.conll.txt", "conll2003", {}, (145, 1696, 3558)),
    ("bio_ner_scibert/NCBI-disease/train.txt", "columns", {"documents": 1}, (5424, 5424, 5134)),
    ("bio_ner_scibert/NCBI-disease/dev.txt", "columns", {"documents": 1}, (923, 923, 787)),
    ("bio_ner_scibert/NCBI-disease/test.txt", "columns", {"documents": 1}, (940, 940, 960)),
    ("genia_nested_devtest/genia.dev.iob2", "genia", {"scheme": "IOB2"}, (1669, 1669, 4337)),
    ("genia_nested_devtest/genia.test.iob2", "genia", {"scheme": "IOB2"}, (1854, 1854, 5474)),
    ("gum/en_gum-ud-dev.conllu", "gum", {}, (30, 1575, 7897)),
    ("gum/en_gum-ud-test.conllu", "gum", {}, (30, 1464, 7927)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "format", "settings", "counts"), REAL, ids=[row[0] for row in REAL])
def test_real_files(shared, name, format, settings, counts):
    """Documents, sentences and mentions as the authors of the sets count them."""
    documents = list(read_columns(shared(f"data/{name}"), format=format, **settings))
    n_sentences = sum(len(document.sentence_starts) for document in documents)
    n_mentions = sum(len(layer) for document in documents for layer in document.layers)
    assert (len(documents), n_sentences, n_mentions) == counts


@pytest.mark.slow
def test_all_of_gum(shared):
    documents = [
        doc for path in sorted(shared("data/gum/sources").iterdir()) for doc in read_columns(path, format="gum")
    ]
    assert len(documents) == 238
    assert sum(len(document.layers[0]) for document in documents) == 65828
    assert {label for document in documents for _, _, label in document.layers[0]} == {
        "abstract", "animal", "event", "object", "organization", "person", "place", "plant", "substance", "time",
    }  # fmt: skip


def test_gum_sentences_have_their_own_text(shared):
    """SpaceAfter and multiword tokens give the sentence of the comment `# text`."""
    path = shared("data/gum/en_gum-ud-test.conllu")
    lines = path.read_text(encoding="utf8").split("\n")
    expected = [line[9:].strip() for line in lines if line.startswith("# text = ")]
    vocab = spacy.blank("en").vocab
    docs = [make_column_doc(vocab, document, spans_key="sc") for document in read_columns(path, format="gum")]
    assert [sentence.text.strip() for doc in docs for sentence in doc.sents] == expected


def test_scripts_without_blanks(write):
    rows = [("马", "B-PER"), ("云", "I-PER"), ("在", "O"), ("杭", "B-LOC"), ("州", "I-LOC"), ("。", "O")]
    settings = {"format": "columns", "word_column": 0, "tag_columns": [1], "documents": "file"}
    text = "".join(f"{word} {tag}\n" for word, tag in rows)
    (example,) = make_column_corpus(write(f"{text}\n{text}"), **settings)(spacy.blank("xx"))
    assert example.predicted.text == example.reference.text == "马云在杭州。马云在杭州。"
    assert [x.text for x in example.reference.ents] == ["马云", "杭州", "马云", "杭州"]
    (copy,) = DocBin().from_bytes(DocBin(docs=[example.reference]).to_bytes()).get_docs(spacy.blank("xx").vocab)
    assert copy.text == example.reference.text


@pytest.mark.parametrize(("misc", "expected"), [("_", "北京大学"), ("SpaceAfter=No", "北 京大 学 ")])
def test_conllu_that_does_not_say_where_blanks_stood(write, misc, expected):
    rows = [("北", "_"), ("京", misc), ("大", "_"), ("学", "_")]
    text = "".join("\t".join([str(i), word, *"_" * 7, cell, "O"]) + "\n" for i, (word, cell) in enumerate(rows, 1))
    (document,) = read_columns(write(text), format="conllu", documents="file", misc_column=9)
    assert make_column_doc(spacy.blank("xx").vocab, document).text == expected


@pytest.mark.slow
def test_docs_survive_a_docbin(shared):
    nlp = spacy.blank("en")
    corpus = make_column_corpus(shared("data/conll2003/eng.testb"), format="conll2003")
    docs = [example.reference for example in corpus(nlp)]
    again = list(DocBin().from_bytes(DocBin(docs=docs).to_bytes()).get_docs(nlp.vocab))
    for doc, copy in zip(docs, again, strict=True):
        assert copy.has_unknown_spaces
        assert [w.is_sent_start for w in copy] == [w.is_sent_start for w in doc]
        assert [(e.start, e.end, e.label_) for e in copy.ents] == [(e.start, e.end, e.label_) for e in doc.ents]


def test_every_format_is_whole():
    assert set(COLUMN_LAYOUTS) == {"columns", "conll2003", "wnut", "genia", "conllu", "gum"}
