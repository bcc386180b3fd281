"""The console's log: columns with whole names, no bars in files."""

import io
import json

import pytest
import spacy

from spacy_luke.training.console import make_console_logger


def make_nlp(*pipes):
    nlp = spacy.blank("en")
    for factory, name in pipes:
        nlp.add_pipe(factory, name=name)
    return nlp


@pytest.fixture
def nlp():
    return make_nlp(("luke_encoder", "luke_encoder"), ("luke_ner", "luke_ner"), ("soft_textcat", "luke_texts"))


def info(step, **scores):
    losses = {"luke_encoder": 0.0, "luke_ner": 1.5, "luke_texts": 22.25}
    return {"epoch": 0, "step": step, "losses": losses, "other_scores": scores, "score": 0.25}


def run(nlp, *infos, **settings):
    out, errors = io.StringIO(), io.StringIO()
    log, finish = make_console_logger(**settings)(nlp, out, errors)
    for one in infos:
        log(one)
    finish()
    return out.getvalue().splitlines(), errors.getvalue()


def test_rows(nlp):
    (header, line, row, last), bars = run(nlp, info(0, ents_f=0.5, ents_p=None), None, info(100, ents_f=1.0))
    scores = [name for name, x in nlp.config["training"]["score_weights"].items() if x is not None]
    assert header.split() == ["epoch", "step", "loss", "ner", "loss", "texts", *scores, "score"]
    first = dict(zip(scores, row.split()[4:], strict=False))
    assert row.split()[:4] == ["0", "0", "1.50", "22.25"]
    assert (first["ents_f"], first["ents_p"], row.split()[-1]) == ("50.00", "-", "25.00")
    assert last.split()[1] == "100"
    assert "100.00" in last
    assert len({len(x) for x in (header, line, row, last)}) == 1
    assert bars == ""  # it is no terminal


def test_names_that_would_be_the_same():
    nlp = make_nlp(("luke_ner", "luke_names"), ("luke_ner", "ernie_names"), ("luke_ner", "mine"))
    (header, _), _ = run(nlp)
    assert all(f"loss {name}" in header for name in ("luke_names", "ernie_names", "mine"))


def test_a_file(nlp, tmp_path):
    path = tmp_path / "new" / "log.jsonl"
    for _ in range(2):  # an older one is replaced
        run(nlp, info(0, ents_f=0.5), None, output_file=path)
    (line,) = path.read_text(encoding="utf8").splitlines()
    data = json.loads(line)
    assert (data["epoch"], data["step"], data["score"]) == (0, 0, 0.25)
    assert data["losses"] == {"luke_ner": 1.5, "luke_texts": 22.25}
    assert (data["scores"]["ents_f"], data["scores"]["ents_p"]) == (50.0, None)


def test_a_score_that_is_no_number(nlp):
    with pytest.raises(ValueError, match="'ents_f' is no number, but a dict: set its weight"):
        run(nlp, info(0, ents_f={}))


def test_a_bar_in_a_terminal(nlp):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    log, finish = make_console_logger()(nlp, io.StringIO(), terminal)
    log(info(0, ents_f=0.5))
    log(None)
    finish()
    assert "until the next evaluation" in terminal.getvalue()
