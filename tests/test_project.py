"""project.yml: it validates, its steps fit together, and every path in it exists or is made by an earlier step."""

import re
import shlex
import threading
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.util import load_config
from typer.testing import CliRunner
from weasel.cli.run import project_run
from weasel.util.hashing import get_checksum

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.scorers.glue import METRICS as TASKS
from tests import project_file
from tests.project_file import load_project
from tests.spacy_cli import find_command

ROOT = Path(__file__).parents[1]
PROJECT = load_project()
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
ASSETS = {asset["dest"]: asset for asset in PROJECT["assets"]}
SCRIPTS = [shlex.split(line) for command in PROJECT["commands"] for line in command["script"]]
# What the sources of the starter knowledge base are called among the shared data.
STARTER = {
    "wikidata-slice.tsv": "wikidata_slice/wikidata-slice.tsv",
    "cities15000.tsv": "wikidata_slice/cities15000.tsv",
    "codex/entity2types.json": "codex/types/entity2types.json",
    "codex/types.json": "codex/types/en/types.json",
    "codex/train.txt": "codex/triples/codex-m/train.txt",
    "fewrel/val_wiki.json": "fewrel/val_wiki.json",
    "fewrel/mgfte_val.json": "fewrel/resplit_mgfte/val.json",
    "fewrel/mgfte_test.json": "fewrel/resplit_mgfte/test.json",
    "entity2text.txt": "fb15k237/kgbert/entity2text.txt",
    "FB15k-237.tar.gz": "fb15k237/FB15k-237.tar.gz",
    "enwiki.xml.bz2": "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    "aida-train.xml": "ed_wned/aida-train/aida-train.xml",
}


LAST = {"train", "train-qa", "train-cloze", "train-linking", "train-ernie-glue"}  # the last weights are reported


# Workflows that are run with other variables than the usual ones, as project.yml says beside these.
VARIABLES = {
    "ernie-glue-mismatched": {"vars.glue": "mnli"},
    "ready-md": {"vars.ready": "ready_md", "vars.ready_card": "configs/ready_md.card.json"},
}


@pytest.mark.parametrize("workflow", PROJECT["workflows"])
def test_paths_exist_or_are_made_before(workflow):
    project = load_project(overrides=VARIABLES.get(workflow, {}))
    commands = {command["name"]: command for command in project["commands"]}
    made = {asset["dest"] for asset in project["assets"]}
    for name in PROJECT["workflows"][workflow]:
        command = commands[name]
        for path in command.get("deps", []):
            assert path in made or (ROOT / path).exists(), f"{name} needs {path}, which nothing makes"
        outputs = [*command.get("outputs", []), *command.get("outputs_no_cache", [])]
        for path in outputs:
            places = [path, str(Path(path).parent), str(Path(path).parent.parent)]
            mentioned = " ".join(command["script"]).split()
            assert set(places) & set(mentioned), f"{name} promises {path}, but no line of it names the place"
        made.update(outputs)


def test_every_command_has_its_workflow():
    inside = {name for names in PROJECT["workflows"].values() for name in names}
    tables = (ROOT / "configs/papers.toml").read_text(encoding="utf8")
    needed = set(re.findall(r'"([^"]+)"', " ".join(re.findall(r"\b(?:small_)?needs = \[([^\]]*)\]", tables))))
    assert set(COMMANDS) == {*inside, *(name.split()[0] for name in needed), "package"}  # of whatever has been trained


def test_what_takes_days_goes_on_after_a_kill():
    """And so does `project run`, which runs the same command again."""
    long = [x for x in SCRIPTS if {"pretrain", "pretrain-ernie", "train-kge"} & set(x)]
    assert len(long) >= 16
    assert [x for x in long if "--resume" not in x] == []


@pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
def test_commands_and_options_exist(words):
    if words[1].startswith(("scripts/", "benchmarks/")):
        assert (ROOT / words[1]).is_file()
        return
    assert words[:2] == ["python", "-m"]
    if words[2] == "torch.distributed.run":
        words = ["python", *words[words.index("-m", 3) :]]
    if words[2] != "spacy":
        assert words[2] == "pip"
        return
    command, rest = find_command(words[3:])
    known = {option for x in command.params for option in (*x.opts, *x.secondary_opts)}
    trains = command.name in (
        "train",
        "pretrain",
        "pretrain-ernie",
        "evaluate",
        "distill",
    )  # any setting may be overridden
    for word in rest:
        assert not word.startswith("--") or word in known or (trains and "." in word), f"{command.name} has no {word}"


@pytest.mark.parametrize(
    ("variable", "value", "command"),
    [
        *(("config", f"ner_conll03_{name}", "train") for name in ("base", "large", "one_way")),
        *(("joint", name, "train-joint") for name in ("conll04", "scierc")),
        *(("ernie_typing", name, "train-ernie-typing") for name in ("open_entity", "figer")),
        *(("ernie_relation", name, "train-ernie-relation") for name in ("fewrel", "tacred")),
        ("trained", "joint_small", "package"),
    ],
)
def test_the_choices_of_variables_exist(variable, value, command):
    project = load_project(overrides={f"vars.{variable}": value})
    (found,) = (x for x in project["commands"] if x["name"] == command)
    assert value in found["deps"][0]
    if command != "package":
        assert (ROOT / found["deps"][0]).is_file()
        folders = {str(Path(path).parent) for path in found["deps"] if path.startswith("corpus/")}
        config = load_config(ROOT / found["deps"][0])
        assert folders == {str(Path(config["paths"][part]).parent) for part in ("train", "dev")}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("train")])
def test_what_is_trained_on_is_what_the_config_names(name):
    (path,) = (path for path in COMMANDS[name]["deps"] if path.endswith(".cfg"))
    paths = load_config(ROOT / path, interpolate=True)["paths"]
    given = {paths[key] for key in ("train", "dev", "data", "mentions", "entity_vectors", "kb") if paths.get(key)}
    fetched = {path for command in COMMANDS.values() for path in command.get("outputs", []) if "/" in path}
    given |= {paths["weights"]} & fetched  # others are hub names, or in packages
    assert set(COMMANDS[name]["deps"]) == {path, *given}
    (output,) = COMMANDS[name]["outputs"]
    assert output.startswith((f"training/{Path(path).stem}/", f"training/{Path(path).stem}_"))
    assert output.endswith("/model-last" if name in LAST else "/model-best")
    # a project asks for a new run only where something has changed
    assert "--overwrite" in COMMANDS[name]["script"][-1].split()


@pytest.mark.parametrize("dest", ASSETS)
def test_assets_have_their_licence(dest):
    assert "Licence" in ASSETS[dest]["description"]


@pytest.mark.parametrize("dest", [dest for dest in ASSETS if "checksum" in ASSETS[dest] and "/squad/" not in dest])
def test_checksums_of_assets(dest, shared):
    folder, *names = Path(dest).parts[1:]
    name = "/".join(names)
    folders = {"conll03": "conll2003", "open_entity": "open_entity_ernie"}
    folders |= {"codex_m": "codex/triples/codex-m", "ernie_sample": "ernie_pretrain_sample"}
    folders |= {"aida": f"ed_wned/{Path(name).stem}"}
    name = f"conll04_{name}" if folder == "conll04" else name
    name = STARTER.get(name, name) if folder == "starter_kb" else name
    folders |= {"starter_kb": ".", "ready": "."}
    path = ROOT / dest if folder == "sample" else shared(f"data/{folders.get(folder, folder)}/{name}")
    assert get_checksum(path) == ASSETS[dest]["checksum"]


def test_what_steps_fetch_is_what_assets_say():
    """By full commits, whose checksums are those of the assets."""
    (command,) = (x for x in PROJECT["commands"] if x["name"] == "fetch-ready")
    fetched = {}
    for line in command["script"]:
        words = shlex.split(line)
        assert re.fullmatch("[0-9a-f]{40}", words[3])
        fetched |= {words[i + 2]: (words[i + 3], words[3]) for i, word in enumerate(words) if word == "--take"}
    assert sorted(fetched) == sorted(command["outputs"])
    for dest, (checksum, commit) in fetched.items():
        assert ASSETS[dest]["checksum"] == checksum
        assert commit in ASSETS[dest]["description"] or "of the same commit" in ASSETS[dest]["description"]


def test_only_what_may_be_shared_is_downloaded():
    downloaded = {dest: asset for dest, asset in ASSETS.items() if "url" in asset or "git" in asset}
    folders = {"squad", "codex_m", "ernie_sample", "aida", "starter_kb", "ready"}
    assert {Path(dest).parts[1] for dest in downloaded} == folders
    assert all("checksum" in asset for asset in downloaded.values())
    assert all(re.search("CC BY|MIT|CC0|Apache", asset["description"]) for asset in downloaded.values())


def test_every_task_of_glue_has_its_folder():
    """One task does not overwrite another's model; its steps follow from its data."""
    outputs = {}
    for task in TASKS:
        project = load_project(overrides={"vars.glue": task})
        (command,) = (x for x in project["commands"] if x["name"] == "train-ernie-glue")
        assert f"--output training/ernie_glue_textcat/{task} " in command["script"][0]
        outputs[task] = command["outputs"][0]
    assert len(set(outputs.values())) == len(TASKS)


@pytest.fixture
def project_copy(tmp_path):
    """A folder with what both conversions of the sample need."""
    (tmp_path / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())
    (tmp_path / "assets" / "sample").mkdir(parents=True)
    for file in (ROOT / "assets" / "sample").iterdir():
        (tmp_path / "assets" / "sample" / file.name).write_bytes(file.read_bytes())
    return tmp_path


def check_conversions(folder):
    for name in ("small", "nested"):
        assert len(list(spacy.training.Corpus(folder / "corpus" / name / "test.spacy")(spacy.blank("en")))) == 13


def test_the_first_small_steps_run(project_copy, monkeypatch):
    """Each line of both conversions, in this process."""
    monkeypatch.chdir(project_copy)
    for name in ("convert-small", "convert-nested-small"):
        for line in COMMANDS[name]["script"]:
            words = shlex.split(line)
            assert words[:3] == ["python", "-m", "spacy"]
            result = CliRunner().invoke(spacy_app, words[3:])
            assert result.exit_code == 0, result.output
    check_conversions(project_copy)


@pytest.mark.slow
def test_the_first_small_steps_run_by_weasel(project_copy, capfd):
    for name in ("convert-small", "convert-nested-small"):
        project_run(project_copy, name, capture=False)
    check_conversions(project_copy)


@pytest.mark.slow
def test_folders_that_another_process_makes(monkeypatch, tmp_path):
    """Two processes of the tests read project.yml in a fresh clone: one of them failed where both made a folder."""
    (tmp_path / "project.yml").write_text((ROOT / "project.yml").read_text(encoding="utf8"), encoding="utf8")
    monkeypatch.setattr(project_file, "ROOT", tmp_path)
    read, failed, start = [], [], threading.Barrier(8)

    def load():
        start.wait()
        try:
            read.append(project_file.load_project())
        except FileExistsError as error:
            failed.append(error)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(read), failed) == (8, [])
    assert all((tmp_path / folder).is_dir() for folder in PROJECT["directories"])
