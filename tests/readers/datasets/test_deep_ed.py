"""The disambiguation data sets of deep-ed: mentions with candidates, names that persons share, titles and redirects; as
the original's examples/entity_disambiguation/dataset.py reads them."""

import subprocess
import sys
from pathlib import Path

import pytest

from spacy_luke.annotations import get_candidates_given
from spacy_luke.components.linker.candidates import best_candidates, given_candidates
from spacy_luke.readers.docbin import write_docbin
from tests.readers.datasets.link_files import links, read, write

ADA = "7,0.6,Ada Lovelace\t8,0.4,Lovelace, Colorado"


def line(document, mention, candidates, gold):
    return "\t".join([document, document, mention, "left", "right", "CANDIDATES", candidates, "GT:", gold])


TABLE = "\n".join(
    [
        line("1 EU", "Ada Lovelace", ADA, "0,7,0.6,Ada Lovelace"),
        line("1 EU", "Lovelace", "9,0.9,Linda Lovelace\t7,0.1,Ada Lovelace", "1,7,0.1,Ada Lovelace"),
        line("1 EU", "A&amp;T", "EMPTYCAND", "-1,5,A&amp;T (firm)"),
        line("1 EU", "Nobody", "4,0.5,No one", "-1,,"),
        line("1 EU", "Old Town", "3,0.2,Old Town, X\t2,0.7,Elder Town", "1,3,0.2,Old Town, X"),
        line("2.txt", "Unknown", "1,1.0,Unknown", "0,1,1.0,Unknown"),
        line("2.txt", "Town", "2,0.7,Elder Town", "0,2,0.7,Elder Town"),
        line("Jiří_Třanovský", "Town", "2,0.7,Elder Town", "0,2,0.7,Elder Town"),
    ]
)
WORDS = """-DOCSTART- (1 EU)
Ada\tB\tAda Lovelace\tAda_Lovelace\thttp\t7
Lovelace\tI\tAda Lovelace\tAda_Lovelace\thttp\t7
met
Lovelace\tB\tLovelace\tAda_Lovelace\thttp\t7
.

A&T\tB\tA&amp;T\tx\thttp\t5
and
Nobody\tB\tNobody\tx\thttp\t5
saw
Old-Town\tB\tOld Town\tOld\thttp\t3
.

-DOCSTART- (2.txt
Unknown\tB\tUnknown\tx\thttp\t1
Town\tB\tTown\tElder\thttp\t2
"""


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "set.csv", TABLE.replace("A&amp;T\tleft", "A&T\tleft"))
    write(tmp_path / "set.conll", WORDS)
    write(tmp_path / "persons.txt", "Ada Lovelace\n")
    write(tmp_path / "titles.txt", "Ada Lovelace\nA&T (firm)\nOld Town, X\nElder Town (new)\n")
    write(tmp_path / "redirects.tsv", "Elder Town\tElder Town (new)\n")
    names = {"persons": "persons.txt", "titles": "titles.txt", "redirects": "redirects.tsv", "conll": "set.conll"}
    return tmp_path / "set.csv", {key: tmp_path / name for key, name in names.items()}


def test_documents(files):
    path, options = files
    (first, second), counts = read(path, "deep_ed", **options)
    assert links(first) == [
        ("Ada Lovelace", "ENTITY", "Ada Lovelace"),
        ("Lovelace", "ENTITY", "Ada Lovelace"),
        ("A&T", "ENTITY", "A&T (firm)"),
        ("Old-Town", "ENTITY", "Old Town, X"),
    ]
    assert [word.text for word in first if word.is_sent_start] == ["Ada", "A&T"]
    given = [dict(mention.candidates) for mention in get_candidates_given(first)]
    assert given[0] == given[1] == {"Ada Lovelace": 0.6, "Lovelace, Colorado": 0.4}  # a part of a person's name
    assert given[2:] == [{}, {"Old Town, X": 0.2, "Elder Town (new)": 0.7}]
    assert links(second) == [("Town", "ENTITY", "Elder Town (new)")]
    assert counts["notes: mentions of entities that are no titles, left out"] == 1


def test_without_titles_persons_and_redirects(files):
    path, options = files
    (first, second), _ = read(path, "deep_ed", conll=options["conll"])
    assert dict(get_candidates_given(first)[1].candidates) == {"Linda Lovelace": 0.9, "Ada Lovelace": 0.1}
    assert links(second) == [("Unknown", "ENTITY", "Unknown"), ("Town", "ENTITY", "Elder Town")]


def test_the_first_candidates_of_equal_priors(tmp_path):
    """Priors are rounded to three decimals: their order in the table is that of the true ones, as in the original."""
    titles = [f"Town {i:02}" for i in reversed(range(60))]
    priors = [0.5, *[0.001] * 30, *[0.0] * 29]
    cells = "\t".join(f"{i},{prior},{title}" for i, (title, prior) in enumerate(zip(titles, priors)))
    path = write(tmp_path / "set.csv", line("2.txt", "Town", cells, f"0,1,0.5,{titles[0]}"))
    conll = write(tmp_path / "set.conll", "-DOCSTART- (2.txt\nTown\tB\tTown\tElder\thttp\t2\n")
    (doc,), _ = read(path, "deep_ed", conll=conll)
    (candidates,) = given_candidates(doc).values()
    best = best_candidates(candidates, most=30)
    assert [title for title, _ in best] == titles[:30]
    assert [prior for _, prior in best] == pytest.approx(priors[:30], abs=1e-7)


@pytest.mark.parametrize(
    ("table", "words", "message"),
    [
        ("a\tb\tc", WORDS, "line 1: expected document, document, mention"),
        ("\n", WORDS, "expected lines with mentions"),
        (line("3", "X", "EMPTYCAND", "-1,5,X"), WORDS, "document '3': expected it in"),
        (line("2.txt", "X", "EMPTYCAND", "-1,5,X"), WORDS, "expected the mention 'X' among the words"),
        (TABLE, "word\n", "line 1: expected '-DOCSTART- "),
        (TABLE, "-DOCSTART- (1\nx\tO\ta\tb\tc\td\n", "line 2: expected B or I of a mention"),
    ],
)
def test_what_is_refused(tmp_path, table, words, message):
    path, conll = write(tmp_path / "a.csv", table), write(tmp_path / "a.conll", words)
    with pytest.raises(ValueError, match=message):
        read(path, "deep_ed", conll=conll)
    with pytest.raises(ValueError, match="needs the file with the words"):
        read(path, "deep_ed")


@pytest.mark.slow
def test_titles_for_pretraining(files, tmp_path):

    path, options = files
    docs, _ = read(path, "deep_ed", **options)
    write_docbin(docs, tmp_path / "set.spacy")
    script = Path(__file__).parents[3] / "scripts/ned_candidates.py"
    command = [sys.executable, str(script), str(tmp_path / "out/titles.txt"), str(tmp_path / "set.spacy")]
    subprocess.run(command, check=True, capture_output=True)
    titles = (tmp_path / "out/titles.txt").read_text(encoding="utf8").splitlines()
    assert titles == sorted({"A&T (firm)", "Ada Lovelace", "Elder Town (new)", "Lovelace, Colorado", "Old Town, X"})
