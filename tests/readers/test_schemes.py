import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from spacy_luke.readers.schemes import TagError, decode_brackets, decode_tags, encode_tags

TAGS = ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in ("PER", "LOC", "creative-work"))]


@st.composite
def sentences(draw):
    """A sentence's length and mentions that do not overlap, some of them next to each other."""
    lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["A", "B-b"])), max_size=6))
    mentions, place = [], 0
    for gap, length, label in lengths:
        mentions.append((place + gap, place + gap + length, label))
        place += gap + length
    return place + draw(st.integers(0, 2)), mentions


@given(st.lists(st.sampled_from(TAGS), max_size=12))
def test_auto_reads_any_sequence_as_seqeval_does(tags):
    expected = [(start, end + 1, label) for label, start, end in get_entities(tags)]
    assert decode_tags(tags) == expected


@given(sentences(), st.sampled_from(["IOB1", "IOB2", "BIOES", "BILOU"]))
def test_decoding_inverts_encoding(sentence, scheme):
    length, mentions = sentence
    tags = encode_tags(mentions, length, scheme=scheme)
    assert decode_tags(tags, scheme=scheme) == mentions
    assert decode_tags(tags) == mentions


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB1", ["I-A", "I-A", "B-A", "I-B"]),
        ("IOB2", ["B-A", "I-A", "B-A", "B-B"]),
        ("BIOES", ["B-A", "E-A", "S-A", "S-B"]),
        ("BILOU", ["B-A", "L-A", "U-A", "U-B"]),
    ],
)
def test_each_scheme_writes_its_own_tags(scheme, tags):
    assert encode_tags([(0, 2, "A"), (2, 3, "A"), (3, 4, "B")], 4, scheme=scheme) == tags


@pytest.mark.parametrize(
    ("scheme", "tags", "index"),
    [
        ("IOB1", ["I-A", "S-A"], 1),
        ("IOB2", ["O", "I-A"], 1),
        ("IOB2", ["B-A", "I-B"], 1),
        ("BIOES", ["B-A", "O"], 0),
        ("BIOES", ["S-A", "I-A", "E-A"], 1),
    ],
)
def test_a_named_scheme_refuses_invalid_sequences(scheme, tags, index):
    with pytest.raises(TagError, match=f"not valid {scheme} here") as error:
        decode_tags(tags, scheme=scheme)
    assert error.value.index == index
    assert decode_tags(tags)


def test_iob1_takes_a_superfluous_b():
    assert decode_tags(["O", "B-A", "I-A"], scheme="IOB1") == [(1, 3, "A")]


@pytest.mark.parametrize("tag", ["X-PER", "B", "B-", "PER", "", "o"])
def test_a_tag_that_cannot_be_read(tag):
    with pytest.raises(TagError, match="expected the tag O") as error:
        decode_tags(["O", tag])
    assert error.value.index == 1


def test_bad_arguments():
    with pytest.raises(ValueError, match="scheme must be one of"):
        decode_tags(["O"], scheme="IOB3")
    with pytest.raises(ValueError, match="needs one of the schemes"):
        encode_tags([], 1, scheme="auto")
    for mentions in ([(0, 2, "A"), (1, 3, "A")], [(2, 4, "A")], [(1, 1, "A")]):
        with pytest.raises(ValueError, match="not overlap"):
            encode_tags(mentions, 3)


def test_brackets():
    cells = [
        "(1-person-new-cf1",
        "(2-place-new-Durham%2C_England)",
        "1)",
        "",
        "(1-person-giv:act",
        "(1-person-x",
        "1)1)",
    ]
    assert decode_brackets(cells) == [(0, 3, "person"), (1, 2, "place"), (4, 7, "person"), (5, 7, "person")]
    assert decode_brackets(["(e1-7-person)"], fields=["eid", "head", "etype"]) == [(0, 1, "person")]


@pytest.mark.parametrize(
    ("cells", "index", "message"),
    [
        (["", "1)"], 1, "is not open"),
        (["", "(1-person", ""], 1, "not closed"),
        (["person"], 0, "expected brackets"),
        (["(1-person-new4)"[:-1] + "4"], 0, "expected brackets|not closed"),
        (["(1)"], 0, "expected an id and a label"),
        (["(e1[1/2]-person)"], 0, "in one part"),
    ],
)
def test_brackets_that_cannot_be_read(cells, index, message):
    with pytest.raises(TagError, match=message) as error:
        decode_brackets(cells)
    assert error.value.index == index


def test_brackets_need_the_place_of_the_label():
    with pytest.raises(ValueError, match="must name the part 'etype'"):
        decode_brackets(["(1-person)"], fields=["GRP", "kind"])
