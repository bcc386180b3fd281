"""Logs of both console loggers become curves."""

import json

import pytest

from spacy_luke.reports.logs import read_log

ROWS = [
    {
        "epoch": 0,
        "step": 0,
        "losses": {"luke_ner": 3.0},
        "scores": {"ents_f": 10.0, "ents_per_type": None},
        "score": 0.1,
    },
    {"epoch": 0, "step": 10, "losses": {"luke_ner": 20.0}, "scores": {"ents_f": 50.0}, "score": 0.5},
]


def test_curves(tmp_path):
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    curves = read_log(tmp_path / "log.jsonl")
    assert curves.score == [(0, 0.1), (10, 0.5)]
    assert curves.scores == {"ents_f": [(0, 0.1), (10, 0.5)]}
    assert curves.losses == {"luke_ner": [(0, 3.0), (10, 2.0)]}  # a step


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", "{", '{"step": 1, "score": null, "losses": {}, "scores": {}}'])
def test_other_files(tmp_path, text):
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(ValueError, match=r"is no log of a training|has no line with a score"):
        read_log(tmp_path / "log.jsonl")
