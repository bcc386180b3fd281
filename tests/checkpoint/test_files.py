import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tarfile
import textwrap

import pytest
import torch
from safetensors.torch import save_file

from spacy_luke.checkpoint import files

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.zeros(3)}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


class Trap:
    def __reduce__(self):
        return (os.mkdir, ("trapped",))


@pytest.mark.parametrize("zipped", [True, False])
def test_bin_of_any_age(tmp_path, zipped):
    path = tmp_path / "pytorch_model.bin"
    torch.save(TENSORS, path, _use_new_zipfile_serialization=zipped)
    assert same(files.read_tensors(path), TENSORS)
    torch.save({"module": TENSORS}, path)
    assert same(files.read_tensors(path), TENSORS)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "old.bin"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated(tmp_path, name, share):
    path = tmp_path / name
    if name == "model.safetensors":
        save_file(TENSORS, path)
    else:
        torch.save(TENSORS, path, _use_new_zipfile_serialization=name != "old.bin")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=f"{name}.*truncated"):
        files.read_tensors(path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "old.bin", "archive.tar.gz"])
def test_random_damage_is_read_or_refused(tmp_path, name):
    """Four changed bytes and a cut give tensors or a ValueError, and never anything else."""
    path = tmp_path / name
    if name == "archive.tar.gz":
        make_archive(path, "one", "folder/two")
    elif name == "model.safetensors":
        save_file(TENSORS, path)
    else:
        torch.save(TENSORS, path, _use_new_zipfile_serialization=name != "old.bin")
    whole, chance, refused = path.read_bytes(), random.Random(0), 0
    for turn in range(300):
        damaged = bytearray(whole)
        for _ in range(4):
            damaged[chance.randrange(len(whole))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.randrange(len(whole))] if turn % 3 == 0 else damaged)
        try:
            if name == "archive.tar.gz":
                with files.open_archive(path):
                    pass
            else:
                files.read_tensors(path)
        except ValueError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("zipped", [True, False])
def test_pickle_that_is_not_weights_is_not_run(tmp_path, monkeypatch, zipped):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    torch.save({"a": Trap()}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match="refused"):
        files.read_tensors(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="refused"):
        files.read_tensors(path)
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("data", [[1, 2], {"a": torch.zeros(1), "epoch": 3}, {1: torch.zeros(1)}])
def test_something_else_than_a_state_dict(tmp_path, data):
    torch.save(data, tmp_path / "m.bin")
    with pytest.raises(ValueError, match="must hold a dict of tensors"):
        files.read_tensors(tmp_path / "m.bin")


def test_pointers_and_web_pages_are_named(tmp_path):
    for name in ("m.bin", "m.safetensors"):
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n")
        with pytest.raises(ValueError, match="git lfs pull"):
            files.read_tensors(tmp_path / name)
    (tmp_path / "config.json").write_text("<!DOCTYPE html><html>")
    with pytest.raises(ValueError, match="web page"):
        files.read_model_config(tmp_path / "config.json")


def test_shards(tmp_path):
    save_file({"a": TENSORS["a"]}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"b": TENSORS["b"]}, tmp_path / "model-00002-of-00002.safetensors")
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert files.find_weights(tmp_path) == index
    assert same(files.read_tensors(index), TENSORS)
    index.write_text(json.dumps({"weight_map": {**places, "c": places["b"]}}))
    with pytest.raises(ValueError, match="'c'"):
        files.read_tensors(index)
    index.write_text(json.dumps({"weight_map": {"a": "../" + places["a"]}}))
    with pytest.raises(ValueError, match="beside it"):
        files.read_tensors(index)
    index.write_text(json.dumps({"weight_map": {"a": "model-00003-of-00002.safetensors"}}))
    with pytest.raises(ValueError, match="there is none"):
        files.read_tensors(index)
    index.write_text(json.dumps({"weights": {}}))
    with pytest.raises(ValueError, match="weight_map"):
        files.read_tensors(index)


def test_folder_without_weights(tmp_path):
    (tmp_path / "tf_model.h5").touch()
    with pytest.raises(ValueError, match=r"No weights.*model\.safetensors.*tf_model\.h5"):
        files.find_weights(tmp_path)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_not_finite(bad, dtype):
    tensor = torch.zeros(4, 3, dtype=dtype)
    files.check_finite("t", tensor)
    tensor[2, 1] = bad
    with pytest.raises(ValueError, match=r"'t' must be finite, but 1 of its 12 .* row 2"):
        files.check_finite("t", tensor)
    with pytest.raises(ValueError, match="1 of its 1 "):
        files.check_finite("t", torch.tensor(bad))
    with pytest.raises(ValueError, match="floating-point"):
        files.check_finite("t", torch.zeros(3, dtype=torch.int64))


def make_archive(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            content = b"x" if info.isfile() else b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def special_member(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_archive(tmp_path):
    with files.open_archive(make_archive(tmp_path / "a.tar.gz", "one", "two")) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["one", "two"]
    assert not folder.exists()
    nested = make_archive(tmp_path / "b.tar.gz", special_member("luke", tarfile.DIRTYPE), "luke/one")
    with files.open_archive(nested) as folder:
        assert [path.name for path in folder.iterdir()] == ["one"]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("../evil", "outside"),
        ("a/../../evil", "outside"),
        ("/tmp/evil", "outside"),
        ("C:/evil", "outside"),
        ("..\\evil", "outside"),
        (special_member("link", tarfile.SYMTYPE, "/etc/passwd"), "a link"),
        (special_member("link", tarfile.LNKTYPE, "one"), "a link"),
        (special_member("pipe", tarfile.FIFOTYPE), "a device"),
        (special_member("null", tarfile.CHRTYPE), "a device"),
    ],
)
def test_hostile_archive_writes_nothing(tmp_path, monkeypatch, member, message):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = make_archive(tmp_path / "a.tar.gz", "one", member)
    with pytest.raises(ValueError, match=f"refused.*{message}"), files.open_archive(path):
        pass
    assert {item.name for item in tmp_path.rglob("*")} == {"temporary", "a.tar.gz"}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_damaged_archive(tmp_path, share):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("one")
        content = os.urandom(5000)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match="not a whole tar archive"), files.open_archive(path):
        pass


def no_space(*args, **kwargs):
    raise OSError(28, "No space left on device")


def test_file_is_replaced_or_left(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    files.save_tensors({"a": torch.ones(3)}, path)
    with pytest.raises(KeyboardInterrupt), files.write_atomically(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    for place in ("spacy_luke.checkpoint.files.save_file", "os.replace", "os.fsync"):
        with monkeypatch.context() as context:
            context.setattr(place, no_space)
            with pytest.raises(OSError, match="No space left"):
                files.save_tensors({"a": torch.zeros(3)}, path)
        assert torch.equal(files.read_tensors(path)["a"], torch.ones(3))
        assert [item.name for item in tmp_path.iterdir()] == [path.name]
    files.save_tensors({"a": torch.zeros(3)}, path)
    assert torch.equal(files.read_tensors(path)["a"], torch.zeros(3))
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
def test_real_failing_write(tmp_path):
    """A limit on the size of files makes the operating system itself refuse to write on."""
    path = tmp_path / "model.safetensors"
    files.save_tensors({"a": torch.ones(3)}, path)
    code = """
        import resource, signal, sys, torch
        from spacy_luke.checkpoint.files import save_tensors
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            save_tensors({"a": torch.zeros(1_000_000)}, sys.argv[1])
        except Exception as error:
            print("failed:", error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("failed:")
    assert torch.equal(files.read_tensors(path)["a"], torch.ones(3))
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_folder_is_replaced_or_left(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    with files.write_folder_atomically(folder) as new:
        (new / "old").write_text("old")
    with pytest.raises(KeyboardInterrupt), files.write_folder_atomically(folder) as new:
        (new / "half").write_text("half")
        raise KeyboardInterrupt
    assert [item.name for item in folder.iterdir()] == ["old"]
    monkeypatch.setattr("spacy_luke.stores.atomic._exchange", lambda *_: False)
    real, calls = os.replace, []

    def second_rename_fails(source, target):
        calls.append(target)
        return no_space() if len(calls) == 2 else real(source, target)

    with monkeypatch.context() as context:
        context.setattr("os.replace", second_rename_fails)
        with pytest.raises(OSError, match="No space left"), files.write_folder_atomically(folder) as new:
            (new / "new").write_text("new")
    assert len(calls) == 3
    assert [item.name for item in folder.iterdir()] == ["old"]
    with files.write_folder_atomically(folder) as new:
        (new / "new").write_text("new")
    assert [item.name for item in folder.iterdir()] == ["new"]
    assert [item.name for item in tmp_path.iterdir()] == ["model"]


def test_folder_killed_between_renames_comes_back(tmp_path):
    (tmp_path / ".model.old").mkdir()
    (tmp_path / ".model.old" / "old").touch()
    with pytest.raises(KeyboardInterrupt), files.write_folder_atomically(tmp_path / "model"):
        raise KeyboardInterrupt
    assert [item.name for item in (tmp_path / "model").iterdir()] == ["old"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_killed_while_writing(tmp_path, what):
    files.save_tensors({"a": torch.ones(3)}, tmp_path / "file")
    with files.write_folder_atomically(tmp_path / "folder") as new:
        files.save_tensors({"a": torch.ones(3)}, new / "model.safetensors")
    code = """
        import sys, time, pathlib
        from spacy_luke.checkpoint import files
        path = pathlib.Path(sys.argv[1])
        if path.name == "file":
            with files.write_atomically(path) as new, new.open("wb") as out:
                out.write(b"half"); out.flush(); print("writing", flush=True); time.sleep(60)
        else:
            with files.write_folder_atomically(path) as new:
                (new / "model.safetensors").write_bytes(b"half"); print("writing", flush=True); time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / what)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    path = tmp_path / "file" if what == "file" else tmp_path / "folder" / "model.safetensors"
    # `read_tensors` tells the layout by the suffix
    assert torch.equal(files.read_tensors(path.rename(tmp_path / "x.safetensors"))["a"], torch.ones(3))
