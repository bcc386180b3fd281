"""A setting means what the config says: overrides, edited files, values that were found, and what cannot change."""

import copy
import json
import pickle
from pathlib import Path

import pytest
import spacy
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from spacy.training import Example

from spacy_luke.aliases.build import build_store
from spacy_luke.components.storage import METADATA
from tests.components.known import make as make_ernie_pipeline
from tests.components.linker.linked import make_linker
from tests.pipelines import annotate, make_pipeline
from tests.tiny import SENTENCES

# Of each component: settings of its config, and other values of them.
SETTINGS = {
    "luke_encoder": {"overlap": 24, "batch_size": 512, "listener_weight": 0.5},
    "luke_ner": {"none_bias": 100.0, "batch_size": 77, "overwrite": True, "context": "sentence", "max_span_words": 2},
    "luke_typer": {
        "temperature": 2.0,
        "threshold": 0.25,
        "batch_size": 77,
        "always_best": False,
        "set_label": True,
        "focus": 1.0,
    },
    "luke_relation": {"shift": -0.5, "threshold": 0.25, "batch_size": 77, "context": "sentence", "overlap": 24},
    "luke_qa": {"no_answer_threshold": -3.0, "n_best": 5, "max_answer_pieces": 7, "cut_questions": True},
    "luke_cloze": {"stride": 12, "batch_size": 77},
    "luke_linker": {"threshold": 0.75, "max_candidates": 3, "inference": "local", "use_given": False, "overlap": 12},
    "ernie_encoder": {"overlap": 6, "batch_size": 77, "alignment": "whitespace"},
    "ernie_typer": {"threshold": 0.25, "context": "sentence", "alignment": "whitespace", "always_best": True},
    "ernie_relation": {"threshold": 0.25, "context": "sentence", "batch_size": 77},
    "soft_textcat": {"threshold": 0.625},
}
FOUND = {"luke_ner": "none_bias", "luke_typer": "threshold", "luke_relation": "threshold"}
FOUND.update(luke_qa="no_answer_threshold", luke_linker="threshold")


def make_textcat():
    nlp = spacy.blank("en")
    nlp.add_pipe("soft_textcat")
    doc = nlp.make_doc("a b")
    examples = [Example.from_dict(doc, {"cats": {"similar": 0.5, "dissimilar": 0.5}})]
    nlp.initialize(lambda: examples)
    return nlp


@pytest.fixture(scope="module")
def luke():
    return make_pipeline()


@pytest.fixture(scope="module")
def saved(luke, store, vectors, tmp_path_factory):
    """Folders of pipelines, by the names of their components."""
    folder = tmp_path_factory.mktemp("settings")
    ernie, _ = make_ernie_pipeline(["ernie_typer", "ernie_relation"], vectors, shared=True)
    found = {}
    made = {"luke": luke, "ernie": ernie, "linker": make_linker(store)[0], "textcat": make_textcat()}
    for name, nlp in made.items():
        nlp.to_disk(folder / name)
        found.update(dict.fromkeys(nlp.pipe_names, folder / name))
    return found


def values_of(nlp, name):
    return {key: nlp.get_pipe(name).cfg[key] for key in SETTINGS[name]}


def edit(folder: Path, name: str, values: dict) -> None:
    """In config.cfg, as a person would."""
    lines, inside = [], False
    for line in (folder / "config.cfg").read_text().splitlines():
        inside = line == f"[components.{name}]" if line.startswith("[") else inside
        key = line.partition(" = ")[0]
        lines.append(f"{key} = {json.dumps(values[key])}" if inside and key in values else line)
    (folder / "config.cfg").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", SETTINGS)
def test_overrides_when_loading(saved, name):
    before = spacy.load(saved[name])
    assert all(values_of(before, name)[key] != value for key, value in SETTINGS[name].items())
    nlp = spacy.load(saved[name], config={"components": {name: SETTINGS[name]}})
    assert values_of(nlp, name) == SETTINGS[name]
    assert nlp.config["components"][name].items() >= SETTINGS[name].items()
    assert nlp.get_pipe(name).labels == before.get_pipe(name).labels
    assert nlp.get_pipe(name).cfg.get("none") == before.get_pipe(name).cfg.get("none")
    again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert values_of(again, name) == SETTINGS[name]


@pytest.mark.parametrize("name", SETTINGS)
def test_an_edited_config(saved, tmp_path, name):
    spacy.load(saved[name]).to_disk(tmp_path)
    edit(tmp_path, name, SETTINGS[name])
    nlp = spacy.load(tmp_path)
    assert values_of(nlp, name) == SETTINGS[name]
    nlp.to_disk(tmp_path)
    assert values_of(spacy.load(tmp_path), name) == SETTINGS[name]


def test_settings_that_are_not_in_the_cfg(saved):
    """The rows of the table and what the cache holds; scorers and getters are the config's anyway."""
    nlp = spacy.load(saved["luke_encoder"], config={"components": {"luke_encoder": {"shared_pieces": 100}}})
    assert nlp.get_pipe("luke_encoder").sharing.cache.capacity == 100


def test_settings_of_the_annotator(tmp_path):
    table = tmp_path / "names.tsv"
    table.write_text("name\tentity\tcount\toccurrences\nYork\tYork\t1\t2\n", encoding="utf8")
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_annotator").store = build_store([table], case="exact").store
    nlp.to_disk(tmp_path / "pipeline")
    settings = {"spans_key": "names", "min_link_probability": 0.75}
    again = spacy.load(tmp_path / "pipeline", config={"components": {"entity_annotator": settings}})
    assert list(again("in York").spans) == ["names"]
    assert not again("in York").spans["names"]


def test_an_override_changes_predictions(saved):
    usual = spacy.load(saved["luke_ner"])
    assert sum(len(doc.ents) for doc in annotate(usual)) > 0
    none = spacy.load(saved["luke_ner"], config={"components": {"luke_ner": {"none_bias": 100.0}}})
    assert sum(len(doc.ents) for doc in annotate(none)) == 0


@pytest.mark.product
@pytest.mark.parametrize("with_nlp", [True, False])
@pytest.mark.parametrize("name", FOUND)
def test_found_values_travel(saved, tmp_path, name, with_nlp):
    """What `tune` finds survives every way to save and copy a pipeline, and gives way to what a config says."""
    nlp, key, value = spacy.load(saved[name]), FOUND[name], 0.4375
    nlp.get_pipe(name).settle(nlp if with_nlp else None, **{key: value})
    assert (nlp.config["components"][name][key] == value) == with_nlp
    nlp.to_disk(tmp_path / "one")
    spacy.load(tmp_path / "one").to_disk(tmp_path / "two")
    copies = [spacy.load(tmp_path / "one"), spacy.load(tmp_path / "two"), copy.deepcopy(nlp)]
    copies.append(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()))
    copies.append(pickle.loads(pickle.dumps(nlp)))
    copies.append(spacy.load(saved[name]).from_disk(tmp_path / "one") if not with_nlp else nlp)
    for one in copies:
        assert one.get_pipe(name).cfg[key] == value
    sourced = spacy.blank("en")
    for part in nlp.pipe_names:
        sourced.add_pipe(part, source=nlp)
    sourced.to_disk(tmp_path / "sourced")
    assert spacy.load(tmp_path / "sourced").get_pipe(name).cfg[key] == value
    other = spacy.load(tmp_path / "one", config={"components": {name: {key: 0.125}}})
    assert other.get_pipe(name).cfg[key] == 0.125
    edit(tmp_path / "two", name, {key: 0.125})
    assert spacy.load(tmp_path / "two").get_pipe(name).cfg[key] == 0.125


def test_the_old_value_as_an_override(saved, tmp_path):
    """Where `tune` knew the pipeline, its config holds what was found, so that every other value is a wish."""
    nlp = spacy.load(saved["luke_typer"])
    before = nlp.get_pipe("luke_typer").cfg["threshold"]
    nlp.get_pipe("luke_typer").settle(nlp, threshold=0.4375)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path, config={"components": {"luke_typer": {"threshold": before}}})
    assert again.get_pipe("luke_typer").cfg["threshold"] == before


def test_bytes_into_a_pipeline_with_other_settings(luke):
    """Labels and weights come from the bytes, settings are those of the pipeline that reads them, as its config
    says."""
    other = make_pipeline(luke_ner={"none_bias": 100.0, "batch_size": 77})
    other.get_pipe("luke_ner").cfg["labels"] = ["X", "Y"]
    other.from_bytes(luke.to_bytes())
    ner = other.get_pipe("luke_ner")
    assert (ner.cfg["none_bias"], ner.cfg["batch_size"]) == (100.0, 77)
    assert other.config["components"]["luke_ner"]["none_bias"] == 100.0
    assert ner.labels == luke.get_pipe("luke_ner").labels
    assert not any(doc.ents for doc in annotate(other))


FIXED = [
    ("luke_ner", {"model": {"attention": "full"}}, "attention = 'one_way', but its config says 'full'"),
    ("luke_ner", {"model": {"features": "entity"}}, "features = 'all', but its config says 'entity'"),
    ("luke_ner", {"model": {"proposer_size": 10}}, "proposer_size = 150, but its config says 10"),
    ("luke_typer", {"model": {"bias": False}}, "bias = True, but its config says False"),
    ("luke_relation", {"multi_label": True}, "multi_label = False, but its config says True"),
    ("luke_relation", {"none": "no"}, "none = None, but its config says 'a name'"),
    ("luke_relation", {"tokens": "mention"}, "tokens = 'pair', but its config says 'mention'"),
    ("luke_encoder", {"entity_rows": "all"}, "entity_rows = 'special', but its config says 'all'"),
    ("luke_linker", {"model": {"prior": True}}, "prior = False, but its config says True"),
    ("ernie_typer", {"markers": ["#"]}, r"markers = \['。'\], but its config says \['#'\]"),
]


@pytest.mark.parametrize(("name", "settings", "message"), FIXED)
def test_what_the_weights_were_trained_for(saved, name, settings, message):
    with pytest.raises(ValueError, match=f"The weights of '{name}' were trained with {message}"):
        spacy.load(saved[name], config={"components": {name: settings}})


def test_pipelines_of_the_first_form(saved, tmp_path):
    """Files that hold all settings, and no digests."""
    nlp = spacy.load(saved["luke_ner"])
    nlp.to_disk(tmp_path)
    for name in nlp.pipe_names[1:]:
        file = tmp_path / name / "model.safetensors"
        with safe_open(file, framework="pt") as opened:
            about = json.loads(opened.metadata()[METADATA])
        shims = {part: {k: x for k, x in values.items() if k != "digest"} for part, values in about["shims"].items()}
        cfg = {**nlp.get_pipe(name).cfg}
        if name == "luke_ner":
            cfg.update(none_bias=0.4375, batch_size=99, overlap=31, none="O")
        old = {"cfg": cfg, "attention": nlp.get_pipe(name).attention, "shims": shims}
        tensors = {key: x.clone() for key, x in load_file(file).items()}
        save_file(tensors, file, {METADATA: json.dumps(old)})
    again = spacy.load(tmp_path)
    ner = again.get_pipe("luke_ner")
    assert (ner.labels, ner.cfg["none"]) == (nlp.get_pipe("luke_ner").labels, "O")
    assert (ner.cfg["none_bias"], ner.cfg["batch_size"]) == (0.4375, 99)  # where the config has the defaults
    assert ner.cfg["overlap"] == 32  # the config's
    other = spacy.load(tmp_path, config={"components": {"luke_ner": {"none_bias": 2.0}}})
    assert other.get_pipe("luke_ner").cfg["none_bias"] == 2.0
    again.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("luke_ner").cfg == ner.cfg
    expected = [doc.ents for doc in annotate(spacy.load(saved["luke_ner"]), SENTENCES[:1])]
    assert [[(x.start, x.end) for x in ents] for ents in expected]


# ---- exclude


@pytest.mark.parametrize("way", ["disk", "bytes"])
@pytest.mark.parametrize("name", ["luke_encoder", "luke_ner", "luke_typer", "luke_linker", "ernie_encoder"])
def test_exclude(saved, tmp_path, name, way):
    nlp = spacy.load(saved[name])
    pipe, bare = nlp.get_pipe(name), spacy.blank("en").from_config(nlp.config).get_pipe(name)

    def write(exclude, file):
        if way == "bytes":
            return pipe.to_bytes(exclude=exclude)
        pipe.to_disk(tmp_path / file, exclude=exclude)
        return tmp_path / file

    def read(data, exclude, into):
        return (into.from_bytes if way == "bytes" else into.from_disk)(data, exclude=exclude)

    whole, light, heavy = write(["vocab"], "whole"), write(["model"], "light"), write(["cfg"], "heavy")
    learned = {key: pipe.cfg[key] for key in pipe.learned if key in pipe.cfg}
    read(light, ["model"], bare)
    assert {key: bare.cfg[key] for key in learned} == learned
    assert not bare.model.shims[0].ready
    with pytest.raises(ValueError, match=r"saved with exclude = \['model'\]; load it with the same"):
        read(light, [], bare)
    with pytest.raises(ValueError, match=r"saved with exclude = \['cfg'\]; load it with the same"):
        read(heavy, [], bare)
    other = spacy.load(saved[name]).get_pipe(name)
    other.cfg.learn(**{key: ["X"] for key in learned})
    read(heavy, ["cfg"], other)
    read(whole, ["cfg"], other)
    assert {key: other.cfg[key] for key in learned} == {key: ["X"] for key in learned}
    read(whole, ["model"], other)
    assert {key: other.cfg[key] for key in learned} == learned


def test_exclude_stores(saved, tmp_path):
    linker = spacy.load(saved["luke_linker"]).get_pipe("luke_linker")
    linker.to_disk(tmp_path, exclude=["entity_vectors"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    again = spacy.load(saved["luke_linker"]).get_pipe("luke_linker")
    again._vectors = None
    again.from_disk(saved["luke_linker"] / "luke_linker", exclude=["entity_vectors"])
    assert again._vectors is None
    again.from_bytes(linker.to_bytes(exclude=["entity_vectors"]))
    assert again._vectors is None
    again.from_bytes(linker.to_bytes())
    assert len(again.vectors) == len(linker.vectors)


def test_exclude_names_of_the_annotator(tmp_path):
    table = tmp_path / "names.tsv"
    table.write_text("name\tentity\tcount\toccurrences\nYork\tYork\t1\t2\n", encoding="utf8")
    annotator = spacy.blank("en").add_pipe("entity_annotator")
    annotator.store = build_store([table], case="exact").store
    annotator.to_disk(tmp_path / "a", exclude=["store"])
    assert not (tmp_path / "a").exists()
    annotator.to_disk(tmp_path / "b")
    other = spacy.blank("en").add_pipe("entity_annotator")
    assert other.from_disk(tmp_path / "b", exclude=["store"])._store is None
    assert other.from_bytes(annotator.to_bytes(), exclude=["store"])._store is None
    with pytest.raises(ValueError, match=r"saved with exclude = \['store'\]"):
        other.from_bytes(annotator.to_bytes(exclude=["store"]))


def test_exclude_components_of_a_pipeline(luke, tmp_path):
    luke.to_disk(tmp_path, exclude=["luke_ner", "vocab"])
    assert not (tmp_path / "luke_ner").exists()
    with pytest.raises(ValueError, match=r"Expected a file of weights at .*luke_ner"):
        spacy.load(tmp_path)
    less = spacy.load(tmp_path, exclude=["luke_ner"])
    assert "luke_ner" not in less.pipe_names
    assert less.get_pipe("luke_typer").labels == luke.get_pipe("luke_typer").labels
    assert b"luke_ner/" not in luke.to_bytes(exclude=["luke_ner"])
