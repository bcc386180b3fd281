import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.text.forms import fold_case, key_of, letters_after, piece_of, units, words_of


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("  New \n York ", "New York"),
        ("AT & T", "AT&T"),
        ("John 's", "John's"),
        ("Springfield , Illinois", "Springfield,Illinois"),
        ("A\u030angstro\u0308m", "Ångström"),
        ("東京 大学", "東京大学"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("snake_case 2 3", "snake_case 2 3"),
        ("", ""),
        (" \t", ""),
    ],
)
def test_keys(text, key):
    assert key_of(text, case="exact") == key


def test_casefold():
    assert key_of("STRASSE", case="casefold") == key_of("Straße", case="casefold") == "strasse"
    assert key_of("ΣΊΣΥΦΟΣ", case="casefold") == key_of("σίσυφος", case="casefold")
    assert key_of("US", case="exact") != key_of("us", case="exact")


def test_case_in_turkish_and_width():
    assert len({fold_case(key) for key in ("İstanbul", "istanbul", "ISTANBUL", "İSTANBUL", "ıstanbul")}) == 1
    assert fold_case("Ｔｏｙｏｔａ") == fold_case("TOYOTA")
    assert fold_case("ﾍﾟｷﾝ") == fold_case("ペキン")
    assert fold_case("Köln") != fold_case("Koln")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Łódź, KÖLN!", ("łódź", "köln")),
        ("Lo\u0301dz", ("lódz",)),
        ("राम रोम रीमा", ("राम", "रोम", "रीमा")),
        ("The U.S. Army's", ("the", "u", "s", "army", "s")),
        ("iPhone 東京", ("iphone", "東京")),
        ("...", ()),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("St.John's", ["St", ".", "John", "'", "s"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京タワー", list("東京タワー")),
        ("e\u0301\u200dx 👍🏽", ["e\u0301\u200dx", "👍", "🏽"]),
        ("", []),
    ],
)
def test_units(key, expected):
    assert [key[start:end] for start, end in units(key)] == expected


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["exact", "casefold"]))
def test_a_key_is_its_own_key(text, case):
    key = key_of(text, case=case)
    assert key_of(key, case=case) == key
    assert "".join(key[start:end] for start, end in units(key)) == key.replace(" ", "")


def test_pieces():
    assert piece_of("York", "exact") == ("York", True, True)
    assert piece_of("(s", "exact") == ("(s", False, True)
    assert piece_of("\n\n", "exact") == ("", False, False)


def test_letters_after_a_link():
    assert [letters_after(text, 0) for text in ("es and", "s_", "2s", "", "ées'", "東")] == [2, 1, 0, 0, 3, 0]
