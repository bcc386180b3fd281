"""Tables of the papers: what configs/papers.toml says fits the configs, the workflows and the scorers; runs are made
once and go on; and the published checkpoints, as far as golden ones stand for them."""

import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, Span
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import register_extensions, set_candidates_given
from spacy_luke.readers.docbin import write_docbin
from tests.project_file import load_project

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import reproduce  # noqa: E402

TOLD = tomllib.loads(reproduce.PAPERS.read_text(encoding="utf8"))
COMMANDS = {command["name"]: command for command in load_project()["commands"]}


def tables():
    for name, told in TOLD["tables"].items():
        if "of" in told:
            continue
        for size in reproduce.SIZES if "size" not in told else [told["size"]]:
            yield name, size


def rows():
    for name, size in tables():
        for row in reproduce.read_table(name, size).rows:
            if row.experiment is not None:
                yield pytest.param(row, id=f"{name}, {size}, {row.name}")


@pytest.mark.parametrize("row", list(rows()))
def test_what_is_changed_is_there(row):
    """Settings are the config's, data are made by the commands that are needed, metrics are those that are scored."""
    one = row.experiment
    if one.config is not None:
        assert [name for name in one.overrides if not _is_setting(_config(one.config), name)] == []
    else:
        assert all(name.startswith("components.luke_") for name in one.overrides)
    made = [out for need in one.needs for out in _outputs(need)]
    missing = [path for path in one.data.values() if path not in made and str(Path(path).parent) not in made]
    assert missing == []
    assert set(row.figures) <= set(row.metrics)
    assert all(1 < x < 100 for x in row.figures.values())


@cache
def _config(name):
    return load_config(ROOT / name, overrides={"paths.weights": "x"}, interpolate=False)


def _is_setting(config, name):
    for part in name.split("."):
        if part not in config:
            return False
        config = config[part]
    return True


@cache
def _outputs(need):
    command, *rest = shlex.split(need)
    variables = dict(zip([x.removeprefix("--") for x in rest[::2]], rest[1::2], strict=True))
    (found,) = (x for x in load_project(overrides=variables)["commands"] if x["name"] == command)
    return found["outputs"]


@pytest.mark.parametrize("row", [row for row in rows() if "full" in row.id])
def test_no_weights_are_chosen_by_what_is_scored(row):
    one = row.experiment
    if one.config is not None:
        config = load_config(ROOT / one.config, overrides={**one.overrides, "paths.weights": "x"}, interpolate=True)
        assert one.model == "model-last" or config["corpora"]["dev"]["path"] not in one.data.values()
        assert config["training"]["patience"] == 0


@pytest.mark.parametrize(("name", "size"), list(tables()))
def test_every_table_names_each_row_once(name, size):
    names = [row.name for row in reproduce.read_table(name, size).rows]
    assert len(set(names)) == len(names) >= 2


@pytest.mark.parametrize("size", reproduce.SIZES)
def test_rows_of_table_7_differ_in_their_attention(size):
    """Of each pair one has the transformer's; the other is told so where its checkpoint is not entity-aware itself."""
    names = {
        row.name: [x for name, x in row.experiment.overrides.items() if name.endswith(".weights.entity_aware")]
        for row in reproduce.read_table("luke7", size).rows
        if row.experiment is not None
    }
    assert {tuple(x) for name, x in names.items() if name.endswith("original attention")} == {("false",)}
    expected = {("true",)} if size == "small" else {()}  # studio-ousia/luke-large is entity-aware by itself
    assert {tuple(x) for name, x in names.items() if name.endswith("entity-aware")} == expected


def test_what_is_told_of_one_size():
    """Rows of the size full, settings and needs of the size small, also before those that all small trainings have."""
    names = {size: [row.name for row in reproduce.read_table("ernie7", size).rows] for size in reproduce.SIZES}
    assert [x for x in names["full"] if x not in names["small"]] == ["without dEA (pretrained with --task.dea false)"]
    full, small = (reproduce.read_table("luke8", size) for size in reproduce.SIZES)
    assert full.needs == ["pretrain-corpus", "pretrain-words"]
    assert "pretrain-words-small" in small.needs
    weights = {row.name: row.experiment.overrides.get("paths.weights") for row in small.rows}
    assert weights["SQuAD, RoBERTa further pretrained"] == "training/words_small/model"
    assert weights["SQuAD, RoBERTa"] == TOLD["small"]["paths.weights"]
    assert weights["SQuAD, LUKE"] == "training/entities_small/model"
    converted = [row.experiment.overrides for row in reproduce.read_table("ned2", "small").rows if row.experiment]
    assert all(name.startswith("components.luke_linker.") for overrides in converted for name in overrides)


def test_what_there_is_not():
    with pytest.raises(ValueError, match="There is no table 'luke9'; there are luke1, "):
        reproduce.read_table("luke9", "full")
    assert reproduce.tables_of("ned") == ["ned1", "ned2"]
    assert reproduce.tables_of("luke1") == ["luke1"]
    with pytest.raises(ValueError, match="ernie6 can only be made in the size 'full'"):
        reproduce.read_table("ernie6", "small")


class Fake:
    """Stands for the commands: a score that follows from the seed, and a list of what was run."""

    def __init__(self, stop_after=None):
        self.ran, self.stop_after = [], stop_after

    def __call__(self, command):
        words = [word for word in command[command.index("spacy") + 1 :] if word != "luke"]
        if self.stop_after is not None and len(self.ran) >= self.stop_after:
            raise SystemExit("killed")
        self.ran.append(words)
        if words[0] == "train":
            folder = Path(words[words.index("--output") + 1])
            (folder / "model-last").mkdir(parents=True, exist_ok=True)
        if words[0] == "evaluate":
            seed = int(Path(words[1]).parent.name.rpartition("seed")[2])
            scores = {"ents_f": 0.9 + seed / 100, "ents_per_type": {}}
            Path(words[words.index("--output") + 1]).write_text(json.dumps(scores), encoding="utf8")


def run(folder, fake, name="luke3", size="full", seeds=3):
    settings = {"gpu_id": -1, "output": folder / "metrics", "models": folder / "models", "keep": False}
    return reproduce.reproduce(name, size=size, seeds=seeds, execute=fake, **settings)


def test_a_table_with_the_papers_figures(tmp_path):
    text = run(tmp_path, fake := Fake())
    assert "| LUKE | F1 | 91.00 ± 1.00 | 3 | 94.3 | -3.30 |" in text
    assert "| RoBERTa, first and last word of each span | F1 | 91.00 ± 1.00 | 3 | 92.4 | -1.40 |" in text
    assert "| BERT | F1 | cited |  | 92.8 |  |" in text
    assert (tmp_path / "metrics/full/luke3.md").read_text(encoding="utf8") == text
    small = run(tmp_path, Fake(), size="small")
    assert "| LUKE | F1 | 91.00 ± 1.00 | 3 | 94.3 |  |" in small  # of other data, so that no difference is told
    told = json.loads((tmp_path / "metrics/full/luke3.json").read_text(encoding="utf8"))
    assert told["rows"]["LUKE"]["ents_f"]["values"] == pytest.approx([90, 91, 92])
    assert fake.ran[0] == ["project", "run", "convert", "."]
    trained = [words for words in fake.ran if words[0] == "train"]
    assert [words[words.index("--system.seed") + 1] for words in trained] == ["0", "0", "1", "1", "2", "2"]
    assert sum("--components.luke_ner.model.features" in words for words in trained) == 3
    assert not any((tmp_path / "models/full").iterdir())


def test_runs_are_made_once_and_go_on(tmp_path):
    """Also after a kill, and for another table that has equal ones."""
    with pytest.raises(SystemExit):
        run(tmp_path, first := Fake(stop_after=4))
    assert "| LUKE | F1 |  |  | 94.3 |  |" in (tmp_path / "metrics/full/luke3.md").read_text(encoding="utf8")
    (next((tmp_path / "models/full").iterdir()) / "resume").mkdir()
    run(tmp_path, second := Fake())
    assert "--resume" in second.ran[1] or "--overwrite" in second.ran[1]
    done = [x[0] for x in [*first.ran, *second.ran] if x[0] != "project"]
    assert (done.count("train"), done.count("evaluate")) == (7, 6)  # the run that was killed began again where it was
    run(tmp_path, third := Fake())
    assert [x[0] for x in third.ran] == ["project"]


def test_what_a_run_depends_on(tmp_path, monkeypatch):
    """A setting of the config's, what makes the data, the version; no comment, and not what a score is called."""
    config = tmp_path / "a.cfg"
    config.write_text("# a comment\n[training]\ndropout = 0.1\n", encoding="utf8")
    one = reproduce.Experiment({"ents_f": "F1"}, config=str(config), needs=["convert"])

    def file_of(experiment):
        return reproduce.scores_of(tmp_path, reproduce.Row("LUKE", {}, {}, experiment), 0)

    before = file_of(one)
    config.write_text("# another\n[training]\ndropout = 0.10\n", encoding="utf8")
    assert file_of(one) == file_of(replace(one, metrics={"ents_f": "F"})) == before
    assert file_of(replace(one, needs=["convert --vars.x y"])) != before
    with monkeypatch.context() as patched:
        patched.setattr(reproduce, "version", lambda name: f"{name} 99")
        assert file_of(one) != before
    config.write_text("# another\n[training]\ndropout = 0.2\n", encoding="utf8")
    assert file_of(one) != before
    assert file_of(replace(one, config=None, convert="x")) != before


def test_a_run_of_another_config_is_made_again(tmp_path, monkeypatch):
    configs = tmp_path / "configs"
    configs.mkdir()
    shutil.copy(ROOT / "configs/ner_conll03_large.cfg", configs)
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    run(tmp_path, Fake(), seeds=1)
    run(tmp_path, again := Fake(), seeds=1)
    assert [x[0] for x in again.ran] == ["project"]
    config = configs / "ner_conll03_large.cfg"
    config.write_text(config.read_text(encoding="utf8").replace("dropout = 0.1", "dropout = 0.2"), encoding="utf8")
    run(tmp_path, other := Fake(), seeds=1)
    assert [x[0] for x in other.ran].count("train") == 2


def test_the_table_says_at_which_commits_its_runs_were_made(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "commit", lambda: "abc123")
    run(tmp_path, Fake(), seeds=1)
    monkeypatch.setattr(reproduce, "commit", lambda: "def456-dirty")
    assert run(tmp_path, Fake(), seeds=2).endswith("\nRuns were made at abc123, def456-dirty.\n")
    monkeypatch.setattr(reproduce, "commit", lambda: None)
    assert "commits" in json.loads((tmp_path / "metrics/full/luke3.json").read_text(encoding="utf8"))
    assert "Runs were made" not in run(tmp_path / "other", Fake(), seeds=1)


def test_the_commit_of_a_folder_that_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert reproduce.commit() is None


def test_a_killed_run_is_resumed(tmp_path):
    one = next(x for x in reproduce.read_table("luke3", "full").rows if x.experiment is not None).experiment
    (tmp_path / "resume").mkdir()
    assert "--resume" in reproduce.train_command(one, tmp_path, seed=0, gpu_id=-1)
    assert "--overwrite" in reproduce.train_command(one, tmp_path / "new", seed=0, gpu_id=-1)


def test_a_metric_that_is_not_scored(tmp_path):
    class Other(Fake):
        def __call__(self, command):
            super().__call__(command)
            if "evaluate" in command:
                Path(command[command.index("--output") + 1]).write_text('{"tag_acc": 1.0}', encoding="utf8")

    with pytest.raises(ValueError, match=r"gave no \['ents_f'\]; it gave \['tag_acc'\]"):
        run(tmp_path, Other(), seeds=1)


def in_process(command):
    result = CliRunner().invoke(spacy_app, command[command.index("spacy") + 1 :])
    assert result.exit_code == 0, result.output


@pytest.fixture
def typed(tmp_path):
    """Gold mentions with types, such as golden checkpoints have none of: their labels are LABEL_0 and so on."""
    register_extensions()
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words="Ada Lovelace lived in London .".split(), sent_starts=[True, *[False] * 5])
    doc.set_ents([Span(doc, 0, 2, "LABEL_1"), Span(doc, 4, 5, "LABEL_2")])
    doc.spans["luke_types"] = [Span(doc, 0, 2, "LABEL_0"), Span(doc, 4, 5, "LABEL_1")]
    doc._.luke_relations = [(doc.ents[0], doc.ents[1], "LABEL_1")]
    write_docbin([doc], tmp_path / "gold.spacy")
    return tmp_path / "gold.spacy"


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("released_conll03", "hf_luke_entity_span_classification"),
        ("released_open_entity", "hf_luke_entity_classification"),
        ("released_tacred", "hf_luke_entity_pair_classification"),
    ],
)
def test_published_checkpoints_are_converted_and_scored(shared, tmp_path, typed, name, golden):
    """The golden ones have their form, with noise for weights; what they predict is tested with the pipelines."""
    told = {key: x for key, x in TOLD["experiments"][name].items() if key not in ("needs", "data", "convert")}
    one = reproduce.Experiment(**told, convert=str(shared(f"golden/{golden}")), data={"": str(typed)})
    row = reproduce.Row(golden, {}, told["metrics"], one)
    scores = tmp_path / "scores.json"
    reproduce.run_row(row, tmp_path / "model", scores, seed=0, gpu_id=-1, keep=True, execute=in_process)
    found = json.loads(scores.read_text(encoding="utf8"))["scores"]
    assert set(told["metrics"]) <= set(found)
    assert spacy.load(tmp_path / "model/model-last").pipe_names


def test_the_published_disambiguation_model(shared, tmp_path):
    """Converted, and scored on several sets with other settings than those that it is saved with."""
    checkpoint = shared("golden/luke_ed_checkpoint")
    lines = (checkpoint / "entity_vocab.jsonl").read_text(encoding="utf8").splitlines()
    names = [json.loads(line)["entities"][0][0] for line in lines]
    first, second = [name for name in names if not name.startswith("[")][:2]
    doc = Doc(spacy.blank("en").vocab, words="Ada lived in London .".split(), sent_starts=[True, *[False] * 4])
    doc.set_ents([Span(doc, 0, 1, "X", kb_id=first), Span(doc, 3, 4, "X", kb_id=second)])
    set_candidates_given(doc, [(x.start_char, x.end_char, [(first, 0.5), (second, 0.4)]) for x in doc.ents])
    write_docbin([doc], tmp_path / "gold.spacy")
    told = {key: x for key, x in TOLD["experiments"]["released_ed"].items() if key not in ("needs", "data", "convert")}
    data = {"msnbc": str(tmp_path / "gold.spacy"), "aquaint": str(tmp_path / "gold.spacy")}
    one = reproduce.Experiment(**told, convert=str(checkpoint), data=data)
    metrics = {name: x for name, x in told["metrics"].items() if name.partition("/")[0] in data}
    row, scores = reproduce.Row("luke_ed", {}, metrics, one), tmp_path / "scores.json"
    ran: list[list[str]] = []

    def execute(command):
        ran.append(command)
        in_process(command)

    reproduce.run_row(row, tmp_path / "model", scores, seed=0, gpu_id=-1, keep=True, execute=execute)
    found = json.loads(scores.read_text(encoding="utf8"))["scores"]
    assert found["msnbc/links_f"] == found["aquaint/links_f"] in (0.0, 0.5, 1.0)
    assert all("--components.luke_linker.split" in command for command in ran[1:])


@pytest.mark.slow
def test_the_script_says_what_is_wrong():
    command = [sys.executable, str(ROOT / "scripts/reproduce.py"), "luke9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "There is no table 'luke9'" in done.stderr
