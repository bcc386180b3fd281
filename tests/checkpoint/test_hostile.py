"""Configs, indexes, vocabularies and archives of strangers: whatever they say is refused in our words, or read; at
once.

Each child has little time and memory, so that work that a number in a file asks for is seen.
"""

import io
import json
import os
import resource
import signal
import tarfile
import traceback
import warnings

import pytest
import torch

from spacy_luke.checkpoint import files, read_checkpoint
from spacy_luke.checkpoint.ernie import CONFIG as ERNIE_CONFIG
from spacy_luke.checkpoint.ernie import is_ernie, read_ernie, write_ernie
from tests.checkpoint.small import CONFIG, make_small_luke, write_small
from tests.tiny import make_ernie

SECONDS = 20
BYTES = 4 << 30  # more than what is mapped before
NESTED = "[" * 100_000 + "]" * 100_000
ODD = [
    "null", "true", "-1", "0", "1", "1e9", "NaN", "Infinity", "-0.5", "1000000000", "9223372036854775808", "1" + "0" * 30,  # noqa: E501
    '"768"', '"x"', '""', "[]", "[1]", '["LukeModel"]', "[[]]", "{}", '{"a": 1}', '{"0": {}}', NESTED,
]  # fmt: skip
# What would be taken before, and must not.
REFUSED = {
    "layer_norm_eps": ["-1", "NaN", "1e9", '"768"', "0", "true", "1"],
    "hidden_dropout_prob": ["1e9", "-0.5", "NaN", '"x"', "true", "1"],
    "attention_probs_dropout_prob": ["1e9", "Infinity"],
    "initializer_range": ["NaN", "-1", "1e9", "true"],
    "use_entity_aware_attention": ['"x"', "1", "0", "[]"],
    "num_hidden_layers": ["1000000000", "9223372036854775808", "1" + "0" * 30, "true"],
    "architectures": ["true", "[[]]", "1", '"x"'],
    "type_vocab_size": ["true", "9223372036854775808"],
    "pad_token_id": ["true", "-1", "1000000000"],
}


def in_child(path, function):
    """What comes of function() in a child with limits: "read", "refused" with the message, or what went wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's threads do nothing here
        child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (BYTES + _mapped(), resource.RLIM_INFINITY))
        report = []
        for case, read in function():
            path.write_text(json.dumps([*report, [case, "ended"]]))
            signal.alarm(SECONDS)
            try:
                read()
                report.append([case, "read"])
            except ValueError as error:
                kind = "refused" if type(error) is ValueError and len(str(error)) > 20 else repr(error)
                report.append([case, kind])
            except BaseException:
                report.append([case, traceback.format_exc()[-500:]])
        path.write_text(json.dumps(report))
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    report = json.loads(path.read_text())
    assert status == 0, report[-1][0][:200]
    return report


def _mapped():
    with open("/proc/self/statm", encoding="utf8") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def replaced(text, key, value):
    """The JSON object with the text `value` in place of one value."""
    return json.dumps({**json.loads(text), key: "@@"}).replace('"@@"', value)


def odd_values(file, read):
    """For in_child: each key of the object in a file, and each odd value in its place."""
    text = file.read_text(encoding="utf8")

    def cases():
        for key in [*json.loads(text), "id2label", "model_type", "position_embedding_type", "layer_types", "fusion"]:
            for value in ODD:
                file.write_text(replaced(text, key, value), encoding="utf8")
                yield f"{key}: {value[:40]}", read
        for whole in ("[]", "null", '"x"', NESTED, '{"a": ' * 50_000 + "1" + "}" * 50_000, "\x00", ""):
            file.write_text(whole, encoding="utf8")
            yield f"all: {whole[:40]}", read
        file.write_bytes(b"\xff\xfe\x00")
        yield "all: no UTF-8", read

    return cases


def check(report, *, least):
    assert [line for line in report if line[1] not in ("read", "refused")] == []
    assert len(report) >= least


linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits are Linux's")


@pytest.mark.slow
@linux
@pytest.mark.parametrize("entities", ["all", "special"])
def test_odd_configs(tmp_path, entities):
    data, tensors = make_small_luke(architectures=["LukeForEntitySpanClassification"])
    tensors = {name: tensor for name, tensor in tensors.items() if name.startswith("luke.")}
    tensors.update({"classifier.weight": torch.zeros(3, 24), "classifier.bias": torch.zeros(3)})
    labels = {"0": "NIL", "1": "PER", "2": "LOC"}
    extra = {
        "id2label": labels,
        "hidden_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "attention_probs_dropout_prob": 0.1,
    }
    folder = write_small(tmp_path / "luke", {**data, **extra}, tensors)
    report = in_child(
        tmp_path / "report", odd_values(folder / "config.json", lambda: read_checkpoint(folder, entities=entities))
    )
    check(report, least=400)
    found = dict(map(tuple, report))
    wanted = [f"{key}: {value[:40]}" for key, values in REFUSED.items() for value in values]
    assert [case for case in wanted if found[case] != "refused"] == []


@pytest.mark.parametrize("number", [11, 9999])
def test_positions_that_leave_no_window(tmp_path, number):
    data, tensors = make_small_luke()
    folder = write_small(tmp_path / "luke", {**data, "pad_token_id": number}, tensors)
    message = f"'pad_token_id' as a whole number up to 10, .* 'max_position_embeddings' is 12, but it gives {number}"
    with pytest.raises(ValueError, match=message):
        read_checkpoint(folder)
    assert read_checkpoint(write_small(folder, {**data, "pad_token_id": 10}, tensors)).config.max_window == 1


@linux
@pytest.mark.slow
def test_odd_configs_of_plain_models(tmp_path):
    data, tensors = make_small_luke()
    words = {name.removeprefix("luke."): x for name, x in tensors.items() if "entit" not in name and "2" not in name}
    words = {name: x for name, x in words.items() if not name.startswith("lm_head")}
    folder = write_small(tmp_path / "bert", {**data, "model_type": "bert"}, words)
    report = in_child(tmp_path / "report", odd_values(folder / "config.json", lambda: read_checkpoint(folder)))
    check(report, least=300)
    folder = write_small(folder, {**data, "model_type": "bert"}, words)
    report = in_child(tmp_path / "report", odd_values(folder / "config.json", lambda: read_ernie(folder)))
    check(report, least=300)


@linux
@pytest.mark.slow
def test_odd_configs_of_ernie(tmp_path):
    write_ernie(make_ernie(), tmp_path / "ernie")
    read = lambda: read_ernie(tmp_path / "ernie")  # noqa: E731
    report = in_child(tmp_path / "report", odd_values(tmp_path / "ernie" / ERNIE_CONFIG, read))
    check(report, least=300)


@linux
def test_odd_metadata_of_archives(tmp_path):
    data, tensors = make_small_luke()
    config = {key: value for key, value in CONFIG.items() if key not in ("model_type", "architectures")}
    folder = write_small(tmp_path / "luke", data, {n.removeprefix("luke."): x for n, x in tensors.items()})
    (folder / "config.json").unlink()
    text = json.dumps({**config, "bert_model_name": "roberta-base"})

    def cases():
        for key in json.loads(text):
            for value in ODD:
                (folder / "metadata.json").write_text('{"model_config": ' + replaced(text, key, value) + "}")
                yield f"{key}: {value[:40]}", lambda: read_checkpoint(folder)
        for value in ODD:
            (folder / "metadata.json").write_text('{"model_config": ' + value + "}")
            yield f"model_config: {value[:40]}", lambda: read_checkpoint(folder)

    check(in_child(tmp_path / "report", cases), least=200)


@linux
def test_odd_allennlp_models(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    embedder = {"type": "transformers-luke", "model_name": "x", "use_entity_aware_attention": True}
    extractor = {"type": "entity", "embedder": embedder}
    model = {"type": "entity_typing", "feature_extractor": extractor, "label_name_space": "labels"}
    whole = json.dumps({"dataset_reader": {}, "model": model})

    def cases():
        for start in ("model", "feature_extractor", "embedder"):
            part = {"model": model, "feature_extractor": extractor, "embedder": embedder}[start]
            for key in part:
                for value in ODD:
                    changed = replaced(json.dumps(part), key, value)
                    (folder / "config.json").write_text(whole.replace(json.dumps(part), changed))
                    yield f"{start} {key}: {value[:40]}", lambda: read_checkpoint(folder)

    check(in_child(tmp_path / "report", cases), least=150)


@linux
@pytest.mark.slow
def test_odd_vocabularies_and_tokenizers(tmp_path):
    folder = write_small(tmp_path / "luke", *make_small_luke())
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc"]
    written = {
        "vocab.txt": "\n".join(pieces) + "\n",
        "tokenizer_config.json": json.dumps(
            {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None, "cls_token": "[CLS]",
             "added_tokens_decoder": {"2": {"content": "[CLS]", "lstrip": False}}, "tokenize_chinese_chars": True}
        ),
        "special_tokens_map.json": json.dumps({"mask_token": {"content": "[MASK]"}, "additional_special_tokens": []}),
        "added_tokens.json": json.dumps({"[CLS]": 2}),
    }  # fmt: skip
    lines = [
        '{"id": %s, "entities": [["[MASK]", null]], "count": 1}', '{"id": 0, "entities": %s}',
        '{"id": 0, "entities": [["[MASK]", "en"]], "count": %s}', "%s",
    ]  # fmt: skip

    def read():
        read_checkpoint(folder)

    def cases():
        (folder / "entity_vocab.json").unlink()
        for line in lines:
            for value in ODD:
                (folder / "entity_vocab.jsonl").write_text(line % value + "\n")
                yield f"entity_vocab.jsonl {line}: {value[:40]}", read
        (folder / "entity_vocab.jsonl").unlink()
        for value in ODD:
            (folder / "entity_vocab.json").write_text('{"[MASK]": 0, "[PAD]": ' + value + "}")
            yield f"entity_vocab.json: {value[:40]}", read
        (folder / "entity_vocab.json").unlink()
        for name, text in written.items():
            (folder / name).write_text(text)
        yield "whole", read
        for name in list(written)[1:]:
            for key in json.loads(written[name]):
                for value in ODD:
                    (folder / name).write_text(replaced(written[name], key, value))
                    yield f"{name} {key}: {value[:40]}", read
            (folder / name).write_text(written[name])
        for name in ("vocab.txt", "tokenizer.json", "vocab.json", "sentencepiece.bpe.model"):
            (folder / "vocab.txt").unlink(missing_ok=True)
            for value in [*ODD, '{"a": 1, "a": 2}', '{"model": {"type": "BPE", "vocab": {}, "merges": []}}']:
                (folder / name).write_text(value)
                (folder / "merges.txt").write_text("a b\n")
                yield f"{name}: {value[:40]}", read
            (folder / name).unlink()

    report = in_child(tmp_path / "report", cases)
    check(report, least=300)
    assert ["whole", "read"] in report


@linux
def test_odd_indexes_of_shards(tmp_path):
    folder = write_small(tmp_path / "luke", *make_small_luke(), weights="pytorch_model-1.bin")

    def cases():
        for value in ODD:
            for text in (value, '{"weight_map": ' + value + "}", '{"weight_map": {"a": ' + value + "}}"):
                (folder / "pytorch_model.bin.index.json").write_text(text)
                yield text[:60], lambda: read_checkpoint(folder)

    check(in_child(tmp_path / "report", cases), least=60)


def make_archive(path, *sizes):
    with tarfile.open(path, "w:gz") as archive:
        for number, size in enumerate(sizes):
            member = tarfile.TarInfo(f"file{number}")
            member.size = size
            archive.addfile(member, io.BytesIO(bytes(size)))
    return path


def test_an_archive_larger_than_the_disk(tmp_path, monkeypatch):
    path = make_archive(tmp_path / "a.tar.gz", 1000, 3000, 10)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 3500}))
    with pytest.raises(ValueError, match=r"refused: it unpacks to 4,000 bytes or more, but .* has room for 3,500"):
        with files.open_archive(path):
            pass
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 4010}))
    with files.open_archive(path) as folder:
        assert len(list(folder.iterdir())) == 3


def test_an_archive_of_too_many_files(tmp_path, monkeypatch):
    path = make_archive(tmp_path / "a.tar.gz", *[1] * 12)
    monkeypatch.setattr(files, "MOST_MEMBERS", 10)
    with pytest.raises(ValueError, match="holds more than 10 files"):
        is_ernie(path)


def test_half_an_archive_is_no_ernie(tmp_path):
    path = make_archive(tmp_path / "a.tar.gz", 100_000, 100_000)
    path.write_bytes(path.read_bytes()[:150])
    for read in (is_ernie, read_checkpoint, read_ernie):
        with pytest.raises(ValueError, match="not a whole tar archive"):
            read(path)
