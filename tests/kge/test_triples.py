import gzip

import numpy as np
import pytest

from spacy_luke.kge.triples import read_graph

LINES = "Q1\tP1\tQ2\nQ2\tP2\tQ3\nQ3\tP1\tQ1\nÖ\tP1\tQ1\n"


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf8")
    return path


def named(graph, split="train"):
    found = graph.triples[split].tolist()
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in found]


def test_triples_by_name(tmp_path):
    train = write(tmp_path, "train.tsv", LINES)
    graph = read_graph([train], valid=write(tmp_path, "valid.tsv", "Q9\tP1\tQ1\r\nQ1\tP9\tQ2"))
    assert named(graph) == [tuple(line.split("\t")) for line in LINES.splitlines()]
    assert named(graph, "valid") == [("Q9", "P1", "Q1"), ("Q1", "P9", "Q2")]
    assert graph.entities == ["Q1", "Q2", "Q3", "Ö", "Q9"]
    assert graph.relations == ["P1", "P2", "P9"]
    assert graph.triples["test"].shape == (0, 3)
    assert graph.triples["train"].dtype == np.int32
    assert [graph.entities[i] for i in graph.trained_entities()] == ["Q1", "Q2", "Q3", "Ö"]
    assert len(graph.known()) == 6


def test_gzip_and_several_files(tmp_path):
    first, second = write(tmp_path, "a.tsv", LINES[:18]), tmp_path / "b.tsv.gz"
    second.write_bytes(gzip.compress(LINES[18:].encode()))
    assert named(read_graph([first, second])) == named(read_graph([write(tmp_path, "all.tsv", LINES)]))


def test_quotes_are_those_of_other_tables(tmp_path):
    """As build-kb reads ids, so that both name one entity."""
    (tmp_path / "train.tsv").write_text('"5"" nail"\tis\t"Heroes" (album)\n5" nail\tis\tb\n')
    (tmp_path / "pairs.tsv").write_text('b\t"5"" nail"\n')
    graph = read_graph([tmp_path / "train.tsv"], exclude=tmp_path / "pairs.tsv")
    assert graph.entities == ['5" nail', '"Heroes" (album)', "b"]
    assert graph.triples["train"].tolist() == [[0, 0, 1]]


def test_lines_over_the_size_of_a_read(tmp_path):
    lines = [f"Q{i}\tP{i % 7}\tQ{i * 3}" for i in range(100_000)]
    graph = read_graph([write(tmp_path, "train.tsv", "\n".join(lines))])
    assert ["\t".join(triple) for triple in named(graph)] == lines


def test_what_editors_leave_is_no_part_of_a_name(tmp_path):
    """A mark of the byte order, line ends of Windows, and lines with nothing on them."""
    graph = read_graph([write(tmp_path, "train.tsv", "\ufeffQ1\tP1\tQ2\r\n\r\nQ2\tP1\tQ1\r\n\n")])
    assert named(graph) == [("Q1", "P1", "Q2"), ("Q2", "P1", "Q1")]


def test_triples_of_what_no_training_triple_has_are_counted(tmp_path):
    train = write(tmp_path, "train.tsv", "Q1\tP1\tQ2\nQ2\tP2\tQ3\n")
    valid = write(tmp_path, "valid.tsv", "Q3\tP1\tQ1\nQ1\tP3\tQ2\nQ9\tP1\tQ1\nQ1\tP2\tQ9\n")
    graph = read_graph([train], valid=valid)
    assert (graph.untrained("valid"), graph.untrained("train"), graph.untrained("test")) == (3, 0, 0)


def test_openke(tmp_path):
    """Its order is head, tail, relation; its tables may be in any order; without them the numbers are the names."""
    train = write(tmp_path, "train2id.txt", "2\n0 2 1\n2\t1\t0\n")
    assert named(read_graph([train])) == [("0", "1", "2"), ("2", "0", "1")]
    write(tmp_path, "entity2id.txt", "4\nQ30\t2\nQ10\t0\nQ20\t1\nQ40 3\n")
    write(tmp_path, "relation2id.txt", "2\nP0\t0\nP1\t1\n")
    graph = read_graph([train], test=write(tmp_path, "test2id.txt", "1\n3 0 0\n"))
    assert named(graph) == [("Q10", "P1", "Q30"), ("Q30", "P0", "Q20")]
    assert named(graph, "test") == [("Q40", "P0", "Q10")]


def test_excluded_pairs_go_in_both_directions(tmp_path):
    train = write(tmp_path, "train.tsv", LINES + "Q2\tP3\tQ1\n")
    pairs = write(tmp_path, "pairs.tsv", "Q1\tQ2\nQ9\tQ1\nÖ\tQ3\n")
    graph = read_graph([train], valid=write(tmp_path, "valid.tsv", "Q2\tP1\tQ1\nQ3\tP1\tQ2\n"), exclude=pairs)
    assert named(graph) == [("Q2", "P2", "Q3"), ("Q3", "P1", "Q1"), ("Ö", "P1", "Q1")]
    assert named(graph, "valid") == [("Q3", "P1", "Q2")]
    assert graph.excluded == {"pairs": 3, "pairs_of_entities_in_graph": 2, "train": 2, "valid": 1, "test": 0}
    with_relations = write(tmp_path, "pair_ids.tsv", "Q1\tQ2\tP1\nQ9\tQ1\t\nÖ\tQ3\tP2\n")
    assert named(read_graph([train], exclude=with_relations)) == named(graph)
    nothing = read_graph([train], exclude=write(tmp_path, "none.tsv", ""))
    assert nothing.excluded["train"] == 0
    assert len(nothing.triples["train"]) == 5


def test_only_line_feeds_end_lines(tmp_path):
    """A name may have other separators, also in pairs to exclude and in OpenKE's tables."""
    odd = "a\u2028b\x0cc\x85d"
    train = write(tmp_path, "train.tsv", f"{odd}\tP1\tQ2\nQ2\tP2\tQ3\n")
    pairs = write(tmp_path, "pairs.tsv", f"\ufeffQ2\t{odd}\r\n\n \nQ7\tQ8")
    graph = read_graph([train], exclude=pairs)
    assert named(graph) == [("Q2", "P2", "Q3")]
    assert graph.excluded["pairs"] == 2
    write(tmp_path, "entity2id.txt", f"2\r\n{odd}\t0\r\nQ2 1\r\n")
    assert named(read_graph([write(tmp_path, "train2id.txt", "1\n0 1 0\n")])) == [(odd, "0", "Q2")]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train.tsv": "Q1\tP1\tQ2\nQ1\tQ2\n"},
            "train.tsv, line 2: expected `head TAB relation TAB tail`, but got 'Q1",
        ),
        ({"train.tsv": "Q1\tP1\t\n"}, "line 1"),
        ({"train.tsv": "head\trelation\ttail\nQ1\tP1\tQ2\n"}, "line 1: .*names columns. Remove this line"),
        ({"train.tsv": "\ufeffSubject\tpredicate\tobject\r\nQ1\tP1\tQ2\r\n"}, "line 1: .*names columns"),
        ({"train.tsv": "Q1\tP1\tQ2\nQ1 \tP1\tQ2\n"}, "line 2: .*'Q1 .*no blanks at their ends"),
        ({"train.tsv": ""}, "Expected triples to learn from in .*train.tsv, but there are none"),
        ({"train.tsv": LINES, "exclude": "Q1\n"}, "exclude, line 1: expected `entity TAB entity`.* but got 'Q1'"),
        (
            {"train.tsv": LINES, "exclude": LINES},
            "line 1: expected .* or `head TAB tail TAB relation`, but",
        ),
        ({"train.tsv": LINES, "exclude": "A\tB\n\n\nBAD\n"}, "exclude, line 4: expected .* but got 'BAD'"),
        ({"train.tsv": LINES, "exclude": "Q1 \tQ2\n"}, "exclude, line 1: .* got 'Q1 .*no blanks at their ends"),
        ({"train.tsv": LINES, "exclude": "Q1\tQ2\rQ2\tQ3\r"}, "exclude, line 1: .*a carriage return alone"),
        ({"train.tsv": "Q1\tP1\tQ2\rQ2\tP1\tQ3\r"}, "train.tsv, line 1: .*a carriage return alone"),
        ({"train.tsv": "Q1\tP\tQ2\n", "exclude": "Q2\tQ1\n"}, "but there are none; 1 were excluded"),
        ({"train.tsv": "2\n0 1 0\n"}, "says 2 triples, which are 6 numbers, but there are 3. Is the file whole"),
        ({"train.tsv": "1\n0 1 x\n"}, "something else came"),
        ({"train.tsv": "2\n0 1 0\n0 -1 0\n"}, "line 3: expected numbers from 0, but got -1"),
        ({"train.tsv": "1\n0 1 0\n", "entity2id.txt": "1\nQ1\t0\n"}, "has 1 names, but a triple has number 1"),
        ({"train.tsv": "1\n0 1 0\n", "entity2id.txt": "3\nQ1\t0\nQ2\t1\n"}, "says '3' and has 2"),
        ({"train.tsv": "1\n0 1 0\n", "entity2id.txt": "2\nQ1\t0\nQ2\t0\n"}, "line 3: expected `name TAB number`"),
        ({"train.tsv": "1\n0 1 0\n", "entity2id.txt": "2\nQ1\t0\nQ1\t1\n"}, "1 come again"),
        ({"train.tsv": "1\n0 1 0\n", "valid": LINES}, "Give one format"),
        ({"train.tsv": LINES, "valid": "1\n0 1 0\n"}, "Give all files in one format"),
    ],
)
def test_bad_files_are_named(tmp_path, files, message):
    paths = {name: write(tmp_path, name, text) for name, text in files.items()}
    with pytest.raises(ValueError, match=message):
        read_graph([paths["train.tsv"]], valid=paths.get("valid"), exclude=paths.get("exclude"))


@pytest.mark.parametrize(("split", "what"), [("valid", "choose an epoch by"), ("test", "report on")])
def test_parts_without_triples(tmp_path, split, what):
    train, part = write(tmp_path, "train.tsv", LINES), write(tmp_path, "part.tsv", "\n")
    with pytest.raises(ValueError, match=rf"triples to {what} in .*part.tsv, but there are none.*leave --{split} out"):
        read_graph([train], **{split: part})
    write(tmp_path, "part.tsv", "Q1\tP1\tQ2\n")
    with pytest.raises(ValueError, match="but there are none; 1 were excluded"):
        read_graph([train], exclude=write(tmp_path, "pairs.tsv", "Q2\tQ1\n"), **{split: part})


def test_absent_file(tmp_path):
    with pytest.raises(ValueError, match="There is no file of triples"):
        read_graph([tmp_path / "absent.tsv"])


def test_codex(shared):
    folder = shared("data/codex/triples/codex-s/train.txt").parent
    graph = read_graph([folder / "train.txt"], valid=folder / "valid.txt", test=folder / "test.txt")
    assert (len(graph.entities), len(graph.relations)) == (2034, 42)
    assert [len(found) for found in graph.triples.values()] == [32888, 1827, 1828]
