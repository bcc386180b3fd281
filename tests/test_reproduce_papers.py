"""configs/papers.toml: what it says fits the configs, the workflows, the scorers and the papers."""

import json
import re
import shlex
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from spacy.util import load_config

from spacy_luke.checkpoint.ernie import read_ernie
from tests.family_folders import write_folder
from tests.project_file import load_project

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import papers  # noqa: E402
from project_steps import Project  # noqa: E402

TOLD = tomllib.loads(papers.PAPERS.read_text(encoding="utf8"))
COMMANDS = {command["name"]: command for command in load_project()["commands"]}


def tables():
    for name, told in TOLD["tables"].items():
        if "of" in told:
            continue
        for size in papers.SIZES if "size" not in told else [told["size"]]:
            yield name, size


def rows():
    for name, size in tables():
        for row in papers.read_table(name, size).rows:
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
def _project():
    return Project(ROOT)


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
    names = [row.name for row in papers.read_table(name, size).rows]
    assert len(set(names)) == len(names) >= 2


@pytest.mark.parametrize("size", papers.SIZES)
def test_rows_of_table_7_differ_in_their_attention(size):
    """Of each pair one has the transformer's; the other is told so where its checkpoint is not entity-aware itself."""
    names = {
        row.name: [x for name, x in row.experiment.overrides.items() if name.endswith(".weights.entity_aware")]
        for row in papers.read_table("luke7", size).rows
        if row.experiment is not None
    }
    assert {tuple(x) for name, x in names.items() if name.endswith("original attention")} == {("false",)}
    expected = {("true",)} if size == "small" else {()}  # studio-ousia/luke-large is entity-aware by itself
    assert {tuple(x) for name, x in names.items() if name.endswith("entity-aware")} == expected


@pytest.mark.parametrize("row", [row for row in rows() if "ernie" in row.id])
def test_bert_has_no_k_encoder(row, tmp_path):
    """The baselines of ERNIE's tables are BERT: no layer has entities, not even as a slot of [CLS]."""
    one = row.experiment
    kinds = [json.loads(x) for name, x in one.overrides.items() if name.endswith(".weights.layer_kinds")]
    found = read_ernie(
        write_folder(tmp_path, "mpnet"), layer_kinds=kinds[0] if kinds else None, entity_size=4, entity_heads=2
    )
    assert ({"mix", "norm"} & set(found.config.layer_kinds) == set()) == row.name.endswith("BERT")


def test_what_is_told_of_one_size():
    """Rows of the size full, settings and needs of the size small, also before those that all small trainings have."""
    names = {size: [row.name for row in papers.read_table("ernie7", size).rows] for size in papers.SIZES}
    here = ["ERNIE, pretrained here", "without dEA, pretrained here"]
    assert [x for x in names["full"] if x not in names["small"]] == here
    needs = {row.name: row.experiment.needs for row in papers.read_table("ernie7", "full").rows}
    assert needs["ERNIE"][0] == "vectors-wikidata"
    assert needs["BERT"] == needs["ERNIE"][1:]
    assert needs[here[0]] == [*needs["BERT"], "pretrain-ernie-public-fewrel"]
    full, small = (papers.read_table("luke8", size) for size in papers.SIZES)
    further = [next(x for x in table.rows if "further" in x.name).experiment for table in (full, small)]
    assert further[0].needs == ["convert", "pretrain-words"]
    assert further[1].needs == ["convert-small", "link-small", "shards-small", "pretrain-words-small"]
    weights = {row.name: row.experiment.overrides.get("paths.weights") for row in small.rows}
    assert weights["SQuAD, RoBERTa further pretrained"] == "training/words_small/model"
    assert weights["SQuAD, RoBERTa"] == TOLD["small"]["paths.weights"]
    assert weights["SQuAD, LUKE"] == "training/entities_small/model"
    converted = [row.experiment.overrides for row in papers.read_table("ned2", "small").rows if row.experiment]
    assert all(name.startswith("components.luke_linker.") for overrides in converted for name in overrides)


def test_what_there_is_not():
    with pytest.raises(ValueError, match="There is no table 'luke9'; there are luke1, "):
        papers.read_table("luke9", "full")
    assert papers.tables_of("ned", "full") == ["ned1", "ned2"]
    assert papers.tables_of("luke1", "full") == ["luke1"]
    single = [name for name in TOLD["tables"] if name not in ("ned", "all", "released")]
    assert papers.tables_of("all", "full") == single
    assert papers.tables_of("all", "small") == [name for name in single if name != "ernie6"]
    with pytest.raises(ValueError, match="ernie6 can only be made in the size 'full'"):
        papers.read_table("ernie6", "small")


@pytest.mark.parametrize("row", list(rows()))
def test_weights_of_this_project_are_made_by_what_is_needed(row):
    one = row.experiment
    config = {} if one.config is None else _config(one.config)["paths"]
    weights = one.convert or one.overrides.get("paths.weights", config.get("weights"))
    if weights.startswith("training/"):
        assert weights in _project().plan(one.needs).made


def test_what_is_needed_is_made_before(tmp_path):
    """By the commands that make it; what it was made of is not asked for where it is there."""
    for name in ("project.yml", "configs", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    needs = ["convert-ned", "ned-candidates", "pretrain-linking-2019"]
    plan = Project(tmp_path).plan(needs)
    assert plan.steps == [*needs[:2], "pretrain-text", "pretrain-corpus-linking-2019", needs[2]]
    assert list(plan.missing) == ["assets/ned", "assets/wikipedia/enwiki-pages-articles.xml.bz2"]
    (tmp_path / "assets/ned").mkdir()
    (tmp_path / "training/pretrain_linking_2019_large/model").mkdir(parents=True)
    plan = Project(tmp_path).plan(needs)
    assert (plan.steps, plan.missing) == (needs[:2], {})
    plan = Project(tmp_path).plan(["convert-glue --vars.glue rte"])
    assert list(plan.missing) == ["assets/glue/rte/train.tsv", "assets/glue/rte/dev.tsv"]
    assert "Licence: differs by task" in plan.missing["assets/glue/rte/dev.tsv"]


PAPER = {"luke": "luke-000", "ernie": "ernie-003", "ned": "ned-004"}
CITED = [
    pytest.param(name, row, id=f"{name}, {row['name']}")
    for name, told in TOLD["tables"].items()
    for row in told.get("cited", ())
]


@pytest.mark.parametrize(("table", "row"), CITED)
def test_cited_figures_are_the_papers(shared, table, row):
    """A line of the paper's text begins with the system's name and has these figures, one after another."""
    (path,) = shared("papers").glob(f"{PAPER[table.rstrip('0123456789')]}_*.txt")
    lines = [" ".join(line.split()) for line in path.read_text(encoding="utf8").splitlines()]
    system, figures = row["name"].rpartition(", ")[2], list(row["paper"].values())
    numbers = [[float(x) for x in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", x)] for x in lines if x.startswith(system)]
    assert any(own[i : i + len(figures)] == figures for own in numbers for i in range(len(own)))
