"""The folder of a knowledge base: what is in it, and checking that it is whole.

    manifest.json              {"format", "version", "segments": [{"entities", "names", "candidates"}, ...],
                               "files": {file: [bytes, BLAKE2b]}, "info"}
    0/names                    a store of names (see `linking.store`): names, ids of entities, candidates with priors
    0/counts.npy               uint32 (E,): links to each entity; E: the ids of the segment's store, by their number in it
    0/persons.npy              uint8 (E,): 1 for a person
    0/descriptions.txt         UTF-8, a line a description, in no special order
    0/description_starts.npy   int64 (E,): the byte where the description of each begins, -1 where there is none
    0/redirects.trie           further ids of entities (marisa-trie)
    0/redirect_numbers.npy     uint32 (R,): the numbers of their entities in the store, 2 ** 32 - 1 for none
    0/loose_hashes.npy         uint64 (L,), sorted: 8-byte BLAKE2b digests of names without case and punctuation
    0/loose_names.npy          uint32 (L,): their numbers in the store; of one digest the most frequent name first
    1/...                      entities and names that were added later; further
    1/rows.npy                 uint32 (E,): the row of each id; new ones follow those of the segments before
    vectors/                   vectors of the entities (see `knowledge.vectors`), where there are some

A row of the first segment is the entity's number in its store.
"""

import json
from pathlib import Path
from typing import Any, Dict

from ..atomic import link_or_copy
from ..knowledge.manifest import MANIFEST
from ..knowledge.manifest import read_manifest as read_folder_manifest
from ..knowledge.writer import changed_file, digest_file

FORMAT = "spacy_luke knowledge base"
VERSION = 1
VECTORS = "vectors"
NONE = 2**32 - 1
AGAIN = "Copy the whole folder again, or build it again."
BUILD = "Build one with `python -m spacy luke build-kb`."
FILES = (
    "names",
    "counts.npy",
    "persons.npy",
    "descriptions.txt",
    "description_starts.npy",
    "redirects.trie",
    "redirect_numbers.npy",
    "loose_hashes.npy",
    "loose_names.npy",
)


def read_manifest(path: Path) -> Dict[str, Any]:
    """The manifest of a knowledge base. ValueError for what is none, one of another version, or not whole."""
    manifest = read_folder_manifest(
        path, what="knowledge base", form=FORMAT, version=VERSION, is_whole=_is_whole, build=BUILD, again=AGAIN
    )
    for name, (size, _) in manifest["files"].items():
        file = path / name
        if not file.is_file():
            raise ValueError(f"{path} is not a whole knowledge base: {name} is missing. {AGAIN}")
        if file.stat().st_size != size:
            raise ValueError(
                f"{path} is not a whole knowledge base: expected {size:,} bytes in {name}, but it has "
                f"{file.stat().st_size:,}. {AGAIN}"
            )
    return manifest


def write_manifest(path: Path, manifest: Dict[str, Any]) -> None:
    """The manifest of the files that are in the folder; digests that it has already are not made again."""
    known = manifest.get("files", {})
    names = [
        f"{segment}/{name}"
        for segment in range(len(manifest["segments"]))
        for name in (FILES if not segment else (*FILES, "rows.npy"))
    ]
    files = {name: known.get(name) or [(path / name).stat().st_size, digest_file(path / name)] for name in names}
    whole = {"format": FORMAT, "version": VERSION, **manifest, "files": files}
    (path / MANIFEST).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf8")


def verify_files(path: Path, manifest: Dict[str, Any], *, progress: bool = False) -> None:
    """Read all files. ValueError names the first whose checksum is not the manifest's."""
    if (name := changed_file(path, manifest["files"], progress=progress)) is not None:
        raise ValueError(
            f"{path / name} is damaged, or belongs to another knowledge base: its checksum is not the manifest's. {AGAIN}"
        )


def copy_files(path: Path, manifest: Dict[str, Any], folder: Path) -> None:
    """All files but the vectors to another folder: hard links on the same disk, which take no room, else copies."""
    for name in [*manifest["files"], MANIFEST]:
        (folder / name).parent.mkdir(exist_ok=True)
        link_or_copy(path / name, folder / name)


def _is_whole(manifest: Dict[str, Any]) -> bool:
    try:
        counts = [segment[what] for segment in manifest["segments"] for what in ("entities", "names", "candidates")]
        files = [x for pair in manifest["files"].values() for x in zip(pair, (int, str), strict=True)]
        wanted = {f"{segment}/{name}" for segment in range(len(manifest["segments"])) for name in FILES}
        return (
            bool(manifest["segments"])
            and all(type(count) is int and count >= 0 for count in counts)
            and all(type(x) is kind for x, kind in files)
            and wanted <= set(manifest["files"])
            and all(".." not in Path(name).parts and not Path(name).is_absolute() for name in manifest["files"])
            and isinstance(manifest["info"], dict)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
