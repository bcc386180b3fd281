import json
import subprocess
import sys

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.training import Corpus
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import get_rows, get_second

WNUT = "Bonn\tB-location\nis\tO\n\nMary\tB-person\nJane\tI-person\n\n!\tO\n"


def flatten(text):
    """Messages are broken to the terminal's width."""
    return " ".join(text.split())


@pytest.fixture
def run(tmp_path):
    def run(*arguments, text=WNUT, name="data.txt"):
        (tmp_path / name).write_text(text, encoding="utf8")
        output = tmp_path / "out.spacy"
        result = CliRunner().invoke(spacy_app, ["luke", "corpus", str(tmp_path / name), str(output), *arguments])
        return result.exit_code, flatten(result.output), output

    return run


def read(path):
    return [example.reference for example in Corpus(path)(spacy.blank("en"))]


def test_columns(run):
    code, text, output = run("-f", "wnut", "--documents", "2")
    assert code == 0, text
    for expected in ("2 documents, 5 words", "3 sentences", "2 mentions", "location"):
        assert expected in text
    first, _ = read(output)
    assert [(e.text, e.label_) for e in first.ents] == [("Bonn", "location"), ("Mary Jane", "person")]
    assert [sentence.text for sentence in first.sents] == ["Bonn is", "Mary Jane"]


@pytest.mark.parametrize(("first", "known"), [("Ann lives here . Bob too .", False), ("Ann lives .\nBob too .", True)])
def test_sentences_are_counted_where_they_are_known(run, first, known):
    """Of a document of one word spaCy always says that they are."""
    lines = "".join(f"{word}\tO\n" for word in first.replace("\n", " \t ").split(" ")).replace("\t\tO\n", "\n")
    documents = [lines, "Rome\tB-LOC\n"]
    if known:
        code, text, _ = run("-f", "conll2003", "--documents", "2", text="\n".join([*documents, "Yes\tO\n"]))
    else:
        rows = [{"text": x, "entities": []} for x in (first, "Rome", "Yes.")]
        code, text, _ = run("-f", "jsonl", text="".join(json.dumps(row) + "\n" for row in rows), name="data.jsonl")
    assert code == 0, text
    assert (" sentences" in text) == known
    assert ("4 sentences" in text) == known


def test_settings_of_columns(run):
    rows = "x|Bonn|B-A|O\nx|sur|O|B-B\n"
    code, text, output = run(
        "-f", "columns", "--word-column", "1", "--tag-column", "2", "--tag-column", "-1", "--delimiter", "|",
        "--documents", "file", "--scheme", "IOB2", "--spans-key", "sc", "--lang", "xx", text=rows,
    )  # fmt: skip
    assert code == 0, text
    (doc,) = read(output)
    assert [(s.text, s.label_) for s in doc.spans["sc"]] == [("Bonn", "A"), ("sur", "B")]
    assert run("-f", "columns", "--delimiter", "\\t", "--documents", "1")[0] == 0


def test_jsonl_shards_and_limit(run):
    line = json.dumps({"text": "Bonn is nice", "entities": [[0, 4, "LOC"]]}) + "\n"
    code, text, output = run("-f", "jsonl", "--shard-words", "6", "--limit", "5", text=line * 9)
    assert code == 0, text
    assert "(3 files): 5 documents, 15 words" in text
    assert [doc.ents[0].label_ for doc in read(output)] == ["LOC"] * 5
    code, text, _ = run("-f", "jsonl", "--align", "expand", "--spans-field", "x", text='{"text": "Bonn", "x": []}')
    assert code == 1  # the folder of shards is in the way
    assert "is a folder" in text


def test_what_lies_inside_is_left_out_and_counted(run):
    line = json.dumps({"text": "Bonn is nice", "entities": [[0, 4, "LOC"], [0, 7, "X"]]}) + "\n"
    code, text, output = run("-f", "jsonl", "--overlaps", "outermost", "--limit", "2", text=line * 3)
    assert code == 0, text
    assert "2 mentions, 2 left out" in text
    assert [doc.ents[0].label_ for doc in read(output)] == ["X"] * 2
    code, text, _ = run("-f", "jsonl", text=line)
    assert code == 1
    assert "overlap, which doc.ents cannot hold" in text


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        (["-f", "xml"], WNUT, "format must be one of"),
        (["-f", "genia"], WNUT, "set spans_key"),
        (["-f", "jsonl", "--documents", "1"], WNUT, "has no use for documents"),
        (["-f", "wnut", "--spans-field", "x"], WNUT, "has no use for spans_field"),
        (["-f", "conll04", "--align", "strict"], WNUT, "has no use for align"),
        (["-f", "squad", "--mention-pairs", "all"], WNUT, "has no use for mention_pairs"),
        (["-f", "squad"], WNUT, "line 1: expected JSON"),
        (["-f", "wnut"], "Bonn\tX-1\n", "line 1: expected the tag O"),
        (["-f", "jsonl"], '{"text": "Bonn", "spans": [[0, 3, "X"]]}', "line 1: mention [0, 3, 'X'] is 'Bon'"),
        (["-f", "conll2003"], WNUT, "expected -DOCSTART- lines"),
    ],
)
def test_errors_write_nothing(run, arguments, content, message):
    code, text, output = run(*arguments, text=content)
    assert code == 1
    assert message in text
    assert not output.exists()


def test_a_file_without_mentions(run):
    code, text, _ = run("-f", "wnut", text="a\tO\n")
    assert code == 0, text
    assert "0 mentions" in text


def test_data_sets(run):
    sentence = '1\t"The <e1>cat</e1> sat on <e2>mats</e2>."\n{}\nComment:\n\n'
    code, text, output = run("-f", "semeval2010", text=sentence.format("On(e1,e2)") * 2 + sentence.format("Other"))
    assert code == 0, text
    for expected in ("3 documents, 18 words", "6 mentions", "2 relations, 3 given pairs", "On(e1,e2)"):
        assert expected in text
    assert [len(get_rows(doc, "luke_relations")) for doc in read(output)] == [1, 1, 0]


def test_types_relations_and_questions_are_counted(run):
    record = {
        "text": "Ed saw Bonn",
        "entities": [
            {"start": 0, "end": 2, "label": "PER", "types": ["a", "b"]},
            {"start": 7, "end": 11, "label": "LOC", "types": []},
        ],
        "relations": [{"head": 0, "tail": 1, "label": "saw"}] * 2,
        "questions": [{"question": "Who?", "answers": [[0, 2]]}, {"question": "Why?", "answers": []}],
        "queries": [{"query": "@placeholder ran", "answers": [[0, 2]]}],
    }
    code, text, _ = run("-f", "jsonl", text=json.dumps(record))
    assert code == 0, text
    for expected in (
        "2 mentions",
        "2 types, 2 mentions with types or none, 1 of them without any",
        "1 relations, 1 equal ones counted once",
        "2 questions, 1 without an answer",
        "1 queries",
    ):
        assert expected in text
    assert "queries, " not in text
    many = {"sent": "Ed", "start": 0, "end": 2, "labels": [f"type{i}" for i in range(60)]}
    code, text, _ = run("-f", "open_entity", text=json.dumps([many]))
    assert code == 0, text
    assert "60 types" in text
    assert "and 10 other labels" in text
    assert "mentions " in text
    assert "0 mentions" not in text


@pytest.mark.slow
def test_spacy_finds_the_command(shared, tmp_path):
    """In a new process, with nothing imported, several files, on real data."""
    files = [shared(f"data/conll2003/{name}") for name in ("eng.testa", "eng.testb")]
    command = [sys.executable, "-m", "spacy", "luke", "corpus", *map(str, files), str(tmp_path / "all.spacy")]
    result = subprocess.run([*command, "--format", "conll2003"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "447 documents, 97,797 words 6,703 sentences" in flatten(result.stdout.replace("\x1b[0m", ""))
    assert len(read(tmp_path / "all.spacy")) == 447


def test_parts_and_pairs_of_ids(run, tmp_path):
    data = {
        label: [
            {"tokens": ["a", "b", str(i)], "h": ["a", f"Q{i}", [[0]]], "t": ["b", f"{label}{i}", [[1]]]}
            for i in range(10)
        ]
        for label in ("P1", "P2")
    }
    pairs = tmp_path / "pairs.tsv"
    code, text, output = run(
        "-f", "fewrel", "--part", "dev", "--seed", "3", "--shares", "0.5,0.2,0.3", "--pair-ids", str(pairs),
        text=json.dumps(data),
    )  # fmt: skip
    assert code == 0, text
    for expected in ("4 documents", "4 relations, 4 given pairs", "8 given entities", "4 pairs of ids"):
        assert expected in text
    rows = [line.split("\t") for line in pairs.read_text(encoding="utf8").splitlines()]
    docs = read(output)
    assert sorted(row[2] for row in rows) == ["P1", "P1", "P2", "P2"]
    assert {(row[0], row[1]) for row in rows} == {tuple(e.kb_id_ for e in doc.ents) for doc in docs}
    for arguments, message in [
        (["--seed", "3"], "has no use for seed without part"),
        (["--part", "all"], "part must be one of"),
        (["--part", "dev", "--shares", "a"], "shares must be three numbers with commas"),
    ]:
        code, text, _ = run("-f", "fewrel", *arguments, text=json.dumps(data))
        assert code == 1
        assert message in text
    code, text, _ = run("-f", "wnut", "--part", "dev")
    assert code == 1
    assert "The format wnut has no use for part" in text


def test_glue(run):
    content = "index\tsentence1\tsentence2\tlabel\n0\tA b.\tC.\t1\n1\tD.\tE.\t0\n2\tF.\tG.\t1\n"
    code, text, output = run("-f", "glue", "--task", "wnli", text=content)
    assert code == 0, text
    for expected in ("3 documents", "3 categories, 3 documents with a second text", "entailment 2"):
        assert expected in text
    assert "mentions" not in text
    assert [get_second(doc) for doc in read(output)] == [5, 3, 3]
    code, text, _ = run("-f", "glue", text=content)
    assert (code, "needs a task" in text) == (1, True)
