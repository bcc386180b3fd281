"""The folder of a knowledge base: what is in it.

    manifest.json              {"segments": [{"entities", "names", "candidates"}, ...], "info"}, and what all manifests
                               have (see `stores.folder`)
    0/names                    a store of names (see `aliases.file`): names, ids of entities, candidates with priors
    0/counts.npy               uint32 (E,): links to each entity; E: the ids of the segment's store, by number
    0/persons.npy              uint8 (E,): 1 for a person
    0/descriptions.txt         UTF-8, a line a description, in no special order
    0/description_starts.npy   int64 (E,): the byte where the description of each begins, -1 where there is none
    0/about.txt                UTF-8, a line an entity: title, Wikidata id, address and types (see `kb.record`)
    0/about_starts.npy         int64 (E,): as description_starts.npy; older knowledge bases lack both
    0/totals.npy               float32 (N,): by the numbers of names, what the priors are shares of, links mostly;
                               0 where they are none; older knowledge bases lack it
    0/redirects.trie           further ids of entities (see `aliases.trie`)
    0/redirect_numbers.npy     uint32 (R,): the numbers of their entities in the store, 2 ** 32 - 1 for none
    0/loose_hashes.npy         uint64 (L,), sorted: 8-byte BLAKE2b digests of names without case and punctuation
    0/loose_names.npy          uint32 (L,): their numbers in the store; of one digest the most frequent name first
    1/...                      entities and names that were added later; further
    1/rows.npy                 uint32 (E,): the row of each id; new ones follow those of the segments before
    vectors/                   vectors of the entities (see `vectors.writer`), where there are some

A row of the first segment is the entity's number in its store.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..stores.folder import StoreKind, is_count

VECTORS = "vectors"
NONE = 2**32 - 1
_FILES = (
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
_NEWER = ("about.txt", "about_starts.npy", "totals.npy")  # which older knowledge bases lack


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """The manifest of the files that are in the folder; digests that it has already are not made again."""
    names = [
        f"{segment}/{name}"
        for segment in range(len(manifest["segments"]))
        for name in (_FILES if not segment else (*_FILES, "rows.npy"))
    ]
    names += [
        f"{segment}/{name}"
        for segment in range(len(manifest["segments"]))
        for name in _NEWER
        if (path / str(segment) / name).is_file()
    ]
    values = {key: manifest[key] for key in ("segments", "info")}
    KB.write_manifest(path, values, names=names, known=manifest.get("files", {}))


def _is_whole(manifest: dict[str, Any]) -> bool:
    counts = [segment[what] for segment in manifest["segments"] for what in ("entities", "names", "candidates")]
    wanted = {f"{segment}/{name}" for segment in range(len(manifest["segments"])) for name in _FILES}
    return (
        bool(manifest["segments"])
        and all(map(is_count, counts))
        and wanted <= set(manifest["files"])
        and isinstance(manifest["info"], dict)
    )


KB = StoreKind(
    what="knowledge base",
    many="a knowledge base",
    form="spacy_luke knowledge base",
    build="Build one with `python -m spacy luke build-kb`.",
    is_whole=_is_whole,
)
