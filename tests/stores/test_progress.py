"""Bars in a terminal, and a line a minute elsewhere."""

import io
import subprocess
import sys

import pytest

from spacy_luke.stores import progress
from spacy_luke.stores.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_a_bar():
    stream = Terminal()
    with ProgressBar(range(3), "reading", unit="file", stream=stream, keep=True) as bar:
        assert bar.is_shown
        assert list(bar) == [0, 1, 2]
    assert "reading: 100%" in stream.getvalue()
    assert "3/3" in stream.getvalue()
    with ProgressBar(None, "steps", total=8, done=2, stream=stream, keep=True) as bar:
        bar.update(4)
        bar.describe("still")
    assert "still" in stream.getvalue()
    assert "6/8" in stream.getvalue()


def test_nothing_is_shown_elsewhere_in_the_first_minute(capsys):
    for stream, show in ((io.StringIO(), True), (Terminal(), False), (None, True)):
        with ProgressBar(iter("ab"), "reading", show=show, stream=stream) as bar:
            assert not bar.is_shown
            assert list(bar) == ["a", "b"]
            bar.update()
            bar.describe("more")
            bar.write("a line")
        assert stream is None or stream.getvalue() == ""
    assert capsys.readouterr().out == "a line\n" * 3


def test_what_is_not_shown_leaves_no_lock_and_no_thread():
    """Both would stay with the user's program, and the lock with all that it forks."""
    code = (
        "import threading\n"
        "from spacy_luke.stores.progress import ProgressBar, tqdm\n"
        "assert list(ProgressBar([1, 2], 'reading')) == [1, 2]\n"
        "ProgressBar(None, 'reading', show=False).update()\n"
        "assert threading.active_count() == 1\n"
        "assert not hasattr(tqdm, '_lock')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("lines", "told"), [(True, "reading: 3 of 4 words\nreading: 8 of 4 words\n"), (False, "")])
def test_lines_elsewhere(monkeypatch, lines, told):
    monkeypatch.setattr(progress, "PAUSE", 0.0)  # seconds
    stream = io.StringIO()
    bar = ProgressBar("abcd", "reading", unit="words", stream=stream, lines=lines)
    bar.update(3)
    bar.update(5)
    assert stream.getvalue() == told


def test_lines_of_a_loop_whose_length_is_not_known(monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    stream = io.StringIO()
    assert list(ProgressBar(iter("ab"), stream=stream, unit="")) == ["a", "b"]
    assert stream.getvalue() == "at work: 1\nat work: 2\n"
