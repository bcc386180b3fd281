"""scripts/glue_submission.py: predictions as the leaderboard reads them."""

import sys
from pathlib import Path

import pytest
import spacy
from spacy.training import Example

from spacy_luke.readers.datasets.glue import GLUE_TASKS

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import glue_submission


@pytest.mark.parametrize(
    ("task", "cats", "expected"),
    [
        ("cola", {"unacceptable": 0.7, "acceptable": 0.3}, "0"),
        ("mrpc", {"not_equivalent": 0.2, "equivalent": 0.8}, "1"),
        ("mnli", {"entailment": 0.1, "neutral": 0.2, "contradiction": 0.7}, "contradiction"),
        ("rte", {"entailment": 0.1, "not_entailment": 0.9}, "not_entailment"),
        ("stsb", {"similar": 0.76, "dissimilar": 0.24}, "3.800"),
    ],
)
def test_lines(task, cats, expected):
    assert glue_submission.lines_of(task, [cats, cats]) == ["index\tprediction", f"0\t{expected}", f"1\t{expected}"]


def test_every_task_has_a_file():
    assert set(glue_submission.PARTS) == set(GLUE_TASKS)


def test_files_of_all_trained_tasks(tmp_path, capsys):
    """A model that says the same of all; MNLI's answers its three parts, and what is missing is said."""
    for task in ("mnli", "rte", "cola"):
        nlp = spacy.blank("en")
        labels = sorted(GLUE_TASKS[task].labels.values())
        nlp.add_pipe("textcat").initialize(lambda nlp=nlp, labels=labels: [of_all(nlp, labels)], labels=labels)
        model = tmp_path / f"models/{task}/model-last"
        model.mkdir(parents=True)
        nlp.to_disk(model)
    pair = "index\tsentence1\tsentence2\n0\tIt rains.\tIt is wet.\n1\tIt is.\tIt is not.\n"
    for path in ("mnli/test.tsv", "mnli/test_mismatched.tsv", "ax/test.tsv", "rte/test.tsv", "qnli/test.tsv"):
        (tmp_path / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / path).write_text(pair, encoding="utf8")
    written = glue_submission.write_files(
        glue_submission.models_of(tmp_path / "models"), tmp_path / "data", tmp_path / "out"
    )
    assert sorted(written) == ["AX", "MNLI-m", "MNLI-mm", "RTE"]
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == sorted(written)
    lines = [line.split("\t") for line in (tmp_path / "out/AX.tsv").read_text(encoding="utf8").splitlines()]
    assert [line[0] for line in lines] == ["index", "0", "1"]
    assert {line[1] for line in lines[1:]} <= {"entailment", "neutral", "contradiction"}
    said = capsys.readouterr().out
    assert f"cola: there is no {tmp_path / 'data/cola/test.tsv'}\n" in said
    assert f"qnli: there is no {tmp_path / 'models/qnli/model-last'}\n" in said


def of_all(nlp, labels):
    doc = nlp.make_doc("It rains.")
    return Example.from_dict(doc, {"cats": {label: float(label == labels[0]) for label in labels}})
