"""Archives and pickles that try to leave their folder, fill the disk, or run code."""

import gzip
import io
import os
import pickle
import random
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from spacy_luke.checkpoint.checkpoint import write_huggingface
from tests.tiny import make_checkpoint

from .hostile import Attack, Make

Fill = Callable[[tarfile.TarFile], None]
# A name or a mode does no harm in the temporary folder, whose files lose their modes; nor do zeros that the disk has
# room for.
LABELS = ["NIL", "PER", "LOC"]
HARMLESS = ("nothing odd", "a bomb", "set user id", "name with a line")


def archive_attacks() -> Iterator[Attack]:
    for name, fill in _members().items():
        yield Attack("archives", name, _archive(fill), refused=name not in HARMLESS)
    for name, make in _broken_archives().items():
        yield Attack("archives", name, make, refused=True)
    for name, payload in _payloads().items():
        for file in ("pytorch_model.bin", "legacy pytorch_model.bin", "value pytorch_model.bin", "model.safetensors"):
            yield Attack("pickles", f"{name} as {file}", _pickled(payload, file), refused=True)


def write_tiny(folder: Path) -> Path:
    write_huggingface(make_checkpoint(labels=LABELS), folder)
    return folder


def convert(source: str) -> Sequence[str]:
    return ["convert", source, "out"]


def _archive(fill: Fill) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        with tarfile.open(folder / "x.tar.gz", "w:gz", compresslevel=1) as tar:
            tar.add(write_tiny(folder / "in"), arcname="in")
            fill(tar)
        shutil.rmtree(folder / "in")
        return convert("x.tar.gz")

    return make


def _member(name: str, data: bytes = b"x", **about: Any) -> Fill:
    def fill(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        for key, value in about.items():
            setattr(info, key, value)
        tar.addfile(info, io.BytesIO(data) if info.isreg() else None)

    return fill


def _several(*fills: Fill) -> Fill:
    def fill(tar: tarfile.TarFile) -> None:
        for one in fills:
            one(tar)

    return fill


def _members() -> dict[str, Fill]:
    link, hard = tarfile.SYMTYPE, tarfile.LNKTYPE
    return {
        "nothing odd": lambda tar: None,
        "path up": _member("../canary1"),
        "path up, deep": _member("in/../../../canary2"),
        "absolute path": _member("/tmp/harness_canary"),
        "link to a file": _member("in/config.json", type=link, linkname="/etc/passwd"),
        "link up": _member("in/up", type=link, linkname="../.."),
        "through a link": _several(_member("in/d", type=link, linkname="../.."), _member("in/d/canary3")),
        "hard link": _member("in/h", type=hard, linkname="/etc/passwd"),
        "hard link up": _member("in/h", type=hard, linkname="../../x.tar.gz"),
        "device": _member("in/dev", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
        "pipe": _member("in/config2.json", type=tarfile.FIFOTYPE),
        "20,000 members": _several(*(_member(f"in/{i}", b"") for i in range(20_000))),
        "a bomb": _member("in/zeros", bytes(400 << 20)),
        "a bomb of weights": _member("in/model.safetensors", bytes(300 << 20)),
        "set user id": _member("in/suid", mode=0o6777),
        "name of 5,000": _member("in/" + "n" * 5000),
        "name with a line": _member("in/a\nb"),
        "two of a name": _several(_member("in/config.json", b"{}"), _member("in/config.json", b"[]")),
    }


def _broken_archives() -> dict[str, Make]:
    def of(data: Callable[[], bytes]) -> Make:
        def make(folder: Path, rng: random.Random) -> Sequence[str]:
            (folder / "x.tar.gz").write_bytes(data())
            return convert("x.tar.gz")

        return make

    def claims() -> bytes:
        info = tarfile.TarInfo("in/config.json")
        info.size = 10 << 40
        return gzip.compress(info.tobuf() + b"x" * 512)

    return {
        "cut": of(lambda: gzip.compress(os.urandom(5000))[:2000]),
        "no tar": of(lambda: gzip.compress(b"x" * 5000)),
        "empty": of(lambda: b""),
        "no gzip": of(lambda: b"\x1f\x8b" + b"y" * 100),
        "claims 10 TB": of(claims),
        "gzip bomb": of(lambda: gzip.compress(bytes(1 << 20), 9) * 600),
        "plain zeros": of(lambda: bytes(10240)),
    }


class _Calls:
    """Unpickles as a call."""

    def __init__(self, function: Any, *arguments: Any):
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def _payloads() -> dict[str, Callable[[str], Any]]:
    import builtins
    import importlib
    import subprocess

    return {
        "os.system": lambda place: _Calls(os.system, f"touch {place}"),
        "subprocess": lambda place: _Calls(subprocess.check_call, ["touch", place]),
        "eval": lambda place: _Calls(builtins.eval, f"open({place!r}, 'w')"),
        "exec": lambda place: _Calls(builtins.exec, f"open({place!r}, 'w')"),
        "import": lambda place: _Calls(importlib.import_module, "antigravity"),
        "open": lambda place: _Calls(builtins.open, place, "w"),
        "getattr": lambda place: _Calls(getattr, _Calls(importlib.import_module, "os"), "getcwd"),
        "large": lambda place: _Calls(builtins.bytearray, 1 << 40),
    }


def _pickled(payload: Callable[[str], Any], file: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        place = write_tiny(folder / "in")
        tensors = load_file(place / "model.safetensors")
        (place / "model.safetensors").unlink()
        evil = payload(str(folder.parent / "canary4"))
        how, _, name = file.rpartition(" ")
        if name.endswith(".safetensors"):
            (place / name).write_bytes(pickle.dumps(evil, protocol=rng.randint(0, 5)))
        elif how == "value":
            torch.save({**tensors, "evil": evil}, place / name)
        else:
            torch.save(evil, place / name, _use_new_zipfile_serialization=how != "legacy")
        return convert("in")

    return make
