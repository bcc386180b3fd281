"""`spacy luke convert` and `spacy luke export`: there and back, and what they refuse."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import set_candidates_given
from spacy_luke.architectures.span_classifier import create_span_head
from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.files import read_tensors
from spacy_luke.checkpoint.names import head_shapes
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.pipelines.conversion import build_pipeline
from tests.tiny import ENTITIES, SENTENCES, make_checkpoint

LABELS = ["NIL", "PER", "LOC", "ORG"]


def make_fine_tuned(**changes):
    checkpoint = make_checkpoint(labels=LABELS, **changes)
    checkpoint.tensors["head.classifier.bias"][0] -= 3
    return checkpoint


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


def save_pipeline(folder, **model):
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("luke_ner", config={"overlap": 32, "model": model})
    ner.load_encoder(make_checkpoint())
    ner.add_label("X")
    create_span_head(ner.model, 2)
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def fine_tuned(tmp_path):
    write_huggingface(make_fine_tuned(), tmp_path / "fine_tuned")
    return tmp_path / "fine_tuned"


def test_first_layers(tmp_path, fine_tuned):
    """The pipeline has them, says that it must be trained, and exports a checkpoint of so many layers."""
    code, text = run("convert", fine_tuned, tmp_path / "pipeline", "--layers", 1)
    assert code == 0, text
    assert "kept the first 1 of 2 layers; the head was trained on all of them: train it further" in text
    code, text = run("export", tmp_path / "pipeline", tmp_path / "exported")
    assert code == 0, text
    exported, source = read_checkpoint(tmp_path / "exported"), read_checkpoint(fine_tuned, layers=1)
    assert exported.config == source.config
    assert exported.tensors.keys() == source.tensors.keys()
    assert all(torch.equal(x, exported.tensors[name]) for name, x in source.tensors.items())


@pytest.mark.parametrize("entity_aware", [True, False])
def test_there_and_back(tmp_path, entity_aware):
    source = tmp_path / "source"
    write_huggingface(make_fine_tuned(entity_aware=entity_aware), source)
    code, text = run("convert", source, tmp_path / "pipeline", "--context", "sentence")
    assert code == 0, text
    assert "sentencizer > luke_ner with labels ['PER', 'LOC', 'ORG']" in text
    code, text = run("export", tmp_path / "pipeline", tmp_path / "back")
    assert code == 0, text
    assert "warn" not in text.lower()
    before, after = (read_tensors(folder / "model.safetensors") for folder in (source, tmp_path / "back"))
    assert set(after) == set(before)
    for name, x in before.items():
        assert torch.equal(after[name], x), name
    for name in ("entity_vocab.json", "vocab.json", "merges.txt", "config.json"):
        assert (tmp_path / "back" / name).read_text() == (source / name).read_text(), name
    assert read_checkpoint(tmp_path / "back").labels == LABELS


def test_the_pipeline_is_ready(fine_tuned, tmp_path):
    code, text = run("convert", fine_tuned, tmp_path / "pipeline", "--lang", "de", "--context", "sentence")
    assert code == 0, text
    nlp = spacy.load(tmp_path / "pipeline")
    assert nlp.lang == "de"
    doc = nlp(" ".join(SENTENCES))
    assert len(list(doc.sents)) == 4
    assert doc.ents
    expected = build_pipeline(make_fine_tuned(), language="de", config={"context": "sentence"})(" ".join(SENTENCES))
    assert [(e.start, e.end, e.label_, e._.luke_score) for e in doc.ents] == [
        (e.start, e.end, e.label_, e._.luke_score) for e in expected.ents
    ]


def test_only_special_entities(fine_tuned, tmp_path):
    code, text = run("convert", fine_tuned, tmp_path / "pipeline", "--entities", "special", "--context", "sentence")
    assert code == 0, text
    assert "kept 4 of 7 rows" in text
    assert run("export", tmp_path / "pipeline", tmp_path / "back")[0] == 0
    table = read_tensors(tmp_path / "back/model.safetensors")["luke.entity_embeddings.entity_embeddings.weight"]
    whole = make_fine_tuned().tensors["encoder.entities.table.weight"]
    rows = sorted(row for name, row in ENTITIES.items() if name.startswith("["))
    assert torch.equal(table, whole[rows])
    names = json.loads((tmp_path / "back/entity_vocab.json").read_text())
    assert names == {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}


def test_no_head(tmp_path):
    write_huggingface(make_checkpoint(), tmp_path / "encoder")
    code, text = run("convert", tmp_path / "encoder", tmp_path / "pipeline")
    assert code == 1
    assert "'span_classification'], but this one is for 'encoder'" in text
    assert "[initialize.components.NAME.weights]" in text
    assert not (tmp_path / "pipeline").exists()


def test_pretrained_on_masked_entities(tmp_path):
    """It links to the entities of its table without being fine-tuned, as in the disambiguation papers."""
    checkpoint = make_checkpoint(entity_aware=False)
    write_huggingface(checkpoint, tmp_path / "plain")
    shapes = {**head_shapes(checkpoint.config)["lm_head"], **head_shapes(checkpoint.config)["entity_head"]}
    checkpoint.tensors |= {name: torch.randn(shape) for name, shape in shapes.items()}
    checkpoint.task = "masked_lm"
    write_huggingface(checkpoint, tmp_path / "pretrained")
    code, text = run("convert", tmp_path / "pretrained", tmp_path / "pipeline")
    assert code == 1
    assert "To link to the entities of its table, as it was pretrained on them, give --link." in text
    code, text = run("convert", tmp_path / "plain", tmp_path / "pipeline", "--link")
    assert code == 1
    assert "has no head for them. Pretrain it" in text
    assert run("convert", tmp_path / "pretrained", tmp_path / "pipeline", "--link")[0] == 0
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp.make_doc("Ada lived in London")
    doc.set_ents([Span(doc, 3, 4, "LOC")])
    choices = [name for name in ENTITIES if not name.startswith("[")][:2]
    set_candidates_given(doc, [(13, 19, [(name, 0.5) for name in choices])])
    assert nlp(doc).ents[0].kb_id_ in choices


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "nowhere", "out"], "there is no file 'nowhere'"),
        (["convert", "SOURCE", "out", "--entities", "some"], "entities must be 'all' or 'special', but it is 'some'"),
        (["convert", "SOURCE", "out", "--context", "page"], "context must be one of ('document', 'sentence')"),
        (["convert", "SOURCE", "out", "--lang", "qq"], "qq"),
        (["convert", "SOURCE/model.safetensors", "out"], "has weights alone. Give its folder, "),
        (
            ["convert", "SOURCE", "out", "--labels", "labls.txt"],
            "or a file with one a line, but there is no file 'labls.txt'",
        ),
        (["convert", "SOURCE", "full"], "full would be replaced as a whole, but it holds no pipeline"),
        (["convert", "SOURCE", "full/letter.txt"], "would be replaced as a whole, but it holds no pipeline"),
        (["export", "nowhere", "out"], "nowhere"),
        (["export", "PIPELINE", "full"], "full would be replaced as a whole, but it holds no checkpoint"),
        (["export", "PIPELINE", "out", "--component", "ner"], "no LUKE component 'ner'; it has ['luke_ner']"),
        (["export", "BLANK", "out"], "has the LUKE components []"),
    ],
)
def test_refused(fine_tuned, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter.txt").write_text("dear")
    places = {"SOURCE": fine_tuned}
    if "PIPELINE" in arguments:
        places["PIPELINE"] = save_pipeline(tmp_path / "pipeline", attention="full")
    if "BLANK" in arguments:
        spacy.blank("en").to_disk(tmp_path / "blank")
        places["BLANK"] = tmp_path / "blank"
    code, text = run(*(places.get(x, x.replace("SOURCE", str(fine_tuned))) for x in arguments))
    assert code == 1
    assert "Nothing was written." in text
    assert message in text
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "full/letter.txt").read_text() == "dear"


def test_a_pipeline_may_be_replaced(fine_tuned, tmp_path):
    for _ in range(2):
        assert run("convert", fine_tuned, tmp_path / "pipeline")[0] == 0
        assert run("export", tmp_path / "pipeline", tmp_path / "back")[0] == 0


def test_blank_lines_are_no_labels(fine_tuned, tmp_path):
    (tmp_path / "labels.txt").write_text("NIL\n\nA\nB \nC\n\n")
    code, text = run("convert", fine_tuned, tmp_path / "pipeline", "--labels", tmp_path / "labels.txt")
    assert code == 0, text
    assert "with labels ['A', 'B', 'C']" in text


def test_truncated_checkpoint(fine_tuned, tmp_path):
    weights = fine_tuned / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    code, text = run("convert", fine_tuned, tmp_path / "pipeline")
    assert code == 1
    assert "is not a whole safetensors file" in text
    assert not (tmp_path / "pipeline").exists()


def test_one_way_warns(tmp_path):
    code, text = run("export", save_pipeline(tmp_path / "pipeline", attention="one_way"), tmp_path / "back")
    assert code == 0, text
    assert "trained with attention = 'one_way'" in text
    assert "predict differently" in text
    assert read_checkpoint(tmp_path / "back").labels == ["NIL", "X"]
    code, text = run("export", save_pipeline(tmp_path / "pipeline", attention="full"), tmp_path / "back")
    assert code == 0, text
    assert "differently" not in text


def test_features_that_others_do_not_know(tmp_path):
    save_pipeline(tmp_path / "pipeline", attention="full", features="words")
    code, text = run("export", tmp_path / "pipeline", tmp_path / "back")
    assert code == 1
    assert "reads features = 'words'" in text
    assert not (tmp_path / "back").exists()


def test_disambiguation_becomes_a_linker(shared, tmp_path):
    """The original's entity table becomes the linker's vectors; candidates are given, or come from a knowledge base."""
    status, output = run("convert", shared("golden/luke_ed_checkpoint"), tmp_path / "pipeline")
    assert status == 0, output
    assert "moved mask_embedding" in output
    assert "luke_candidates_given" in output
    nlp = spacy.load(tmp_path / "pipeline")
    linker = nlp.get_pipe("luke_linker")
    assert (linker.attention, linker.model.attrs["prior"]) == ("full", False)
    assert linker.vectors.size == linker.encoder.module.config.entity_size + 1
    entities = EntityVocab.from_file(shared("golden/luke_ed_checkpoint"))
    special = entities.special_rows()
    assert all(linker.vectors.row(title) >= 0 for title in entities.titles() if title not in special)
    assert linker.vectors.row("[UNK]") >= 0
    assert linker.vectors.row("[MASK]") == -1
    assert linker.encoder.module.config.entity_vocab_size == len(special)
    status, output = run("convert", shared("golden/luke_ed_checkpoint"), tmp_path / "small", "--entities", "special")
    assert status == 1
    assert "has special entities only" in output


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux for the processes of a session")
def test_a_killed_convert_leaves_no_process(tmp_path):
    """The child says that it reads; then it is killed, and nothing of its session may be left."""
    program = """
        import sys, time
        import spacy_luke.cli.convert as module
        import spacy_luke.pipelines.conversion as conversion

        def read(*_, **__):
            print("reading", file=sys.stderr, flush=True)
            time.sleep(60)

        conversion.find_source = read
        module.convert_cli("here", module.Path(sys.argv[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "pipeline")]
    child = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert child.stderr is not None
        assert any("reading" in line for line in child.stderr)
        child.send_signal(signal.SIGKILL)
        child.wait()
        left = processes_of_session(child.pid)
    finally:
        for process in processes_of_session(child.pid):
            os.kill(process, signal.SIGKILL)
        child.stderr.close()
    assert left == []


def processes_of_session(session):
    """Those that live: a killed one may be there as a zombie."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(number) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


def test_one_type_for_each_mention(tmp_path):
    """Where types exclude one another, each mention gets the best one, however improbable, and alone."""
    checkpoint = make_checkpoint(labels=["person", "place", "event"])
    checkpoint.task = "entity_classification"
    checkpoint.source["problem_type"] = "single_label_classification"
    wide = checkpoint.tensors["head.classifier.weight"]
    checkpoint.tensors["head.classifier.weight"] = wide[:, : checkpoint.config.hidden_size].clone()
    found = []
    for shift in (-50, 50):
        checkpoint.tensors["head.classifier.bias"] += shift
        write_huggingface(checkpoint, tmp_path / "source")
        code, text = run("convert", tmp_path / "source", tmp_path / "pipeline")
        assert code == 0, text
        assert "each mention gets its most probable type alone" in text
        nlp = spacy.load(tmp_path / "pipeline")
        doc = nlp.make_doc(SENTENCES[0])
        doc.ents = [Span(doc, 0, 2, "X"), Span(doc, 4, 5, "X")]
        found.append([list(ent._.luke_types) for ent in nlp(doc).ents])
    assert found[0] == found[1]
    assert [len(types) for types in found[0]] == [1, 1]
