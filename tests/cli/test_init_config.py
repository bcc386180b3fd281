"""`spacy luke init-config`: for every task and shape of data a config that trains at once, by both commands."""

import json
import re

import numpy as np
import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, Span
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import set_pairs, set_queries, set_questions, set_relations
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.cli import init_config
from spacy_luke.kb.build import build_kb
from spacy_luke.quickstart import cost
from spacy_luke.quickstart import rules as quickstart_rules
from spacy_luke.quickstart.rules import encoders
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.vectors.build import build_vectors
from tests.tiny import make_checkpoint, make_wordpiece

WORDS = "Ada Lovelace lived in Accra . She left Accra for the University of Lagos .".split()
STARTS = [i in (0, 6) for i in range(len(WORDS))]
PLACES = [(0, 2, "PER"), (4, 5, "LOC"), (7, 8, "LOC"), (10, 13, "ORG")]


def make(vocab, *what, times=1):
    doc = Doc(vocab, words=WORDS * times, sent_starts=STARTS * times)
    spans = [
        Span(doc, start + i * len(WORDS), end + i * len(WORDS), label, kb_id="Ghana" if "linked" in what else "")
        for i in range(times)
        for start, end, label in PLACES
    ]
    if "nested" in what:
        doc.spans["inner"] = [*spans, Span(doc, 12, 13, "LOC")]
    elif "long" in what:
        doc.set_ents([Span(doc, 6, 15, "WORK"), *spans[:2]])
    elif "mentions" in what or "linked" in what or "relations" in what or "types" in what:
        doc.set_ents(spans)
    if "types" in what:
        doc.spans["luke_types"] = [Span(doc, s.start, s.end, s.label_.lower()) for s in spans]
    if "relations" in what or "crossing" in what:
        last = 3 if "crossing" in what else 1
        set_relations(doc, [(spans[0], spans[last], "near"), (spans[0], spans[1], "lives_in")])
    if "pairs" in what:
        set_pairs(doc, [(spans[0], spans[1]), (spans[1], spans[0])])
    answer = [(spans[1].start_char, spans[1].end_char)]
    if "questions" in what:
        set_questions(doc, [{"question": "Where?", "answers": answer}, {"question": "Why?", "answers": []}])
    if "queries" in what:
        candidates = [(span.start_char, span.end_char) for span in spans]
        set_queries(doc, [{"query": "@placeholder is far.", "candidates": candidates, "answers": answer}])
    return doc


# gold, copies of the text in a document, tasks, what the config must have
SHAPES = {
    "flat": (("mentions",), 1, ("ner",), {"mixed_lengths"}),
    "nested": (("nested",), 1, ("ner",), {'spans_key = "inner"'}),
    "long documents": (("mentions",), 60, ("ner",), set()),
    "long entities": (("long",), 1, ("ner",), {"max_span_pieces = 24", "has 9 words"}),
    "types": (("types",), 1, ("types",), {"luke_mentions"}),
    "entities and types": (("types",), 1, ("ner", "types"), {"luke_encoder"}),
    "relations": (("relations",), 1, ("relations",), {"entities = true", "same_sentence"}),
    "pairs": (("relations", "pairs"), 1, ("relations",), {"pairs = true"}),
    "pairs and entities": (("relations", "pairs"), 1, None, {"luke_encoder", "path = ${paths.dev}\npairs = true"}),
    "crossing": (("relations", "crossing"), 1, ("ner", "relations"), set()),
    "nested relations": (("nested", "crossing"), 1, ("ner", "relations"), {'"key":"inner"'}),
    "questions": (("questions",), 1, ("questions",), {"no_answer_threshold"}),
    "queries": (("mentions", "queries"), 1, ("cloze",), {"luke_cloze"}),
    "all": (("types", "relations", "questions", "queries"), 1, None, {"luke_encoder", "weight = 0.1"}),
    "links": (("linked",), 1, ("links",), {"EntityLinker.v2", "context = false"}),
    "links by vectors": (("linked",), 1, ("links",), {"links = true"}),
}
# One of each task; the others are slow.
EACH_TASK = ("flat", "types", "pairs and entities", "questions", "queries", "all", "links")

# what `evaluate` is given, as training gives it
GIVEN = {
    "types": ["--gold-mentions"],
    "relations": ["--gold-entities"],
    "pairs": ["--gold-entities", "--gold-pairs"],
    "pairs and entities": ["--gold-pairs"],
    "links": ["--gold-links"],
    "links by vectors": ["--gold-links"],
}


def run(*arguments, code=0, **settings):
    result = CliRunner().invoke(spacy_app, [str(argument) for argument in arguments], **settings)
    assert result.exit_code == code, (result.output, result.exception)
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("init_config")
    write_huggingface(make_checkpoint(max_positions=300), folder / "tiny")
    entities = "".join(f'{{"id": "{x}", "names": ["{x}", "Accra", "Ada Lovelace"]}}\n' for x in ("Ghana", "Japan"))
    (folder / "entities.jsonl").write_text(entities)
    for name in ("links", "links by vectors"):
        build_kb([folder / "entities.jsonl"], folder / name)
    noise = np.random.default_rng(1).normal(size=(2, 12)).astype("float32")
    build_vectors(noise, folder / "links by vectors" / "vectors", names=["Ghana", "Japan"])
    vocab = spacy.blank("en").vocab
    for name, (gold, times, _, _) in SHAPES.items():
        write_docbin([make(vocab, *gold, times=times) for _ in range(3)], folder / f"{name}.spacy")
    return folder


@pytest.mark.filterwarnings(
    "ignore:.luke_(ner|linker).. [0-9]+ of [0-9]+ gold:UserWarning"
)  # tiny tokenizer, tiny knowledge base
@pytest.mark.parametrize(
    "name", [name if name in EACH_TASK else pytest.param(name, marks=pytest.mark.slow) for name in SHAPES]
)
def test_trains_at_once(folder, tmp_path, name):
    """What is written is filled by spaCy, names no setting that is none, and both commands train it."""
    _, _, tasks, expected = SHAPES[name]
    path, data = tmp_path / "config.cfg", folder / f"{name}.spacy"
    arguments = ["--train", data, "--dev", data, "--encoder", folder / "tiny", "--no-timing"]
    arguments += [x for task in tasks or () for x in ("--task", task)]
    if name.startswith("links"):
        arguments += ["--kb", folder / name]
    said = run("luke", "init-config", path, *arguments)
    assert "3 documents" in said
    text = path.read_text()
    assert [part for part in expected if part not in text] == []
    given = [option for option in said.split() if option.startswith("--gold-")]
    assert given == GIVEN.get(name, [])
    few = ["--training.max_steps", 1, "--training.eval_frequency", 1]
    run("luke", "train", path, "--output", tmp_path / "ours", *few)
    nlp = spacy.load(tmp_path / "ours" / "model-last")
    assert nlp.pipe_names == load_config(path)["nlp"]["pipeline"]
    if name.startswith("links"):
        assert "no mentions" not in run("luke", "evaluate", tmp_path / "ours" / "model-last", data, *given)
    if name in ("flat", "all", "links"):  # one way to read a config: some of them suffice
        run("train", path, "--output", tmp_path / "spacy", *few)
        assert spacy.load(tmp_path / "spacy" / "model-last").pipe_names == nlp.pipe_names


def test_it_says_what_is_in_the_data(folder, tmp_path):
    data = folder / "all.spacy"
    arguments = ("--train", data, "--dev", data, "--encoder", folder / "tiny", "--no-timing")
    said = run("luke", "init-config", tmp_path / "config.cfg", *arguments)
    for part in (
        "3 documents, 6 sentences, 45 words; a document has 15, the longest 15",
        "12 entities: LOC 6, PER 3, ORG 3",
        "12 types: loc 6",
        "6 relations: near 3, lives_in 3",
        "6 questions, 3 without an answer",
        "an estimate",
        f"python -m spacy luke train {tmp_path}/config.cfg --output training/config",
    ):
        assert part in said, part


def test_it_asks(folder, tmp_path):
    path = tmp_path / "config.cfg"
    given = "\n".join([str(folder / "all.spacy"), str(folder / "all.spacy"), "ner,types", "base", "gpu"]) + "\n"
    said = run("luke", "init-config", path, "--ask", "--no-timing", input=given)
    assert "Tasks (ner, types, relations, questions, cloze, links) [ner,types,relations,questions,cloze]" in said
    assert "There is no GPU here to time" in said
    config = load_config(path)
    assert config["paths"]["weights"] == "studio-ousia/luke-base"
    assert config["training"]["gpu_allocator"] == "pytorch"
    assert config["nlp"]["pipeline"] == ["sentencizer", "luke_encoder", "luke_ner", "luke_typer"]


@pytest.mark.parametrize(
    ("lang", "given", "taken"), [("xx", (), "mluke"), ("en", (), "tiny"), ("xx", ("small",), "tiny")]
)
def test_a_script_that_the_encoder_lacks(folder, tmp_path, monkeypatch, lang, given, taken):
    """Said of the usual encoder, in whose place the multilingual one is proposed where the language is another."""
    write_huggingface(make_checkpoint(tokenizer=make_wordpiece(), position_offset=0), tmp_path / "tiny")
    rules = {**encoders(), "small": {**encoders()["small"], "weights": str(tmp_path / "tiny")}}
    for module in (init_config, quickstart_rules):
        monkeypatch.setattr(module, "encoders", lambda: rules)
    doc = Doc(spacy.blank("xx").vocab, words=list("\u9a6c\u4e91\u5728\u676d\u5dde"))
    doc.set_ents([Span(doc, 0, 2, "PER")])
    write_docbin([doc] * 2, tmp_path / "data.spacy")
    arguments = ("--train", tmp_path / "data.spacy", "--dev", tmp_path / "data.spacy", "--lang", lang, "--no-timing")
    said = run("luke", "init-config", tmp_path / "c.cfg", *arguments, *(x for e in given for x in ("--encoder", e)))
    assert "100% of 10 words of the training data have a piece that the encoder's vocabulary lacks" in said
    assert ("multilingual: 100%" in said) == (taken == "mluke")
    assert taken in load_config(tmp_path / "c.cfg")["paths"]["weights"]
    asked = ("luke", "init-config", tmp_path / "d.cfg", *arguments, "--ask", *(x for e in given for x in ("-e", e)))
    run(*asked, input="\n" * 3)
    assert taken in load_config(tmp_path / "d.cfg")["paths"]["weights"]


def test_of_json_lines_without_a_dev_part(tmp_path):
    lines = [{"text": f"Ada left {i}.", "entities": [{"start": 0, "end": 3, "label": "PER"}]} for i in range(10)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ("--train", tmp_path / "data.jsonl", "-f", "jsonl", "--encoder", "some/hub-name", "--no-timing")
    said = run("luke", "init-config", tmp_path / "config.cfg", *arguments, "--dev-share", 0.3)
    assert "7 and 3 documents" in said
    assert load_config(tmp_path / "config.cfg")["paths"]["train"] == str(tmp_path / "corpus/config/train.spacy")
    written = (tmp_path / "corpus/config/train.spacy").read_bytes()
    run("luke", "init-config", tmp_path / "other.cfg", *arguments)  # data of another config stay
    assert (tmp_path / "corpus/config/train.spacy").read_bytes() == written
    assert load_config(tmp_path / "other.cfg")["paths"]["train"] == str(tmp_path / "corpus/other/train.spacy")


def test_mentions_that_are_no_words(tmp_path):
    line = {"text": "Ask PwC. The host left.", "entities": [[4, 7, "ORG"]]}
    (tmp_path / "data.jsonl").write_text((json.dumps(line) + "\n") * 5)
    arguments = ("luke", "init-config", tmp_path / "c.cfg", "--train", tmp_path / "data.jsonl", "-f", "jsonl")
    assert "--align split" in run(*arguments, "--no-timing", code=1)
    assert "5 entities: ORG 5" in run(*arguments, "--no-timing", "--align", "split", "--dev", tmp_path / "data.jsonl")


def test_columns_without_marks_of_documents(tmp_path):
    (tmp_path / "data.iob").write_text("".join(f"Ada B-PER\nleft{i} O\n\n" for i in range(6)))
    arguments = ("luke", "init-config", tmp_path / "c.cfg", "--train", tmp_path / "data.iob", "-f", "columns")
    assert "--documents) to 1 for a document a sentence" in run(*arguments, "--no-timing", code=1)
    assert "5 and 1 documents" in run(*arguments, "--no-timing", "--documents", 1)
    assert "spacy files stay as they are: there is no use for documents" in run(
        *arguments[:3], "--train", tmp_path / "corpus/c/train.spacy", "--documents", 1, "--overwrite", code=1
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--delimiter", "\\t"), "Ada {}\tB-Person Name\nleft\tO\n"),
        (("--delimiter", "\\t", "--word-column", 1, "--tag-column", 2), "1\tAda {}\tB-Person Name\tx\n2\tleft\tO\tx\n"),
        (("--scheme", "BIOES", "--tag-column", 1), "Ada B-Person x\nL{} E-Person x\nleft O x\n"),
    ],
)
def test_columns_as_corpus_reads_them(tmp_path, options, line):
    (tmp_path / "data.iob").write_text("\n".join(line.format(i) for i in range(6)))
    arguments = ("luke", "init-config", tmp_path / "c.cfg", "--train", tmp_path / "data.iob", "-f", "conll2003")
    said = run(*arguments, "--documents", 1, "--no-timing", *options)
    assert "5 and 1 documents" in said
    assert "5 entities: Person" in said


def test_steps_are_timed(folder, tmp_path, monkeypatch):
    """As many as there are, up to five, and all evaluations."""
    data = folder / "flat.spacy"
    monkeypatch.setattr(cost, "in_words", "{:.0f} seconds".format)
    said = run("luke", "init-config", tmp_path / "c.cfg", "--train", data, "--dev", data, "-e", folder / "tiny")
    found = re.search(
        r"Training will take about (\d+) seconds on this machine: (\d+) steps, by 5 that were timed", said
    )
    assert found
    assert load_config(tmp_path / "c.cfg")["training"]["max_epochs"] == 20
    assert int(found[2]) >= 20


def test_a_config_that_cannot_be_trained_does_not_stay(folder, tmp_path, monkeypatch):
    def fail(path, **settings):
        raise ValueError(f"{path} has a fault.")

    monkeypatch.setattr(init_config, "measure", fail)
    data = folder / "flat.spacy"
    arguments = ("luke", "init-config", tmp_path / "c.cfg", "--train", data, "--dev", data, "-e", folder / "tiny")
    assert "No config was written." in run(*arguments, code=1)
    assert not (tmp_path / "c.cfg").exists()
    (tmp_path / "c.cfg").write_text("mine")
    run(*arguments, "--overwrite", code=1)
    assert (tmp_path / "c.cfg").read_text() == "mine"


@pytest.mark.parametrize(
    ("has_gpu", "machine", "expected"), [(True, (), 0), (True, ("-m", "cpu"), -1), (False, (), -1)]
)
def test_steps_are_timed_where_they_will_be_made(folder, tmp_path, monkeypatch, has_gpu, machine, expected):
    """On the GPU, where there is one and no other machine was asked for."""
    data, used, timed = folder / "flat.spacy", [], []
    monkeypatch.setattr(init_config, "_HAS_GPU", has_gpu)
    monkeypatch.setattr(init_config, "use_gpu", used.append)
    monkeypatch.setattr(init_config, "measure", lambda path, *, gpu_id: timed.append(gpu_id) or cost.Cost(1.0, 20, 5))
    files = ("--train", data, "--dev", data, "-e", folder / "tiny")
    said = run("luke", "init-config", tmp_path / "c.cfg", *files, *machine)
    assert timed == [expected]
    assert used == [x for x in timed if x >= 0]
    assert ("--gpu-id 0" in said) == (expected >= 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Expected gold documents by --train FILE"),
        (("--train", "flat.spacy", "--dev", "gone.spacy"), "--dev is .*gone.spacy, which does not exist"),
        (("--train", "flat.spacy", "--dev", "flat.spacy", "--task", "nerr"), "A task is one of ner, .*'nerr' is none"),
        (("--train", "flat.spacy", "--dev", "flat.spacy", "--task", "types"), "they have: ner"),
        (("--train", "flat.spacy", "--dev", "flat.spacy", "-e", "smal"), "or a hub id such as .*no file 'smal'"),
        (
            ("--train", "flat.spacy", "--dev", "flat.spacy", "-e", "package:gone/x"),
            "Python package 'gone'",
        ),
        (("--train", "flat.spacy", "--dev", "flat.spacy", "-e", "pipeline"), "is a pipeline, but expected"),
    ],
)
def test_faults(folder, tmp_path, arguments, message):
    spacy.blank("en").to_disk(tmp_path / "pipeline")
    places = {"pipeline": tmp_path / "pipeline"}
    given = [folder / x if x.endswith(".spacy") else places.get(x, x) for x in arguments]
    said = run("luke", "init-config", tmp_path / "config.cfg", *given, code=1)
    assert re.search(message, said), said
    assert not (tmp_path / "config.cfg").exists()


def test_a_package_that_has_an_encoder_is_no_pipeline(folder, tmp_path, monkeypatch):
    for file in ("some_encoder/__init__.py", "some_encoder/model/config.json", "some_encoder-1.0.dist-info/METADATA"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("Name: some-encoder\nVersion: 1.0\n" if "METADATA" in file else "")
    monkeypatch.syspath_prepend(str(tmp_path))
    said = run(
        "luke", "init-config", tmp_path / "c.cfg", "--train", folder / "flat.spacy", "-e", "some_encoder", code=1
    )
    assert "has a model: write package:some_encoder/model" in said


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--task", "nerr"), "A task is one of"),
        (("--machine", "tpu"), "A machine is one of"),
        (("-e", "smal"), "no file 'smal'"),
    ],
)
def test_nothing_is_written_for_an_option_that_is_wrong(tmp_path, option, message):
    document = {"text": "Ada left.", "entities": [{"start": 0, "end": 3, "label": "PER"}]}
    (tmp_path / "all.jsonl").write_text(f"{json.dumps(document)}\n" * 10, encoding="utf8")
    data = ("--train", tmp_path / "all.jsonl", "--format", "jsonl")
    assert message in run("luke", "init-config", tmp_path / "z.cfg", *data, *option, code=1)
    assert [x.name for x in tmp_path.iterdir()] == ["all.jsonl"]


def test_a_config_that_is_there_stays(folder, tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text("mine")
    data = folder / "flat.spacy"
    arguments = ("luke", "init-config", path, "--train", data, "--dev", data, "--no-timing")
    assert "replace it with --overwrite" in run(*arguments, code=1)
    assert path.read_text() == "mine"
    run(*arguments, "--overwrite")
    assert "[paths]" in path.read_text()
