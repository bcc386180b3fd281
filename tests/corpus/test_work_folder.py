"""The folder of finished parts: whatever a killed process left of it, the next run goes on or begins anew."""

import shutil

import pytest

from spacy_luke.corpus import work_folder
from spacy_luke.corpus.parallel import Engine
from spacy_luke.corpus.work_folder import WorkFolder


def write_part(folder, name, argument):
    (folder / f"{name}.txt").write_text(argument)
    (folder / f"{name}.folder").mkdir(exist_ok=True)
    return len(argument)


def build(output, arguments=("one", "three", "five")):
    """A build that needs the files of its tasks, as all do."""
    folder = WorkFolder(output, {"of": list(arguments)})
    found = list(folder.run(write_part, list(arguments), name="part", engine=Engine(workers=1)))
    assert [path.read_text() for path in folder.files("part-*.txt")] == list(arguments)
    return folder, found


class KilledError(Exception):
    pass


@pytest.mark.parametrize("other_plan", [False, True])
@pytest.mark.parametrize("survived", range(12))
def test_killed_while_it_is_removed(tmp_path, monkeypatch, survived, other_plan):
    """After each number of deletions, the last of which removes the folder itself."""
    folder, _ = build(tmp_path / "out")
    left = [survived]

    def deleting(function):
        def delete(*arguments, **settings):
            if not left[0]:
                raise KilledError
            left[0] -= 1
            return function(*arguments, **settings)

        return delete

    with monkeypatch.context() as patched:
        for name in ("unlink", "rmdir"):
            patched.setattr(work_folder.Path, name, deleting(getattr(work_folder.Path, name)))
        patched.setattr(work_folder.shutil, "rmtree", deleting(shutil.rmtree))
        try:
            folder.remove()
        except KilledError:
            pass
    assert folder.path.exists() == (survived < 11), "3 results, 3 texts, 3 folders, the plan and the folder itself"
    arguments = ("four", "two") if other_plan else ("one", "three", "five")
    _, found = build(tmp_path / "out", arguments)
    assert found == [len(argument) for argument in arguments]


def test_what_is_no_folder_of_work_is_not_touched(tmp_path):
    (tmp_path / ".out.work").mkdir()
    (tmp_path / ".out.work" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="in the way"):
        build(tmp_path / "out")
    assert (tmp_path / ".out.work" / "mine.txt").read_text() == "mine"
