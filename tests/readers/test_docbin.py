import re

import catalogue
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus

from spacy_luke.annotations import get_all_rows, get_rows
from spacy_luke.pipelines.gold import Given, read_gold
from spacy_luke.readers.docbin import look_up_codecs_once, read_docbins, write_docbin
from spacy_luke.readers.gold_corpus import make_gold_corpus
from spacy_luke.readers.joined import make_joined_corpus


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en")


def make_docs(nlp, n):
    for i in range(n):
        doc = Doc(nlp.vocab, words=["Mary", "saw", f"Bonn{i}", "."], sent_starts=[True, False, True, False])
        doc.set_ents([doc.char_span(0, 4, label="PER")])
        doc.spans["sc"] = [doc[0:1], doc[0:3]]
        yield doc


def describe(doc):
    spans = {key: [(s.start, s.end, s.label_) for s in group] for key, group in doc.spans.items()}
    ents = [(e.start, e.end, e.label_) for e in doc.ents]
    return [w.text for w in doc], [w.is_sent_start for w in doc], ents, spans, doc.has_unknown_spaces


@pytest.mark.parametrize(("shard_words", "names"), [
    (100, ["docs.spacy"]),
    (8, ["part-00001.spacy", "part-00002.spacy", "part-00003.spacy"]),
    (1, [f"part-0000{i}.spacy" for i in range(1, 6)]),
])  # fmt: skip
def test_the_stock_reader_reads_it(nlp, tmp_path, shard_words, names):
    path = tmp_path / "new" / "docs.spacy"
    files = write_docbin(make_docs(nlp, 5), path, shard_words=shard_words)
    assert [file.name for file in files] == names
    found = [describe(example.reference) for example in Corpus(path)(nlp)]
    assert found == [describe(doc) for doc in make_docs(nlp, 5)]
    before = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in write_docbin(make_docs(nlp, 5), path, shard_words=shard_words)] == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["docs.spacy"]


def test_files_of_folders(nlp, tmp_path):
    """Those of the stock reader: also of folders in folders, but nothing hidden."""
    for name in ("c", "part/b", "part/.hidden/x", ".d"):
        write_docbin([Doc(nlp.vocab, words=[name])], tmp_path / f"{name}.spacy")
    write_docbin([Doc(nlp.vocab, words=[word]) for word in "ade"], tmp_path / "all.spacy", shard_words=1)
    words = [doc[0].text for doc in read_docbins(tmp_path, nlp.vocab)]
    assert words == ["a", "d", "e", "c", "part/b"] == [x.reference[0].text for x in Corpus(tmp_path)(nlp)]
    assert [doc[0].text for doc in read_docbins(tmp_path / "c.spacy", nlp.vocab)] == ["c"]


def test_docs_that_are_skipped_are_not_made(nlp, tmp_path):
    found = DocBin(docs=make_docs(nlp, 5), store_user_data=True)
    found.user_data[1] = b"\x81"  # not whole
    found.to_disk(tmp_path / "1.spacy")
    write_docbin(make_docs(nlp, 2), tmp_path / "2.spacy")
    with pytest.raises(ValueError, match="max_map_len"):
        list(read_docbins(tmp_path, nlp.vocab, skip=1))
    expected = [describe(doc) for n in (5, 2) for doc in make_docs(nlp, n)]
    for skip in (2, 4, 5, 6, 7, 9):
        assert [describe(doc) for doc in read_docbins(tmp_path, nlp.vocab, skip=skip)] == expected[skip:]


@pytest.mark.parametrize("damage", ["truncated", "other", "user_data"])
def test_a_damaged_file_is_named(nlp, tmp_path, damage):
    for name in "abc":
        write_docbin(make_docs(nlp, 3), tmp_path / "data" / f"{name}.spacy")
    file = tmp_path / "data" / "b.spacy"
    if damage == "user_data":
        found = DocBin(store_user_data=True).from_disk(file)
        found.user_data[1] = b"\x81"
        found.to_disk(file)
    else:
        file.write_bytes(file.read_bytes()[:100] if damage == "truncated" else b"some text")
    readers = [
        lambda: read_docbins(tmp_path / "data", nlp.vocab),
        lambda: make_gold_corpus(tmp_path / "data")(nlp),
        lambda: make_joined_corpus(sources={"x": {"path": str(tmp_path / "data")}})(nlp),
        lambda: read_gold(nlp, tmp_path / "data"),
        lambda: read_gold(nlp, tmp_path / "data", Given(entities=True)),
    ]
    for read in readers:
        with pytest.raises(ValueError, match=r"^Expected Docs in .*b\.spacy, .* It may be truncated"):
            list(read())


def test_missing_files_are_named(nlp, tmp_path):
    with pytest.raises(ValueError, match=f"^Expected .spacy files in {re.escape(str(tmp_path))}, but there are none"):
        list(read_docbins(tmp_path, nlp.vocab))
    with pytest.raises(FileNotFoundError, match=r"x\.spacy"):
        list(read_docbins(tmp_path / "x.spacy", nlp.vocab))


def test_docs_without_words_are_no_gold(nlp, tmp_path):
    """As in spaCy's own corpus."""
    write_docbin([nlp.make_doc(text) for text in ("a b", "", "c")], tmp_path / "a.spacy")
    assert len(list(Corpus(tmp_path / "a.spacy")(nlp))) == 2
    assert [x.reference.text for x in make_gold_corpus(tmp_path / "a.spacy")(nlp)] == ["a b", "c"]
    assert [x.predicted.text for x in read_gold(nlp, tmp_path / "a.spacy")] == ["a b", "c"]


@pytest.mark.parametrize("shard_words", [100, 8])
def test_an_error_leaves_the_old_file_whole(nlp, tmp_path, shard_words):
    def broken_docs():
        yield from make_docs(nlp, 7)
        raise RuntimeError("the disk is on fire")

    path = tmp_path / "docs.spacy"
    write_docbin(make_docs(nlp, 3), path, shard_words=shard_words)
    with pytest.raises(RuntimeError, match="on fire"):
        write_docbin(broken_docs(), path, shard_words=shard_words)
    assert len(list(Corpus(path)(nlp))) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["docs.spacy"]


def test_bad_targets(nlp, tmp_path):
    path = tmp_path / "docs.spacy"
    with pytest.raises(ValueError, match=r"must end in '\.spacy'"):
        write_docbin(make_docs(nlp, 1), tmp_path / "docs.bin")
    with pytest.raises(ValueError, match="there are none"):
        write_docbin([], path)
    with pytest.raises(ValueError, match="shard_words must be"):
        write_docbin(make_docs(nlp, 1), path, shard_words=0)
    write_docbin(make_docs(nlp, 1), path)
    with pytest.raises(ValueError, match="is a file: remove it first"):
        write_docbin(make_docs(nlp, 2), path, shard_words=4)
    path.unlink()
    write_docbin(make_docs(nlp, 2), path, shard_words=4)
    with pytest.raises(ValueError, match="is a folder: remove it first"):
        write_docbin(make_docs(nlp, 1), path)
    (path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        write_docbin(make_docs(nlp, 2), path, shard_words=4)


def test_the_gold_sentences_are_given(nlp, tmp_path):
    write_docbin(make_docs(nlp, 3), tmp_path / "docs.spacy")
    examples = list(make_gold_corpus(tmp_path / "docs.spacy", limit=2)(nlp))
    assert len(examples) == 2
    for example, doc in zip(examples, make_docs(nlp, 2), strict=True):
        assert [word.text for word in example.predicted] == [word.text for word in doc]
        assert [word.is_sent_start for word in example.predicted] == [True, False, True, False]
        assert not example.predicted.has_annotation("ENT_IOB")
        assert [entity.text for entity in example.reference.ents] == ["Mary"]
        nlp.add_pipe("sentencizer").overwrite = False
        assert len(list(nlp(example.predicted).sents)) == 2
        nlp.remove_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"--paths\.train"):
        make_gold_corpus(None)
    with pytest.raises(ValueError, match="limit must be a number of documents"):
        make_gold_corpus(tmp_path / "docs.spacy", limit=0)


def test_what_a_task_takes_is_given_and_no_gold_besides(nlp, tmp_path):
    doc = next(make_docs(nlp, 1))
    doc.spans["luke_types"] = [doc[2:3], Span(doc, 0, 1, label="a"), Span(doc, 0, 1, label="b")]
    doc.user_data["luke_relations"] = [[0, 4, 9, 14, "r", 1.0]]
    doc.user_data["luke_pairs"] = [[0, 4, 9, 14]]
    doc.user_data["luke_questions"] = [{"id": "0", "question": "Who?", "answers": [[0, 4]]}]
    doc.user_data["luke_queries"] = [{"id": "0", "query": "@placeholder?", "candidates": [[0, 4]], "answers": [[0, 4]]}]
    path = tmp_path / "docs.spacy"
    write_docbin([doc], path)

    def given(**settings):
        (example,) = make_gold_corpus(path, **settings)(nlp)
        assert get_rows(example.reference, "luke_questions")[0]["answers"]
        return example.predicted

    plain = given(sentences=False)
    assert not plain.user_data and not plain.spans and not plain.ents  # noqa: PT018
    assert not plain.has_annotation("SENT_START")
    assert [(e.text, e.label_) for e in given(entities=True).ents] == [("Mary", "PER")]
    marked = given(mentions=True)
    assert list(marked.spans) == ["luke_mentions"]
    assert [(s.text, s.label_) for s in marked.spans["luke_mentions"]] == [("Mary", ""), ("Bonn0", "")]
    assert get_all_rows(given(pairs=True)) == {"luke_pairs": [[0, 4, 9, 14]]}
    assert get_all_rows(given(questions=True)) == {
        "luke_questions": [{"id": "0", "question": "Who?"}],
        "luke_queries": [{"id": "0", "query": "@placeholder?", "candidates": [[0, 4]]}],
    }


def test_codecs_of_other_packages_are_looked_up_once(monkeypatch):
    looked_up = []

    def registry(name):
        codecs = catalogue.create("tests", name, entry_points=True)
        monkeypatch.setattr(codecs, "get_entry_points", lambda: looked_up.append(name) or {"theirs": len})
        monkeypatch.setattr(srsly, name, codecs)
        return codecs

    found = [registry("msgpack_encoders"), registry("msgpack_decoders")]
    for _ in range(3):
        look_up_codecs_once()
        assert [codecs.get_all() for codecs in found] == [{"theirs": len}] * 2
    assert looked_up == ["msgpack_encoders", "msgpack_decoders"]
