"""Data that mean harm: JSON in every format, columns, XML, wikitext, names, rows of knowledge bases, graphs, vectors,
configs."""

import gzip
import io
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spacy_luke.readers.column_layouts import COLUMN_LAYOUTS
from spacy_luke.readers.datasets.table import DATASETS

from .hostile import Attack, Make

FORMAT_NAMES = sorted([*COLUMN_LAYOUTS, *DATASETS, "jsonl"])
ENTITY = '<!DOCTYPE x [<!ENTITY a "ha">%s]>'
LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)).replace("&a0;", "ha")
XML: dict[str, str] = {
    "billion laughs": ENTITY % LAUGHS + "<x>&a11;</x>",
    "quadratic": f'<!DOCTYPE x [<!ENTITY a "{"h" * 100_000}">]><x>{"&a;" * 100_000}</x>',
    "outer file": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    "outer address": '<!DOCTYPE x [<!ENTITY a SYSTEM "http://127.0.0.1:9/x">]><x>&a;</x>',
    "outer parameters": '<!DOCTYPE x [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><x/>',
    "outer DTD": '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>',
    "itself": '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]><x>&a;</x>',
    "deep": "<x>" * 100_000 + "</x>" * 100_000,
    "cut": "<mediawiki><page><title>x",
    "a large attribute": f'<x a="{"y" * 10**7}"/>',
    "many attributes": "<x " + " ".join(f'a{i}="1"' for i in range(50_000)) + "/>",
    "characters that are none": "<x>\x00\x01\x02</x>",
    "a wrong encoding": '<?xml version="1.0" encoding="utf-16"?><x/>',
    "unknown encoding": '<?xml version="1.0" encoding="evil"?><x/>',
    "empty": "",
    "no XML": "x" * 1000,
}
WIKI: dict[str, str] = {
    "braces": "{{" * 50_000,
    "braces closed": "{{" * 20_000 + "}}" * 20_000,
    "links": "[[" * 50_000,
    "links closed": "[[a|" * 20_000 + "]]" * 20_000,
    "bars": "[[a" + "|b" * 50_000 + "]]",
    "tables": "{|" * 20_000 + "|}" * 10_000,
    "references": "<ref>" * 50_000,
    "comments": "<!--" * 50_000,
    "quotes": "'" * 200_000,
    "headings": "=" * 200_000,
    "nowiki": "<nowiki>" * 50_000 + "[[a]]",
    "urls": "[http://" * 50_000,
    "files": "[[File:x|" * 20_000 + "]]" * 20_000,
    "lists": "*" * 200_000 + "\n" + ":" * 100_000,
    "one line": "word " * 400_000,
    "blanks": " " * 2_000_000 + "x",
    "new lines": "\n" * 1_000_000,
    "mixed": "{{[[<ref>'''{|" * 10_000,
    "odd characters": "\u202e\u0301\ud7ff\ufffe" * 20_000 + "[[\u202e|\u0301]]",
}
VALUES: list[str] = [
    "null",
    "-1",
    "1e999",
    "NaN",
    "10" * 200,
    '"x"',
    "[]",
    "{}",
    "true",
    '"\\ud800"',
    '"\\u0000"',
    "[[[]]]",
    "1.5",
]


def data_attacks() -> Iterator[Attack]:
    for name in FORMAT_NAMES:
        yield Attack("JSON and columns", f"deep, {name}", _corpus(name, "[" * 200_000), refused=True)
        for i in range(4):
            yield Attack("JSON and columns", f"{name} {i}", _random_corpus(name))
    for i in range(24):
        yield Attack("JSON lines", f"mutated sample {i}", _mutated_sample)
    for name, text in XML.items():
        for command in ("build-corpus", "build-mentions", "build-kb", "wned", "aida"):
            refused = name not in ("deep", "a large attribute", "many attributes")
            yield Attack("XML", f"{name}, {command}", _xml(text, command), refused=refused)
    for name, text in WIKI.items():
        for command in ("build-corpus", "build-mentions"):
            yield Attack("wikitext", f"{name}, {command}", _wiki(text, command))
    for i, row in enumerate(_kb_rows()):
        yield Attack("rows of knowledge bases", f"row {i}", _file("x.jsonl", row, "build-kb"))
    for i, text in enumerate(_tables()):
        yield Attack("names", f"table {i}", _file("x.tsv", text, "build-mentions"))
        yield Attack("names", f"table {i} to a kb", _file("x.tsv", text, "build-kb"))
    for name, data in _arrays().items():
        yield Attack("arrays", name, _array(data), refused=name != "names apart")
    for i, text in enumerate(_triples()):
        yield Attack("graphs", f"triples {i}", _graph(text))
    for name, text in _configs().items():
        yield Attack("configs of training", name, _config(text), refused=True)


# ---- corpora


def _corpus(format: str, text: Any) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        data = text if isinstance(text, bytes) else text.encode("utf8", "surrogatepass")
        (folder / "x.txt").write_bytes(data)
        return ["corpus", "x.txt", "out.spacy", "--format", format]

    return make


def _random_corpus(format: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        kind = rng.choice(["values", "bytes", "keys", "columns", "long", "empty"])
        if kind == "values":
            text = rng.choice(["%s", "[%s]", "[[%s]]", "[{}, %s]", '{"data": %s}', '{"text": %s}']) % rng.choice(VALUES)
        elif kind == "keys":
            keys = ("text", "data", "tokens", "sentences", "entities", "paragraphs", "sents", "labels", "id", "spans")
            text = json.dumps({key: json.loads(rng.choice(VALUES[:2] + VALUES[5:9])) for key in keys})
            text = rng.choice([text, f"[{text}]"])
        elif kind == "columns":
            cell = ["x", "B-PER", "I-", "-", "\u0301", "\x00", "1-2", "8.1", "#", "", "O" * 1000, "(1-x", "-DOCSTART-"]
            text = "\n".join("\t".join(rng.choices(cell, k=rng.randint(0, 12))) for _ in range(60))
        elif kind == "long":
            text = "x\tO\n" * 200_000 if rng.random() < 0.5 else '{"text": "' + "x" * 5_000_000 + '"}'
        else:
            text = ""
        return _corpus(format, os.urandom(5000) if kind == "bytes" else text)(folder, rng)

    return make


def _mutated_sample(folder: Path, rng: random.Random) -> Sequence[str]:
    """A line of the sample, with something else in one place."""
    from .inputs import ROOT

    lines = (ROOT / "assets" / "sample" / "dev.jsonl").read_text("utf8").splitlines()
    item = json.loads(rng.choice(lines))
    places = list(_places(item))
    holder, key = rng.choice(places)
    odd = [
        None,
        -1,
        10**9,
        10**30,
        1.5,
        "",
        "x",
        [],
        {},
        [[]],
        True,
        "\x00",
        "\ud800",
        float("nan"),
        [[0, 1, "A"]] * 10_000,
    ]
    holder[key] = rng.choice(odd)
    (folder / "x.jsonl").write_text(json.dumps(item) + "\n", encoding="utf8")
    return ["corpus", "x.jsonl", "out.spacy", "--format", "jsonl", "--spans-key", "sc"]


def _places(value: Any) -> Iterator[Any]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _places(inner)


# ---- XML and wikitext


def _xml(text: str, command: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        (folder / "x.xml").write_bytes(text.encode("utf8"))
        if command == "aida":
            (folder / "x.conll").write_text("-DOCSTART- (1)\n\nEU NNP B-NP B-ORG\n", encoding="utf8")
            return ["corpus", "x.conll", "out.spacy", "--format", "aida", "--links", "x.xml"]
        if command == "wned":
            return ["corpus", "x.xml", "out.spacy", "--format", "wned"]
        return [command, "x.xml", "out", *(["--workers", "1"] if command == "build-corpus" else [])]

    return make


def _wiki(text: str, command: str) -> Make:
    from xml.sax.saxutils import escape

    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        page = (
            f"<page><title>A</title><ns>0</ns><revision><text>[[B]] {escape(text)} [[C|d]] is.</text></revision></page>"
        )
        (folder / "x.xml").write_text(f'<mediawiki xml:lang="en">{page}</mediawiki>', encoding="utf8")
        return [command, "x.xml", "out", *(["--workers", "1"] if command == "build-corpus" else [])]

    return make


# ---- names, rows, arrays, graphs


def _file(name: str, text: str, command: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        (folder / name).write_bytes(text.encode("utf8", "surrogatepass"))
        return [command, name, "out"]

    return make


def _kb_rows() -> list[str]:
    good = '{"id": "Q1", "names": ["a"]}\n'
    odd = ['{"id": %s, "names": ["a"]}', '{"id": "Q2", "names": [%s]}', '{"id": "Q2", "names": %s}']
    odd += [
        '{"id": "Q2", "names": ["a"], "KEY": %s}'.replace("KEY", key)
        for key in ("count", "prior", "description", "person", "redirects")
    ]
    rows = [good + line % value + "\n" for line in odd for value in VALUES[:: 2 if "names" in line else 3]]
    rows += [
        "[" * 200_000,
        good * 2,
        "",
        "x",
        '{"id": "Q1", "names": ["' + "n" * 10**6 + '"]}',
        '{"id": "a\\nb", "names": ["c\\nd"]}',
    ]
    return rows


def _tables() -> list[str]:
    head = "name\tentity\tcount\toccurrences\n"
    rows = [
        "a\tQ1\t1e999\t2",
        "a\tQ1\t-5\t2",
        "a\tQ1\tnan\t2",
        "a\tQ1\t" + "9" * 400 + "\t1",
        "a\x00b\tQ1\t1\t1",
        "\tQ1\t1\t1",
    ]
    rows += [
        "a\t\t1\t1",
        "a\tQ1",
        "a\tQ1\t1\t1\t1\t1",
        "a" * 10**6 + "\tQ1\t1\t1",
        '"' * 200_000 + "\tQ1\t1\t1",
        "a\tQ1\t5\t1",
    ]
    rows += [
        "\u202e\u0301\tQ1\t1\t1",
        "a\ud800\tQ1\t1\t1",
        "a\rb\tQ1\t1\t1",
        " \tQ1\t1\t1",
        "a\tQ1\t0x10\t1",
        "a\tQ1\t1.5\t2",
    ]
    return [head + row + "\n" for row in rows] + ["", "\n" * 1000, head, "x" * 10**6, "a,b\n" * 1000]


def _arrays() -> dict[str, bytes]:
    def header(text: str) -> bytes:
        data = text.encode("latin1")
        return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data + bytes(64)

    objects = io.BytesIO()
    np.save(objects, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    whole = io.BytesIO()
    np.save(whole, np.ones((3, 2), np.float32))
    return {
        "objects": objects.getvalue(),
        "shape of 10**12": header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 4)}\n"),
        "negative shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, 4)}\n"),
        "a call": header(
            "{'descr': __import__('os').system('touch ../canary5'), 'fortran_order': False, 'shape': (4, 4)}\n"
        ),
        "deep": header("(" * 5000 + ")" * 5000 + "\n"),
        "no dict": header("3\n"),
        "open quote": header("{'descr': '<f4\n"),
        "text": header("{'descr': '<U8', 'fortran_order': False, 'shape': (2, 1)}\n"),
        "cut": whole.getvalue()[:-3],
        "no version": b"\x93NUMPY\x09\x09" + bytes(100),
        "names apart": whole.getvalue(),
        "zip": b"PK\x03\x04" + bytes(100),
    }


def _array(data: bytes) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        (folder / "x.npy").write_bytes(data)
        (folder / "names.txt").write_text("a\nb\nc\n")
        return ["build-vectors", "x.npy", "out", "--names", "names.txt"]

    return make


def _triples() -> list[str]:
    return ["", "a\tb\n", "a\tb\tc\td\n", "a\x00\tb\tc\n", "\t\t\n", "\u202e\tr\t\u0301\n", "x" * 10**6 + "\tr\ty\n", "3\n0 1 2\n", "-1\n0\t0\t0\n"]  # fmt: skip  # noqa: E501


def _graph(text: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        packed = rng.random() < 0.3
        data = text.encode("utf8")
        (folder / ("x.tsv.gz" if packed else "x.tsv")).write_bytes(gzip.compress(data) if packed else data)
        name = "x.tsv.gz" if packed else "x.tsv"
        return ["train-kge", name, "out", "--size", "4", "--epochs", "1", "--batch-size", "4", "--negatives", "2"]

    return make


# ---- configs of training


def _configs() -> dict[str, str]:
    return {
        "empty": "",
        "no config": "x",
        "itself": "[a]\nb = ${a.b}\n",
        "in a circle": "[a]\nb = ${c.d}\n[c]\nd = ${a.b}\n",
        "a bomb": "[v]\na0 = \"ha\"\n" + "".join(f'a{i} = "{f"${{v.a{i - 1}}}" * 10}"\n' for i in range(1, 9)),
        "deep": "[a]\nb = " + "[" * 50_000 + "]" * 50_000 + "\n",
        "a function of others": '[training]\n[training.x]\n@misc = "spacy.nothing.v1"\n[nlp]\nlang = "en"\npipeline = '
            '[]\n',
        "numbers": "[nlp]\nlang = 3\npipeline = 5\n",
        "a NUL": "[nlp]\nlang = \"e\x00n\"\npipeline = []\n",
        "a language that is none": "[nlp]\nlang = \"../../x\"\npipeline = []\n",
        "many sections": "".join(f"[a{i}]\nb = 1\n" for i in range(20_000)),
        "deep sections": "".join(f"[{'.'.join('a' * n)}]\n" for n in range(1, 400)),
        "a billion steps in batches of text": '[nlp]\nlang = "en"\npipeline = ["luke_ner"]\n[training]\nmax_steps = '
            '"x"\n',
    }  # fmt: skip


def _config(text: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Sequence[str]:
        (folder / "x.cfg").write_text(text, encoding="utf8")
        return [rng.choice(["train", "pretrain", "pretrain-ernie"]), "x.cfg", "--output", "out"]

    return make
