import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin, Span
from typer.testing import CliRunner

from spacy_luke.annotations import (
    get_candidates,
    get_rows,
    register_extensions,
    set_candidates_given,
)
from spacy_luke.readers.datasets.aida import align_mentions
from spacy_luke.readers.datasets.linking import find_near
from spacy_luke.readers.datasets.pprforned import read_pprforned
from spacy_luke.readers.datasets.wned import WnedMention, read_wned_xml
from spacy_luke.readers.given import copy_given
from tests.readers.datasets.link_files import NLP, links, read, write

CONLL = """-DOCSTART- -X- -X- O

Bonn NNP I-NP I-LOC
beat VB I-VP O
U.S. NNP I-NP I-LOC
. . O O

Bonn NNP I-NP I-ORG
sold VB O O
Bre-X NNP I-NP I-ORG
shares NN O O

-DOCSTART- -X- -X- O

Mary NNP I-NP I-PER
"""
TEXT = "\n  Bonn beat U.S.\n\n Bonn sold Bre-X shares"
PPR = "ENTITY\ttext:{long}\torigText:{text}\turl:{gold}\n"
ITEM = "CANDIDATE\tid:1\tinCount:{n}\turl:http://en.wikipedia.org/wiki/{title}\tname:x\t\n"


def annotation(mention, title, offset):
    return (
        f"<annotation><mention>{mention}</mention><wikiName>{title}</wikiName><offset>{offset}</offset>"
        f"<length>{len(mention)}</length></annotation>"
    )


def xml(*documents):
    """documents: (name, [annotation, ...])"""
    inner = "".join(f'<document docName="{name}">{"".join(items)}</document>' for name, items in documents)
    return f"<?xml version='1.0' encoding='UTF-8'?><x.entityAnnotation>{inner}</x.entityAnnotation>"


AIDA = xml(
    (
        "a.txt",
        [
            annotation("Bonn", "1. FC_Bonn", TEXT.rindex("Bonn")),
            annotation("U.S.", "United States", TEXT.index("U.S.")),
            annotation("Bre-X", "", TEXT.index("Bre")),
        ],
    ),
    ("b.txt", [annotation("Mary", "Mary &amp; Co", 3)]),
)


def write_aida(tmp_path, conll=CONLL, links=AIDA):
    return write(tmp_path / "eng.testa", conll), write(tmp_path / "aida.xml", links)


def write_ppr(folder):
    """Numbers 7 and 8 are the documents; 7 names the first mention by a longer one, and has another title for the
    U.S."""
    first = (
        PPR.format(long="U.S.", text="U.S.", gold="http://en.wikipedia.org/wiki/U.S.A.")
        + ITEM.format(n=30, title="U.S.A.")
        + ITEM.format(n=10, title="U%2ES.")
        + PPR.format(long="FC Bonn", text="Bonn", gold="http://en.wikipedia.org/wiki/1._FC_Bonn")
        + ITEM.format(n=0, title="1._FC_Bonn")
        + ITEM.format(n=0, title="Bonn_%28city%29")
        + PPR.format(long="Bre-X", text="Bre-X", gold="NIL")
        + ITEM.format(n=5, title="Bre_X")
    )
    write(folder / "PART_1" / "7", first)
    write(folder / "PART_2" / "8", PPR.format(long="Ann", text="Ann", gold="NIL") + ITEM.format(n=1, title="Ann"))
    write(folder / "PART_1" / "3", PPR.format(long="Rome", text="Rome", gold="NIL") + ITEM.format(n=1, title="Rome"))
    return folder


def test_aida_without_candidates(tmp_path):
    path, titles = write_aida(tmp_path)
    (first, second), counts = read(path, "aida", links=titles)
    assert links(first) == [("U.S.", "LOC", "United States"), ("Bonn", "ORG", "1. FC Bonn"), ("Bre-X", "ORG", "NIL")]
    assert [ent.start for ent in first.ents] == [2, 4, 6]  # the second Bonn: by order and offset
    assert links(second) == [("Mary", "PER", "Mary & Co")]
    assert [sentence.start for sentence in first.sents] == [0, 4]
    assert get_rows(first, "luke_candidates") is None
    assert not [name for name in counts if name.startswith("notes")]


def test_aida_with_pprforned(tmp_path):
    path, titles = write_aida(tmp_path)
    folder = write_ppr(tmp_path / "ppr")
    with tarfile.open(tmp_path / "ppr.tar.xz", "w:xz") as archive:
        archive.add(folder, arcname="AIDA_candidates")
    (first, second), counts = read(path, "aida", links=titles, candidates=folder)
    assert [ent.kb_id_ for ent in first.ents] == ["U.S.A.", "1. FC Bonn", "NIL"]
    rows = [[first.text[a:b], candidates] for a, b, candidates in get_rows(first, "luke_candidates")]
    assert rows == [  # by title, whatever the file's order
        ["U.S.", [["U.S.", 0.25], ["U.S.A.", 0.75]]],
        ["Bonn", [["1. FC Bonn", 0.5], ["Bonn (city)", 0.5]]],
        ["Bre-X", [["Bre X", 1.0]]],
    ]
    assert {name: n for name, n in counts.items() if name.startswith("notes")} == {
        "notes: titles that differ from the XML's, taken from the candidate lists": 1,
        "notes: mentions with given candidates": 3,
        "notes: given candidates": 5,
        "notes: mentions of the candidate lists not found in the text": 1,  # Ann
        "notes: mentions of a knowledge base without given candidates": 1,  # Mary
    }
    assert read_pprforned(folder) == read_pprforned(tmp_path / "ppr.tar.xz")
    again, _ = read(path, "aida", links=titles, candidates=tmp_path / "ppr.tar.xz")
    assert [get_rows(doc, "luke_candidates") for doc in again] == [
        get_rows(doc, "luke_candidates") for doc in (first, second)
    ]


def test_aida_mentions_that_are_not_there(tmp_path):
    items = [annotation("re", "Re", 27), annotation("Cologne", "Cologne", 30), annotation("Rome", "", 31)]
    path, titles = write_aida(tmp_path, links=xml(("a", items), ("b", [])))
    (first, _), counts = read(path, "aida", links=titles)
    assert [(ent.text, ent.kb_id_) for ent in first.ents] == [("Bre-X", "Re")]
    assert counts["notes: mentions of the XML not found in the text"] == 1
    assert counts["notes: NIL mentions of the XML not found in the text"] == 1
    assert counts["notes: mentions inside words, grown to whole words"] == 1


@pytest.mark.parametrize(
    ("titles", "error"),
    [
        (None, "needs the XML"),
        (xml(("a", [])), "same documents .* have 2 and 1"),
        (xml(("a", [annotation("Rome", "Rome", 3)]), ("b", [])), "none of its mentions, such as 'Rome'"),
        ("<x><y/></x>", "expected <document"),
        ("<x>", "expected the XML of WNED"),
        ("<x></x>", "there are none"),
        (xml(("a", [annotation("", "Rome", 3)]), ("b", [])), "document 'a', annotation 0: expected <mention>"),
        (xml(("a", [annotation("Bonn", "Rome", "x")]), ("b", [])), "a number, but got 'Bonn' and 'x'"),
    ],
)
def test_aida_errors(tmp_path, titles, error):
    path, file = write_aida(tmp_path, links=titles or "")
    with pytest.raises(ValueError, match=error):
        read(path, "aida", links=None if titles is None else file)


def test_pprforned_errors(tmp_path):
    path, titles = write_aida(tmp_path)
    for name, text, error in [
        ("a/7", "CANDIDATE\tx:1\n", "line 1: expected ENTITY"),
        ("b/7", "ENTITY\turl:NIL\n", "expected a field 'origText'"),
        ("c/7", PPR.format(long="x", text="x", gold="NIL") + ITEM.format(n="x", title="y"), "number under inCount"),
        ("d/x", "", "files named by numbers"),
        ("e/7", PPR.format(long="Bonn", text="Bonn", gold="http://e/wiki/1._FC_Bonn"), "but 8 is not there"),
    ]:
        write(tmp_path / name, text)
        with pytest.raises(ValueError, match=error):
            read(path, "aida", links=titles, candidates=(tmp_path / name).parent)
    for content in (b"", b"\xfd7zXZ\x00\x00"):
        (tmp_path / "cut.tar.xz").write_bytes(content)
        with pytest.raises(ValueError, match="expected the archive"):
            read_pprforned(tmp_path / "cut.tar.xz")
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:xz") as archive:
        archive.add(write_ppr(tmp_path / "ppr"), arcname="x")
    (tmp_path / "cut.tar.xz").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    with pytest.raises(ValueError, match="expected the archive"):
        read_pprforned(tmp_path / "cut.tar.xz")


@given(st.data())
def test_alignment_finds_every_mention(data):
    """Names of few letters, so that most are repeated; the text with other blanks."""
    words = data.draw(st.lists(st.sampled_from(["a", "b", "ab", "a-b", "."]), min_size=1, max_size=14))
    gaps = data.draw(st.lists(st.sampled_from([" ", "  ", "\n"]), min_size=len(words), max_size=len(words)))
    offsets, text = [], ""
    for word, gap in zip(words, gaps):
        offsets.append(len(text))
        text += word + gap
    entities, at = {}, 0
    while at < len(words):
        end = min(len(words), at + data.draw(st.integers(1, 2)))
        if data.draw(st.booleans()):
            entities[at, end] = "X"
        at = end
    mentions = [
        WnedMention(text[offsets[a] : offsets[b - 1] + len(words[b - 1])], "Q", offsets[a]) for a, b in entities
    ]
    places = align_mentions(words, mentions, entities=entities)
    assert [(place.start, place.end) for place in places] == list(entities)


def test_wned(tmp_path):
    text = "S&amp;P rose; (Bonn) fell.\n"
    items = [annotation("Bonn", "Bonn", 14), annotation("S&amp;P", "S&amp;P_500", 0)]
    path = write(tmp_path / "set.xml", xml(("one", [*items, annotation("rose", "NIL", 8)])))
    write(tmp_path / "RawText" / "one", text)
    (doc,), counts = read(path, "wned")
    assert doc.text == text
    assert links(doc) == [("S&amp;P", "ENTITY", "S&P 500"), ("rose", "ENTITY", "NIL"), ("Bonn", "ENTITY", "Bonn")]
    assert counts["notes: mentions found beside their offset"] == 1
    assert [mention.offset for mention in read_wned_xml(path)[0].mentions] == [0, 8, 14]
    write(tmp_path / "RawText" / "one", "Nothing")
    with pytest.raises(ValueError, match="document 'one': expected the mention 'S&P' at character 0"):
        read(path, "wned")
    (tmp_path / "RawText" / "one").unlink()
    with pytest.raises(ValueError, match="no such file"):
        read(path, "wned")
    (tmp_path / "RawText").rmdir()
    with pytest.raises(ValueError, match="use the format aida"):
        read(path, "wned")


def test_find_near():
    assert find_near("ab ab ab", "ab", 3) == 3
    assert find_near("ab ab ab", "ab", 4) == 3
    assert find_near("ab" + " " * 50, "ab", 45) is None
    assert find_near("ab", "ab", 900) is None


def test_given_candidates():
    register_extensions()
    doc = NLP("Mary saw Bonn")
    assert doc._.luke_candidates_given is None
    doc._.luke_candidates_given = [(9, 13, [("b", 1), ("a", 0.5)]), (0, 4, [])]
    assert doc._.luke_candidates_given == [[0, 4, []], [9, 13, [["a", 0.5], ["b", 1.0]]]]
    doc._.luke_candidates_given = None
    assert get_rows(doc, "luke_candidates") is None
    wrong = [(0, 99, []), (4, 4, []), (0, 4, [("", 1)]), (0, 4, [("a", -1)]), (0, 4, [("a", 1), ("a", 1)]), (0, 4), 3]
    for row in [*wrong, (0, 4, [("a", float("nan"))])]:
        with pytest.raises(ValueError, match="Given candidates 1 must be"):
            set_candidates_given(doc, [(0, 4, []), row])
    doc.user_data["luke_linked"] = [[9, 13, [["a", 0.5, 0.9], ["b", 0.5, 0.1]]]]
    assert [(one.id, one.prior, one.score) for one in doc[2:3]._.luke_candidates] == [("a", 0.5, 0.9), ("b", 0.5, 0.1)]
    assert doc[0:3]._.luke_candidates == get_candidates(doc[0:1]) == []


def test_copied_for_the_pipeline():
    doc = NLP("Mary of Bonn slept")
    doc.set_ents([Span(doc, 0, 3, label="PER", kb_id="Q1")])
    doc.spans["luke_links"] = [
        Span(doc, *place, label="PER", kb_id=x) for *place, x in ((0, 3, "Q1"), (2, 3, "Q2"), (2, 3, "Q3"))
    ]
    set_candidates_given(doc, [(0, 12, [("Q1", 1.0)])])
    stored = next(DocBin(store_user_data=True, docs=[doc]).get_docs(NLP.vocab))
    given = copy_given(stored, NLP.vocab, links=True)
    assert links(given) == [("Mary of Bonn", "PER", "")]
    assert links(given, "luke_links") == [("Mary of Bonn", "PER", ""), ("Bonn", "PER", "")]
    assert get_rows(given, "luke_candidates") == [[0, 12, [["Q1", 1.0]]]]
    bare = copy_given(stored, NLP.vocab)
    assert not bare.ents
    assert "luke_links" not in bare.spans
    assert get_rows(bare, "luke_candidates") == get_rows(given, "luke_candidates")
    with pytest.raises(ValueError, match="set one of them"):
        copy_given(stored, NLP.vocab, links=True, entities=True)


def test_the_command(tmp_path):
    from spacy.cli._util import app as spacy_app

    import spacy_luke.cli  # noqa: F401

    path, titles = write_aida(tmp_path)
    output = tmp_path / "out.spacy"
    arguments = ["luke", "corpus", str(path), str(output), "-f", "aida", "--links", str(titles)]
    result = CliRunner().invoke(spacy_app, [*arguments, "--candidates", str(write_ppr(tmp_path / "ppr"))])
    text = " ".join(result.output.split())
    assert result.exit_code == 0, text
    for expected in ("3 mentions of entities of a knowledge base, 1 of others (NIL)", "5 given candidates"):
        assert expected in text
    assert CliRunner().invoke(spacy_app, [*arguments[:5], "zelda", *arguments[6:]]).exit_code == 1
