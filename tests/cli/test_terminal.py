"""What all commands have in common at the terminal: help, examples, width, colours, misspelt words."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import spacy
import typer.main
from rich.text import Text
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner
from wasabi import msg

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke import __version__, cli
from spacy_luke.cli.examples import EXAMPLES
from spacy_luke.cli.terminal import quieten, show_heading, show_table, take_any_letter
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import annotate, as_gold, make_pipeline
from tests.spacy_cli import find_command

NAMES = list(cli.COMMANDS)
WIDTHS = (60, 80, 200)


def run(*words, code=0, **settings):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, words)], **settings)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    nlp = make_pipeline()
    nlp.to_disk(folder / "pipeline")
    write_docbin([as_gold(doc) for doc in annotate(nlp)], folder / "gold.spacy")
    (folder / "letter.txt").write_text("Ada Lovelace lived in London near the Royal Society.")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_help(name):
    """Says what the command does, what each argument and option is, and ends with an example."""
    command = typer.main.get_command(cli.app).commands[name]
    assert len(command.help) > 20
    assert [p.name for p in command.params if p.name != "help" and not getattr(p, "help", None)] == []
    told = [p.help for p in command.params if getattr(p, "help", None)]
    assert [x for x in told if Text.from_markup(x).plain != x.replace("\\[", "[")] == []  # nothing is taken for markup
    text = "".join(run(name, "--help").split())  # lines may end inside a word with a hyphen
    assert text.endswith("".join(f"Example: {EXAMPLES[name]}".split()))


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_right(name):
    """Their options are there, and their arguments as many as the command takes."""
    _, _, *words = shlex.split(EXAMPLES[name])
    command, rest = find_command(words[1:])
    assert command.name == name
    context = command.context_class(command, info_name=name)
    given, left, _ = command.make_parser(context).parse_args(list(rest))  # whose files need not be there
    assert left == []
    assert [p.name for p in command.params if p.required and not given.get(p.name)] == []


def test_no_example_is_left():
    assert list(EXAMPLES) == NAMES


def test_version():
    assert run("--version") == f"spacy-luke {__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", __version__)


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_fit(folder, width, monkeypatch):
    """Of `info`, `evaluate` and `annotate`, whatever the width; headings, messages and commands to copy may be
    longer."""
    monkeypatch.setenv("COLUMNS", str(width))
    said = run("info", folder / "pipeline")
    said += run("evaluate", folder / "pipeline", folder / "gold.spacy")
    said += run("annotate", folder / "pipeline", folder / "letter.txt", "--question", "Where did she live?")
    rules = [i for i, line in enumerate(said.splitlines()) if set(line) == {"─", " "}]
    assert len(rules) > 8
    lines = said.splitlines()
    for rule in rules:
        end = next((i for i in range(rule, len(lines)) if not lines[i].strip()), len(lines))
        assert [line for line in lines[rule - 1 : end] if len(line) > width] == []


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("no_color", [None, "1"])
def test_colours(folder, monkeypatch, terminal, no_color):
    """In a terminal alone, and not with NO_COLOR; a file gets neither these nor bars."""
    monkeypatch.setattr(msg, "show_color", True)
    monkeypatch.setattr(msg, "hide_animation", False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.setenv("ANSI_COLORS_DISABLED", "")  # which is set where there are none
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    quieten()
    assert msg.show_color == (terminal and not no_color)


def test_a_file_is_quiet(folder, tmp_path):
    """No escapes, no carriage returns."""
    said = run("evaluate", folder / "pipeline", folder / "gold.spacy", "-o", tmp_path / "scores.json", color=True)
    assert "\x1b" not in said
    assert "\r" not in said
    assert "Saved the scores" in said


def test_a_table_of_numbers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    show_table(("label", "P"), [("A" * 50, "1.00"), ("b", "12.00")])
    assert capsys.readouterr().out.splitlines()[2] == f"{'─' * 33}  {'─' * 5}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate {} {}/data.spacy --outptu x", "No such option '--outptu'. Did you mean '--output'"),
        ("trian a", "Did you mean 'train'"),
        ("train {}/c.cfg -o x --outptu y", "No such option '--outptu'. Did you mean '--output'"),
        ("train {}/c.cfg -o x --traning.seed 1", "Is training meant?"),
        ("train {}/c.cfg -o x --training.sed 1", "Is seed meant?"),
        ("train {}/c.cfg -o x --paths.tran 1", "Is train meant?"),
        ("train {}/c.cfg -o x --components.luke_ner.max_span_word 1", "Is max_span_words meant?"),
    ],
)
def test_misspelt(tmp_path, line, message):
    data = tmp_path / "data.spacy"
    nlp = spacy.blank("en")
    doc = nlp("Ada left.")
    doc.set_ents([doc.char_span(0, 3, "PER")])
    write_docbin([doc], data)
    config = nlp.config.copy()
    config["paths"]["train"] = config["paths"]["dev"] = str(data)
    config["nlp"]["pipeline"] = ["luke_ner"]
    config["components"] = {"luke_ner": {"factory": "luke_ner"}}
    config.to_disk(tmp_path / "c.cfg")
    result = CliRunner().invoke(spacy_app, ["luke", *line.format(tmp_path, tmp_path).split()])
    assert result.exit_code in (1, 2)
    said = " ".join(result.output.replace("│", " ").split())
    assert message.lower() in said.lower(), said


@pytest.mark.slow
def test_nothing_is_imported_that_is_not_needed():
    """spaCy imports our commands with every command of its own: only what names them."""
    code = "import sys, spacy_luke.cli; print(*sorted(x for x in sys.modules if x.startswith('spacy_luke.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[1] for name in done.stdout.split()} == {"cli", "pages", "pipelines", "stores"}
    assert "spacy_luke.pages.terminal" in done.stdout
    assert "spacy_luke.components" not in done.stdout


def test_an_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(msg, "show_color", True)
    monkeypatch.setattr(msg, "hide_animation", False)
    monkeypatch.setenv("ANSI_COLORS_DISABLED", "")
    monkeypatch.setattr("sys.stdout", None)
    quieten()
    take_any_letter()
    show_heading("Nobody")
    assert not msg.show_color


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"PYTHONIOENCODING": "cp1252"}, b"??"),
        ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, "東京".encode()),
        ({"LC_ALL": "C.UTF-8"}, "東京".encode()),
    ],
)
def test_letters_that_the_output_lacks(settings, shown):
    """As on Windows, where a pipe or a file has the encoding of the country."""
    code = "import spacy_luke.cli.terminal as t; t.take_any_letter(); print('\\udcfc'); "
    code += "t.show_table('aP', [('\\u6771\\u4eac', '1')])"
    settings = {**{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LC_"))}, **settings}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, env={**settings, "PYTHONUTF8": "0"}, timeout=100)
    assert shown in done.stdout
