"""Tables of the papers: runs are made once and go on, rows without data are left out, and the published checkpoints, as
far as golden ones stand for them."""

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import register_extensions, set_candidates_given
from spacy_luke.readers.docbin import write_docbin

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import papers  # noqa: E402
import reproduce  # noqa: E402

TOLD = tomllib.loads(papers.PAPERS.read_text(encoding="utf8"))


class Fake:
    """Stands for the commands: a score that follows from the seed, and a list of what was run."""

    def __init__(self, stop_after=None, failing=()):
        self.ran, self.stop_after, self.failing = [], stop_after, failing

    def __call__(self, command):
        words = [word for word in command[command.index("spacy") + 1 :] if word != "luke"]
        if self.stop_after is not None and len(self.ran) >= self.stop_after:
            raise SystemExit("killed")
        self.ran.append(words)
        if any(word in words for word in self.failing):
            raise reproduce.CommandFailed(f"{words[0]} ended with 1")
        if words[0] == "train":
            folder = Path(words[words.index("--output") + 1])
            (folder / "model-last").mkdir(parents=True, exist_ok=True)
        if words[0] == "convert":
            Path(words[2]).mkdir(parents=True)
        if words[0] == "evaluate":
            seed = int(Path(words[1]).parent.name.rpartition("seed")[2])
            scores = {"ents_f": 0.9 + seed / 100, "ents_per_type": {}, "types_micro_f": 0.8}
            Path(words[words.index("--output") + 1]).write_text(json.dumps(scores), encoding="utf8")


def run(folder, fake, name="luke3", size="full", seeds=3):
    settings = {"gpu_id": -1, "gpus": 4, "output": folder / "metrics", "models": folder / "models", "keep": False}
    text, scored, failed = reproduce.reproduce(name, size=size, seeds=seeds, execute=fake, **settings)
    told = json.loads((folder / f"metrics/{size}/{name}.json").read_text(encoding="utf8"))
    assert told["failed"] == failed
    assert scored == any(one["values"] for row in told["rows"].values() for one in row.values())
    return text


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the project, the data of CoNLL-2003 and of the sample, in name only, and whatever the hub has."""
    folder = tmp_path / "home"
    (folder / "assets/conll03").mkdir(parents=True)
    for name in ("project.yml", "configs", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "assets/sample").symlink_to(ROOT / "assets/sample")
    for name in ("train", "testa", "testb"):
        (folder / f"assets/conll03/eng.{name}").touch()
    monkeypatch.setattr(reproduce, "ROOT", folder)
    monkeypatch.setattr(reproduce, "find_source", Path)
    return folder


def test_rows_whose_data_are_missing_stand_in_the_table(tmp_path, home):
    """Those whose data are there are run; once the others are there, they alone are."""
    text = run(tmp_path, first := Fake(), "released", seeds=1)
    assert [x[0] for x in first.ran] == ["project", "convert", "evaluate"]
    assert "| luke-large-finetuned-conll-2003 | F1 | 90.00 | 1 | 94.3 | -4.30 |" in text
    assert "| luke-large-finetuned-tacred | F1 | not run |  | 72.7 |  |" in text
    files = ", ".join(f"`assets/tacred/{name}.json`" for name in ("train", "dev", "test"))
    assert f"\n- luke-large-finetuned-tacred: {files}\n" in text
    assert "\n- `assets/tacred`: TACRED, training part" in text
    assert text.count("Order LDC2018T24") == 1
    told = json.loads((tmp_path / "metrics/full/released.json").read_text(encoding="utf8"))
    assert list(told["not_run"]["luke_ed (2022), without fine-tuning"]) == ["assets/ned", "assets/luke_ed"]
    assert "Reuters RCV1" in told["not_run"]["luke_ed (2022), without fine-tuning"]["assets/ned"]
    (home / "assets/open_entity").mkdir()
    for name in ("train", "dev", "test"):
        (home / f"assets/open_entity/{name}.json").touch()
    text = run(tmp_path, second := Fake(), "released", seeds=1)
    assert [x[2] for x in second.ran if x[0] == "project"] == ["convert-typing"]
    assert [x[1] for x in second.ran if x[0] == "convert"] == ["studio-ousia/luke-large-finetuned-open-entity"]
    assert "| luke-large-finetuned-open-entity | F1 | 80.00 | 1 | 78.2 | +1.80 |" in text


def test_a_checkpoint_that_the_hub_does_not_give(tmp_path, home, monkeypatch):
    def find(path):
        if "roberta" in path:
            raise ValueError("no connection")

    monkeypatch.setattr(reproduce, "find_source", find)
    text = run(tmp_path, fake := Fake(), seeds=1)
    assert [x[0] for x in fake.ran] == ["project", "train", "evaluate"]
    assert "\n- RoBERTa, first and last word of each span: `FacebookAI/roberta-large`\n" in text
    assert "\n- `FacebookAI/roberta-large`: Of the Hugging Face hub: `hf download FacebookAI/roberta-large`.\n" in text
    monkeypatch.setattr(reproduce, "find_source", lambda path: find("roberta"))
    assert "| LUKE | F1 | not run |" in run(tmp_path / "other", fake := Fake(), seeds=1)
    assert fake.ran == []


def test_a_table_with_the_papers_figures(tmp_path, home):
    text = run(tmp_path, fake := Fake())
    assert "| LUKE | F1 | 91.00 ± 1.00 | 3 | 94.3 | -3.30 |" in text
    assert "| RoBERTa, first and last word of each span | F1 | 91.00 ± 1.00 | 3 | 92.4 | -1.40 |" in text
    assert "| BERT | F1 | cited |  | 92.8 |  |" in text
    assert (tmp_path / "metrics/full/luke3.md").read_text(encoding="utf8") == text
    small = run(tmp_path, Fake(), size="small")
    assert "| LUKE | F1 | 91.00 ± 1.00 | 3 | 94.3 |  |" in small  # of other data, so that no difference is told
    told = json.loads((tmp_path / "metrics/full/luke3.json").read_text(encoding="utf8"))
    assert told["rows"]["LUKE"]["ents_f"]["values"] == pytest.approx([90, 91, 92])
    assert fake.ran[0] == ["project", "run", "convert", ".", "--vars.gpu", "-1", "--vars.gpus", "4"]
    trained = [words for words in fake.ran if words[0] == "train"]
    assert [words[words.index("--system.seed") + 1] for words in trained] == ["0", "0", "1", "1", "2", "2"]
    assert sum("--components.luke_ner.model.features" in words for words in trained) == 3
    assert not any((tmp_path / "models/full").iterdir())


@pytest.mark.parametrize("failing", ["--components.luke_ner.model.features", "convert"])
def test_a_row_that_fails_stops_no_other(tmp_path, home, failing):
    text = run(tmp_path, fake := Fake(failing=[failing]), seeds=2)
    trained = [words for words in fake.ran if words[0] == "train"]
    failed = "| RoBERTa, first and last word of each span | F1 | failed |  | 92.4 |  |"
    if failing == "convert":  # what both rows need
        assert failed in text
        assert "| LUKE | F1 | failed |  | 94.3 |  |" in text
        assert "\n- LUKE: project ended with 1\n" in text
        assert not trained
    else:
        assert failed in text
        assert "| LUKE | F1 | 90.50 ± 0.71 | 2 | 94.3 | -3.80 |" in text
        assert "Failed:\n\n- RoBERTa, first and last word of each span: train ended with 1\n" in text
        assert len(trained) == 3  # it is not tried with the second seed
    again = run(tmp_path, Fake(), seeds=2)
    assert "ailed" not in again


def test_scores_that_cannot_be_read(tmp_path, home):
    run(tmp_path, Fake(), seeds=1)
    path = next((tmp_path / "metrics/full/runs").iterdir())
    path.write_text(path.read_text(encoding="utf8")[:50], encoding="utf8")
    with pytest.raises(ValueError, match=f"{path.name}: expected the scores of a run, .* Delete it: it is made again"):
        run(tmp_path, Fake(), seeds=1)


def test_runs_are_made_once_and_go_on(tmp_path, home):
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
    assert third.ran == []


def test_what_a_run_depends_on(tmp_path, monkeypatch):
    """A setting of the config's, what makes the data, the version; no comment, and not what a score is called."""
    config = tmp_path / "a.cfg"
    config.write_text("# a comment\n[training]\ndropout = 0.1\n", encoding="utf8")
    one = papers.Experiment({"ents_f": "F1"}, config=str(config), needs=["convert"])

    def file_of(experiment):
        return reproduce.scores_of(tmp_path, papers.Row("LUKE", {}, {}, experiment), 0)

    before = file_of(one)
    config.write_text("# another\n[training]\ndropout = 0.10\n", encoding="utf8")
    assert file_of(one) == file_of(replace(one, metrics={"ents_f": "F"})) == before
    assert file_of(replace(one, metrics={"ents_p": "P", "ents_f": "F1"})) != before
    assert file_of(replace(one, needs=["convert --vars.x y"])) != before
    with monkeypatch.context() as patched:
        patched.setattr(reproduce, "version", lambda name: f"{name} 99")
        assert file_of(one) != before
    config.write_text("# another\n[training]\ndropout = 0.2\n", encoding="utf8")
    assert file_of(one) != before
    assert file_of(replace(one, config=None, convert="x")) != before


def test_a_run_of_another_config_is_made_again(tmp_path, home):
    (home / "configs").unlink()
    (home / "configs").mkdir()
    config = home / "configs/ner_conll03_large.cfg"
    shutil.copy(ROOT / "configs/ner_conll03_large.cfg", config)
    run(tmp_path, Fake(), seeds=1)
    run(tmp_path, again := Fake(), seeds=1)
    assert again.ran == []
    config.write_text(config.read_text(encoding="utf8").replace("dropout = 0.1", "dropout = 0.2"), encoding="utf8")
    run(tmp_path, other := Fake(), seeds=1)
    assert [x[0] for x in other.ran].count("train") == 2


def test_the_table_says_of_what_its_runs_were_made(tmp_path, home, monkeypatch):
    """Commits, versions and chips; several tables that are made together say it each."""
    monkeypatch.setattr(reproduce, "version", lambda name: "9.9")
    monkeypatch.setattr(reproduce, "chip", lambda gpu_id: f"chip {gpu_id}")
    monkeypatch.setattr(reproduce, "commit", lambda: "abc123")
    run(tmp_path, Fake(), seeds=1)
    monkeypatch.setattr(reproduce, "commit", lambda: None)
    text = run(tmp_path, Fake(), seeds=2)
    made = ["abc123, spacy_luke 9.9, chip -1", "no commit, spacy_luke 9.9, chip -1"]
    assert text.endswith(f"\nRuns were made at {'; '.join(made)}.\n")
    assert "Runs were made" not in run(tmp_path, Fake(), "luke2", seeds=1)
    reproduce.write_joined("both", ["luke2", "luke3"], tmp_path / "metrics/full")
    assert (tmp_path / "metrics/full/both.md").read_text(encoding="utf8").endswith(f"\n{text}")
    told = json.loads((tmp_path / "metrics/full/both.json").read_text(encoding="utf8"))
    assert [x["made"] for x in told.values()] == [[], [one.split(", ") for one in made]]


def test_the_commit_of_a_folder_that_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert reproduce.commit() is None


def test_a_killed_run_is_resumed(tmp_path):
    one = next(x for x in papers.read_table("luke3", "full").rows if x.experiment is not None).experiment
    (tmp_path / "resume").mkdir()
    assert "--resume" in reproduce.train_command(one, tmp_path, seed=0, gpu_id=-1)
    assert "--overwrite" in reproduce.train_command(one, tmp_path / "new", seed=0, gpu_id=-1)


def test_a_metric_that_is_not_scored(tmp_path, home):
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


def test_answers_for_the_leaderboard_are_written_before_the_model_is_gone(tmp_path):
    """Those of a system together, of all tasks."""
    rows = [row for row in papers.read_table("ernie6", "full").rows if row.experiment is not None]
    asked = {}

    def execute(command):
        if "evaluate" in command:
            found = dict.fromkeys(("glue_accuracy", "glue_f", "glue_matthews", "glue_spearman"), 0.5)
            Path(command[command.index("--output") + 1]).write_text(json.dumps(found), encoding="utf8")
        elif "--task" in command:
            _, script, model, _, answers, _, task, *_ = command
            assert Path(script).is_file()
            assert Path(model).is_dir()
            asked.setdefault(Path(answers), []).append(task)
        else:
            (Path(command[command.index("--output") + 1]) / "model-last").mkdir(parents=True)

    for number, row in enumerate(rows):
        scores = tmp_path / f"metrics/runs/{number}.json"
        reproduce.run_row(row, tmp_path / "model", scores, seed=1, gpu_id=-1, keep=False, execute=execute)
        assert not (tmp_path / "model").exists()
    assert {folder.relative_to(tmp_path / "metrics/glue_submission").as_posix() for folder in asked} == {
        "BERT.seed1",
        "ERNIE.seed1",
    }
    assert {len(set(tasks)) for tasks in asked.values()} == {8}


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
    one = papers.Experiment(**told, convert=str(shared(f"golden/{golden}")), data={"": str(typed)})
    row = papers.Row(golden, {}, told["metrics"], one)
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
    one = papers.Experiment(**told, convert=str(checkpoint), data=data)
    metrics = {name: x for name, x in told["metrics"].items() if name.partition("/")[0] in data}
    row, scores = papers.Row("luke_ed", {}, metrics, one), tmp_path / "scores.json"
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
