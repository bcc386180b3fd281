"""scripts/glue_submission.py: predictions as the leaderboard reads them."""

import sys
from pathlib import Path

import pytest

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
    assert set(glue_submission.NAMES) == set(GLUE_TASKS)
