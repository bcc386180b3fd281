"""Stores that are folders: files, and a manifest that says what they are, and their sizes and digests.

    manifest.json    {"format", "version", ..., "files": {file: [bytes, BLAKE2b]}, "digest": BLAKE2b of all the rest}

Version 1 had no digest of the manifest itself, and is read too.
"""

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from .arrays import AGAIN
from .atomic import HeldFolder, link_or_copy, write_folder_atomically
from .digests import FilePart, digest_bytes, digest_file, find_changed

MANIFEST = "manifest.json"
_VERSION = 2
_READABLE = (1, _VERSION)
_OPENINGS = 20  # of a store that is replaced while it is opened


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
        write_sealed(folder / MANIFEST, {"format": self.form, "version": _VERSION, **values, "files": files})

    def read_manifest(self, path: Path) -> dict[str, Any]:
        """ValueError where there is none, or none of this kind, and where it is not as it was written."""
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
        if type(version) is not int or version not in _READABLE:
            raise ValueError(
                f"{path} is a {self.what} of version {version}, but this spacy_luke reads version {_VERSION}. Build it "
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
    """A store that is open: its folder and its manifest. Nothing in it changes, but it may be replaced as a whole.

    A pickle or a deepcopy of it holds the path alone: the folder must be there where it is read.
    """

    kind: ClassVar[StoreKind]

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False, progress: bool = False) -> Self:
        """The store in a folder, after sizes and digests of its files were compared: of large files as
        `stores.digests` says, with `verify` of all.

        Raises ValueError for what is no such store, one of another version, and one that is not whole or damaged, with
        the file and what to do. A store that another process replaces meanwhile is read again.
        """
        path = Path(path).absolute()
        for left in reversed(range(_OPENINGS)):
            manifest = cls.kind.read_manifest(path)
            try:
                _check_files(path, manifest, cls.kind, every=verify, progress=progress)
                store = cls(path, manifest)
            except (OSError, ValueError):
                if not left or cls.kind.read_manifest(path) == manifest:
                    raise
            else:
                if cls.kind.read_manifest(path) == manifest:
                    return store
        raise ValueError(f"{path} is replaced again and again by another process. Open it after that.")

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (type(self), self.path)

    @property
    def info(self) -> dict[str, Any]:
        """What the builder noted beside the entries of the kind: sources, what was read and left out of them."""
        return dict(self.manifest.get("info", {}))

    def verify(self, *, progress: bool = False) -> None:
        """Read all files and compare their digests. ValueError names the file that is not the one that was written."""
        self.check_current()
        _check_files(self.path, self.manifest, self.kind, every=True, progress=progress)

    def is_current(self) -> bool:
        """Whether the store that is in the folder now is the one that was opened. ValueError where there is none."""
        there, known = self.kind.read_manifest(self.path), self.manifest["files"].items()
        return there.get("digest") == self.manifest.get("digest") and all(there["files"].get(x) == y for x, y in known)

    def check_current(self) -> None:
        """ValueError where the folder is there no more, or has another store now, so that its files are not what was
        opened."""
        _check_present(self.path, self.kind)
        if not self.is_current():
            raise ValueError(
                f"{self.path} is not the {self.kind.what} that was opened: it was replaced or changed since. Open it "
                "again, and give it to the component that uses it (`set_kb`), or load the pipeline again."
            )

    def paths(self) -> dict[str, Path]:
        """All files of the store by their names in its folder, the manifest among them. ValueError as
        `check_current`."""
        self.check_current()
        return {name: self.path / name for name in (*self.manifest["files"], MANIFEST)}

    def save(self, folder: str | Path) -> None:
        """The same store in another folder, atomically: hard links on the same disk, which take no room, else
        copies."""
        with self.saving(folder):
            pass

    @contextmanager
    def saving(self, folder: str | Path) -> Iterator[None]:
        """As `save`, in two steps: the store lies whole beside the folder while the block runs, and takes its place
        when the block ends well."""
        folder = Path(folder)
        self.kind.check_replaceable(folder)
        with write_folder_atomically(folder) as new:
            self.link_to(new)
            yield

    def link_to(self, folder: str | Path) -> None:
        """All files in a folder that is there, beside what else is there."""
        folder = Path(folder)
        for name, path in self.paths().items():
            (folder / name).parent.mkdir(exist_ok=True)
            if path.name == MANIFEST:
                (folder / name).write_bytes(path.read_bytes())  # its inode is what others lock
            else:
                link_or_copy(path, folder / name)

    def pack(self) -> dict[str, bytes]:
        """The bytes of all files, by their names: as large as the folder."""
        return {name: path.read_bytes() for name, path in self.paths().items()}

    @classmethod
    def unpack(cls, files: Mapping[str, bytes]) -> Self:
        """The store that `pack` gave the files of. They lie in a temporary folder for as long as it is used."""
        if outside := [name for name in files if not _is_inside(name)]:
            raise ValueError(f"Expected the files of a {cls.kind.what}, but one goes elsewhere: {outside[0]!r}.")
        held = HeldFolder.temporary()
        try:
            for name, data in files.items():
                (held.path / name).parent.mkdir(parents=True, exist_ok=True)
                (held.path / name).write_bytes(data)
            store = cls.open(held.path)
        except BaseException:
            held.close()
            raise
        weakref.finalize(store, held.close)
        return store


def _open_again(store: Any, path: Path) -> Any:
    _check_present(path, store.kind)
    return store.open(path)


def _check_present(path: Path, kind: StoreKind) -> None:
    if not path.is_dir():
        raise ValueError(
            f"Expected the {kind.what} in {path}, from which it was loaded, but the folder is there no more: large "
            "files stay where they are, and copies and pickles name the folder. Keep it for as long as the pipeline "
            "is used, or send the pipeline by nlp.to_disk or nlp.to_bytes while it is there."
        )


def _check_files(path: Path, manifest: dict[str, Any], kind: StoreKind, *, every: bool, progress: bool) -> None:
    """Compare sizes and digests of the files. ValueError names the first that is not the one that was written.

    every: also those that are remembered from another time.
    """
    parts = []
    for name, (size, digest) in manifest["files"].items():
        file, not_whole = path / name, f"{path} is not a whole {kind.what}"
        if not file.is_file():
            raise ValueError(f"{not_whole}: {name} is missing. {AGAIN}")
        if (found := file.stat().st_size) != size:
            raise ValueError(f"{not_whole}: expected {size:,} bytes in {name}, but it has {found:,}. {AGAIN}")
        parts.append(FilePart(file, digest, size))
    if (changed := find_changed(parts, every=every, progress=progress)) is not None:
        raise ValueError(
            f"{changed.file} is damaged, or belongs to another {kind.what}: its digest is not the manifest's. {AGAIN}"
        )


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


def is_count(value: Any, *, least: int = 0) -> bool:
    """Whether what a manifest says is a whole number of at least so much."""
    return type(value) is int and value >= least


def _has_files(manifest: dict[str, Any]) -> bool:
    """Whether "files" is what this module writes, all of them inside of the folder."""
    files = manifest["files"]
    sizes = [x for pair in files.values() for x in zip(pair, (int, str), strict=True)]
    return all(_is_inside(name) and name != MANIFEST for name in files) and all(type(x) is kind for x, kind in sizes)


def _is_inside(name: str) -> bool:
    return ".." not in Path(name).parts and not Path(name).is_absolute()
