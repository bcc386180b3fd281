"""The recipe for Spark of docs/howto/many-documents.md, with a session of this machine."""

import re
import sys
from pathlib import Path

import pytest
import spacy

from spacy_luke.api import AnnotatedText, Annotator, as_form
from tests.tiny import SENTENCES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "many-documents.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_recipe(pipeline, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    sql = pytest.importorskip("pyspark.sql", reason="needs pyspark, and Java")
    pytest.importorskip("pandas", reason="needs pandas")
    try:
        session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    except Exception as error:  # of whatever kind: no Java
        pytest.skip(f"Spark does not start: {error}")
    try:
        rows = [(str(i), SENTENCES[i % 4]) for i in range(12)] + [("long", "a " * 600_000)]
        texts = session.createDataFrame(rows, "id string, text string").repartition(2)
        (code,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
        names = {"texts": texts, "PIPELINE": str(pipeline), "__name__": "recipe"}
        exec(code, names)
        found = {row.id: row for row in names["annotated"].collect()}
    finally:
        session.stop()
    annotator = Annotator(spacy.load(pipeline))
    assert set(found) == {id for id, _ in rows}
    assert found["long"].annotations is None
    assert "E088" in found["long"].error
    for id, text in rows[:-1]:
        assert found[id].error is None
        one = as_form(annotator.read(annotator.nlp(text)), id=id, pipeline=annotator.name)
        assert AnnotatedText.model_validate_json(found[id].annotations) == one
