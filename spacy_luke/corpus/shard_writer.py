"""Writing shards, whose files `corpus.shards` describes: blocks of examples as they come, all or none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..entity_vocab import EntityVocab
from ..stores.atomic import write_folder_atomically
from ..stores.names import NameList
from ..text.tokenizer import PieceTokenizer
from .shards import (
    SHARDS,
    Example,
    entity_vocab_sha256,
    piece_dtype,
    tokenizer_fingerprint,
)

# Arrays of a block, and the files that they are appended to.
_DTYPES = {"word_starts": "|b1", "entities": "<i4", "starts": "<i4", "ends": "<i4", "example_pages": "<i4"}
_STARTS = {"piece_starts": "pieces", "mention_starts": "entities"}

# pieces and the arrays of DTYPES, with the lengths "n_pieces" and "n_mentions" (N,)
ExampleBlock = dict[str, np.ndarray]


def make_block(examples: Sequence[Example]) -> ExampleBlock:
    """Arrays of examples one after the other."""
    join = {name: [getattr(example, name) for example in examples] for name in ("pieces", *list(_DTYPES)[:-1])}
    block = {name: np.concatenate(parts) if parts else np.zeros(0, np.int32) for name, parts in join.items()}
    block["example_pages"] = np.array([example.page for example in examples], np.int32)
    block["n_pieces"] = np.array([len(example.pieces) for example in examples], np.int64)
    block["n_mentions"] = np.array([len(example.entities) for example in examples], np.int64)
    return block


class ShardWriter:
    """`with ShardWriter(...) as writer`: blocks as they come, then `finish`. Only whole shards take the folder's
    place."""

    def __init__(self, output: Path, *, tokenizer: PieceTokenizer, vocab: EntityVocab, limits: dict[str, int]) -> None:
        SHARDS.check_replaceable(Path(output))
        self._whole = write_folder_atomically(Path(output))
        self._tokenizer, self._vocab, self._limits = tokenizer, vocab, limits
        self._dtypes = {"pieces": piece_dtype(len(tokenizer)), **_DTYPES, **dict.fromkeys(_STARTS, "<i8")}
        self._files: dict[str, BinaryIO] = {}
        self._sizes = dict.fromkeys(self._dtypes, 0)
        self._titles = NameList()
        self._page_ids: list[int] = []

    def __enter__(self) -> "ShardWriter":
        self._folder = self._whole.__enter__()
        for name in self._dtypes:
            self._files[name] = (self._folder / f"{name}.npy").open("wb")
            self._write_header(name)
        for name in _STARTS:
            self._append(name, np.zeros(1, np.int64))
        return self

    def __exit__(self, *error: Any) -> Any:
        for file in self._files.values():
            file.close()
        return self._whole.__exit__(*error)

    def write(self, block: ExampleBlock, pages: Sequence[tuple[str, int]]) -> None:
        """Examples and the pages that they are of: titles and rows; `example_pages` of the block counts these from
        0."""
        if len(block["pieces"]) and block["pieces"].max() >= len(self._tokenizer):
            raise ValueError(f"Expected pieces of {len(self._tokenizer):,} kinds, but got {block['pieces'].max()}.")
        for start, name in _STARTS.items():
            lengths = block["n_pieces" if name == "pieces" else "n_mentions"]
            self._append(start, np.cumsum(lengths) + self._sizes[name])
        for name in ("pieces", *_DTYPES):
            self._append(name, block[name] + len(self._titles) if name == "example_pages" else block[name])
        for title, row in pages:
            self._titles.append(title.replace("\n", " ").encode("utf8"))
            self._page_ids.append(row)

    def finish(self, *, counts: dict[str, Any], info: dict[str, Any]) -> None:
        """The rest of the files. counts: what was taken and left out, by its name. ValueError where there is no
        example."""
        examples = self._sizes["example_pages"]
        if not examples:
            raise ValueError(f"Expected text for at least one example, but there is none: {counts}.")
        for name, file in self._files.items():
            file.seek(0)
            self._write_header(name)
            file.close()
        np.save(self._folder / "page_ids.npy", np.array(self._page_ids, "<i4"))
        np.save(self._folder / "page_starts.npy", self._titles.starts().astype("<i8"))
        (self._folder / "pages.txt").write_bytes(self._titles.text)
        (self._folder / "tokenizer.json").write_bytes(self._tokenizer.to_json().encode("utf8"))
        (self._folder / "entity_vocab.json").write_bytes(self._vocab.to_json().encode("utf8"))
        values = {
            "tokenizer": tokenizer_fingerprint(self._tokenizer),
            "pieces": len(self._tokenizer),
            "entity_vocab": entity_vocab_sha256(self._vocab),
            "entities": len(self._vocab),
            **self._limits,
            "examples": examples,
            "pages": len(self._titles),
            "counts": counts,
            "info": info,
        }
        SHARDS.write_manifest(self._folder, values)

    def _append(self, name: str, values: np.ndarray) -> None:
        self._files[name].write(np.ascontiguousarray(values.astype(self._dtypes[name])).data)
        self._sizes[name] += len(values)

    def _write_header(self, name: str) -> None:
        """numpy leaves room in a header for any number of rows."""
        header = {"descr": self._dtypes[name], "fortran_order": False, "shape": (self._sizes[name],)}
        np.lib.format.write_array_header_1_0(self._files[name], header)
