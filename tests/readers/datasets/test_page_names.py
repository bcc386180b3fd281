"""Names of a page in its texts, as the original's PassageEncoder finds them; SQuAD's paragraphs with them; the file."""

import json
import random

import pytest
import spacy

from spacy_luke.annotations import get_knowledge, get_rows
from spacy_luke.components.mentions import make_given_spans_getter
from spacy_luke.readers.datasets.page_names import PageNames, _divides, find_names
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset

NAMES = {
    "U.S.": "United States",
    "Notre Dame": "University of Notre Dame",
    "notre dame school": "Notre Dame School",
    "American": "United States",
    "Latin": "Latin",
    "latin": "Latin America",
    "Congregation of Holy Cross": "Congregation of Holy Cross",
}


def found(text):
    return [(text[a:b], entity) for a, b, entity in find_names(text, PageNames({"P": NAMES}).pages["P"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Notre Dame's dome, at Notre Dame.", ["Notre Dame", "Notre Dame"]),
        ("NOTRE DAME School (notre dame)", ["NOTRE DAME School"]),  # after a bracket without a blank no piece begins
        ("( notre dame)", ["notre dame"]),
        ("anti-American American-led Americans", ["American"]),
        ("The U.S. is in Latin America", ["U.S."]),
        ("Notre  Dame", []),
        ("", []),
    ],
)
def test_names_in_a_text(text, expected):
    """Lower-cased, the longest, whole words; "latin" means two entities of the page, and so none."""
    assert [name for name, _ in found(text)] == expected


def reference(text, names):
    """`_detect_mentions` of the original (utils/feature.py) with characters for pieces: a piece that continues another
    one does so here as there."""

    def continues(i):
        return not (text[i].isspace() or _divides(text, i) or i == 0 or text[i - 1].isspace())

    mentions, reached = [], 0
    for start in range(len(text)):
        if start < reached or text[start].isspace() or continues(start):
            continue
        for end in range(len(text), start, -1):
            if end < len(text) and continues(end):
                continue
            if text[start:end].lower() in names and not text[end - 1].isspace():
                mentions.append((start, end, names[text[start:end].lower()]))
                reached = end
                break
    return mentions


@pytest.mark.parametrize("seed", range(30))
def test_as_a_plain_loop(seed):

    random.seed(seed)
    words = ["a", "b", "ab", "a b", "b,", "(a", "a-b", " ", ".", "B A"]
    text = " ".join(random.choices(words, k=25))
    names = {x: x.upper() for x in ("a", "b", "a b", "b a", "a-b", "ab ab", "(a", "a b a")}
    assert find_names(text, names) == reference(text, names)


SQUAD = {
    "data": [
        {
            "title": "University_of_Notre_Dame",
            "paragraphs": [
                {
                    "context": "Notre Dame is in the U.S. state of Indiana.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Where is notre dame?",
                            "answers": [{"text": "Indiana", "answer_start": 35}],
                        }
                    ],
                }
            ],
        },
        {"title": "Other", "paragraphs": [{"context": "Notre Dame.", "qas": []}]},
    ]
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "squad.json").write_text(json.dumps(SQUAD), encoding="utf8")
    (tmp_path / "names.json").write_text(json.dumps({"University of Notre Dame": NAMES}), encoding="utf8")
    return tmp_path / "squad.json", tmp_path / "names.json"


def test_squad_with_the_names_of_its_pages(files):
    first, second = dataset_docs(spacy.blank("en"), files[0], format="squad", mention_candidates=files[1])
    assert [(first.text[x.start : x.end], x.id) for x in get_knowledge(first)] == [
        ("Notre Dame", "University of Notre Dame"),
        ("U.S.", "United States"),
    ]
    (question,) = get_rows(first, "luke_questions")
    assert question["entities"] == [[9, 19, "University of Notre Dame"]]
    spans = make_given_spans_getter()(first)
    assert [(x.text, x.kb_id_) for x in spans] == [
        ("Notre Dame", "University of Notre Dame"),
        ("U.S.", "United States"),
    ]
    assert get_knowledge(second) == []
    records = list(read_dataset(files[0], format="squad", mention_candidates=files[1]))
    assert [x.notes for x in records] == [{}, {"paragraphs of pages without names": 1}]
    assert all(x.knowledge is None for x in read_dataset(files[0], format="squad"))


def test_titles_as_in_addresses():
    names = PageNames({"Beyoncé Knowles": {"X": "Y"}})
    assert names.of("Beyonc%C3%A9_Knowles") == names.of("Beyoncé_Knowles") == {"x": "Y"}
    assert names.of("Beyoncé") is None


@pytest.mark.parametrize("wrong", ["[]", '{"a": ["b"]}', '{"a": {"b": 3}}'])
def test_other_files(tmp_path, wrong):
    (tmp_path / "names.json").write_text(wrong, encoding="utf8")
    with pytest.raises(ValueError, match=r"expected an object \{page: \{name: entity\}\}"):
        PageNames.read(tmp_path / "names.json")
