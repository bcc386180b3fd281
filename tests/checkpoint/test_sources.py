import shutil
import sys
import types

import pytest
from spacy.util import registry

from spacy_luke.checkpoint.sources import HUB_FILES, find_source, make_checkpoint_loader
from tests.checkpoint.small import make_small_luke, write_small


def fake_hub(monkeypatch, function):
    module = types.ModuleType("huggingface_hub")
    module.snapshot_download = function
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_registered_and_lazy(luke_folder):
    make = registry.misc.get("spacy-luke.checkpoint.v1")
    load = make(path=str(luke_folder))
    assert load().entities.titles() == ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"]
    assert len(make(path=str(luke_folder), entities="all")().entities) == 7
    assert not make(path=str(luke_folder), entity_aware=False)().config.entity_aware
    shutil.rmtree(luke_folder)
    with pytest.raises(ValueError, match="there is no file"):
        load()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "Expected a folder, an archive"),
        ("some/luke.tar.gz", "there is no file"),
        ("/absolute/nowhere", "there is no file"),
        ("package:no_such_package/model", "installed Python package 'no_such_package'"),
        ("package:../x", "installed Python package '..'"),
        ("package:json/nowhere", "has no 'nowhere'"),
        ("bert-base-uncased", "its owner before it, as google-bert/bert-base-uncased or FacebookAI/roberta-base"),
        ("roberta-base@main", "its owner before it"),
        ("lazy_package", "this name has a model: write package:lazy_package/model"),
        ("lazy-package", "this name has a model: write package:lazy_package/model"),
        ("bare_package", "this name has a model: write package:bare_package[.]"),
        ("json", "its owner before it"),
        ("made_by_hand", "its owner before it"),
        ("luke.tar.gz", r"looked for from .*\)[.]$"),
        ("./bert-base-uncased", r"looked for from .*\)[.]$"),
    ],
)
def test_no_such_source(tmp_path, monkeypatch, path, message):
    for folder in ("lazy_package/model", "bare_package"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text("{}")
        (tmp_path / folder.partition("/")[0] / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "made_by_hand", types.ModuleType("made_by_hand"))
    with pytest.raises(ValueError, match=message):
        find_source(path)


def test_package_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "lazy_package" / "model").mkdir(parents=True)
    (tmp_path / "lazy_package" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_source("package:lazy_package/model") == tmp_path / "lazy_package" / "model"


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_hub(monkeypatch, luke_folder, weights):
    """Both kinds of weights are never downloaded, and nothing is asked for before the call."""
    asked = []
    if weights != "model.safetensors":
        (luke_folder / "model.safetensors").unlink()
        write_small(luke_folder, *make_small_luke(), weights=weights)

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        return str(luke_folder)

    fake_hub(monkeypatch, snapshot_download)
    load = make_checkpoint_loader("studio-ousia/luke-base@v1.0")
    assert not asked
    assert load().config.vocab_size == 11
    assert {(name, revision) for name, revision, _ in asked} == {("studio-ousia/luke-base", "v1.0")}
    assert len(asked) == (1 if weights == "model.safetensors" else 2)
    assert all(set(HUB_FILES) < set(patterns) for _, _, patterns in asked)
    assert not any("bin" in pattern for pattern in asked[0][2] if pattern not in HUB_FILES)


def test_hub_without_weights(monkeypatch, luke_folder):
    """A base and a tokenizer are read for their small files only."""
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append(allow_patterns)
        return str(luke_folder)

    fake_hub(monkeypatch, snapshot_download)
    assert find_source("studio-ousia/luke-base", weights=False) == luke_folder
    assert asked == [HUB_FILES]


def test_hub_out_of_reach(monkeypatch):
    def offline(*args, **kwargs):
        raise ConnectionError("no route")

    fake_hub(monkeypatch, offline)
    with pytest.raises(ValueError, match=r"ConnectionError: no route.*--local-dir"):
        find_source("studio-ousia/luke-base")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"spacy-luke\[hub\]"):
        find_source("studio-ousia/luke-base")


def test_local_folder_comes_before_the_hub(luke_folder, monkeypatch):
    monkeypatch.chdir(luke_folder.parent.parent)
    fake_hub(monkeypatch, lambda *args, **kwargs: pytest.fail("the hub was asked"))
    name = f"{luke_folder.parent.name}/{luke_folder.name}"
    assert find_source(name).samefile(luke_folder)
