"""The share of the harness that runs with the slow tests, and what is done with cases that fail, die and hang."""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from . import runner
from .__main__ import keep_runs, main
from .kinds import KINDS
from .runner import Kind, Outcome, run_cases, try_case
from .table import make_table, read_runs, write_runs


class Odd(Kind):
    name, unit, wanted, limit = "odd", "things", 9, 1.0

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        assert list(folder.iterdir()) == []
        (folder / "x").write_text("")
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2:
            time.sleep(60)
        if number == 5:
            while True:
                pass
        if number == 3:
            raise KeyError("x")
        return Outcome(
            tried=2, refused=1, failures=["bad"] if number == 4 else [], counts={"even": 2 * (number % 2 == 0)}
        )


@pytest.fixture
def odd(tmp_path):
    settings = {"seed": 5, "deadline": float("inf"), "folder": tmp_path / "work", "say": print}
    return run_cases(Odd(), wanted=9, first=0, jobs=2, **settings)


def test_what_fails_is_told(odd):
    failures = dict(odd.failures)
    assert set(failures) == {1, 2, 3, 4, 5}
    assert failures[1] == "the process ended by SIGKILL"
    assert failures[2] == "waits for something, 1 s without any processor time"
    assert failures[5].startswith("still running after ")
    assert "KeyError: 'x'" in failures[3]
    assert failures[4] == "bad"
    assert (odd.first, odd.tried, odd.refused) == (0, 4 + 2 * (odd.last - 4), odd.last - 4)
    assert odd.tried >= 9
    assert try_case(Odd(), 4, 5, Path("absent")).failures == ["bad"]
    assert not Path("absent").exists()


def test_a_case_on_a_full_machine_does_not_hang(monkeypatch):
    spent = iter([0.5, 3.0, 9.9, 9.9])
    monkeypatch.setattr(runner, "processor_seconds", lambda session: next(spent))
    worker = runner._Worker(1, 0, 0, since=100.0)
    assert runner._hangs(worker, 10.0, 109.0) == ""
    assert runner._hangs(worker, 10.0, 150.0) == ""  # half a second of the processor in 50 s
    assert runner._hangs(worker, 10.0, 159.0) == ""
    assert runner._hangs(worker, 10.0, 400.0) == ""
    assert runner._hangs(worker, 10.0, 900.0) == ""
    assert runner._hangs(worker, 10.0, 911.0) == "waits for something, 10 s without any processor time"


def test_a_killed_run_has_told_what_it_did(tmp_path, monkeypatch):
    """What there is so far is written while a kind goes on."""
    path, kept = tmp_path / "x.json", []
    monkeypatch.setattr(runner, "TELL", 0.0)
    settings = {"seed": 5, "deadline": float("inf"), "folder": tmp_path / "work", "say": print}
    run = run_cases(
        Odd(), wanted=1, first=0, jobs=1, keep=lambda run: kept.append((run.tried, run.seconds > 0)), **settings
    )
    assert kept == [(run.tried, True)]
    keep_runs(path, [], [Odd()], run)
    keep_runs(path, [run], [Odd()], run)
    assert [x.tried for x in read_runs(path)] == [run.tried, run.tried]
    assert run.machine["versions"]


def test_results_add_up(odd, tmp_path):
    path = tmp_path / "results" / "odd.json"
    write_runs(path, [odd, odd], [Odd()])
    again = read_runs(path)
    assert [run.to_dict() for run in again] == 2 * [odd.to_dict()]
    table = path.with_suffix(".md").read_text("utf8")
    assert table == make_table(again, [Odd()])
    assert f"| odd (things) | {2 * odd.tried} | {2 * odd.refused} | 10 | 9 | 0 |" in table
    assert "python -m tests.harness --kinds odd --seed 5 --only 3" in table


def test_the_command_goes_on(tmp_path, monkeypatch, capsys):
    seen = []

    class Easy(Odd):
        name = "easy"

        def case(self, number, rng, folder):
            return Outcome(counts={f"case {number}": 1})

    monkeypatch.setitem(KINDS, "easy", Easy)
    options = ["--kinds", "easy", "--jobs", "1", "--output", str(tmp_path / "x.json")]
    for wanted in ("3", "5", "5"):
        assert main([*options, "--easy", wanted]) == 0
        seen.append([(run.first, run.last) for run in read_runs(tmp_path / "x.json")])
    assert seen == [[(0, 3)], [(0, 3), (3, 5)], [(0, 3), (3, 5)]]
    assert main([*options, "--only", "7"]) == 0
    assert "'case 7': 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="Unknown kinds"):
        main(["--kinds", "nothing"])


def test_what_failed_is_repeated(tmp_path, monkeypatch, capsys):
    """What fails no more stays in the table, and is no failure that is open."""
    mended = {1}

    class Weak(Odd):
        name = "weak"

        def case(self, number, rng, folder):
            return Outcome(failures=["it breaks"] if number in (1, 3) and number not in mended else [])

    monkeypatch.setitem(KINDS, "weak", Weak)
    path = tmp_path / "x.json"
    options = ["--kinds", "weak", "--jobs", "1", "--output", str(path)]
    write_runs(path, [runner.Run("weak", 4, 0, 5, tried=5, failures=[[1, "it breaks"], [3, "it breaks"]])], [Weak()])
    assert main([*options, "--again"]) == 1
    assert "--seed 4 --only 3: it breaks" in capsys.readouterr().err
    mended.add(3)
    assert [number for number, _ in read_runs(path)[0].mended] == [1]
    assert "## Failures: 1" in path.with_suffix(".md").read_text("utf8")
    assert main([*options, "--again"]) == main([*options, "--again"]) == 0
    table = path.with_suffix(".md").read_text("utf8")
    assert "## Failures: 0" in table
    assert "repeated since without a failure: 2" in table
    assert "| weak (things) | 5 | 0 | 2 |" in table


def share(name: str, folder: Path, wanted: int, seed: int) -> None:
    kind = KINDS[name]()
    (folder / "made").mkdir()
    kind.shorten()
    kind.prepare(folder / "made")
    settings = {"seed": seed, "deadline": float("inf"), "folder": folder / "work", "say": print}
    run = run_cases(kind, wanted=wanted, first=0, jobs=1, **settings)
    assert run.failures == []
    assert run.tried >= wanted


def share_alone(name: str, folder: Path, wanted: int, seed: int) -> None:
    """In a process of its own, as the command: what other tests left here (threads of autograd) is not to be forked."""
    process = multiprocessing.get_context("spawn").Process(target=share, args=(name, folder, wanted, seed))
    process.start()
    process.join()
    assert process.exitcode == 0, f"{name}: exit {process.exitcode}, the reason stands above"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].slow])
def test_share(name, tmp_path):
    share_alone(name, tmp_path, KINDS[name].slow, seed=2)


@pytest.mark.slow
def test_a_share_that_fails_is_told(tmp_path):
    with pytest.raises(AssertionError, match="nothing: exit 1"):
        share_alone("nothing", tmp_path, 1, seed=1)
