"""scripts/fetch_commit.py: a folder as it was at a commit, whatever came after."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from weasel.util.hashing import get_checksum

ROOT = Path(__file__).parents[1]
FETCH = runpy.run_path(str(ROOT / "scripts/fetch_commit.py"), run_name="loaded")["fetch"]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(folder, *arguments):
    settings = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *settings, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository whose file has changed since the commit that is wanted. RETURNS: it, the commit, the checksum."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    (folder / "data/sub").mkdir(parents=True)
    (folder / "data/sub/a.txt").write_text("old", encoding="utf8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "old")
    commit, checksum = git(folder, "rev-parse", "HEAD"), get_checksum(folder / "data")
    (folder / "data/sub/a.txt").write_text("new", encoding="utf8")
    git(folder, "commit", "--quiet", "-a", "-m", "new")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub does
    return folder, commit, checksum


def test_the_commit_is_fetched_and_then_left_alone(repository, tmp_path, capsys):
    folder, commit, checksum = repository
    to = tmp_path / "deep/data"
    FETCH(f"file://{folder}", commit, [("data", to, checksum)])
    assert (to / "sub/a.txt").read_text(encoding="utf8") == "old"
    FETCH("file:///nowhere", commit, [("data", to, checksum)])
    assert "is there already" in capsys.readouterr().out


def test_another_checksum_writes_nothing(repository, tmp_path):
    folder, commit, _ = repository
    with pytest.raises(SystemExit, match="expected the checksum 123"):
        FETCH(f"file://{folder}", commit, [("data", tmp_path / "data", "123")])
    assert not (tmp_path / "data").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(SystemExit, match="remove it"):
        FETCH(f"file://{folder}", commit, [("data", tmp_path / "mine", "123")])


def test_a_commit_that_is_not_there(repository, tmp_path):
    with pytest.raises(SystemExit, match=r"fetch .* failed"):
        FETCH(f"file://{repository[0]}", "0" * 40, [("data", tmp_path / "data", "1")])
