"""`spacy luke convert` and `spacy luke export` of ERNIE: fine-tuned weights of the original's layout, there and
back."""

import numpy as np
import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.vectors.build import build_vectors
from tests.tiny import ENTITY_SIZE, make_ernie

TEXT = "ada met bob in london ."


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kg") / "vectors"
    build_vectors(np.random.default_rng(0).normal(size=(2, ENTITY_SIZE)).astype("float32"), folder, names=["Q1", "Q2"])
    return folder


def write_fine_tuned(folder, task, *, labels, bias):
    checkpoint = make_ernie()
    checkpoint.task = task
    generator = torch.Generator().manual_seed(3)
    checkpoint.tensors["head.classifier.weight"] = torch.randn(labels, 32, generator=generator)
    if bias:
        checkpoint.tensors["head.classifier.bias"] = torch.randn(labels, generator=generator)
    write_ernie(checkpoint, folder)
    return read_ernie(folder).tensors


def linked(nlp):
    doc = nlp.make_doc(TEXT)
    doc.set_ents([Span(doc, 0, 1, "PER", kb_id="Q1"), Span(doc, 2, 3, "PER", kb_id="Q2")])
    return doc


def logits_of(nlp, name):
    """What the classifier says of each window, as the original would number the labels."""
    component = nlp.get_pipe(name)
    seen = []
    head = component.model.shims[0].module
    handle = head.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    doc = component(linked(nlp))
    handle.remove()
    return torch.cat(seen), doc


def by_hand(tensors, nlp, name, vectors):
    """The same from the encoder and the matrix of the checkpoint."""
    from spacy_luke.model.ernie import Knowledge
    from spacy_luke.model.luke import Windows

    component = nlp.get_pipe(name)
    doc = linked(nlp)
    task = component.input()
    encoder, found = component.encoder.module, []
    pieces = component.tokenizer.piece_id
    marks = [pieces(x) for x in component.cfg["markers"]]
    words = [
        [pieces(word.text)] if pieces(word.text) else list(component.tokenizer.encode(word.text)[0]) for word in doc
    ]
    for mentions in [(0,), (2,)] if len(marks) == 1 else [(0, 2), (2, 0)]:
        ids, at = [task.tokenizer.cls_id], []
        for i, word in enumerate(words):
            mark = [marks[mentions.index(i)]] if i in mentions else []
            ids += mark
            at += [len(ids)] if i in (0, 2) else []
            ids += [*word, *mark]
        ids.append(task.tokenizer.sep_id)
        windows = Windows(torch.tensor(ids), [len(ids)])
        known = Knowledge(torch.from_numpy(vectors.gather([0, 1])), torch.tensor(at), [2])
        with torch.no_grad():
            pooled = encoder.pool(encoder(windows, known)[0], [len(ids)])
        found.append(pooled @ tensors["head.classifier.weight"].T + tensors.get("head.classifier.bias", 0.0))
    return torch.cat(found)


@pytest.mark.parametrize("task", ["entity_classification", "pair_classification"])
def test_there_and_back(tmp_path, vectors, task):
    from spacy_luke.vectors.store import EntityVectors

    typing = task == "entity_classification"
    name = "ernie_typer" if typing else "ernie_relation"
    tensors = write_fine_tuned(tmp_path / "source", task, labels=3, bias=not typing)
    code, text = run("convert", tmp_path / "source", tmp_path / "nlp", "--labels", "a,b,c", "--vectors", vectors)
    assert code == 0, text
    assert f"sentencizer > {name} with labels ['a', 'b', 'c']" in text
    nlp = spacy.load(tmp_path / "nlp")
    logits, doc = logits_of(nlp, name)
    expected = by_hand(tensors, nlp, name, EntityVectors.open(vectors))
    assert torch.allclose(logits, expected, atol=1e-5)
    if typing:
        chosen = [{"abc"[i] for i in range(3) if row[i] > 0} for row in expected]
        assert [set(ent._.luke_types) for ent in doc.ents] == chosen
    else:
        best = ["abc"[i] for i in expected.argmax(1).tolist()]
        assert [relation.label for relation in doc._.luke_relations] == best
    code, text = run("export", tmp_path / "nlp", tmp_path / "back")
    assert code == 0, text
    back = read_ernie(tmp_path / "back")
    assert back.task == task
    assert back.labels == ["a", "b", "c"]
    assert set(back.tensors) == set(tensors)
    assert all(torch.equal(back.tensors[key], x) for key, x in tensors.items())


def test_no_relation_goes_to_the_front(tmp_path):
    """TACRED's labels are sorted, so that NA stands somewhere."""
    tensors = write_fine_tuned(tmp_path / "source", "pair_classification", labels=3, bias=True)
    code, text = run("convert", tmp_path / "source", tmp_path / "nlp", "--labels", "A,NA,b")
    assert code == 0, text
    relation = spacy.load(tmp_path / "nlp").get_pipe("ernie_relation")
    assert (relation.cfg["none"], relation.labels, relation.knowledge) == ("NA", ("A", "b"), None)
    weight = relation.model.shims[0].module.classifier.weight
    assert torch.equal(weight, tensors["head.classifier.weight"][[1, 0, 2]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "does not say what its 3 labels are"),
        (("--labels", "a,b"), "3"),
        (("--labels", "a,b,c", "--tokenizer", "there"), "--base and --tokenizer are of LUKE checkpoints"),
    ],
)
def test_refused(tmp_path, arguments, message):
    write_fine_tuned(tmp_path / "source", "entity_classification", labels=3, bias=False)
    code, text = run("convert", tmp_path / "source", tmp_path / "nlp", *arguments)
    assert code == 1
    assert message in text
    assert not (tmp_path / "nlp").exists()
