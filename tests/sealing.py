"""Manifests that say something else, with digests that are right for what they say and for the files that are there."""

import json

from spacy_luke.stores.digests import digest_file
from spacy_luke.stores.folder import MANIFEST, write_sealed


def change_manifest(folder, **changes):
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf8"))
    del manifest["digest"]
    (folder / MANIFEST).unlink()  # it may be linked
    write_sealed(folder / MANIFEST, {**manifest, **changes})


def reseal(folder):
    """As if the files that are there had been written so."""
    names = json.loads((folder / MANIFEST).read_text(encoding="utf8"))["files"]
    change_manifest(
        folder, files={name: [(folder / name).stat().st_size, digest_file(folder / name)] for name in names}
    )
