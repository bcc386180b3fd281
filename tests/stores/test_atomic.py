"""What killed processes leave goes, and what living ones hold stays; folders change places at once."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing import get_context

import pytest

from spacy_luke.stores import atomic
from spacy_luke.stores.atomic import HeldFolder, hold, mend, sweep, write_atomically, write_folder_atomically

pytestmark = pytest.mark.skipif(atomic.fcntl is None, reason="Windows has no such locks")

WRITE = {
    "file": "with write_atomically(path) as new:",
    "folder": "with write_folder_atomically(path) as new:",
}


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def start_writer(path, what, before=""):
    """A process that writes, and waits in the middle of it."""
    lines = [
        "import pathlib, sys, time",
        "from spacy_luke.stores.atomic import write_atomically, write_folder_atomically",
        "path = pathlib.Path(sys.argv[1])",
        *before.splitlines(),
        WRITE[what],
        "    (new / 'half' if new.is_dir() else new).write_text('half')",
        "    print('writing', flush=True)",
        "    time.sleep(60)",
    ]
    child = subprocess.Popen([sys.executable, "-c", "\n".join(lines), str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    return child


def end(child):
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


def write(path, what):
    with (write_atomically if what == "file" else write_folder_atomically)(path) as new:
        (new / "whole" if new.is_dir() else new).write_text("whole")


@pytest.mark.parametrize("killed", ["file", "folder"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_the_next_write_removes_what_a_killed_one_left(tmp_path, killed, what):
    end(start_writer(tmp_path / "one", killed))
    assert len(names_in(tmp_path)) == 1
    write(tmp_path / "other", what)
    assert names_in(tmp_path) == ["other"]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_living_process_writes_stays(tmp_path, what):
    child = start_writer(tmp_path / "one", what)
    try:
        held = names_in(tmp_path)
        write(tmp_path / "one", what)
        sweep(tmp_path)
        assert names_in(tmp_path) == sorted([*held, "one"])
    finally:
        end(child)
    sweep(tmp_path)
    assert names_in(tmp_path) == ["one"]


def test_a_child_of_a_killed_process_holds_on(tmp_path):
    """Workers that were forked may still write."""
    child = start_writer(
        tmp_path / "one",
        "folder",
        before="import os\n_write = write_folder_atomically\ndef write_folder_atomically(path):\n    return "
        "_forked(path)\n"
        "from contextlib import contextmanager\n@contextmanager\ndef _forked(path):\n    with _write(path) as new:\n"
        "        pid = os.fork()\n        if pid == 0:\n            time.sleep(60)\n            os._exit(0)\n"
        "        (path.parent / 'pid').write_text(str(pid))\n        yield new\n",
    )
    worker = int((tmp_path / "pid").read_text())
    child.send_signal(signal.SIGKILL)
    child.wait()
    try:
        before = names_in(tmp_path)
        sweep(tmp_path)
        assert names_in(tmp_path) == before
        assert len(before) == 2
    finally:
        os.kill(worker, signal.SIGKILL)
        child.stdout.close()
    for _ in range(100):  # the system takes a moment to end it
        sweep(tmp_path)
        if names_in(tmp_path) == ["pid"]:
            break
        time.sleep(0.05)
    assert names_in(tmp_path) == ["pid"]


def make_left(parent, machine=None):
    """As a killed process leaves it."""
    held = HeldFolder(parent / "one")
    held.path.write_text("half")
    os.close(held._lock)
    held._lock = None
    if machine is not None:
        (held.folder / atomic.LOCK).write_bytes(machine)
    return held.folder


def make_old(folder, days):
    then = time.time() - days * 24 * 3600
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (then, then))


@pytest.mark.parametrize(("days", "stays"), [(0, True), (6, True), (8, False)])
def test_of_another_machine_only_what_is_old(tmp_path, days, stays):
    """A lock on a shared disk may not be seen from here."""
    folder = make_left(tmp_path, machine=b"another machine")
    make_old(folder, days)
    sweep(tmp_path)
    assert folder.exists() == stays


@pytest.mark.parametrize(("days", "stays"), [(0, True), (8, False)])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_of_earlier_versions_only_what_is_old(tmp_path, days, stays, what):
    left = tmp_path / ".model.ab12_x9z.new"
    if what == "file":
        left.write_text("half")
    else:
        left.mkdir()
        (left / "half").touch()
    make_old(left, days)
    sweep(tmp_path)
    assert left.exists() == stays


def test_what_is_not_ours_stays(tmp_path):
    others = [".model.new", "model.ab12_x9z.new", ".model.ab12_x9.new", ".model.ab12_x9z.old"]
    for name in others:
        (tmp_path / name).mkdir()
        make_old(tmp_path / name, 8)
    (tmp_path / "target").mkdir()
    (tmp_path / ".link.ab12_x9z.new").symlink_to(tmp_path / "target")
    sweep(tmp_path)
    assert names_in(tmp_path) == sorted([*others, "target", ".link.ab12_x9z.new"])


def test_only_its_process_removes_a_held_folder(tmp_path):
    held = HeldFolder(tmp_path / "one")
    child = get_context("fork").Process(target=held.close)
    child.start()
    child.join()
    assert held.folder.is_dir()
    held.close()
    held.close()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("exchange", [True, False])
def test_folders_change_places(tmp_path, monkeypatch, exchange):
    """exchange: whether the system can; Linux can on most disks."""
    seen = []
    if exchange:
        if sys.platform != "linux":
            pytest.skip("Linux exchanges names")
        monkeypatch.setattr(atomic, "_rename_twice", lambda *paths: seen.append(paths))
    else:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    for text in ("one", "two"):
        with write_folder_atomically(tmp_path / "model") as new:
            (new / text).write_text(text)
        assert names_in(tmp_path) == ["model"]
        assert names_in(tmp_path / "model") == [text]
    assert not seen


def test_a_reader_always_finds_a_folder(tmp_path):
    if sys.platform != "linux":
        pytest.skip("Linux exchanges names")
    write(tmp_path / "model", "folder")
    code = """
        import os, sys
        print("reading", flush=True)
        missed = 0
        while not os.path.exists(sys.argv[2]):
            missed += not os.path.exists(sys.argv[1])
        print(missed)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "model" / "whole"), str(tmp_path / "stop")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "reading\n"
    for _ in range(100):
        write(tmp_path / "model", "folder")
    (tmp_path / "stop").touch()
    assert child.communicate()[0] == "0\n"


def write_often(folder, number):
    for _ in range(20):
        with write_folder_atomically(folder) as new:
            (new / "number").write_text(str(number))


def test_several_writers_of_one_folder(tmp_path):
    context = get_context("spawn")
    writers = [context.Process(target=write_often, args=(tmp_path / "model", number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert names_in(tmp_path) == ["model"]
    assert (tmp_path / "model" / "number").read_text() in "012"


def test_the_second_writer_is_refused_where_it_is_to_be(tmp_path):
    make_left(tmp_path, machine=b"another one")
    for name in ("one", "model.x"):
        with write_folder_atomically(tmp_path / name, busy="busy"):
            if name == "one":
                with pytest.raises(ValueError, match="busy"), write_folder_atomically(tmp_path / "one", busy="busy"):
                    pass
                write(tmp_path / "one", "folder")  # whoever does not ask goes on
            write(tmp_path / "model", "folder")
            with write_folder_atomically(tmp_path / "model", busy="busy"):
                pass
    with write_folder_atomically(tmp_path / "one", busy="busy"):
        pass


def test_a_folder_between_two_renames_comes_back(tmp_path):
    (tmp_path / ".model.old").mkdir()
    mend(tmp_path / "model")
    assert names_in(tmp_path) == ["model"]
    (tmp_path / ".model.old").mkdir()
    mend(tmp_path / "model")
    assert names_in(tmp_path) == ["model"]


@pytest.mark.parametrize("write", [write_atomically, write_folder_atomically])
def test_errors_name_the_place_that_was_asked_for(tmp_path, write):
    """Not the hidden folder beside it."""
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError if write is write_atomically else FileExistsError) as error:
        with write(tmp_path / "file" / "new"):
            pass
    assert ".new" not in error.value.filename
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(IsADirectoryError) as error, write_atomically(tmp_path / "full"):
        pass
    assert error.value.filename == str(tmp_path / "full")


@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("is_there", [True, False])
def test_links_lead_to_what_is_written(tmp_path, what, is_there):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/place")
    if is_there:
        write(tmp_path / "disk" / "place", what)
    write(tmp_path / "link", what)
    assert (tmp_path / "link").readlink().as_posix() == "disk/place"
    assert (tmp_path / "disk" / "place").is_dir() == (what == "folder")
    assert [names_in(tmp_path), names_in(tmp_path / "disk")] == [["disk", "link"], ["place"]]


def test_hold(tmp_path):
    path = tmp_path / "manifest"
    path.touch()
    with hold(path, busy="busy"):
        with pytest.raises(ValueError, match="busy"), hold(path, busy="busy"):
            pass
        write(path, "file")
        with hold(path, busy="busy"):
            pass
    with hold(path, busy="busy"):
        pass


@pytest.mark.parametrize("locked", [False, True])
def test_a_folder_that_was_only_just_made(tmp_path, locked):
    """Its process was killed before it held it; one that lives makes another."""
    left = tmp_path / ".x.abcdefgh.new"
    left.mkdir()
    if locked:
        (left / atomic.LOCK).touch()
    sweep(tmp_path)
    assert names_in(tmp_path) == []
    assert atomic._take(left / atomic.LOCK) is None
