"""The authors' AllenNLP models: weights and labels in an archive, all else with the base model."""

import json
import tarfile

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.sources import make_checkpoint_loader
from tests.checkpoint.fine_tuned import make_huggingface, noise, write_wordpiece

FEATURES, READER = "feature_extractor.embedder.luke_model.", "embedder.token_embedder_tokens.luke_model."
MODELS = {  # registered name, feature extractor, task, width, class of transformers
    "ner": ("span_ner", "token+entity", "span_classification", 3, "LukeForEntitySpanClassification"),
    "typing": ("entity_typing", "entity", "entity_classification", 1, "LukeForEntityClassification"),
    "relation": ("relation_classifier", "entity", "entity_pair_classification", 2, "LukeForEntityPairClassification"),
    "squad": ("transformers_qa", None, "question_answering", 1, "LukeForQuestionAnswering"),
}
LABELS = {
    "ner": ["O", "PER", "LOC"],
    "typing": ["person", "place"],
    "relation": ["no_relation", "a(e1,e2)", "a(e2,e1)"],
}


def write_base(folder, *, aware=True):
    data, state = make_huggingface(
        "LukeForMaskedLM", width=1, labels=1, bias=False, use_entity_aware_attention=aware, entity_vocab_size=7
    )
    state.pop("classifier.weight")
    folder.mkdir()
    data.pop("id2label"), data.pop("label2id")
    (folder / "config.json").write_text(json.dumps({**data, "architectures": ["LukeModel"]}))
    rows = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Japan": 3, "Accra": 4, "[MASK2]": 5, "Ghana": 6}
    (folder / "entity_vocab.json").write_text(json.dumps(rows))
    save_file(state, folder / "model.safetensors")
    write_wordpiece(folder, 40, markers=("<ent>", "<ent2>"))
    return folder, state


def make_model(case, state, *, aware=True, seed=1):
    """config.json, labels and weights of an AllenNLP model that was fine-tuned from these tensors."""
    name, extractor, _, width, _ = MODELS[case]
    embedder = {"type": "transformers-luke", "model_name": "some/base", "use_entity_aware_attention": aware}
    generator = torch.Generator().manual_seed(seed)
    labels = LABELS.get(case)
    if case == "squad":
        model = {"type": name, "embedder": {"type": "basic", "token_embedders": {"tokens": embedder}}}
        heads = {"span_scoring_layer": (2, 16), "answer_type_classifier": (2, 16)}
    else:
        model = {"type": name, "feature_extractor": {"type": extractor, "embedder": embedder}}
        heads = {"classifier": (len(labels), 16 * width)}
    root = READER if case == "squad" else FEATURES
    weights = {root + key.removeprefix("luke."): x + noise(x.shape, generator) for key, x in state.items()}
    if not aware:
        weights = {key: x for key, x in weights.items() if "2" not in key.partition("self.")[2]}
    weights[f"{root}embeddings.position_ids"] = torch.arange(40)[None]
    for head, shape in heads.items():
        weights |= {f"{head}.weight": noise(shape, generator), f"{head}.bias": noise(shape[:1], generator)}
    return {"dataset_reader": {"type": "any"}, "model": model, "trainer": {}}, labels, weights


def write_model(folder, data, labels, weights, *, name="weights.th"):
    (folder / "vocabulary").mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(data))
    (folder / "vocabulary" / "non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    if labels is not None:
        (folder / "vocabulary" / "labels.txt").write_text("".join(f"{label}\n" for label in labels))
    torch.save(weights, folder / name)
    return folder


def huggingface_of(case, weights):
    """The same under the names of transformers, as the authors' conversion has them."""
    root = READER if case == "squad" else FEATURES
    names = {root: "luke.", "span_scoring_layer": "qa_outputs"}
    result = {}
    for key, x in weights.items():
        if not key.startswith("answer_type") and "position_ids" not in key:
            old = next((old for old in names if key.startswith(old)), "")
            result[names.get(old, "") + key.removeprefix(old)] = x
    return result


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("case", MODELS)
def test_in_and_out(tmp_path, case, aware, packed):
    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model(case, state, aware=aware)
    folder = write_model(tmp_path / "a", data, labels, weights, name="weights.th" if packed else "best.th")
    if packed:
        with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
        folder = tmp_path / "model.tar.gz"
    checkpoint = read_checkpoint(folder, base=base)
    _, _, task, _, architecture = MODELS[case]
    assert checkpoint.task == task
    assert checkpoint.labels == labels
    assert checkpoint.config.entity_aware == aware
    assert checkpoint.tokenizer.piece_id("<ent2>") == 39
    assert checkpoint.entities.row("Japan") == 3
    assert any("answer_type_classifier.bias: AllenNLP" in line for line in checkpoint.report) == (case == "squad")
    write_huggingface(checkpoint, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert written["architectures"] == [architecture]
    assert written["use_entity_aware_attention"] == aware
    assert written.get("classifier_bias") == (True if case == "relation" else None)
    again = read_checkpoint(tmp_path / "out")
    assert again.labels == labels
    expected = huggingface_of(case, weights)
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert set(after) == set(expected)
    assert all(torch.equal(after[name], x) for name, x in expected.items())


@pytest.mark.parametrize("case", MODELS)
def test_transformers_reads_it(tmp_path, case):
    transformers = pytest.importorskip("transformers")
    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model(case, state)
    checkpoint = read_checkpoint(write_model(tmp_path / "a", data, labels, weights), base=base)
    write_huggingface(checkpoint, tmp_path / "out")
    kind = getattr(transformers, MODELS[case][-1])
    transformers.logging.set_verbosity_error()
    model, info = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"]
    # The class for pairs has no bias (the config and our own reader keep it), and that for questions no pooler.
    unexpected = {
        "relation": {"classifier.bias"},
        "squad": {f"luke.pooler.dense.{part}" for part in ("weight", "bias")},
    }
    assert set(info["unexpected_keys"]) == unexpected.get(case, set())
    got = model.state_dict()
    for name, x in huggingface_of(case, weights).items():
        assert name in unexpected.get(case, ()) or torch.equal(got[name], x), name


def test_no_entity_comes_first(tmp_path):
    base, state = write_base(tmp_path / "base")
    data, _, weights = make_model("ner", state)
    folder = write_model(tmp_path / "a", data, ["PER", "LOC", "O"], weights)
    checkpoint = read_checkpoint(folder, base=base)
    assert checkpoint.labels == ["O", "PER", "LOC"]
    assert torch.equal(checkpoint.tensors["head.classifier.weight"], weights["classifier.weight"][[2, 0, 1]])
    assert torch.equal(checkpoint.tensors["head.classifier.bias"], weights["classifier.bias"][[2, 0, 1]])
    assert "moved the label O, which means none, to the front" in checkpoint.report
    load = make_checkpoint_loader(str(folder), base=str(base), labels=["NIL", "P", "L"])
    assert load().labels == ["NIL", "P", "L"]


def test_entities_alone(tmp_path):
    """The extractor that reads the entity, and not its words."""
    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model("ner", state)
    data["model"]["feature_extractor"]["type"] = "entity"
    with pytest.raises(ValueError, match=r"must have the shape \(3, 16\)"):
        read_checkpoint(write_model(tmp_path / "a", data, labels, weights), base=base)
    weights["classifier.weight"] = weights["classifier.weight"][:, :16].clone()
    checkpoint = read_checkpoint(write_model(tmp_path / "a", data, labels, weights), base=base)
    assert checkpoint.tensors["head.classifier.weight"].shape == (3, 16)


def test_refused(tmp_path):
    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model("relation", state)
    folder = write_model(tmp_path / "a", data, labels, weights)
    with pytest.raises(ValueError, match=r"names its base model, 'some/base', .* as base"):
        read_checkpoint(folder)
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ValueError, match="must be a LUKE, but its model_type is 'bert'"):
        read_checkpoint(folder, base=tmp_path / "bert")
    for change, message in (
        ({"type": "coref"}, "is of the type 'coref'; expected one of"),
        (
            {"feature_extractor": {"type": "token+entity", "embedder": {"type": "transformers-luke"}}},
            "the features 'token",
        ),
        (
            {"feature_extractor": {"type": "entity", "embedder": {"type": "pretrained_transformer"}}},
            "embedder 'pretrained",
        ),
    ):
        wrong = {**data, "model": {**data["model"], **change}}
        with pytest.raises(ValueError, match=message):
            read_checkpoint(write_model(tmp_path / "b", wrong, labels, weights), base=base)
    with pytest.raises(ValueError, match="but 2 are given"):
        read_checkpoint(write_model(tmp_path / "b", data, labels[:2], weights), base=base)
    with pytest.raises(ValueError, match=r"of which \['no_relation'\] are repeated"):
        read_checkpoint(write_model(tmp_path / "b", data, [*labels[:2], labels[0]], weights), base=base)
    (folder / "vocabulary" / "labels.txt").unlink()
    with pytest.raises(ValueError, match=r"Expected the labels of an AllenNLP model in .*labels\.txt"):
        read_checkpoint(folder, base=base)
    (folder / "weights.th").unlink()
    with pytest.raises(ValueError, match=r"expected one of \['weights.th', 'best.th'\]"):
        read_checkpoint(folder, base=base)


ENCODER = {"all": ("typing", "squad"), "head": ("relation", "ner")}  # where every tensor of the encoder is damaged too


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "of"),
    [
        *((case, of) for of, cases in ENCODER.items() for case in cases),
        *((case, "all") for case in ENCODER["head"]),
    ],
)
def test_damage(tmp_path, case, of):
    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model(case, state)
    optional = ("answer_type_classifier", "classifier.bias")
    damaged = [name for name in weights if of == "all" or not name.startswith(FEATURES)]
    for name in damaged:
        rest = {key: x for key, x in weights.items() if key != name}
        folder = write_model(tmp_path / "a", data, labels, rest)
        if name.startswith(optional) or "position_ids" in name:
            read_checkpoint(folder, base=base)
            continue
        with pytest.raises(ValueError, match=r"lacks 1 tensors|word embeddings"):
            read_checkpoint(folder, base=base)
    extra = {**weights, "crf.transitions": torch.zeros(3)}
    with pytest.raises(ValueError, match=r"1 tensors that its config does not account for: 'crf\.transitions'"):
        read_checkpoint(write_model(tmp_path / "a", data, labels, extra), base=base)
    for name in damaged:
        if name.endswith("position_ids") or name.startswith("answer"):
            continue
        bad = weights[name].clone()
        bad.view(-1)[-1] = float("inf")
        with pytest.raises(ValueError, match="must be finite"):
            read_checkpoint(write_model(tmp_path / "a", data, labels, {**weights, name: bad}), base=base)
    with pytest.raises(ValueError, match=r"weights\.th is refused|is not a whole PyTorch file"):
        folder = write_model(tmp_path / "a", data, labels, weights)
        (folder / "weights.th").write_bytes((folder / "weights.th").read_bytes()[:500])
        read_checkpoint(folder, base=base)


def test_code_is_never_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    base, state = write_base(tmp_path / "base")
    data, labels, weights = make_model("typing", state)
    folder = write_model(tmp_path / "a", data, labels, {**weights, "classifier.bias": Evil()})
    with pytest.raises(ValueError, match=r"is refused.*pickle that holds more than weights"):
        read_checkpoint(folder, base=base)
