"""project.yml: it validates, its steps fit together, and every path in it exists or is made by an earlier step."""

import hashlib
import shlex
from pathlib import Path

import pytest
import spacy
import typer.main
from spacy.cli._util import app as spacy_app
from weasel.cli.run import project_run
from weasel.util.config import load_project_config

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)

ROOT = Path(__file__).parents[1]
PROJECT = load_project_config(ROOT)
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
ASSETS = {asset["dest"]: asset for asset in PROJECT["assets"]}
SCRIPTS = [shlex.split(line) for command in PROJECT["commands"] for line in command["script"]]


def find_command(words):
    """The command of spaCy's CLI that `python -m spacy WORDS` runs, and the words after its name."""
    command = typer.main.get_command(spacy_app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("workflow", PROJECT["workflows"])
def test_paths_exist_or_are_made_before(workflow):
    made = set(ASSETS)
    for name in PROJECT["workflows"][workflow]:
        for path in COMMANDS[name].get("deps", []):
            assert path in made or (ROOT / path).exists(), f"{name} needs {path}, which nothing makes"
        outputs = [*COMMANDS[name].get("outputs", []), *COMMANDS[name].get("outputs_no_cache", [])]
        for path in outputs:
            places = [path, str(Path(path).parent), str(Path(path).parent.parent)]
            mentioned = " ".join(COMMANDS[name]["script"]).split()
            assert set(places) & set(mentioned), f"{name} promises {path}, but no line of it names the place"
        made.update(outputs)


def test_every_command_has_its_workflow():
    assert set(COMMANDS) == {name for names in PROJECT["workflows"].values() for name in names}


@pytest.mark.parametrize("words", SCRIPTS, ids=" ".join)
def test_commands_and_options_exist(words):
    assert words[:2] == ["python", "-m"]
    if words[2] != "spacy":
        assert words[2] == "pip"
        return
    command, rest = find_command(words[3:])
    known = {option for parameter in command.params for option in parameter.opts}
    trains = command.name == "train"  # any setting of the config may be overridden
    for word in rest:
        assert not word.startswith("--") or word in known or (trains and "." in word), f"{command.name} has no {word}"


@pytest.mark.parametrize("name", ["ner_conll03_base", "ner_conll03_large", "ner_conll03_one_way"])
def test_the_configs_that_may_be_chosen_exist(name):
    assert PROJECT["vars"]["config"].startswith("ner_conll03_")
    commands = load_project_config(ROOT, overrides={"vars.config": name})["commands"]
    (train,) = (command for command in commands if command["name"] == "train")
    assert (ROOT / train["deps"][0]).is_file()
    assert name in train["deps"][0]


@pytest.mark.parametrize("dest", ASSETS)
def test_assets_have_licence_and_checksum(dest, shared):
    asset = ASSETS[dest]
    assert "Licence" in asset["description"]
    path = ROOT / dest if "sample" in dest else shared(f"data/conll2003/{Path(dest).name}")
    assert hashlib.md5(path.read_bytes()).hexdigest() == asset["checksum"]


def test_conll_is_never_downloaded():
    assert not any("url" in asset or "git" in asset for asset in ASSETS.values())


def test_the_first_small_steps_run(tmp_path, capfd):
    """Both conversions, through weasel, in a copy of what they need."""
    (tmp_path / "project.yml").write_bytes((ROOT / "project.yml").read_bytes())
    (tmp_path / "assets" / "sample").mkdir(parents=True)
    for file in (ROOT / "assets" / "sample").iterdir():
        (tmp_path / "assets" / "sample" / file.name).write_bytes(file.read_bytes())
    for name in ("convert-small", "convert-nested-small"):
        project_run(tmp_path, name, capture=False)
    for name in ("small", "nested"):
        assert len(list(spacy.training.Corpus(tmp_path / "corpus" / name / "test.spacy")(spacy.blank("en")))) == 13
