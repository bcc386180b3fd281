"""Safetensors headers, shard indexes, tokenizers and configs that mean harm."""

import copy
import json
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.tiny import make_checkpoint

from .hostile import Attack, Make
from .hostile_archives import archive_attacks, convert, write_tiny

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    float("nan"),
    float("inf"),
    10**9,
    2**31,
    2**63,
    10**30,
    -(10**30),
    "",
    "768",
    "x" * 10**5,
]
ODD += [[], [1], {}, {"a": {"b": 1}}, [[[[]]]], "\x00", "\ud800", ["x"] * 10**5, {str(i): i for i in range(10**4)}]


def checkpoint_attacks() -> Iterator[Attack]:
    yield from archive_attacks()
    for name, header in _headers().items():
        yield Attack("safetensors headers", name, _header(header), refused=True)
    for name, index in _indexes().items():
        yield Attack("shard indexes", name, _index(index), refused=True)
    for name, change in _tokenizers().items():
        yield Attack("tokenizers", name, _changed("tokenizer.json", change))
    for i in range(120):
        yield Attack("configs", f"odd value {i}", _odd_config)
    for name in (
        "added_tokens.json",
        "special_tokens_map.json",
        "tokenizer_config.json",
        "entity_vocab.json",
        "metadata.json",
    ):
        for i in range(3):
            yield Attack("vocabularies", f"{name} {i}", _odd_file(name))


# ---- safetensors


def _headers() -> dict[str, bytes]:
    def of(value: Any, size: int = 64) -> bytes:
        text = json.dumps(value).encode()
        return struct.pack("<Q", len(text)) + text + bytes(size)

    one = {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]}
    changed = {
        "unknown dtype": {"dtype": "F99"},
        "negative shape": {"shape": [-2, -4]},
        "huge shape": {"shape": [2**62, 4]},
        "overflowing shape": {"shape": [2**63, 2**63]},
        "float shape": {"shape": [2.5, 4]},
        "wrong size": {"shape": [3, 4]},
        "offsets turned": {"data_offsets": [32, 0]},
        "offsets negative": {"data_offsets": [-32, 0]},
        "offsets outside": {"data_offsets": [0, 10**9]},
        "offsets huge": {"data_offsets": [0, 2**63]},
        "no offsets": {"data_offsets": None},
        "shape of text": {"shape": "x"},
        "very many dimensions": {"shape": [1] * 100_000},
    }
    found = {name: of({"a": {**one, **change}}) for name, change in changed.items()}
    found |= {
        "empty": b"",
        "short": b"\x05",
        "length of all": b"\xff" * 8,
        "length of 1 TB": struct.pack("<Q", 1 << 40) + b"{}",
        "length beyond": struct.pack("<Q", 5000) + b"{}",
        "length 0": struct.pack("<Q", 0),
        "no JSON": struct.pack("<Q", 4) + b"abcd",
        "a list": of([1]),
        "deep": struct.pack("<Q", 200_000) + b"[" * 200_000,
        "no UTF-8": struct.pack("<Q", 4) + b'"\xff\xfe"',
        "a hole": of({"a": one, "b": {**one, "data_offsets": [40, 72]}}, 72),
        "one over another": of({"a": one, "b": {**one, "data_offsets": [16, 48]}}, 48),
        "twice": struct.pack("<Q", 30) + b'{"a":1,"a":{"dtype":"F32"}}   ',
        "metadata of lists": of({"__metadata__": {"a": []}, "a": one}, 32),
        "nothing in it": of({}, 0),
        "other tensors": of({"luke.x": one}, 32),
        "100,000 tensors": of(
            {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(100_000)}, 0
        ),
        "name of 1 MB": of({"n" * 10**6: one}, 32),
    }
    return found


def _header(data: bytes) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        (write_tiny(folder / "in") / "model.safetensors").write_bytes(data)
        return convert("in")

    return make


def _indexes() -> dict[str, Any]:
    name = "luke.embeddings.word_embeddings.weight"
    return {
        "path up": {"weight_map": {name: "../../../etc/passwd"}},
        "absolute path": {"weight_map": {name: "/etc/passwd"}},
        "itself": {"weight_map": {name: "model.safetensors.index.json"}},
        "a folder": {"weight_map": {name: "."}},
        "not there": {"weight_map": {name: "absent.safetensors"}},
        "a number": {"weight_map": {name: 3}},
        "a list": {"weight_map": {name: ["part.safetensors"]}},
        "map is a list": {"weight_map": [name]},
        "no map": {"metadata": {}},
        "map is null": {"weight_map": None},
        "empty map": {"weight_map": {}},
        "a NUL": {"weight_map": {name: "a\x00b"}},
        "very long": {"weight_map": {name: "x" * 10_000}},
        "100,000 names": {"weight_map": {f"t{i}": "part.safetensors" for i in range(100_000)}},
        "wrong part": {"weight_map": {name: "part.safetensors"}},
        "a device": {"weight_map": {name: "/dev/zero"}},
        "deep": "[" * 100_000,
        "text": "x",
    }


def _index(value: Any) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        place = write_tiny(folder / "in")
        (place / "model.safetensors").unlink()
        save_file({"a": torch.zeros(2)}, place / "part.safetensors")
        text = value if isinstance(value, str) else json.dumps(value)
        (place / "model.safetensors.index.json").write_text(text, encoding="utf8")
        return convert("in")

    return make


# ---- tokenizers, configs, vocabularies

Change = Callable[[dict[str, Any]], Any]


def _tokenizers() -> dict[str, Change]:
    def pattern(regex: str) -> Change:
        split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
        return lambda data: {**data, "pre_tokenizer": split}

    def replace(regex: str, content: str) -> Change:
        return lambda data: {**data, "normalizer": {"type": "Replace", "pattern": {"Regex": regex}, "content": content}}

    def deep(depth: int) -> Change:
        def change(data: dict[str, Any]) -> Any:
            text = '{"type": "Sequence", "normalizers": [' * depth + "]}" * depth
            return json.dumps(data).replace('"normalizer": null', f'"normalizer": {text}')

        return change

    def model(**values: Any) -> Change:
        return lambda data: {**data, "model": {**data["model"], **values}}

    def vocab(**values: int) -> Change:
        return lambda data: {**data, "model": {**data["model"], "vocab": {**data["model"]["vocab"], **values}}}

    def token(**values: Any) -> Change:
        added = {"id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        return lambda data: {**data, "added_tokens": [*data["added_tokens"], {**added, "special": True, **values}]}

    return {
        "regex that backtracks": pattern("(a+)+$"),
        "regex that backtracks, more": pattern("(.*)*(.*)*(.*)*x"),
        "regex of 1 MB": pattern("(a|b)" * 200_000),
        "regex deep": pattern("(" * 50_000 + ")" * 50_000),
        "no regex": pattern("("),
        "empty regex": pattern(""),
        "regex with counts": pattern("((a{1,1000}){1,1000}){1,1000}"),
        "every character is a page": replace(".", "x" * 100_000),
        "nothing becomes something": replace("", "y"),
        "deep, 100": deep(100),
        "deep, 100,000": deep(100_000),
        "id of a billion": vocab(zzz=10**9),
        "id of 2**32 - 1": vocab(zzz=2**32 - 1),
        "negative id": vocab(zzz=-1),
        "two of an id": vocab(zzz=5),
        "no vocabulary": model(vocab={}),
        "no merges": model(merges=[]),
        "merges of nothing": model(merges=["x y", "q"]),
        "unknown model": model(type="Evil"),
        "unknown token": model(unk_token="absent"),
        "added, empty": token(content="", id=999),
        "added, id of a billion": token(content="zz", id=10**9),
        "added, another id": token(content="<s>", id=77),
        "100,000 added": lambda data: {**data, "added_tokens": [*data["added_tokens"], *({**data["added_tokens"][0], "content": f"t{i}", "id": 10**4 + i} for i in range(100_000))]},  # noqa: E501
        "no added": lambda data: {**data, "added_tokens": []},
        "truncates": lambda data: {**data, "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}},  # noqa: E501
        "pads": lambda data: {**data, "padding": {"strategy": {"Fixed": 10**6}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"}},  # noqa: E501
        "charsmap": lambda data: {**data, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}},
        "charsmap that lies": lambda data: {**data, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////wAAAAA="}},  # noqa: E501
        "a list": lambda data: [data],
        "null": lambda data: None,
        "text": lambda data: "x" * 100,
        "deep JSON": lambda data: "[" * 200_000 + "]" * 200_000,
        "no UTF-8": lambda data: b"\xff\xfe{}",
        "half": lambda data: json.dumps(data)[:2000],
    }  # fmt: skip


def _changed(file: str, change: Change) -> Make:
    def make(folder: Path, rng: random.Random) -> Any:
        place = write_tiny(folder / "in")
        data = json.loads(json.loads(make_checkpoint().tokenizer.to_json())["backend"])
        for name in (
            "vocab.json",
            "merges.txt",
            "added_tokens.json",
            "special_tokens_map.json",
            "tokenizer_config.json",
        ):
            (place / name).unlink()
        _put(place / file, change(data))
        (folder / "text.txt").write_text(
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! Ada lived in London.", encoding="utf8"
        )

        def read_and_use(inputs: Path) -> None:
            from spacy.cli._util import app

            app(["luke", "convert", "in", "out"], prog_name="spacy", standalone_mode=False)
            app(["luke", "annotate", "out", "text.txt"], prog_name="spacy", standalone_mode=True)

        return read_and_use

    return make


def _put(path: Path, value: Any) -> None:
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_text(text, encoding="utf8", errors="surrogatepass")


def _odd_config(folder: Path, rng: random.Random) -> Sequence[str]:
    """One or two settings of config.json are something else."""
    place = write_tiny(folder / "in")
    data = json.loads((place / "config.json").read_text("utf8"))
    for key in rng.sample(sorted(data), rng.choice([1, 1, 2])):
        data[key] = copy.deepcopy(rng.choice(ODD))
    if rng.random() < 0.1:
        data = rng.choice([[], "x", None, {}, "[" * 100_000])
    _put(place / "config.json", data)
    return convert("in")


def _odd_file(name: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        place = write_tiny(folder / "in")
        rows: list[tuple[Any, ...]] = [("x", -1), ("y", 10**12), ("\x00", 5), ("z", None), ("[PAD]", 7), ("", 1)]
        odd = [*ODD, dict(rows), [list(row) for row in rows], "[" * 100_000, b"\xff\xff", {"entity_vocab_size": "x"}]
        _put(place / name, copy.deepcopy(rng.choice(odd)))
        return convert("in")

    return make
