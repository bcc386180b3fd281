"""A pipeline that is pickled while it is trained; and one that is unpickled in a process of its own, as joblib, Dask
and Spark do it, where nothing was imported."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.schedules import make_linear
from tests.components.every import MAKERS, facts, random_texts
from tests.pipelines import annotate, as_gold, make_pipeline

ROOT = Path(__file__).parents[2]
OTHER = """
import pickle, sys
nlp, given, expected = pickle.load(open(sys.argv[1], "rb"))
docs = list(nlp.pipe(given))
from tests.components.every import facts
assert [facts(doc) for doc in docs] == expected
"""


def test_with_an_optimizer_in_use():
    """As after `nlp.resume_training()`: it is pickled and copied with its moments and its place in the schedule."""
    nlp = make_pipeline("luke_ner")
    gold = [as_gold(doc) for doc in annotate(nlp)]
    nlp._optimizer = make_adamw(make_linear(1e-3, 0.3, total_steps=20))

    def train(nlp):
        losses = []
        for _ in range(3):
            losses.append(nlp.update([Example(nlp.make_doc(doc.text), doc) for doc in gold], sgd=nlp._optimizer))
            nlp._optimizer.step_schedules()
        return losses

    train(nlp)
    others = [pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)]
    losses = train(nlp)
    assert losses[0]["luke_ner"] > 0
    assert [train(other) for other in others] == [losses, losses]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_in_another_process(name, tmp_path):
    make, make_doc, words = MAKERS[name]
    nlp = make(tmp_path)
    given = [make_doc(nlp, text) for text in random_texts(3, words)]
    expected = [facts(doc) for doc in nlp.pipe(doc.copy() for doc in given)]
    assert any(expected)
    (tmp_path / "nlp.pickle").write_bytes(pickle.dumps((nlp, given, expected)))
    command = [sys.executable, "-c", OTHER, str(tmp_path / "nlp.pickle")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
