"""The folder of finished parts: whatever a killed process left of it, the next run goes on or begins anew."""

import shutil
from contextlib import contextmanager, suppress

import pytest

from spacy_luke.stores import work_folder
from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.work_folder import WorkFolder


def write_part(folder, name, argument):
    (folder / f"{name}.txt").write_text(argument)
    (folder / f"{name}.folder").mkdir(exist_ok=True)
    return len(argument)


@contextmanager
def building(output, arguments=("one", "three", "five")):
    """A build that needs the files of its tasks, as all do."""
    with WorkFolder(output, {"of": list(arguments)}) as folder:
        found = list(folder.run(write_part, list(arguments), name="part", engine=Engine(workers=1)))
        assert [path.read_text() for path in folder.files("part-*.txt")] == list(arguments)
        yield folder, found


def build(output, arguments=("one", "three", "five")):
    with building(output, arguments) as (folder, found):
        pass
    assert not folder.path.exists()
    return found


class KilledError(Exception):
    pass


@pytest.mark.parametrize("other_plan", [False, True])
@pytest.mark.parametrize("survived", range(13))
def test_killed_while_it_is_removed(tmp_path, monkeypatch, survived, other_plan):
    """After each number of deletions, the last of which removes the folder itself."""
    left = [survived]

    def deleting(function):
        def delete(*arguments, **settings):
            if not left[0]:
                raise KilledError
            left[0] -= 1
            return function(*arguments, **settings)

        return delete

    with monkeypatch.context() as patched, suppress(KilledError), building(tmp_path / "out") as (folder, _):
        for name in ("unlink", "rmdir"):
            patched.setattr(work_folder.Path, name, deleting(getattr(work_folder.Path, name)))
        patched.setattr(work_folder.shutil, "rmtree", deleting(shutil.rmtree))
    assert folder.path.exists() == (survived < 12), "3 results, 3 texts, 3 folders, the plan, the lock and the folder"
    arguments = ("four", "two") if other_plan else ("one", "three", "five")
    found = build(tmp_path / "out", arguments)
    assert found == [len(argument) for argument in arguments]


def test_what_is_no_folder_of_work_is_not_touched(tmp_path):
    (tmp_path / ".out.work").mkdir()
    (tmp_path / ".out.work" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="in the way"):
        build(tmp_path / "out")
    assert (tmp_path / ".out.work" / "mine.txt").read_text() == "mine"


def test_two_builds_of_one_output(tmp_path):
    """The second one would remove what the first one makes, or be removed by it."""
    with building(tmp_path / "out") as (folder, _):
        for arguments in (("one", "three", "five"), ("two",)):
            with pytest.raises(ValueError, match=r"Another process is building .*out.*\.out\.work\. Wait"):
                build(tmp_path / "out", arguments)
        assert len(folder.files("part-*.txt")) == 3
    assert build(tmp_path / "out", ["two"]) == [3]


def test_an_error_lets_it_go(tmp_path):
    """Also of the same process, as in a notebook, whose errors stay alive."""
    with pytest.raises(KilledError) as raised, building(tmp_path / "out") as (folder, _):
        raise KilledError
    assert len(folder.files("part-*.json")) == 3
    assert build(tmp_path / "out") == [3, 5, 4]
    assert raised.type is KilledError


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(work_folder, "_write_json", full)
    with pytest.raises(OSError, match="No space left"):
        build(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
