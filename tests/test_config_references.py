"""What the configs have of the papers and of their codes: steps, schedules, optimizers, where heads begin."""

import re
import tomllib
from pathlib import Path

import pytest
from spacy.util import load_config

from spacy_luke.training.steps import plan_training
from tests.project_file import load_project

ROOT = Path(__file__).parents[1]
# No pipelines, one of parts, one of a finished pipeline.
OTHERS = ("ernie_pretrain", "pretrain_", "all_small", "ready_relation")
CONFIGS = sorted(path for path in (ROOT / "configs").glob("*.cfg") if not path.stem.startswith(OTHERS))
WITH_PRIOR = {"luke_ner", "luke_typer", "luke_relation", "luke_cloze", "ernie_typer", "ernie_relation"}
WARMUP = {  # shares of all steps, where it is not LUKE's 6 %
    "ernie_glue_textcat": 0.1,
    "ernie_relation_fewrel": 0.1,
    "ernie_relation_tacred": 0.0,
    "ernie_typing_figer": 0.2,
    "ernie_typing_open_entity": 0.1,
    "linking_aida_2019_large": 0.1,
    "linking_aida_base": 0.1,
    "ernie_typing_small": 0.1,
    "joint_small": 0.1,
    "linking_small": 0.1,
    "listeners_small": 0.05,
    "open_small": 0.1,
    "ready": 0.1,
}
UNCORRECTED = {  # AdamW as the originals' codes have it
    "cloze_record_large",
    "ernie_relation_fewrel",
    "ernie_relation_tacred",
    "ernie_typing_figer",
    "ernie_typing_open_entity",
    "linking_aida_2019_large",
    "linking_aida_base",
    "ner_conll03_base",
    "ner_conll03_large",
    "qa_squad_large",
    "relation_tacred_large",
    "typing_open_entity_large",
}
TYPES = {"ernie_typing_figer": 113, "ernie_typing_open_entity": 9, "typing_open_entity_large": 9}
PUBLISHED = {  # Examples, and the steps of all epochs
    "cloze_record_large": (65_709, 6258),
    "ernie_glue_textcat": (3668, 345),
    "ernie_relation_fewrel": (8000, 2500),
    "ernie_relation_tacred": (68_124, 8516),
    "ernie_typing_figer": (2_000_000, 2931),
    "ernie_typing_open_entity": (1998, 1250),
    "joint_conll04_base": (922, 2320),
    "joint_scierc_base": (350, 1760),
    "linking_aida_2019_large": (18_448, 1154),  # mentions, each twice, 32 at a time
    "linking_aida_base": (946, 120),
    "linking_small": (946, 357),
    "qa_squad_large": (18_896, 3780),
    "relation_tacred_large": (68_124, 10_645),
    "typing_open_entity_large": (1998, 1500),
    # the sample corpus
    "cloze_small": (48, 240),
    "qa_small": (48, 240),
    "ernie_typing_small": (48, 312),  # 300 before
}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_schedule_follows_the_data(path):
    """No step is counted by hand; warm-up is the paper's share of all."""
    config = load_config(path)
    rate = config["training"]["optimizer"]["learn_rate"]
    references = ("ernie_relation_", "ernie_typing_")  # whose code keeps the rate
    kind = "constant" if path.stem.startswith(references) and "small" not in path.stem else "linear"
    assert (rate["@schedules"], rate["total_steps"], rate["counted"]) == (f"spacy-luke.{kind}.v1", None, None)
    assert config["initialize"]["after_init"] == {"@callbacks": "spacy-luke.count_steps.v1"}
    assert rate["warmup"] == WARMUP.get(path.stem, 0.12 if "small" in path.stem else 0.06)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_bias_correction_is_the_references(path):
    optimizer = load_config(path)["training"]["optimizer"]
    assert optimizer["bias_correction"] == (path.stem not in UNCORRECTED)
    types = TYPES.get(path.stem, 1)  # over which a loss is summed, and the reference's is the mean
    if path.stem in UNCORRECTED and path.stem.startswith("ernie_"):  # FusedAdam's
        assert (optimizer["beta2"], optimizer["grad_clip"]) == (0.999, types)
        assert optimizer["eps"] == pytest.approx(1e-8 * types)
    elif path.stem in TYPES:
        assert (optimizer["eps"], optimizer["grad_clip"]) == (pytest.approx(1e-6 * types), 0)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_heads_begin_as_the_references(path):
    """All rates of a paper's run sum to less than a prior is: what a head begins with, it ends with."""
    config = load_config(path)
    told = [x["bias_init"] for name, x in config["initialize"]["components"].items() if name in WITH_PRIOR]
    assert len(told) == len(WITH_PRIOR & set(config["nlp"]["pipeline"]))
    assert set(told) <= {"zeros" if path.stem in UNCORRECTED else "prior"}


def test_what_the_papers_tables_are_made_of_begins_as_the_references():
    experiments = tomllib.loads((ROOT / "configs/papers.toml").read_text(encoding="utf8"))["experiments"]
    named = {ROOT / told["config"] for told in experiments.values() if "config" in told}
    with_prior = {path.stem for path in named if "bias_init" in path.read_text(encoding="utf8")}
    assert len(with_prior) >= 8
    assert with_prior <= UNCORRECTED


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow) if n > 500_000 else x for x, (n, _) in PUBLISHED.items()]
)
def test_published_numbers_of_steps(name):
    """Of Examples of the original data as many as they have: what was counted by hand before, or in the papers'
    code."""
    documents, expected = PUBLISHED[name]
    config = load_config(ROOT / f"configs/{name}.cfg", interpolate=True)
    assert plan_training(config, range(documents)) == (expected, config["training"]["max_epochs"])


@pytest.mark.parametrize("name", ["typing_open_entity_large", "relation_tacred_large", "ernie_relation_tacred"])
def test_the_best_is_chosen_once_an_epoch(name):
    """As in LUKE's code and in ERNIE's."""
    training = load_config(ROOT / f"configs/{name}.cfg", interpolate=True)["training"]
    assert training["eval_frequency"] * training["max_epochs"] == PUBLISHED[name][1]


@pytest.mark.parametrize("name", ["base", "large"])
def test_steps_of_conll03_by_sentences(name):
    """8 sentences of any documents a batch; the training part has 14,041."""
    config = load_config(ROOT / f"configs/ner_conll03_{name}.cfg", interpolate=True)
    assert config["corpora"]["train"]["lengths"]["@misc"] == "spacy-luke.one_sentence.v1"
    assert plan_training(config, range(14_041)) == (5 * 1756, 5.0)


@pytest.mark.parametrize("name", ["one_way"])
def test_steps_of_conll03(name, shared):
    """Batches of words depend on the order of the documents: 4,580 steps in one order, and nearly as many in others."""
    words = []
    for line in shared("data/conll2003/eng.train").read_text(encoding="utf8").splitlines():
        if line.startswith("-DOCSTART-"):
            words.append(0)
        elif line:
            words[-1] += 1
    config = load_config(ROOT / f"configs/ner_conll03_{name}.cfg", interpolate=True)
    plan = plan_training(config, [range(n) for n in words])
    assert (len(words), plan.steps) == (946, pytest.approx(4580, rel=0.005))


WINDOWS = {  # of a step, all processes together: the paper's batches
    "pretrain_base": 2048,
    "pretrain_large": 2048,
    "pretrain_words_large": 2048,
    "pretrain_linking_base": 2048,
    "pretrain_linking_2019_large": 252,
}


@pytest.mark.parametrize("name", WINDOWS)
def test_workflows_pretrain_with_the_papers_batches(name):
    (script,) = [
        line for x in load_project()["commands"] for line in x["script"] if f"pretrain configs/{name}.cfg" in str(line)
    ]
    processes = int(re.findall(r"--nproc-per-node (\d+)", script)[0])
    config = load_config(ROOT / "configs" / f"{name}.cfg")
    for stage in config["stages"].values():
        assert config["training"]["batch_size"] * stage["step_batches"] == WINDOWS[name]
        assert stage["step_batches"] % processes == 0


def test_ernie_is_pretrained_with_the_optimizer_of_its_fine_tuning():
    """Both are the original's FusedAdam of 16 bits."""
    found = load_config(ROOT / "configs" / "ernie_pretrain.cfg")["training"]["optimizer"]
    tuned = load_config(ROOT / "configs" / "ernie_relation_fewrel.cfg")["training"]["optimizer"]
    for name in ("beta1", "beta2", "eps", "bias_correction"):
        assert found[name] == tuned[name]
