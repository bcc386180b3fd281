"""Mistakes at the command line: every command ends in one message, which names what is wrong; --traceback shows the
rest."""

import errno
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke import cli
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.cli.errors import explain, with_one_message
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.jsonl import jsonl_docs
from tests.tiny import make_checkpoint

ROOT = Path(__file__).parents[2]
MOST_LINES = 15


CONFIGS = {
    "itself": "[a]\nb = ${a.b}\n",
    "circle": "[a]\nb = 1 ${c.d}\n[c]\nd = ${a}\n",
    "chain": "[a]\nb0 = 1\n" + "".join(f"b{i} = ${{a.b{i - 1}}}\n" for i in range(1, 13)),
    "growing": '[a]\nb0 = "ha"\n' + "".join(f'b{i} = "{f"${{a.b{i - 1}}}" * 10}"\n' for i in range(1, 9)),
    "sections": "".join(f"[a{i}]\nb = 1\n" for i in range(1001)),
    "long": "[a]\nb = " + "1" * 1_000_000,
    "no_training": '[nlp]\nlang = "en"\n[corpora]\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands below take: data, weights, and files that are not what they should be."""
    folder = tmp_path_factory.mktemp("errors")
    sample = jsonl_docs(spacy.blank("en"), ROOT / "assets/sample/dev.jsonl", overlaps="outermost")
    write_docbin(list(sample)[:3], folder / "data.spacy")
    write_huggingface(make_checkpoint(max_positions=300), folder / "tiny")
    (folder / "latin1.txt").write_bytes("Malmö".encode("latin1"))
    (folder / "latin1.tsv").write_bytes("name\tentity\tcount\nMalmö\tQ1\t3\n".encode("latin1"))
    (folder / "latin1.jsonl").write_bytes('{"text": "Malmö", "entities": []}\n'.encode("latin1"))
    (folder / "latin1.json").write_bytes('["a",\n"Malmö"]'.encode("latin1"))
    (folder / "triples.tsv").write_bytes("a\tin\tb\nMalmö\tin\tx\n".encode("latin1"))
    deep = "[" * 100_000 + "]" * 100_000
    (folder / "deep.json").write_text(deep)
    (folder / "deep.jsonl").write_text(f'{{"text": {deep}}}\n')
    (folder / "deep").mkdir()
    (folder / "deep/config.json").write_text(deep)
    (folder / "deep/model.safetensors").write_bytes(b"x")
    (folder / "nul.tsv").write_text("name\tentity\tcount\nocc\0red\tQ1\t3\n")
    (folder / "empty.jsonl").touch()
    (folder / "junk.spacy").write_bytes(b"junk")
    (folder / "binary.spacy").write_bytes(b"\x9cjunk")
    (folder / "rejected.jsonl").write_text('{"text": "Ada left.", "spans": [], "answer": "reject"}\n')
    for name, text in CONFIGS.items():
        (folder / f"{name}.cfg").write_text(text)
    (folder / "no_docs").mkdir()
    (folder / "left/model-best").mkdir(parents=True)
    (folder / "card.json").write_text(
        '{"name": "x", "version": "1.0", "description": "", "license": "", "sources": []}'
    )
    (folder / "short.json").write_text('{"name": "x"}')
    (folder / "kg").mkdir()
    (folder / "kg/entity2vec.vec").write_text("1.0\t2.0\n3.0\t4.0\n")
    (folder / "kg/entity2id.txt").write_text("2\nQ1\t0\nQ2\t99999999999999999999\n")
    np.save(folder / "v.npy", np.ones((2, 3), "float32"))
    (folder / "no_names.txt").touch()
    plain = spacy.blank("en")
    plain.add_pipe("sentencizer")
    plain.to_disk(folder / "plain")
    return folder


def run(folder, line, **named):
    """The command of a line, in which {} is the folder. RETURNS: exit code and what it printed, in one line of text."""
    words = [word.replace("{}", str(folder)) for word in line.split()]
    result = CliRunner().invoke(spacy_app, ["luke", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return result.exit_code, result.output


TRAIN = f"train {ROOT}/configs/ner_small.cfg -o {{}}/out --paths.train {{}}/data.spacy --paths.dev {{}}/data.spacy"
TRAIN += " --paths.weights {}/tiny --components.luke_ner.max_span_pieces null"
PRETRAIN = f"pretrain {ROOT}/configs/pretrain_small.cfg -o {{}}/pretrained --paths.weights {{}}/tiny"
ERNIE = f"pretrain-ernie {ROOT}/configs/ernie_pretrain.cfg -o {{}}/pretrained --paths.weights {{}}/tiny"
MISTAKES = {
    # a line, and what its message says
    f"{TRAIN} --paths.train {{}}/none.spacy": "none.spacy",
    f"{TRAIN} --paths.trian x": "paths.trian: there is no such setting in [paths]. Is train meant?",
    f"{TRAIN} --tranig.seed 1": "no section [tranig]. Is training meant?",
    f"{TRAIN} --training.max_step 3": "training.max_step: there is no such setting. Is max_steps meant?",
    f"{TRAIN} --training.batcher.sizes 3": "batcher.sizes: there is no such setting. Is size meant?",
    f"{TRAIN} --components.luke_ner.max_span_word 3": "luke_ner.max_span_word: there is no such setting. Is "
    "max_span_words",
    f"{TRAIN} --components.luke_ner.model.attentoin full": "attentoin: there is no such setting. Is attention meant?",
    f"{TRAIN} --components.luke_ner.model.attention half": "attention must be one of ('full', 'one_way'), but it is "
    "'half'",
    f"{TRAIN} --initialize.components.luke_ner.weightss x": "luke_ner.weightss: there is no such setting. Is weights "
    "meant?",
    f"{TRAIN} --training.dropout high": "dropout: Input should be a valid number, but it is 'high'",
    f"{TRAIN} --training.max_steps x": "max_steps: Input should be a valid integer, but it is 'x'",
    f"{TRAIN} --paths.weights {{}}/nowhere": "nowhere",
    f"{TRAIN} --paths.weights {{}}/data.spacy": "data.spacy",
    f"{TRAIN} -o {{}}/left --resume": "nothing to resume in",
    f"{TRAIN} -o {{}}/latin1.txt": "latin1.txt is a file: expected a folder",
    f"{TRAIN} -o {{}}/latin1.txt/out": "latin1.txt is a file: expected a folder",
    f'{TRAIN} --training.annotating_components ["luke_nre"]': "training.annotating_components: the pipeline, "
    "['sentencizer', 'luke_ner'], has no 'luke_nre'. Is luke_ner meant?",
    f"{TRAIN} --foo": "No such option '--foo'",
    f"{TRAIN} foo": "Invalid config override 'foo'",
    f"{TRAIN} --code {{}}/none.py": "none.py",
    f"{TRAIN} --paths.train {{}}/latin1.jsonl": "must be a .spacy file, but it is",
    f"{TRAIN} --paths.dev {{}}/no_docs": "corpora.dev.path must be a .spacy file or a folder of them",
    f"{TRAIN} --paths.train {{}}/junk.spacy": "junk.spacy, which is no .spacy file in spite of its name",
    f"{TRAIN} --gpu-id 0": 'pip install "spacy-luke[cuda12x]"',
    f"{TRAIN} --resume --overwrite": "--resume goes on with the run that --overwrite would replace",
    f"{TRAIN} --training.optimizer.learn_rate.warmup 2": "warmup from 0 and below 1",
    f"train {ROOT}/configs/none.cfg -o {{}}/out": "none.cfg",
    "train {} -o {}/out": "is a directory",
    "train {}/binary.spacy -o {}/out": "binary.spacy: expected a config, which is text in UTF-8, but byte 0 is 0x9c",
    "pretrain {} -o {}/out": "is a directory",
    "train {}/itself.cfg -o {}/out": "references ${a.b} -> ${a.b} -> ${a.b} lead back to themselves",
    "pretrain {}/circle.cfg -o {}/out": "lead back to themselves, or through more than 10 others",
    "pretrain-ernie {}/chain.cfg -o {}/out": "lead back to themselves, or through more than 10 others",
    "train {}/growing.cfg -o {}/out": "stands for in the config is longer than 1,000,000 characters",
    "pretrain {}/sections.cfg -o {}/out": "has 1,001 sections: a config may have",
    "train {}/long.cfg -o {}/out": "has 1,000,008 bytes: a config may have",
    "train {}/no_training.cfg -o {}/out": "The config has no section [training]",
    f"{PRETRAIN} --training.batch_size 0": "training.batch_size must be a whole number from 1, but it is 0",
    f"{PRETRAIN} --training.batch_size many": "training.batch_size must be a whole number from 1, but it is 'many'",
    f"{PRETRAIN} --system.sed 3": "--system.sed: there is no such setting in [system]. Is seed meant?",
    f"{PRETRAIN} --system.seed x": "system.seed must be a whole number from 0, but it is 'x'",
    f"{PRETRAIN} --training.log_evry 3": "training.log_evry: there is no such setting. Is log_every meant?",
    f"{PRETRAIN} --task.dropout much": "task.dropout must be null, or from 0 and below 1, but it is 'much'",
    f"{PRETRAIN} --task.pages perhaps": "task.pages must be true or false, but it is 'perhaps'",
    f"{PRETRAIN} --task.words much": "task.words must be float or null, but it is 'much'",
    f"{PRETRAIN} --stages.all.max_steps 1.5": "stages.all.max_steps must be int, but it is 1.5",
    f"{PRETRAIN} --stages.all.optimizer.learn_rate fast": "stages.all.optimizer.learn_rate must be float, but it is "
    "'fast'",
    f"{PRETRAIN} --stages.all.optimizer null": "[stages.all] lacks its section [stages.all.optimizer]",
    f"{PRETRAIN} --paths.shards {{}}/none": "none",
    f"{ERNIE} --training.batch_size 0": "training.batch_size must be a whole number from 1, but it is 0",
    f"{ERNIE} --training.max_step 1": "training.max_step: there is no such setting. Is max_steps meant?",
    f"{ERNIE} --training.max_steps x": "training.max_steps must be int, but it is 'x'",
    f"{ERNIE} --task.dae true": "task.dae: there is no such setting. Is dea meant?",
    "corpus {}/latin1.jsonl {}/o.spacy -f jsonl": "line 1: expected UTF-8, but byte 14 is 0xf6",
    "corpus {}/latin1.json {}/o.spacy -f tacred": "latin1.json, line 2: expected UTF-8, but byte 11 is 0xf6",
    "corpus {}/empty.jsonl {}/o.spacy -f jsonl --lang english": "Give the code of a language, such as en or de",
    "corpus {}/empty.jsonl {}/o.spacy -f jsonl": "empty.jsonl: expected JSON lines, but the file holds none",
    "corpus {}/rejected.jsonl {}/o.spacy -f jsonl": "but there are none: 1 documents left out, since their answer is",
    "corpus {}/empty.jsonl {}/o.spacy -f josnl": "but it is 'josnl'",
    **{
        f"corpus {{}}/deep.json {{}}/o.spacy -f {x}": "nested too deeply"
        for x in ("squad", "tacred", "docred", "record")
    },
    **{f"corpus {{}}/deep.jsonl {{}}/o.spacy -f {x}": "nested too deeply" for x in ("jsonl", "scierc", "ufet")},
    "build-mentions {}/nul.tsv {}/o.names": "nul.tsv, line 2: expected no NUL character in name",
    "build-mentions {}/latin1.tsv {}/o.names": "iconv -f cp1252 -t utf8",
    "build-mentions {}/deep.jsonl {}/o.names": "line 1: not JSON (the values are nested too deeply",
    "build-kb {}/nul.tsv {}/o.kb": "nul.tsv, line 2: Expected no control characters",
    "build-kb {}/latin1.tsv {}/o.kb": "latin1.tsv: expected UTF-8, but byte",
    "build-kb {}/deep.json {}/o.kb": "nested too deeply",
    "build-vectors {}/kg {}/o.vectors": "99999999999999999999 is too large a number",
    "build-vectors {}/v.npy {}/o.vectors --names {}/no_names.txt": "no_names.txt has no names",
    "build-vectors {}/none {}/o.vectors": "none, but there is no such file or folder",
    "build-corpus {}/latin1.txt {}/o.corpus": "latin1.txt is neither",
    "build-entity-vocab {}/none {}/o.vocab": "none is no linked corpus",
    "build-shards {}/none {}/o.shards -e {}/none --entity-vocab {}/none": "there is no file",
    "train-kge {}/triples.tsv {}/o.kge": "triples.tsv, line 2: expected UTF-8, but byte 4 is 0xf6",
    "train-kge {}/none.tsv {}/o.kge": "There is no file of triples",
    "embed-entities {}/none --weights {}/tiny": "none",
    "probe {}/deep [Paris]": "config.json is not JSON: the values are nested too deeply",
    "convert {}/deep {}/o": "config.json is not JSON: the values are nested too deeply",
    "convert {}/latin1.txt {}/o": "latin1.txt is not a whole tar archive",
    "convert {}/none {}/o": "there is no",
    "fetch-encoder bert-base {}/o": "There are all-mpnet-base-v2 (439 MB, Apache-2.0)",
    "fetch-encoder all-mpnet-base-v2 {}/latin1.txt": "latin1.txt is a file",
    "export {}/none {}/o": "Give the folder of a pipeline, such as training/mine/model-best",
    "export {}/no_docs {}/o": "Give the folder of a pipeline, such as training/mine/model-best",
    "annotate {}/plain {}/latin1.txt": "Expected a pipeline with a component of spacy_luke",
    "annotate {}/none {}/latin1.txt": "Give the folder of a pipeline",
    "annotate {}/plain {}/data.spacy -o {}": "is a directory",
    "annotate {}/plain {}/no_docs": "no_docs is a folder",
    "probe {}/tiny [Paris] -o {}": "is a directory",
    "evaluate {}/plain {}/data.spacy -o {}": "is a directory",
    "evaluate {}/plain {}/data.spacy --html {}": "is a directory",
    "evaluate {}/plain {}/data.spacy -o {}/data.spacy": "data.spacy is what is read here, and would be lost",
    "evaluate {}/plain {}/data.spacy --html {}/no_docs/../data.spacy": "data.spacy is what is read here",
    "evaluate {}/plain {}/data.spacy -o {}/r.json --html {}/no_docs/../r.json": "Expected a name for each file that is",
    "corpus {}/latin1.jsonl {}/o.spacy -f fewrel --pair-ids {}/latin1.jsonl": "latin1.jsonl is what is read here",
    "corpus {}/latin1.json {}/data.spacy -f deep_ed --conll {}/data.spacy": "data.spacy is what is read here",
    "corpus {}/latin1.json {}/o.spacy -f fewrel --pair-ids {}/no_docs/../o.spacy": "of which one would be lost",
    "corpus {}/latin1.json {}/o.spacy -f fewrel --pair-ids {}/latin1.txt/o.tsv": "latin1.txt is a file",
    "evaluate {}/plain {}/data.spacy -o {}/latin1.txt/scores.json": "latin1.txt is a file",
    "annotate {}/plain {}/latin1.txt -o {}/latin1.txt/a/page.html": "Expected a folder for",
    "annotate {}/plain {}/latin1.txt -o {}/latin1.txt": "latin1.txt is what is read here, and would be lost",
    "init-config {}/latin1.jsonl --train {}/latin1.jsonl -f jsonl --overwrite": "latin1.jsonl is what is read here",
    "apply {}/none {}/latin1.txt {}/o": "Expected the folder of a pipeline",
    "apply {}/plain {}/latin1.txt {}/o": "None of the first 1 texts can be read",
    "apply {}/plain {}/card.json {}/o": "Say what it is, such as by --input-format lines",
    "apply {}/plain {}/card.json {}/o --workers 0 --input-format lines": "Expected a pipeline with a component",
    "evaluate {}/plain {}/latin1.jsonl": "The data must be a .spacy file, but it is",
    "evaluate {}/plain {}/junk.spacy": "which is no .spacy file in spite of its name",
    "tune {}/plain {}/data.spacy": "Expected one (luke_ner",
    "card {}/plain --about {}/latin1.json": "iconv -f cp1252 -t utf8",
    "card {}/plain --about {}/card.json --metrics {}/deep.json": "deep.json is not JSON",
    "card {}/plain --about {}/short.json": "short.json: expected name, version, description, license, sources, but it "
    "has no version, description, license, sources",
    "card {}/no_docs --about {}/card.json": "is no folder with a pipeline (no meta.json)",
}


def test_a_reader_that_loses_what_is_learned(folder):
    """spaCy's cuts long documents, and keeps of doc._ and doc.spans nothing in the parts."""
    line = f"train {ROOT}/configs/joint_small.cfg -o {{}}/out --paths.train {{}}/data.spacy --paths.dev {{}}/data.spacy"
    cut = f"{line} --paths.weights {{}}/nowhere --corpora.train.@readers spacy.Corpus.v1 --corpora.train.max_length 10"
    _, text = run(folder, cut)
    assert "corpora.train: max_length and gold_preproc of spacy.Corpus.v1 divide documents" in " ".join(text.split())
    assert "divide documents" not in run(folder, cut.replace("max_length 10", "max_length 0"))[1]


@pytest.mark.parametrize(
    "line",
    MISTAKES,
    ids=lambda line: (
        line.replace(TRAIN, "train").replace(PRETRAIN, "pretrain").replace(ERNIE, "pretrain-ernie").replace("{}/", "")
    ),
)
def test_a_mistake_ends_in_one_message(folder, line):
    code, text = run(folder, line)
    assert code in (1, 2), text
    assert "Traceback" not in text
    assert len(text.splitlines()) <= MOST_LINES, text
    assert " ".join(MISTAKES[line].split()) in " ".join(text.split()), text


def test_traceback_on_demand(folder):
    code, text = run(folder, f"{TRAIN} --paths.train {{}}/none.spacy --traceback")
    assert code == 1
    assert "Traceback (most recent call last)" in text
    assert "none.spacy, which does not exist. Make it with" in " ".join(text.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_traceback(name):
    result = CliRunner().invoke(spacy_app, ["luke", name, "--help"])
    assert "--traceback" in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_a_fault_of_ours_asks_for_a_report(folder, monkeypatch):
    def fail(*args, **kwargs):
        raise KeyError("a bug")

    monkeypatch.setattr("spacy_luke.cli.train.init_nlp", fail)
    code, text = run(folder, TRAIN)
    assert code == 1
    assert "KeyError: 'a bug'" in text
    assert "report it, with what --traceback shows" in " ".join(text.split())
    assert "Traceback (most" not in text


FULL = """
import resource, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from spacy_luke.stores.atomic import write_atomically, write_folder_atomically

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
x = torch.zeros(100_000)
for place, write, name in (
    (write_atomically, lambda path: save_file({"x": x}, path), "a"),
    (write_folder_atomically, lambda path: torch.save({"x": x}, path / "state.pt"), "b"),
):
    try:
        with place(Path(sys.argv[1]) / name) as path:
            write(path)
    except OSError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_full_disk_is_an_os_error(tmp_path):
    """Of safetensors and of torch.save too, which raise errors of their own; nothing is left."""
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.endswith("Is the disk full?")]
    assert [str(tmp_path / name) in done.stdout for name in "ab"] == [True, True], done.stdout
    assert len(lines) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("disk I/O error"),
        OSError(errno.EFBIG, "File too large"),
        OSError(errno.ENOSPC, "No space"),
    ],
)
def test_what_a_full_disk_makes_of_others(error):
    told = explain(error)
    assert "disk" in told
    assert "report it" not in told


def test_a_full_disk_is_named():
    told = "out/kb: No space. Free some room on the disk, or give another folder."
    assert explain(OSError(errno.ENOSPC, "No space"), output=Path("out/kb")) == told
    named = OSError(errno.ENOSPC, "No space", "tmp/run-1")
    assert explain(named, output="out/kb").startswith("tmp/run-1: No space. Free")


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_control_c_leaves(capsys, goes_on):
    """A command that can go on says so."""

    def stopped(output: Path) -> None:
        raise KeyboardInterrupt

    def stopped_run(output: Path, resume: bool = False) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_one_message(stopped_run if goes_on else stopped, failed="")(traceback=False, output=Path("runs/a"))
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "What was saved in runs/a stays: the same command with --resume (no --overwrite) goes on" in told
    ) == goes_on
