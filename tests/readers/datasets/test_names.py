"""Names in GUM, which marks noun phrases, and LitBank, which says what is a name."""

import pytest

from spacy_luke.readers.datasets.names import trim_name
from spacy_luke.readers.datasets.table import read_dataset


def gum(path, sentences):
    """sentences: lists of (word, tag, head, entity)."""
    rows = ["# newdoc id = a", "# global.Entity = GRP-etype"]
    for sentence in sentences:
        for i, (word, tag, head, entity) in enumerate(sentence, 1):
            misc = f"Entity={entity}" if entity else "_"
            rows.append("\t".join([str(i), word, word, "X", tag, "_", str(head), "dep", "_", misc]))
        rows.append("")
    path.write_text("\n".join(rows) + "\n", encoding="utf8")
    return path


def named(record):
    return [(" ".join(record.words[x.start : x.end]), x.label) for x in record.mentions]


def test_gum(tmp_path):
    path = gum(
        tmp_path / "GUM_news_x.conllu",
        [
            [("The", "DT", 5, "(1-person"), ("US", "NNP", 5, "(2-place)"), ("President", "NNP", 5, ""),
             ("Bill", "NNP", 5, ""), ("Clinton", "NNP", 6, "1)"), ("left", "VBD", 0, "")],
            [("the", "DT", 2, "(3-organization"), ("University", "NNP", 0, ""), ("of", "IN", 4, ""),
             ("Leeds", "NNP", 2, "(4-place)"), (",", ",", 6, ""), ("England", "NNP", 2, "(5-place)3)")],
            [("her", "PRP$", 2, "(6-person(7-person)"), ("mother", "NN", 0, ""), ("Ann", "NNP", 2, "6)"),
             ("Apollo", "NNP", 0, "(8-object"), ("11", "CD", 4, "8)"), ("Mr.", "NNP", 0, "(9-person)")],
        ],
    )  # fmt: skip
    (record,) = read_dataset(path, format="gum_names")
    assert record.title == "GUM_news_x"
    assert named(record) == [
        ("US", "place"),
        ("Bill Clinton", "person"),
        ("University of Leeds", "organization"),
        ("Leeds", "place"),
        ("England", "place"),
        ("Apollo 11", "object"),
    ]


def test_litbank(tmp_path):
    path = tmp_path / "1_book_brat.ann"
    path.with_suffix(".txt").write_text(
        "Mr. Ott met the cook .\n\nThe Thames rose in old London town .\n", encoding="utf8"
    )
    lines = [
        "MENTION\tT0\t0\t0\t0\t1\tMr. Ott\tPER\tPROP",
        "MENTION\tT1\t0\t3\t0\t4\tthe cook\tPER\tNOM",
        "MENTION\tT2\t2\t0\t2\t1\tThe Thames\tLOC\tPROP",
        "MENTION\tT3\t2\t4\t2\t6\told London town\tGPE\tPROP",
        "MENTION\tT4\t2\t5\t2\t5\tLondon\tGPE\tPROP",
        "COREF\tT0\tOtt-1",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    (record,) = read_dataset(path, format="litbank")
    assert (record.title, record.sentence_starts) == ("1_book_brat", [0, 6])
    assert named(record)[:2] == [("Mr. Ott", "PER"), ("the cook", "PER")]
    assert len(record.mentions) == 5
    (record,) = read_dataset(path, format="litbank", kinds="names")
    assert named(record) == [("Ott", "PER"), ("Thames", "LOC"), ("old London town", "GPE"), ("London", "GPE")]


@pytest.mark.parametrize("separator", ["\x0c", "\x85", "\u2028"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_litbank_of_other_line_separators(tmp_path, separator, end):
    path = tmp_path / "1_book_brat.ann"
    path.with_suffix(".txt").write_bytes(f"The {separator}end{end}Mr. Ott left{end}".encode())
    path.write_text("MENTION\tT0\t1\t0\t1\t1\tMr. Ott\tPER\tPROP\n", encoding="utf8")
    (record,) = read_dataset(path, format="litbank")
    assert named(record) == [("Mr. Ott", "PER")]
    assert record.sentence_starts == [0, 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MENTION\tT0\t0\t0\t0\t0\tOtt\tPER\tNOM", "line 1: the mention at 0 0 0 0 should be 'Ott', but .* 'Mr.'"),
        ("MENTION\tT0\t0\t0\t0\t1\tOtt\tPER", "line 1: expected 9 columns, but got 8"),
        ("MENTION\tT0\t0\t0\t5\t1\tOtt\tPER\tPROP", "line 1: expected sentences of the 1 in"),
        ("MENTION\tT0\t0\t1\t0\t9\tOtt\tPER\tPROP", "line 1: the mention 'Ott' is not inside its sentence"),
        ("MENTION\tT0\t0\tx\t0\t9\tOtt\tPER\tPROP", "line 1: expected numbers of sentences and words"),
    ],
)
def test_damaged_litbank(tmp_path, line, message):
    path = tmp_path / "1_book_brat.ann"
    path.write_text(line + "\n", encoding="utf8")
    with pytest.raises(ValueError, match="expected the text beside it"):
        list(read_dataset(path, format="litbank"))
    path.with_suffix(".txt").write_text("Mr. Ott\n", encoding="utf8")
    with pytest.raises(ValueError, match=message):
        list(read_dataset(path, format="litbank"))


@pytest.mark.parametrize(
    ("text", "person", "name"),
    [
        ("the United States", False, "United States"),
        ("the late US President John Adams", True, "John Adams"),
        ("poor old Joe", True, "Joe"),
        ("van Gogh", True, "van Gogh"),
        ("Dr.", True, None),
        ("the", False, None),
    ],
)
def test_trim_name(text, person, name):
    words = text.split()
    place = trim_name(words, 0, len(words), person=person)
    assert (place and " ".join(words[place[0] : place[1]])) == name
