"""GLUE's tsv files, in small samples written for this test with the columns of the published ones."""

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import register_extensions
from spacy_luke.readers.datasets.glue import GLUE_TASKS
from spacy_luke.readers.datasets.table import dataset_docs

NLP = spacy.blank("en")
MNLI = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2"  # noqa: E501
MNLI_ROW = "0\t1\t1n\tx\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tIt rains.\tIt is wet."
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
FILES = {
    "cola": ("gj04\t1\t\tHe left.\ngj04\t0\t*\tHim left.\n", ["He left.", "Him left."], ["acceptable", "unacceptable"]),
    "sst2": ('sentence\tlabel\na "fine film \t1\n"dull\t0\n', ['a "fine film', '"dull'], ["positive", "negative"]),
    "mrpc": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe "left.\tHe went.\n0\t7\t9\tHe left.\tRain"\n',
        ['He "left. He went.', 'He left. Rain"'],
        ["equivalent", "not_equivalent"],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n5\t1\t2\tWhy?\tHow?\t0\n",
        ["Why? How?"],
        ["not_duplicate"],
    ),
    "mnli": (
        f"{MNLI}\tlabel1\tgold_label\n{MNLI_ROW}\tneutral\tentailment\n",
        ["It rains. It is wet."],
        ["entailment"],
    ),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\tWho?\tAda did.\tentailment\n", ["Who? Ada did."], ["entailment"]),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\tA b.\tC.\tnot_entailment\n", ["A b. C."], ["not_entailment"]),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\tA b.\tC.\t1\n", ["A b. C."], ["entailment"]),
    "stsb": (f"{STSB}\n0\tg\tf\t2012\t1\tnone\tnone\tA plane.\tA jet.\t3.800\n", ["A plane. A jet."], ["similar"]),
}
TESTS = {
    "cola": ("index\tsentence\n0\tHe left.\n", "He left."),
    "sst2": ("index\tsentence\n0\tgood\n", "good"),
    "mrpc": ("index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA.\tB.\n", "A. B."),
    "qqp": ("id\tquestion1\tquestion2\n0\tA?\tB?\n", "A? B?"),
    "mnli": (f"{MNLI}\n{MNLI_ROW}\n", "It rains. It is wet."),
    "qnli": ("index\tquestion\tsentence\n0\tA?\tB.\n", "A? B."),
    "rte": ("index\tsentence1\tsentence2\n0\tA.\tB.\n", "A. B."),
    "wnli": ("index\tsentence1\tsentence2\n0\tA.\tB.\n", "A. B."),
    "stsb": (f"{STSB.removesuffix('score').strip()}\n0\tg\tf\t2012\t1\tnone\tnone\tA.\tB.\n", "A. B."),
}


@pytest.fixture
def read(tmp_path):
    def read(content, task, **settings):
        path = tmp_path / "data.tsv"
        path.write_text(content, encoding="utf8")
        return list(dataset_docs(NLP, path, format="glue", task=task, **settings))

    return read


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("task", GLUE_TASKS)
def test_tasks(read, task, newline):
    content, texts, labels = FILES[task]
    docs = read(content.replace("\n", newline), task)
    assert [doc.text for doc in docs] == texts
    assert [max(doc.cats, key=doc.cats.get) for doc in docs] == labels
    assert all(sum(doc.cats.values()) == 1 for doc in docs)
    if task == "stsb":
        assert docs[0].cats == {"similar": pytest.approx(0.76), "dissimilar": pytest.approx(0.24)}
    else:
        assert set(docs[0].cats) == set(GLUE_TASKS[task].labels.values())
    content, text = TESTS[task]
    (doc,) = read(content, task)
    assert (doc.text, doc.cats) == (text, {})


def test_two_texts_in_one_doc(read):
    register_extensions()
    head = "index\tsentence1\tsentence2\tlabel\n"
    docs = read(head + "0\t He can't \tn't he ? \tentailment\n1\tA.\t\tentailment\n2\t\tB.\tentailment\n", "rte")
    first, second, third = docs
    assert [doc._.luke_second for doc in docs] == [9, 2, 0]
    assert first.text[first._.luke_second :] == "n't he ?"
    words = [[word.text for word in NLP(text)] for text in ("He can't", "n't he ?")]
    assert [word.text for word in first] == words[0] + words[1]  # as if each text stood alone
    assert (second.text, third.text) == ("A.", "B.")
    (copy,) = DocBin().from_bytes(DocBin(docs=[first], store_user_data=True).to_bytes()).get_docs(NLP.vocab)
    assert (copy._.luke_second, copy.cats) == (9, {"entailment": 1.0, "not_entailment": 0.0})
    first._.luke_second = None
    assert first._.luke_second is None
    assert read(FILES["sst2"][0], "sst2")[0]._.luke_second is None
    for wrong in (-1, 18, True, "9"):
        with pytest.raises(ValueError, match="luke_second must be the character"):
            first._.luke_second = wrong


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        (None, "x", "needs a task, one of"),
        ("ax", "x", "needs a task, one of"),
        ("rte", "", "the file holds none"),
        ("rte", FILES["rte"][0].split("\n")[0], "the file holds none"),
        ("rte", FILES["mrpc"][0], "line 1: expected the columns of GLUE's rte, among them 'sentence1'"),
        ("rte", FILES["rte"][0] + "1\tA.\tB.\n", "line 3: expected 4 columns, .*but got 3: .*set damaged to 'skip'"),
        ("rte", FILES["rte"][0] + "\n", "line 3: expected 4 columns, .*but got 1"),
        ("rte", FILES["rte"][0] + "1\tA.\tB.\tmaybe\n", "line 3: expected one of .*'not_entailment'. under 'label'"),
        ("rte", "sentence1\tsentence2\tlabel\tlabel\n", "line 1: expected columns with different names"),
        ("stsb", FILES["stsb"][0].replace("3.800", "5.1"), "line 2: expected a number from 0 to 5 under 'score'"),
        ("stsb", FILES["stsb"][0].replace("3.800", "nan"), "line 2: expected a number from 0 to 5"),
        ("cola", FILES["cola"][0] + "x\t2\t\tHe.\n", "line 3: expected one of .'0', '1'."),
    ],
)
def test_malformed_files(read, task, content, message):
    with pytest.raises(ValueError, match=message):
        read(content, task)


def test_damaged_lines_are_left_out_where_that_is_asked_for(read):
    with pytest.warns(UserWarning, match="2 damaged lines are left out, the first is 2"):
        docs = read("sentence\tlabel\nfine\n\na\t1\n", "sst2", damaged="skip")
    assert [doc.text for doc in docs] == ["a"]
    with pytest.raises(ValueError, match="damaged must be one of"):
        read(FILES["sst2"][0], "sst2", damaged="ignore")
