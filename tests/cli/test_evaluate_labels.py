"""`spacy luke evaluate` on gold that stands in doc.ents alone, with labels that are not the pipeline's, or words."""

import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import Scope, register_extensions
from spacy_luke.cli.given import read_entity_scope
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.pipelines.evaluation import evaluate as evaluate_pipeline
from spacy_luke.readers.docbin import write_docbin
from tests.tiny import SENTENCES, make_checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A luke_ner of noise that writes a group and doc.ents, as the ready pipeline does."""
    folder = tmp_path_factory.mktemp("pipeline")
    config = {"spans_key": "sc", "set_ents": True}
    build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"]), config=config).to_disk(folder / "pipeline")
    return folder


def write_gold(folder, rename=lambda label: label):
    """What the pipeline finds in doc.ents, as spaCy's own tools would save it. RETURNS: its labels."""
    nlp = spacy.load(folder / "pipeline")
    golds = []
    for doc in nlp.pipe(SENTENCES):
        gold = Doc(nlp.vocab, words=[word.text for word in doc], spaces=[bool(word.whitespace_) for word in doc])
        renamed = [(x, rename(x.label_)) for x in doc.ents]
        gold.set_ents([Span(gold, x.start, x.end, label) for x, label in renamed if label], default="outside")
        golds.append(gold)
    DocBin(docs=golds).to_disk(folder / "gold.spacy")
    return [x.label_ for gold in golds for x in gold.ents]


def evaluate(folder, *options, code=0):
    command = ["luke", "evaluate", folder / "pipeline", folder / "gold.spacy", "-o", folder / "m.json", *options]
    result = CliRunner().invoke(spacy_app, list(map(str, command)))
    assert result.exit_code == code, result.output
    return srsly.read_json(folder / "m.json") if code == 0 else None, " ".join(result.output.split())


def test_gold_in_doc_ents_alone(folder):
    labels = write_gold(folder)
    assert {"PER", "LOC"} == set(labels)
    scores, text = evaluate(folder, "--html", folder / "r.html")
    assert scores["ents_f"] == 1.0
    assert f"all 100.00 100.00 100.00 {len(labels)}" in text
    assert scores["luke_ner_reliability"]["n"] == len(labels)
    assert "100.0" in (folder / "r.html").read_text(encoding="utf8")
    assert "nowhere has" not in text


def test_gold_inside_words_is_said(folder):
    """Running text is divided by the pipeline's tokenizer; with the words of the data nothing is lost."""
    nlp = spacy.load(folder / "pipeline")
    gold = Doc(nlp.vocab, words=["Berlin", "x", "Ada", "met", "her"], spaces=[False, True, True, True, False])
    gold.set_ents([Span(gold, 0, 1, "LOC"), Span(gold, 2, 3, "PER")], default="outside")
    DocBin(docs=[gold]).to_disk(folder / "gold.spacy")
    told = "1 of the 2 gold mentions for 'luke_ner' begin or end inside a word of the pipeline ('Berlin')"
    assert told in evaluate(folder)[1]
    assert "inside a word" not in evaluate(folder, "--gold-sentences")[1]


def test_labels_that_are_not_those_of_the_pipeline(folder):
    labels = write_gold(folder, {"PER": "PERSON", "LOC": "GPE"}.get)
    scores, text = evaluate(folder)
    assert scores["ents_f"] == 0.0
    for old, new in (("PER", "PERSON"), ("LOC", "GPE")):
        assert f"{new} ({labels.count(new)})" in text, old
    assert "count as missed" in text
    assert "--annotates" not in text  # nothing would be left
    scores, text = evaluate(folder, "--labels", "PERSON=PER, GPE=LOC|PER")
    assert scores["ents_f"] == 1.0
    assert "count as" not in text


def test_labels_that_the_gold_does_not_annotate(folder):
    labels = write_gold(folder, {"PER": "PER"}.get)
    scores, text = evaluate(folder, "--html", folder / "r.html")
    assert scores["ents_r"] == 1.0
    assert scores["ents_p"] < 1.0
    assert "leave them out: --annotates PER" in text
    assert "leave them out: --annotates PER" in (folder / "r.html").read_text(encoding="utf8")
    scores, text = evaluate(folder, "--annotates", "PER")
    assert scores["ents_f"] == 1.0
    assert f"all 100.00 100.00 100.00 {len(labels)}" in text
    assert "nowhere has" not in text


def test_docs_that_say_something_of_another_task(folder):
    """What is said of entities holds for them, too, and not for those that say it themselves."""
    write_gold(folder, {"PER": "PER"}.get)
    nlp = spacy.load(folder / "pipeline")
    golds = list(DocBin().from_disk(folder / "gold.spacy").get_docs(nlp.vocab))
    register_extensions()
    for scope, precise in (({"relations": {"annotates": []}}, True), ({"entities": {"annotates": ["LOC"]}}, False)):
        for gold in golds:
            gold._.luke_scope = scope
        write_docbin(golds, folder / "scoped.spacy")
        found = evaluate_pipeline(nlp, folder / "scoped.spacy", entities=Scope(annotates=frozenset({"PER"})))
        assert (found.scores["ents_p"] == 1.0) is precise


def test_gold_that_is_not_scored_is_not_counted(folder):
    labels = write_gold(folder, {"PER": "PER", "LOC": "PLACE"}.get)
    _, text = evaluate(folder, "--annotates", "PER", "--labels", "PLACE=LOC")
    assert f"all 100.00 100.00 100.00 {labels.count('PER')}" in text
    _, text = evaluate(folder, "--labels", "PLACE=LOC")
    assert f"LOC 100.00 100.00 100.00 {labels.count('PLACE')}" in text
    assert f"all 100.00 100.00 100.00 {len(labels)}" in text


def test_labels_that_the_gold_does_not_have(folder):
    write_gold(folder, {"PER": "PERSON", "LOC": "GPE"}.get)
    _, text = evaluate(folder, "--labels", "PERSN=PER", code=1)
    assert "the gold's label 'PERSN' means, but no entity of" in text
    assert "Is PERSON meant?" in text


def test_labels_that_the_pipeline_does_not_have(folder, tmp_path):
    write_gold(folder, {"PER": "PERSON", "LOC": "GPE"}.get)
    _, text = evaluate(folder, "--labels", "PERSON=PRE", code=1)
    assert "the gold's labels mean 'PRE', but the pipeline has no such label. Is PER meant?" in text
    _, text = evaluate(folder, "--labels", "GPE=LOC|Nix", code=1)
    assert "the gold's labels mean 'Nix', but the pipeline has no such label; there are LOC, PER." in text
    _, text = evaluate(folder, "--annotates", "PER,Nix", code=1)
    assert "the gold annotates 'Nix', but the pipeline has no such label" in text
    evaluate(folder, "--annotates", "PER,GPE", "--labels", "PERSON=PER")  # the gold has it, the pipeline not
    build_pipeline(make_checkpoint(labels=["NIL", "HUMAN"])).to_disk(tmp_path / "other")  # of two compared, one has it
    both = ["--html", tmp_path / "r.html", "--against", tmp_path / "other"]
    evaluate(folder, "--labels", "PERSON=PER|HUMAN", *both)
    nlp = spacy.load(folder / "pipeline")
    nlp.add_pipe("doc_cleaner")  # it does not say its labels: it could give any
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "gold.spacy").write_bytes((folder / "gold.spacy").read_bytes())
    evaluate(tmp_path, "--labels", "PERSON=HUMAN")


def test_labels_that_both_have_and_that_mean_another(folder):
    """Gold is counted under what it means, whether it is found or missed, and what is found in its place is wrong."""
    labels = write_gold(folder)
    n, people = len(labels), labels.count("PER")
    scores, text = evaluate(folder, "--labels", "PER=LOC,LOC=PER")
    assert scores["ents_f"] == 0.0
    assert f"LOC 0.00 0.00 0.00 {people} PER 0.00 0.00 0.00 {n - people} all 0.00 0.00 0.00 {n}" in text
    assert "nowhere has" not in text
    scores, text = evaluate(folder, "--labels", "PER=LOC")
    assert scores["ents_f"] == pytest.approx((n - people) / n)
    assert scores["ents_per_type"]["LOC"]["r"] == pytest.approx((n - people) / n)
    assert f"found PER ({people}), which the gold nowhere has" in text


def test_what_is_missed_of_one_of_several(folder):
    """It is no label's own: the row has the names of all."""
    gold = spacy.load(folder / "pipeline")(SENTENCES[0])
    del gold.spans["sc"]
    gold.set_ents([Span(gold, len(gold) - 1, len(gold), "X")], default="outside")
    DocBin(docs=[gold]).to_disk(folder / "gold.spacy")
    scores, text = evaluate(folder, "--labels", "X=LOC|PER")
    assert scores["ents_r"] == 0.0
    assert "LOC|PER 0.00 0.00 0.00 1" in text
    assert "does not know" not in text


def test_what_a_label_may_be():
    scope = read_entity_scope("PERSON=PER,NORP=MISC|LOC,LAW=", "PER, LOC")
    assert scope.annotates == {"PER", "LOC"}
    assert scope.meanings == {"PERSON": {"PER"}, "NORP": {"MISC", "LOC"}, "LAW": None}
    assert read_entity_scope(None, None).is_full


@pytest.mark.parametrize(("labels", "annotates"), [("PERSON", None), ("=PER", None), (None, " , ")])
def test_what_labels_may_not_be(labels, annotates):
    with pytest.raises(ValueError, match=r"--labels is GOLD=OURS|--annotates is a list"):
        read_entity_scope(labels, annotates)


def test_where_gold_would_be(tmp_path):
    """Gold of a pipeline that writes a group alone may stand in doc.ents, too; without either it is said where."""
    build_pipeline(make_checkpoint(labels=["NIL", "PER"]), config={"spans_key": "sc"}).to_disk(tmp_path / "pipeline")
    vocab = spacy.blank("en").vocab
    DocBin(docs=[Doc(vocab, words=["Ada"], ents=["B-PER"])]).to_disk(tmp_path / "gold.spacy")
    assert "PER" in evaluate(tmp_path)[0]["spans_sc_per_type"]
    DocBin(docs=[Doc(vocab, words=["Ada"])]).to_disk(tmp_path / "gold.spacy")
    _, text = evaluate(tmp_path, code=1)
    assert "no mentions in doc.spans['sc'], nor in doc.ents" in text
