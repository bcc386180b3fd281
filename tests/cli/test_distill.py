"""`spacy luke distill`: a pipeline with fewer layers learns from a trained one, with gold and without."""

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin
from spacy.util import load_config, registry
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import get_taught
from spacy_luke.pipelines import distillation
from spacy_luke.readers.docbin import write_docbin
from tests.components.recognised import LABELS, trained
from tests.tiny import SENTENCES
from tests.training_config import write_ner_training


def run(*arguments, command="distill"):
    result = CliRunner().invoke(spacy_app, ["luke", command, *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A teacher, a checkpoint, gold, texts and a config."""
    folder = tmp_path_factory.mktemp("distill")
    teacher = trained()
    teacher.to_disk(folder / "teacher")
    write_docbin([teacher(text) for text in SENTENCES], folder / "dev.spacy")
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf8")
    write_ner_training(folder / "student.cfg")
    return folder


def distill(folder, output, *more):
    return run(
        folder / "teacher",
        folder / "student.cfg",
        "--texts",
        folder / "texts.txt",
        "-o",
        output,
        "--paths.dev",
        folder / "dev.spacy",
        "--initialize.components.luke_ner.weights.layers",
        1,
        *more,
    )


def lesson(output):
    vocab = spacy.blank("en").vocab
    return {x.stem: list(DocBin().from_disk(x).get_docs(vocab)) for x in sorted((output / "lesson").glob("*.spacy"))}


@pytest.mark.slow
def test_without_gold(folder, tmp_path):
    output = tmp_path / "out"
    code, text = distill(folder, output, "--paths.train", "null", "--corpora.train.path", "null")
    assert code == 0, text
    words = sum(len(spacy.blank("en")(x)) for x in SENTENCES)
    assert f"It has read {words} words of 4 texts" in text
    assert f"Saved the best student to {output}/model-best" in text.replace("\n", "")
    (docs,) = lesson(output).values()
    assert [doc.text for doc in docs] == SENTENCES
    assert all(get_taught(doc, "luke_ner") is not None for doc in docs)
    teacher, student = spacy.load(folder / "teacher"), spacy.load(output / "model-best")
    ner = student.get_pipe("luke_ner")
    assert ner.labels == teacher.get_pipe("luke_ner").labels
    assert len(ner.encoder.module.layers) == 1 < len(teacher.get_pipe("luke_ner").encoder.module.layers)
    found, expected = (
        [{(x.start, x.end, x.label_) for x in nlp(text).ents} for text in SENTENCES] for nlp in (student, teacher)
    )
    right = sum(len(a & b) for a, b in zip(found, expected))
    assert right > 0.8 * sum(map(len, expected))
    assert "luke_ner" in text
    assert "words a second" in text


def test_with_gold_and_on_again(folder, tmp_path):
    output = tmp_path / "out"
    code, text = distill(folder, output, "--training.max_steps", 2)
    assert code == 0, text
    docs = lesson(output)
    assert list(docs) == ["gold", "taught"]
    assert not any(get_taught(doc, "luke_ner") for doc in docs["gold"])
    assert sorted(spacy.load(output / "model-best").get_pipe("luke_ner").labels) == sorted(LABELS)
    code, text = distill(folder, output)
    assert (code, "--resume" in text) == (1, True)
    code, text = distill(folder, output, "--training.max_steps", 4, "--resume")
    assert code == 0, text
    assert "It has read" not in text


def test_a_lesson_that_is_there_has_its_gold(folder, tmp_path, monkeypatch):
    """Or a run that was killed before the gold was copied would go on without it."""

    def fail(*args, **kwargs):
        raise ValueError("stopped")

    monkeypatch.setattr(distillation, "write_lesson", fail)
    code, _ = distill(folder, tmp_path / "out")
    assert code == 1
    assert list(lesson(tmp_path / "out")) == ["gold"]


def test_with_a_config_of_init_config(folder, tmp_path):
    """It leaves out what spaCy has defaults for, as which corpus is train_corpus."""
    data = ["--train", folder / "gold.spacy", "--dev", folder / "dev.spacy", "--encoder", folder / "checkpoint"]
    code, text = run(tmp_path / "own.cfg", *data, "--no-ask", "--no-timing", command="init-config")
    assert code == 0, text
    assert "train_corpus" not in load_config(tmp_path / "own.cfg")["training"]
    texts = ["--texts", folder / "texts.txt"]
    code, text = run(
        folder / "teacher", tmp_path / "own.cfg", *texts, "-o", tmp_path / "out", "--training.max_steps", 1
    )
    assert code == 0, text
    assert list(lesson(tmp_path / "out")) == ["gold", "taught"]


def test_beside_several_data_sets(folder, tmp_path):
    """What the teacher says is one source more of a joined corpus."""
    config = load_config(folder / "student.cfg", interpolate=False)
    sources = {"own": {"path": str(folder / "gold.spacy")}}
    config["corpora"]["train"] = {"@readers": "spacy-luke.JoinedCorpus.v1", "sources": sources}
    config.to_disk(tmp_path / "joined.cfg")
    output = tmp_path / "out"
    arguments = [folder / "teacher", tmp_path / "joined.cfg", "--texts", folder / "texts.txt", "-o", output]
    arguments += ["--paths.dev", folder / "dev.spacy", "--initialize.components.luke_ner.weights.layers", 1]
    code, text = run(*arguments, "--training.max_steps", 4)
    assert code == 0, text
    assert list(lesson(output)) == ["taught"]
    student = spacy.load(output / "model-best")
    read = registry.resolve({"corpus": student.config.interpolate()["corpora"]["train"]})["corpus"]
    taught = {x.text for x in (example.reference for example in read(student)) if get_taught(x, "luke_ner")}
    assert taught == set(SENTENCES)
    assert set(student.config["corpora"]["train"]["sources"]) == {"own", "lesson"}


@pytest.mark.slow
def test_beginning_with_a_trained_student(folder, tmp_path):
    code, text = distill(folder, tmp_path / "first")
    assert code == 0, text
    first = spacy.load(tmp_path / "first/model-best")
    more = ["--training.max_steps", 1, "--training.optimizer.learn_rate", 0.0]
    code, text = distill(folder, tmp_path / "second", "--start", tmp_path / "first/model-best", *more)
    assert code == 0, text
    second = spacy.load(tmp_path / "second/model-last")
    assert [list(map(str, second(x).ents)) for x in SENTENCES] == [list(map(str, first(x).ents)) for x in SENTENCES]
    assert any(first(x).ents for x in SENTENCES)
    code, text = distill(folder, tmp_path / "third", "--start", folder / "checkpoint")
    assert (code, "that the student is to begin with has no luke_ner" in text) == (1, True)


def test_refused(folder, tmp_path):
    code, text = distill(folder, tmp_path / "a", "--paths.train", folder / "none.spacy")
    assert (code, "does not exist" in text) == (1, True)
    other = spacy.blank("en")
    other.add_pipe("sentencizer")
    other.to_disk(tmp_path / "other")
    code, text = run(tmp_path / "other", folder / "student.cfg", "--texts", folder / "texts.txt", "-o", tmp_path / "b")
    assert (code, "No component can learn from the teacher, which has none that teaches" in text) == (1, True)
    (tmp_path / "empty.txt").write_text("\n")
    empty, output = tmp_path / "empty.txt", tmp_path / "c"
    code, text = run(folder / "teacher", folder / "student.cfg", "--texts", empty, "-o", output)
    assert (code, "has no text" in text) == (1, True)
    assert not (output / "model-best").exists()
