"""`spacy luke convert` and `export` of fine-tuned heads: each becomes a ready pipeline, and goes back as it was."""

import json

import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.files import read_tensors
from spacy_luke.checkpoint.names import luke_names
from spacy_luke.checkpoint.special import add_cloze_pieces
from spacy_luke.pipelines.conversion import build_pipeline, read_label_list
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import SENTENCES, make_checkpoint, tokenizer_json

TYPES = ["person", "place", "group", "time"]
RELATIONS = ["no_relation", "lives_in", "works_for", "born_in"]
TEXT = SENTENCES[1]
MENTIONS = [(0, 12, "PER"), (27, 40, "ORG"), (44, 49, "LOC")]
HEADS = {
    "typing": ("entity_classification", 1, TYPES),
    "relation": ("entity_pair_classification", 2, RELATIONS),
    "squad": ("question_answering", 1, None),
    "record": ("cloze", 2, None),
}
COMPONENTS = {"typing": "luke_typer", "relation": "luke_relation", "squad": "luke_qa", "record": "luke_cloze"}


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


def make_head(kind, *, bias=True, seed=0):
    """A checkpoint with a head of noise."""
    checkpoint = make_checkpoint(seed=seed)
    checkpoint.task, width, labels = HEADS[kind]
    checkpoint.labels = None if labels is None else list(labels)
    generator = torch.Generator().manual_seed(seed + 1)
    head = "qa_outputs" if kind == "squad" else "classifier"
    rows = {"squad": 2, "record": 1}.get(kind) or len(labels)
    matrix = torch.randn(rows, width * checkpoint.config.hidden_size, generator=generator) * 0.2
    checkpoint.tensors[f"head.{head}.weight"] = matrix
    if bias:
        checkpoint.tensors[f"head.{head}.bias"] = torch.randn(rows, generator=generator) * 0.2
    if kind == "record":
        add_cloze_pieces(checkpoint)
        words = checkpoint.tensors["encoder.words.piece.weight"]
        words[-4:] = torch.randn(4, words.shape[1], generator=generator) * 0.2
    return checkpoint


def annotate(nlp):
    """What a pipeline says of a Doc, the score last."""
    doc = nlp.make_doc(TEXT)
    doc.set_ents([doc.char_span(a, b, label=label) for a, b, label in MENTIONS])
    doc._.luke_questions = ["Where does she work?"]
    doc._.luke_queries = ["The bank where @placeholder works is in Accra."]
    doc = next(nlp.get_pipe(nlp.pipe_names[-1]).pipe([doc]))
    if nlp.pipe_names[-1] == "luke_typer":
        return [
            (entity.text, label, score) for entity in doc.ents for label, score in sorted(entity._.luke_types.items())
        ]
    if nlp.pipe_names[-1] == "luke_relation":
        return [(x.head.text, x.tail.text, x.label, x.score) for x in doc._.luke_relations]
    (answer,) = doc._.luke_answers if nlp.pipe_names[-1] == "luke_qa" else doc._.luke_fillers
    return [(x.text, x.score) for x in answer.spans]


def close(one, two):
    return [x[:-1] for x in one] == [x[:-1] for x in two] and all(
        abs(x[-1] - y[-1]) < 1e-5 for x, y in zip(one, two, strict=True)
    )


def convert(tmp_path, *arguments, name="pipeline"):
    code, text = run("convert", arguments[0], tmp_path / name, *arguments[1:])
    assert code == 0, text
    return spacy.load(tmp_path / name), text


@pytest.mark.product
@pytest.mark.parametrize(
    ("kind", "bias"),
    [("typing", True), ("typing", False), ("relation", True), ("relation", False), ("squad", True), ("record", True)],
)
def test_there_and_back(tmp_path, kind, bias):
    write_huggingface(make_head(kind, bias=bias), tmp_path / "source")
    nlp, text = convert(tmp_path, tmp_path / "source")
    known = {"typing": f" with labels {TYPES}", "relation": f" with labels {RELATIONS[1:]}"}.get(kind, "")
    assert f"sentencizer > {COMPONENTS[kind]}{known} to" in text
    assert nlp.get_pipe(COMPONENTS[kind]).model.attrs["attention"] == "full"
    assert annotate(nlp)
    code, text = run("export", tmp_path / "pipeline", tmp_path / "back")
    assert code == 0, text
    assert ("leaves out" in text) == (bias and kind == "relation")
    assert ("no class for cloze" in text) == (kind == "record")
    before, after = (read_tensors(tmp_path / folder / "model.safetensors") for folder in ("source", "back"))
    assert set(after) == set(before)
    assert all(torch.equal(after[name], x) for name, x in before.items())
    for name in ("entity_vocab.json", "vocab.json", "merges.txt", "added_tokens.json", "config.json"):
        assert (tmp_path / "back" / name).read_text() == (tmp_path / "source" / name).read_text(), name
    again, _ = convert(tmp_path, tmp_path / "back", name="again")
    assert close(annotate(again), annotate(nlp))


def test_a_tail_entity_that_is_missing(tmp_path):
    """It begins as [MASK], in the first row that the vocabulary leaves free, also where the table is longer than it."""
    checkpoint = make_head("relation")
    checkpoint.entities = checkpoint.entities.restricted([0, 1, 2, 3])  # of a table of 7 rows
    assert checkpoint.entities.row("[MASK2]") is None
    nlp = build_pipeline(checkpoint)
    table = nlp.get_pipe("luke_relation").to_checkpoint().tensors["encoder.entities.table.weight"]
    expected = checkpoint.tensors["encoder.entities.table.weight"].clone()
    expected[4] = expected[checkpoint.entities.mask_row]
    assert torch.equal(table, expected)
    assert nlp.get_pipe("luke_relation").to_checkpoint().entities.row("[MASK2]") == 4


def test_no_context_to_choose(tmp_path):
    write_huggingface(make_head("squad"), tmp_path / "source")
    code, text = run("convert", tmp_path / "source", tmp_path / "pipeline", "--context", "sentence")
    assert code == 1
    assert "luke_qa reads whole documents" in text


def write_original_weights(path, checkpoint, kind):
    """What the original fine-tuning would have saved of this checkpoint: no markers but its own, few entities."""
    theirs = {ours: name for name, ours in luke_names(checkpoint.config, root="").items()}
    state = {theirs[name]: x for name, x in checkpoint.tensors.items()}
    words, tokenizer = state["embeddings.word_embeddings.weight"], checkpoint.tokenizer
    added = {"typing": ["<ent>"], "relation": ["<ent>", "<ent2>"], "record": ["[HIGHLIGHT]", "[PLACEHOLDER]", "<ent>"]}
    rows = [*range(tokenizer.piece_id("<ent>")), *(tokenizer.piece_id(piece) for piece in added.get(kind, []))]
    state["embeddings.word_embeddings.weight"] = words[rows].clone()
    if kind != "squad":
        special = checkpoint.entities.special_rows()
        kept = ["[PAD]", "[MASK]", *(["[MASK2]"] if kind == "relation" else [])]
        table = state["entity_embeddings.entity_embeddings.weight"]
        state["entity_embeddings.entity_embeddings.weight"] = table[[special[name] for name in kept]].clone()
    head = {"typing": "typing", "record": "scorer"}.get(kind)
    for part in ("weight", "bias"):
        if head and f"classifier.{part}" in state:
            state[f"{head}.{part}"] = state.pop(f"classifier.{part}")
    torch.save(state, path)


@pytest.mark.parametrize("kind", HEADS)
def test_original_weights_predict_the_same(tmp_path, kind):
    """The last rows of the word table are the markers, and the few entities are found, whatever their rows."""
    checkpoint = make_head(kind, bias=kind != "relation")
    write_huggingface(checkpoint, tmp_path / "source")
    expected, _ = convert(tmp_path, tmp_path / "source", name="expected")
    write_huggingface(make_checkpoint(seed=9), tmp_path / "base")
    write_original_weights(tmp_path / "pytorch_model.bin", checkpoint, kind)
    arguments = ["--base", tmp_path / "base"]
    labels = HEADS[kind][2]
    if labels is not None:
        code, text = run("convert", tmp_path / "pytorch_model.bin", tmp_path / "none", *arguments)
        assert code == 1
        assert "does not say what its 4 labels are" in text
        (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n")
        other, _ = convert(
            tmp_path, tmp_path / "pytorch_model.bin", *arguments, "--labels", tmp_path / "labels.txt", name="other"
        )
        assert close(annotate(other), annotate(expected))
        arguments += ["--labels", ",".join(labels)]
    nlp, text = convert(tmp_path, tmp_path / "pytorch_model.bin", *arguments)
    assert text.count("read row") == {"typing": 1, "relation": 2, "record": 3}.get(kind, 0)
    assert close(annotate(nlp), annotate(expected))
    assert run("export", tmp_path / "pipeline", tmp_path / "back")[0] == 0
    back = read_checkpoint(tmp_path / "back")
    assert back.labels == labels
    # A marker swapped for another is seen.
    pieces = {"record": ("[HIGHLIGHT]", "[PLACEHOLDER]"), "squad": ("a", "o")}.get(kind, ("<ent>", "<ent2>"))
    rows = [back.tokenizer.piece_id(piece) for piece in pieces]
    words = back.tensors["encoder.words.piece.weight"]
    words[rows] = words[rows[::-1]]
    write_huggingface(back, tmp_path / "swapped")
    swapped, _ = convert(tmp_path, tmp_path / "swapped", name="swapped_pipeline")
    assert not close(annotate(swapped), annotate(expected))


def test_long_label_lists(tmp_path):
    """They are longer than a file's name can be."""
    assert read_label_list("a, b,c") == ["a", "b", "c"]
    assert len(read_label_list(",".join(f"per:relation_{i}" for i in range(1000)))) == 1000


@pytest.mark.parametrize("kind", ["typing", "relation"])
def test_allennlp_models_predict_the_same(tmp_path, kind):
    """Heads with a bias, of an archive that needs its base model."""
    checkpoint = make_head(kind, bias=True)
    write_huggingface(checkpoint, tmp_path / "source")
    expected, _ = convert(tmp_path, tmp_path / "source", name="expected")
    write_huggingface(make_checkpoint(seed=9), tmp_path / "base")
    root = "feature_extractor.embedder.luke_model."
    weights = {
        (name.replace("luke.", root, 1) if name.startswith("luke.") else name): x
        for name, x in read_tensors(tmp_path / "source" / "model.safetensors").items()
    }
    folder = tmp_path / "run"
    (folder / "vocabulary").mkdir(parents=True)
    torch.save(weights, folder / "best.th")
    labels = HEADS[kind][2]
    order = [2, 1, 0, 3]  # AllenNLP's order, by frequency
    weights["classifier.weight"], weights["classifier.bias"] = (
        weights[f"classifier.{x}"][order] for x in ("weight", "bias")
    )
    torch.save(weights, folder / "best.th")
    (folder / "vocabulary" / "labels.txt").write_text("".join(f"{labels[i]}\n" for i in order))
    embedder = {"type": "transformers-luke", "model_name": "some/base", "use_entity_aware_attention": True}
    model = {"typing": "entity_typing", "relation": "relation_classifier"}[kind]
    settings = {"type": model, "feature_extractor": {"type": "entity", "embedder": embedder}}
    (folder / "config.json").write_text(json.dumps({"dataset_reader": {}, "model": settings}))
    code, text = run("convert", folder, tmp_path / "none")
    assert code == 1
    assert "names its base model, 'some/base'" in text
    nlp, text = convert(tmp_path, folder, "--base", tmp_path / "base")
    assert close(annotate(nlp), annotate(expected))
    assert ("moved the label no_relation" in text) == (kind == "relation")


@pytest.mark.parametrize("features", ["entity", "words"])
def test_ner_heads_that_read_less(tmp_path, features):
    """The original's --no-word-feature and --no-entity-feature."""
    labels = ["NIL", "MISC", "PER", "ORG", "LOC"]
    checkpoint = make_checkpoint(labels=labels)
    theirs = {ours: name for name, ours in luke_names(checkpoint.config, root="").items()}
    matrix = checkpoint.tensors["head.classifier.weight"]
    size = checkpoint.config.hidden_size
    matrix = matrix[:, :size] if features == "entity" else matrix[:, : 2 * size]
    checkpoint.tensors["head.classifier.weight"] = matrix.clone()
    state = {theirs[name]: x for name, x in checkpoint.tensors.items()}
    rows = checkpoint.entities.special_rows()
    table = state["entity_embeddings.entity_embeddings.weight"]
    state["entity_embeddings.entity_embeddings.weight"] = table[[rows["[PAD]"], rows["[MASK]"]]].clone()
    words = state["embeddings.word_embeddings.weight"]
    state["embeddings.word_embeddings.weight"] = words[: len(PieceTokenizer.from_json(tokenizer_json())) - 2].clone()
    torch.save(state, tmp_path / "pytorch_model.bin")
    write_huggingface(make_checkpoint(seed=9), tmp_path / "base")
    nlp, text = convert(tmp_path, tmp_path / "pytorch_model.bin", "--base", tmp_path / "base")
    assert "with labels ['MISC', 'PER', 'ORG', 'LOC']" in text
    assert nlp.get_pipe("luke_ner").model.attrs["features"] == features
    assert len(list(nlp(" ".join(SENTENCES)).sents)) == 4
    code, text = run("export", tmp_path / "pipeline", tmp_path / "back")
    assert code == 1
    assert f"reads features = '{features}'" in text


def test_thousands_of_labels_are_not_all_listed(tmp_path):
    checkpoint = make_head("typing", bias=True)
    checkpoint.labels = [f"type {i}" for i in range(1000)]
    checkpoint.tensors["head.classifier.weight"] = torch.zeros(1000, 32)
    checkpoint.tensors["head.classifier.bias"] = torch.zeros(1000)
    write_huggingface(checkpoint, tmp_path / "source")
    nlp, text = convert(tmp_path, tmp_path / "source")
    assert "'type 49'] and 950 more" in text
    assert len(nlp.get_pipe("luke_typer").labels) == 1000
