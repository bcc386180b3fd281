"""A store that is a folder: files, and a manifest that says what they are, and their sizes and digests.

    manifest.json    {"format", "version", ..., "files": {file: [bytes, BLAKE2b]}, "digest": BLAKE2b of all the rest}

Version 1 had no digest of the manifest itself, and is read too.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .arrays import AGAIN
from .atomic import link_or_copy
from .digests import Part, digest_bytes, digest_file, find_changed

MANIFEST = "manifest.json"
VERSION = 2
READABLE = (1, VERSION)


@dataclass(frozen=True)
class StoreKind:
    """What stores of one kind have in common.

    what: such as "store of vectors"; many: what such a folder holds, such as "vectors"; form: the manifest's "format";
    build: how one is made; is_whole: whether a manifest has the entries of this kind (an error means no).
    """

    what: str
    many: str
    form: str
    build: str
    is_whole: Callable[[dict[str, Any]], bool]

    def open(self, path: Path, *, verify: bool = False, progress: bool = False) -> "StoreFolder":
        """The manifest, and sizes and digests of the files (of large ones as `digests` says; verify: of all, in any
        case).

        Raises ValueError for what is no such store, one of another version, and one that is not whole or damaged, with
        the file and what to do.
        """
        store = StoreFolder(path, self, self._read_manifest(path))
        store.check(every=verify, progress=progress)
        return store

    def check_replaceable(self, folder: Path) -> None:
        """ValueError where a folder that is no store of this kind would be replaced by one."""
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file; expected the name of a folder for {self.many}.")
        if folder.is_dir() and any(folder.iterdir()):
            manifest = folder / MANIFEST
            if not manifest.is_file() or self.form not in manifest.read_text(encoding="utf8", errors="replace"):
                raise ValueError(
                    f"{folder} would be replaced, but it holds something else than {self.many}. Choose another name."
                )

    def write_manifest(
        self,
        folder: Path,
        values: Mapping[str, Any],
        *,
        names: Iterable[str] | None = None,
        known: Mapping[str, tuple[int, str]] = {},
        progress: bool = False,
    ) -> None:
        """The manifest of the files in a folder, or of those of these names. values: the entries of this kind; known:
        sizes and digests that need not be made again."""
        names = sorted(path.name for path in folder.iterdir()) if names is None else names
        files = {
            name: known.get(name) or [(folder / name).stat().st_size, digest_file(folder / name, progress=progress)]
            for name in names
        }
        write_sealed(folder / MANIFEST, {"format": self.form, "version": VERSION, **values, "files": files})

    def _read_manifest(self, path: Path) -> dict[str, Any]:
        file = path / MANIFEST
        if not file.is_file():
            raise ValueError(f"{path} is no {self.what}: there is no {MANIFEST}. {self.build}")
        try:
            manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf8"))
            form, version = manifest["format"], manifest["version"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{path} is no {self.what}: {MANIFEST} is not readable ({error!r}). {self.build}"
            ) from error
        if form != self.form:
            raise ValueError(f"{path} is no {self.what}: {MANIFEST} says format {form!r}. {self.build}")
        if type(version) is not int or version not in READABLE:
            raise ValueError(
                f"{path} is a {self.what} of version {version}, but this spacy_luke reads version {VERSION}. Build it "
                f"again."
            )
        if version >= 2 and not is_sealed(manifest):
            raise ValueError(f"{path} is a damaged {self.what}: {MANIFEST} is not as it was written. {AGAIN}")
        try:
            whole = _has_files(manifest) and self.is_whole(manifest)
        except (AttributeError, KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise ValueError(f"{path} is a damaged {self.what}: {MANIFEST} is not whole. {AGAIN}")
        return manifest


class StoreFolder:
    """A store that was opened. Nothing in it changes, but it may be replaced as a whole."""

    def __init__(self, path: Path, kind: StoreKind, manifest: dict[str, Any]) -> None:
        self.path, self.kind, self.manifest = path, kind, manifest

    @property
    def files(self) -> dict[str, tuple[int, str]]:
        """Size and digest of each file but the manifest."""
        return {name: (size, digest) for name, (size, digest) in self.manifest["files"].items()}

    def check(self, *, every: bool = True, progress: bool = False) -> None:
        """Compare sizes and digests of the files. ValueError names the first that is not the one that was written.

        every: also those that are remembered from another time.
        """
        for name, (size, _) in self.files.items():
            file, not_whole = self.path / name, f"{self.path} is not a whole {self.kind.what}"
            if not file.is_file():
                raise ValueError(f"{not_whole}: {name} is missing. {AGAIN}")
            if (found := file.stat().st_size) != size:
                raise ValueError(f"{not_whole}: expected {size:,} bytes in {name}, but it has {found:,}. {AGAIN}")
        parts = [Part(self.path / name, digest, size) for name, (size, digest) in self.files.items()]
        if (changed := find_changed(parts, every=every, progress=progress)) is not None:
            raise ValueError(
                f"{changed.file} is damaged, or belongs to another {self.kind.what}: its digest is not the manifest's. "
                f"{AGAIN}"
            )

    def link_to(self, folder: Path) -> None:
        """All its files in another folder: hard links on the same disk, which take no room, else copies."""
        for name in self.files:
            (folder / name).parent.mkdir(exist_ok=True)
            link_or_copy(self.path / name, folder / name)
        (folder / MANIFEST).write_bytes((self.path / MANIFEST).read_bytes())  # its inode is what others lock


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """A JSON file that ends in a digest of all that it says."""
    path.write_text(json.dumps(seal(data), indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def seal(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same with "digest", of all the rest as JSON gives it back."""
    data = json.loads(json.dumps(data))
    return {**data, "digest": _digest(data)}


def is_sealed(data: Mapping[str, Any]) -> bool:
    """Whether what was read from such a file is what was written."""
    return data.get("digest") == _digest({key: value for key, value in data.items() if key != "digest"})


def _digest(data: Mapping[str, Any]) -> str:
    return digest_bytes(json.dumps(data, sort_keys=True).encode())


def _has_files(manifest: dict[str, Any]) -> bool:
    """Whether "files" is what this module writes, all of them inside of the folder."""
    sizes = [x for pair in manifest["files"].values() for x in zip(pair, (int, str), strict=True)]
    inside = all(
        ".." not in Path(name).parts and not Path(name).is_absolute() and name != MANIFEST for name in manifest["files"]
    )
    return inside and all(type(x) is kind for x, kind in sizes)
