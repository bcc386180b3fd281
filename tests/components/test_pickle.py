"""A pipeline that is unpickled in a process of its own, as joblib, Dask and Spark do it, where nothing was imported."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components.every import MAKERS, facts, random_texts

ROOT = Path(__file__).parents[2]
OTHER = """
import pickle, sys
nlp, given, expected = pickle.load(open(sys.argv[1], "rb"))
docs = list(nlp.pipe(given))
from tests.components.every import facts
assert [facts(doc) for doc in docs] == expected
"""


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
