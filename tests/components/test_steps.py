"""The steps of a training are counted from its data, and the learning rate fits them, with own data of any size."""

import io
import re

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin
from spacy.util import load_config

from spacy_luke.bridge.optimizer import AdamW
from spacy_luke.bridge.schedules import make_linear
from spacy_luke.training.steps import TrainingPlan, describe_rest, plan_training
from tests.training_config import quiet, start

COUNT = {"@callbacks": "spacy-luke.count_steps.v1"}
SETTINGS = {"max_steps": 0, "max_epochs": 3, "eval_frequency": 4}


@pytest.fixture
def config(config_path, tmp_path):
    """With a schedule that follows the data."""

    def make(copies=1, after_init=COUNT, schedule=None, **training):
        """copies: of the training documents."""
        config = load_config(config_path)
        docs = list(DocBin().from_disk(config["paths"]["train"]).get_docs(spacy.blank("en").vocab))
        DocBin(docs=docs * copies).to_disk(tmp_path / "own.spacy")
        config["paths"]["train"] = str(tmp_path / "own.spacy")
        linear = {"@schedules": "spacy-luke.linear.v1", "initial_rate": 0.003, "warmup": 0.06, "total_steps": None}
        config["training"]["optimizer"]["learn_rate"] = schedule or {**linear, "counted": None}
        config["training"].update({**SETTINGS, **training})
        config["initialize"]["after_init"] = after_init
        config.to_disk(tmp_path / "own.cfg")
        return tmp_path / "own.cfg"

    return make


@pytest.fixture
def rates(monkeypatch):
    """The learning rate of each update that is made."""
    seen = []
    step = AdamW.step

    def watched(self, key, parameters, **settings):
        seen.append(self.learn_rate)
        return step(self, key, parameters, **settings)

    monkeypatch.setattr(AdamW, "step", watched)
    return seen


def check(rates, steps):
    """The rate is above 0 from the second step to the last, which is the last before nothing."""
    assert len(rates) == steps
    assert all(rate > 0 for rate in rates[1:])
    warmup = int(0.06 * steps + 0.5)
    assert max(rates) == rates[warmup] == 0.003
    assert rates[-1] == pytest.approx(0.003 / (steps - warmup))


@pytest.mark.product
@pytest.mark.parametrize("copies", [1, 3, 10])
@pytest.mark.parametrize(
    "training",
    [
        {},
        {"accumulate_gradient": 1, "max_epochs": 5},
        {"max_steps": 7, "max_epochs": 0},
        {"max_steps": 4, "max_epochs": 9},
        {"max_steps": 5, "max_epochs": -1},
        {"batcher": {"@batchers": "spacy.batch_by_words.v1", "size": 40, "tolerance": 0.2}},
        {"batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": {"@schedules": "compounding.v1", "start": 1, "stop": 4, "compound": 1.5}}},  # noqa: E501
    ],
    ids=str,
)  # fmt: skip
def test_the_rate_ends_with_training(config, rates, tmp_path, copies, training):
    """As many updates as were counted, whatever the size of the data; the rate is about 0 at the last."""
    nlp = start(config(copies=copies, **training))
    quiet(nlp, tmp_path / "out")
    schedule = spacy.load(tmp_path / "out/model-last").config["training"]["optimizer"]["learn_rate"]
    assert schedule["total_steps"] is None  # other data are counted anew
    check(rates, schedule["counted"])


def test_counts_by_hand(config):
    """4 documents in batches of 3: 2 an epoch. spaCy's loops make one update more than max_steps."""

    def plan(**training):
        settings = load_config(config(**training), interpolate=True)
        return plan_training(settings, range(4))

    assert plan() == TrainingPlan(6, 3.0)
    assert plan(max_steps=3) == TrainingPlan(4, 2.0)
    assert plan(max_steps=4) == TrainingPlan(5, 2.5)
    assert plan(max_steps=99) == TrainingPlan(6, 3.0)
    assert plan(max_steps=9, max_epochs=0) == TrainingPlan(10, 5.0)
    assert plan(max_steps=0, max_epochs=0) == TrainingPlan(None, None)


@pytest.mark.parametrize(
    "training", [{}, {"max_steps": 7, "max_epochs": 0}, {"max_steps": 5, "max_epochs": -1}], ids=str
)
def test_spacy_train(config, rates, tmp_path, training, capsys):
    """spaCy's own loop reads the same config, and its rate ends with it too."""
    spacy_train(config(copies=2, **training), tmp_path / "out")
    capsys.readouterr()
    check(rates, {0: 9, 7: 8, 5: 6}[training.get("max_steps", 0)])


def test_spacy_train_without_a_count_says_what_to_do(config, tmp_path, capsys):
    path = config(after_init=None)
    with pytest.raises(ValueError, match="nothing has counted the steps: train with `spacy luke train`, or, for"):
        spacy_train(path, tmp_path / "out")
    capsys.readouterr()


def test_luke_train_needs_no_callback(config, rates, tmp_path):
    quiet(start(config(after_init=None)), tmp_path / "out")
    check(rates, 6)


@pytest.mark.slow
def test_other_data_are_counted_anew(config, rates, tmp_path):
    """With the config that a training has saved."""
    quiet(start(config()), tmp_path / "out")
    rates.clear()
    saved = load_config(tmp_path / "out/model-best/config.cfg")
    config(copies=4)  # writes other data to the same place
    saved.to_disk(tmp_path / "again.cfg")
    quiet(start(tmp_path / "again.cfg"), tmp_path / "again")
    check(rates, 18)


def test_without_a_limit(config, tmp_path):
    with pytest.raises(ValueError, match=r"follows from max_epochs or max_steps .* only patience ends the training"):
        start(config(max_epochs=0, patience=5))
    nlp = start(config(max_epochs=0, patience=5, schedule={"@schedules": "constant.v1", "rate": 0.001}))
    quiet(nlp, tmp_path / "out")
    assert (tmp_path / "out/model-best").is_dir()


def test_a_batcher_without_batches(config):
    batcher = {"@batchers": "spacy.batch_by_words.v1", "size": 1, "tolerance": 0.0, "discard_oversize": True}
    with pytest.raises(ValueError, match=r"makes no batch of the training data: look at \[training.batcher\]"):
        start(config(batcher=batcher))


@pytest.mark.parametrize("wrong", [{"initial_rate": 0.0}, {"warmup": 1.0}, {"warmup": -0.1}, {"total_steps": 0}])
def test_impossible_schedules(wrong):
    with pytest.raises(
        ValueError, match="Expected initial_rate above 0, warmup from 0 and below 1, and total_steps from 1"
    ):
        make_linear(**{"initial_rate": 0.1, **wrong})


# ---- what people are told


def told(path, tmp_path):
    said = io.StringIO()
    quiet(start(path), tmp_path / "out", stdout=said)
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue()).split())


def by_hand(total_steps, warmup_steps=1):
    return {
        "@schedules": "warmup_linear.v1",
        "initial_rate": 0.003,
        "warmup_steps": warmup_steps,
        "total_steps": total_steps,
    }


@pytest.mark.slow
def test_steps_epochs_and_time_left(config, tmp_path):
    text = told(config(copies=4), tmp_path)
    assert "Training: 18 steps, 3 epochs, 16 documents, evaluation every 4 steps" in text
    assert re.search(r"5 of 18 steps done, about \d+ (s|min) left", text)
    assert re.search(r"\b1 of 18 steps done(?!, about)", text)
    assert "18 of 18 steps done, about 0 s left" in text
    assert "learning rate" not in text  # it fits
    assert " 7 of 18" not in text  # between two evaluations a line a minute is enough


@pytest.mark.slow
def test_a_file_says_how_far_training_is_between_evaluations(config, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_luke.training.loop.PAUSE", 0.0)
    text = told(config(copies=4), tmp_path)
    assert [int(x) for x in re.findall(r"(\d+) of 18 steps done", text)] == list(range(1, 19))

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    said = Terminal()  # where the logger has a bar
    quiet(start(config(copies=4)), tmp_path / "shown", stdout=said)
    assert [int(x) for x in re.findall(r"(\d+) of 18 steps done", said.getvalue())] == [1, 5, 9, 13, 17, 18]


@pytest.mark.parametrize(
    ("done", "seconds", "expected"),
    [(11, 10.0, "90 s left"), (11, 100.0, "15 min left"), (11, 1000.0, "2.5 h left"), (101, 5.0, "0 s left")],
)
def test_time_left(done, seconds, expected):
    """10 steps since the start at step 1 of 101 took this long."""
    assert describe_rest(TrainingPlan(101, 1.0), done, 1, seconds).endswith(f"about {expected}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (by_hand(9), "The learning rate is 0 from step 10 on, but training has 18 steps"),
        (by_hand(500), "still is 97% of its greatest value at the end, since its schedule is longer than the 18 steps"),
        (
            by_hand(500, warmup_steps=50),
            "still rises at the end, to 0.001, since its warm-up is longer than the 18 s",
        ),
        (by_hand(18), None),
        (0.001, None),
        (by_hand(19), None),
        ({"@schedules": "constant.v1", "rate": 0.001}, None),
    ],
    ids=str,
)
def test_a_schedule_that_does_not_fit(config, tmp_path, schedule, expected):
    text = told(config(copies=4, schedule=schedule), tmp_path)
    assert ("earning rate" in text) == (expected is not None)
    assert expected is None or expected in text


def test_too_few_evaluations(config, tmp_path):
    """Of data that are too few for eval_frequency the last step is evaluated, so that model-best is what was
    learned."""
    text = told(config(eval_frequency=100), tmp_path)
    assert "eval_frequency is 100, but training has 6 steps" in text
    best = spacy.load(tmp_path / "out/model-best").get_pipe("luke_ner").to_bytes()
    assert best == spacy.load(tmp_path / "out/model-last").get_pipe("luke_ner").to_bytes()


def test_another_number_of_steps_is_told_by_the_setting_that_it_follows_from(config, tmp_path):
    quiet(start(config(max_epochs=1)), tmp_path / "out")
    told = r"learn_rate\.counted: was \d, now \d, which follows from training\.max_epochs: was 1, now 2$"
    with pytest.raises(ValueError, match=told):
        quiet(start(config(max_epochs=2)), tmp_path / "out", resume=True)
