"""textcat with soft gold categories."""

import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin
from spacy.training import Example
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)

TEXTS = {"aa aa aa": 0.9, "bb bb bb": 0.2, "cc cc cc": 0.5}


def make_examples(nlp, scores):
    return [
        Example.from_dict(nlp.make_doc(text), {"cats": {"similar": score, "dissimilar": 1 - score}})
        for text, score in scores.items()
    ]


def test_it_learns_scores(tmp_path):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    examples = make_examples(nlp, TEXTS)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(80):
        nlp.update(examples, sgd=optimizer)
    for text, score in TEXTS.items():
        assert nlp(text).cats["similar"] == pytest.approx(score, abs=0.05)
    scores = nlp.evaluate(make_examples(nlp, TEXTS))
    assert scores["glue_spearman"] == pytest.approx(1.0)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert [again(text).cats for text in TEXTS] == [nlp(text).cats for text in TEXTS]


def test_what_is_no_distribution():
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    for cats in ({"similar": 0.5, "dissimilar": 0.4}, {"similar": 1.5, "dissimilar": -0.5}):
        wrong = Example.from_dict(nlp.make_doc("x"), {"cats": cats})
        with pytest.raises(ValueError, match="from 0 to 1 that sum to 1, or none, but document 1"):
            nlp.initialize(lambda wrong=wrong: [*make_examples(nlp, {"a": 0.5}), wrong])


@pytest.mark.parametrize("has_gold", [True, False])
def test_evaluate_command(tmp_path, has_gold):
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    examples = make_examples(nlp, TEXTS)
    nlp.initialize(lambda: examples)
    docs = [example.reference if has_gold else nlp.make_doc(example.text) for example in examples]
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    command = ["luke", "evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "--output", tmp_path / "scores.json"]
    result = CliRunner().invoke(spacy_app, list(map(str, command)))
    if has_gold:
        assert result.exit_code == 0, result.output
        scores = srsly.read_json(tmp_path / "scores.json")
        assert scores["glue_spearman"] == pytest.approx(nlp.evaluate(examples)["glue_spearman"])
        assert "soft_textcat" in result.output
        assert "spearman" in result.output
    else:
        assert result.exit_code == 1
        text = " ".join(result.output.split())
        assert "'soft_textcat' is not scored" in text
        assert "no categories in doc.cats" in text
        assert not (tmp_path / "scores.json").exists()


def test_docs_without_words_change_nothing():
    """spaCy's own textcat gives them scores that depend on the other Docs, or fails where it reads their first word."""
    nlp = spacy.blank("en")
    reduce = {"use_reduce_first": True, "use_reduce_last": False, "use_reduce_max": False, "use_reduce_mean": True}
    model = {"@architectures": "spacy.TextCatReduce.v1", "exclusive_classes": True, **reduce}
    model["tok2vec"] = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 8, "depth": 1}
    model["tok2vec"].update(embed_size=20, window_size=1, maxout_pieces=2, subword_features=False)
    nlp.add_pipe("soft_textcat", config={"model": model})
    nlp.initialize(lambda: make_examples(nlp, TEXTS))
    texts = ["", "aa aa aa", "", "bb"]
    found = [doc.cats for doc in nlp.pipe(texts, batch_size=4)]
    assert found == [nlp(text).cats for text in texts]
    assert found[0] == {"similar": 0.0, "dissimilar": 0.0}
    assert sum(found[1].values()) == pytest.approx(1.0)


def test_a_damaged_file_is_refused(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    nlp.initialize(lambda: make_examples(nlp, TEXTS))
    nlp.to_disk(tmp_path)
    for name in ("model", "cfg"):
        file = tmp_path / "soft_textcat" / name
        whole = file.read_bytes()
        for place in (5, len(whole) // 2, len(whole) - 2):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(ValueError, match=rf"soft_textcat.{name} is damaged: its digest"):
                spacy.load(tmp_path)
        file.write_bytes(whole)
    assert spacy.load(tmp_path)("aa").cats == nlp("aa").cats
    digests = tmp_path / "soft_textcat" / "digests.json"
    for text in ("[]", "{,", "\udcff", '{"cfg": 1}'):
        digests.write_bytes(text.encode("utf8", "surrogateescape"))
        with pytest.raises(ValueError, match=r"soft_textcat.\w+(.json)? is damaged"):
            spacy.load(tmp_path)
    digests.unlink()  # as of earlier versions
    assert spacy.load(tmp_path)("aa").cats == nlp("aa").cats
